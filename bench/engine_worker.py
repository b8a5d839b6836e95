"""One engine in one process: emberlake and plain Parquet in .venv, the peers in .venv-peers.

Takes JSON requests, one a line, and answers with the seconds that the measured part took and the
memory it needed. It runs in both environments, so it imports nothing but pyarrow, its neighbours
and the engine it was started for.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from memory_use import own_peak
from requests_in_turn import answer_requests


class PythonEngine:
    """emberlake and pypaimon: one shape of API."""

    def __init__(self, package: str) -> None:
        if package == "emberlake":
            import emberlake as module  # noqa: PLC0415
        else:
            import pypaimon as module  # noqa: PLC0415
        self.catalogs = module.CatalogFactory
        self.schemas = module.Schema

    def table(self, where: dict, name: str):
        return self.catalogs.create(where).get_table(name)

    def create(self, where: dict, name: str, schema: pa.Schema, keys: dict, options: dict) -> None:
        catalog = self.catalogs.create(where)
        catalog.create_database(name.split(".", maxsplit=1)[0], True)
        declared = self.schemas.from_pyarrow_schema(schema, **keys, options=options)
        catalog.create_table(name, declared, False)

    def start_write(self, table, data: pa.Table):
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(data)
        return commit, write.prepare_commit()

    def plan(self, table, columns: list | None, below: int | None):
        builder = table.new_read_builder()
        if below is not None:
            builder = builder.with_filter(self.id_below(builder, below))
        if columns:
            builder = builder.with_projection(columns)
        return builder, builder.new_scan().plan().splits()

    def id_below(self, builder, limit: int):
        return builder.new_predicate_builder().less_than("id", limit)

    def read(self, builder, splits) -> pa.Table:
        return builder.new_read().to_arrow(splits)

    def compact(self, table) -> None:
        table.compact(full=True)


class RustEngine(PythonEngine):
    """pypaimon-rust through its own binding; only the creation of tables is pypaimon's."""

    def __init__(self) -> None:
        from pypaimon_rust.datafusion import PaimonCatalog  # noqa: PLC0415

        self.rust_catalogs = PaimonCatalog

    def create(self, *what) -> None:
        super().__init__("pypaimon")
        super().create(*what)

    def table(self, where: dict, name: str):
        return self.rust_catalogs(where).get_table(name)

    def start_write(self, table, data: pa.Table):
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        for batch in data.to_batches():
            write.write_arrow(batch)
        return commit, write.prepare_commit()

    def id_below(self, builder, limit: int):
        return {"method": "lessThan", "field": "id", "literals": [limit]}

    def read(self, builder, splits) -> pa.Table:
        return pa.Table.from_batches(builder.new_read().read(splits))


class ParquetEngine:
    """Files of pyarrow's own, without a table: what the rows cost by themselves."""

    def __init__(self) -> None:
        import pyarrow.dataset  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415

        self.parquet, self.datasets = pyarrow.parquet, pyarrow.dataset
        self.keys: dict = {}

    def create(self, where: dict, name: str, schema: pa.Schema, keys: dict, options: dict) -> None:
        folder = self.table(where, name)
        folder.mkdir(parents=True)
        self.keys[folder] = keys

    def table(self, where: dict, name: str) -> Path:
        database, table = name.split(".")
        return Path(where["warehouse"]) / f"{database}.db" / table

    def start_write(self, table: Path, data: pa.Table):
        keys = self.keys[table]
        if keys["partition_keys"]:
            self.datasets.write_dataset(
                data,
                table,
                format="parquet",
                file_options=self.datasets.ParquetFileFormat().make_write_options(
                    compression="zstd"
                ),
                partitioning=keys["partition_keys"],
                partitioning_flavor="hive",
            )
        else:
            if keys["primary_keys"]:
                data = data.sort_by([(key, "ascending") for key in keys["primary_keys"]])
            self.parquet.write_table(data, table / "rows.parquet", compression="zstd")
        return self, None

    def commit(self, messages) -> None:
        """There is nothing to be committed."""

    def plan(self, table: Path, columns: list | None, below: int | None):
        filters = None if below is None else [("id", "<", below)]
        return (columns, filters), sorted(table.glob("**/*.parquet"))

    def read(self, wish, files) -> pa.Table:
        columns, filters = wish
        found = [self.parquet.read_table(f, columns=columns, filters=filters) for f in files]
        return pa.concat_tables(found)

    def compact(self, table: Path) -> None:
        rows = self.read((None, None), table.glob("**/*.parquet"))
        self.parquet.write_table(rows, table / "compacted.parquet", compression="zstd")


