"""One engine in one process: emberlake in .venv, pypaimon or pypaimon-rust in .venv-peers.

Takes JSON requests, one a line, and answers with the seconds that the measured part took. It runs
in both environments, so it imports nothing but pyarrow and the engine it was started for.
"""

import gc
import json
import os
import sys
import time
import traceback

import pyarrow as pa


class PythonEngine:
    """emberlake and pypaimon: one shape of API."""

    def __init__(self, package: str) -> None:
        if package == "emberlake":
            import emberlake as module  # noqa: PLC0415
        else:
            import pypaimon as module  # noqa: PLC0415
        self.catalogs = module.CatalogFactory
        self.schemas = module.Schema

    def table(self, warehouse: str, name: str):
        return self.catalogs.create({"warehouse": warehouse}).get_table(name)

    def create(
        self, warehouse: str, name: str, schema: pa.Schema, keys: dict, options: dict
    ) -> None:
        catalog = self.catalogs.create({"warehouse": warehouse})
        catalog.create_database(name.split(".", maxsplit=1)[0], True)
        declared = self.schemas.from_pyarrow_schema(schema, **keys, options=options)
        catalog.create_table(name, declared, False)

    def start_write(self, table, data: pa.Table):
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(data)
        return commit, write.prepare_commit()

    def plan(self, table, columns: list | None):
        builder = table.new_read_builder()
        if columns:
            builder = builder.with_projection(columns)
        return builder, builder.new_scan().plan().splits()

    def read(self, builder, splits) -> pa.Table:
        return builder.new_read().to_arrow(splits)


class RustEngine(PythonEngine):
    """pypaimon-rust through its own binding; only the creation of tables is pypaimon's."""

    def __init__(self) -> None:
        from pypaimon_rust.datafusion import PaimonCatalog  # noqa: PLC0415

        self.rust_catalogs = PaimonCatalog

    def create(self, *what) -> None:
        super().__init__("pypaimon")
        super().create(*what)

    def table(self, warehouse: str, name: str):
        return self.rust_catalogs({"warehouse": warehouse}).get_table(name)

    def start_write(self, table, data: pa.Table):
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        for batch in data.to_batches():
            write.write_arrow(batch)
        return commit, write.prepare_commit()

    def read(self, builder, splits) -> pa.Table:
        return pa.Table.from_batches(builder.new_read().read(splits))


class Worker:
    """Does what a request says and measures the part that counts."""

    def __init__(self, engine: PythonEngine) -> None:
        self.engine = engine
        self.inputs: dict = {}

    def create(self, request: dict) -> dict:
        schema = self.data(request).schema
        where = request["warehouse"], request["table"]
        keys = {name: request.get(name, []) for name in ("partition_keys", "primary_keys")}
        self.engine.create(*where, schema, keys, request["options"])
        return {}

    def write(self, request: dict) -> dict:
        """Route, write, prepare and commit."""
        data = self.data(request)
        data = data.slice(0, request.get("data_rows", data.num_rows))
        table = self.engine.table(request["warehouse"], request["table"])
        start = time.perf_counter()
        commit, messages = self.engine.start_write(table, data)
        commit.commit(messages)
        return {"seconds": time.perf_counter() - start, "rows": data.num_rows}

    def commit(self, request: dict) -> dict:
        """The commit alone."""
        table = self.engine.table(request["warehouse"], request["table"])
        commit, messages = self.engine.start_write(table, self.data(request).slice(0, 1))
        start = time.perf_counter()
        commit.commit(messages)
        return {"seconds": time.perf_counter() - start}

    def plan(self, request: dict) -> dict:
        """From the catalog to the splits; nothing of the table is known before."""
        start = time.perf_counter()
        table = self.engine.table(request["warehouse"], request["table"])
        _, splits = self.engine.plan(table, None)
        return {"seconds": time.perf_counter() - start, "splits": len(splits)}

    def scan(self, request: dict) -> dict:
        """Plan and read everything into one Arrow table."""
        table = self.engine.table(request["warehouse"], request["table"])
        start = time.perf_counter()
        found = self.engine.read(*self.engine.plan(table, request["columns"]))
        return {"seconds": time.perf_counter() - start, "rows": found.num_rows}

    def data(self, request: dict) -> pa.Table:
        key = request["data"], tuple(request["data_columns"])
        if key not in self.inputs:
            with pa.OSFile(request["data"], "rb") as source:
                table = pa.ipc.open_file(source).read_all()
            self.inputs[key] = table.select(request["data_columns"])
        return self.inputs[key]


def main(engine_name: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like answers
    worker = Worker(RustEngine() if engine_name == "rust" else PythonEngine(engine_name))
    for line in sys.stdin:
        request = json.loads(line)
        gc.collect()
        try:
            answer = getattr(worker, request["operation"])(request)
        except BaseException:  # noqa: BLE001  Rust panics are no Exception; the driver gets them all
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