class BucketEngine:
    """The same through pyarrow's own S3 filesystem: one file, and all files below a folder."""

    def __init__(self) -> None:
        import pyarrow.dataset  # noqa: PLC0415
        import pyarrow.fs  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415

        self.parquet, self.datasets, self.filesystems = pyarrow.parquet, pyarrow.dataset, pyarrow.fs
        self.opened: dict = {}

    def create(self, where: dict, name: str, schema: pa.Schema, keys: dict, options: dict) -> None:
        """There are no folders."""

    def table(self, where: dict, name: str):
        database, table = name.split(".")
        folder = f"{where['warehouse'].removeprefix('s3://')}/{database}.db/{table}"
        endpoint = where["s3.endpoint"]
        if endpoint not in self.opened:
            self.opened[endpoint] = self.filesystems.S3FileSystem(
                access_key=where["s3.access-key"],
                secret_key=where["s3.secret-key"],
                region=where["s3.region"],
                endpoint_override=endpoint,
            )
        return self.opened[endpoint], folder

    def start_write(self, table, data: pa.Table):
        files, folder = table
        path = f"{folder}/bucket-0/rows.parquet"
        self.parquet.write_table(data, path, filesystem=files, compression="zstd")
        return self, None

    def commit(self, messages) -> None:
        """There is nothing to be committed."""

    def plan(self, table, columns: list | None, below: int | None):
        files, folder = table
        found = self.datasets.dataset(f"{folder}/bucket-0", filesystem=files, format="parquet")
        return columns, found

    def read(self, columns, found) -> pa.Table:
        return found.to_table(columns=columns)


class Worker:
    """Does what a request says and measures the part that counts."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.inputs: dict = {}

    def create(self, request: dict) -> dict:
        schema = self.data(request).schema
        where = catalog_options(request), request["table"]
        keys = {name: request.get(name, []) for name in ("partition_keys", "primary_keys")}
        self.engine.create(*where, schema, keys, request["options"])
        return {}

    def write(self, request: dict) -> dict:
        """Route, write, prepare and commit."""
        data = self.data(request)
        data = data.slice(0, request.get("data_rows", data.num_rows))
        table = self.table(request)
        with measured() as answer:
            commit, messages = self.engine.start_write(table, data)
            commit.commit(messages)
        return {**answer, "rows": data.num_rows}

    def commit(self, request: dict) -> dict:
        """The commit alone: until the call returns or, when asked, until it is on the disk."""
        commit, messages = self.engine.start_write(
            self.table(request), self.data(request).slice(0, 1)
        )
        is_flushed = request.get("durable", False)
        folder = Path(request.get("folder", ""))
        before = metadata_files(folder) if is_flushed else set()
        with measured() as answer:
            commit.commit(messages)
            if is_flushed:
                flush(metadata_files(folder) - before, folder)
        return answer

    def plan(self, request: dict) -> dict:
        """From the catalog to the splits; nothing of the table is known before."""
        with measured() as answer:
            _, splits = self.engine.plan(self.table(request), None, None)
        return {**answer, "splits": len(splits)}

    def scan(self, request: dict) -> dict:
        """Plan and read everything into one Arrow table."""
        table = self.table(request)
        with measured() as answer:
            plan = self.engine.plan(table, request["columns"], request.get("id_below"))
            found = self.engine.read(*plan)
        return {**answer, "rows": found.num_rows}

    def compact(self, request: dict) -> dict:
        """All files of a table into one for every bucket."""
        table = self.table(request)
        with measured() as answer:
            self.engine.compact(table)
        return answer

    def table(self, request: dict):
        return self.engine.table(catalog_options(request), request["table"])

    def data(self, request: dict) -> pa.Table:
        key = request["data"], tuple(request["data_columns"])
        if key not in self.inputs:
            with pa.OSFile(request["data"], "rb") as source:
                table = pa.ipc.open_file(source).read_all()
            self.inputs[key] = table.select(request["data_columns"])
        return self.inputs[key]


def catalog_options(request: dict) -> dict:
    return {"warehouse": request["warehouse"], **request.get("store", {})}


def metadata_files(folder: Path) -> set[str]:
    """The manifests and snapshots of a table."""
    names = set()
    for part in ("manifest", "snapshot"):
        if (folder / part).exists():
            names |= {entry.path for entry in os.scandir(folder / part)}
    return names


def flush(files: set[str], folder: Path) -> None:
    """Wait until new files and their names are on the disk; nearly free if they are already."""
    for path in (*files, folder / "manifest", folder / "snapshot"):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


@contextmanager
def measured() -> Iterator[dict]:
    """An answer that has the seconds and the memory of what happens in the context."""
    answer: dict = {}
    with own_peak() as peak:
        start, cpu = time.perf_counter(), time.process_time()
        yield answer
        answer["seconds"] = time.perf_counter() - start
        answer["cpu_seconds"] = time.process_time() - cpu
    answer["peak_bytes"] = peak.bytes


def new_engine(name: str):
    others = {"rust": RustEngine, "parquet": ParquetEngine, "bucket": BucketEngine}
    return others[name]() if name in others else PythonEngine(name)


if __name__ == "__main__":
    answer_requests(Worker(new_engine(sys.argv[1])))
