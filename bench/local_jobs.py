"""The jobs of engines on one machine, without Spark."""

import subprocess
from collections.abc import Iterator

from engines import LOCAL, EngineFailed, EngineProcess, Measurement
from many_files import table_of_many_files
from state import Bench, Job, Measure, Run, folder_of

COLUMNS = ["id", "a", "b", "c", "d", "e", "f", "g"]
PARTITIONED = ["id", "a", "b", "c", "d", "e", "f", "p"]
KEYED = {"primary_keys": ["id"], "options": {"bucket": "4"}}
ALL = ("emberlake", "rust", "pypaimon", "parquet")
TABLE_ENGINES = ("emberlake", "rust", "pypaimon")
UPDATED_SHARE = 2  # every second row is written again
FILTERED_SHARE = 20  # one row of twenty passes the filter
IMPORTS = {
    "emberlake": "from emberlake import CatalogFactory, Schema",
    "baseline": "from emberlake import CatalogFactory, Schema",
    "pypaimon": "from pypaimon import CatalogFactory, Schema",
    "rust": "from pypaimon_rust.datafusion import PaimonCatalog",
}


def writing(columns: list[str], partition_keys: list[str], options: dict[str, str]) -> Run:
    """Write all rows into a new table: routing, files and commit."""

    def run(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.row_data), "data_columns": columns}

        def measure(engine: str) -> Measurement:
            table, process = bench.new_table(), bench.local(engine)
            shape = {"partition_keys": partition_keys, "options": options}
            process.ask("create", **table, **source, **shape)
            answer = process.ask("write", **table, **source)
            bench.drop(table)
            return Measurement.of(answer)

        yield measure

    return run


def writing_keys(primary_keys: list[str], *, update: bool = False) -> Run:
    """Write all rows into a new table with a primary key, or a share of them again."""

    def run(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.key_data), "data_columns": COLUMNS}
        shape = {"primary_keys": primary_keys, "options": {"bucket": "4"}}

        def measure(engine: str) -> Measurement:
            table, process = bench.new_table(), bench.local(engine)
            process.ask("create", **table, **source, **shape)
            answer = process.ask("write", **table, **source)
            if update:
                rows = answer["rows"] // UPDATED_SHARE
                answer = process.ask("write", **table, **source, data_rows=rows)
            bench.drop(table)
            return Measurement.of(answer)

        yield measure

    return run


def scanning(columns: list[str] | None = None, *, filtered: bool = False) -> Run:
    """Read the same rows into Arrow: one table for all engines, a file for plain Parquet."""

    def run(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.row_data), "data_columns": COLUMNS}
        shape = {"partition_keys": [], "options": {}}
        tables = {"rust": bench.new_table(), "parquet": bench.new_table()}
        for writer, table in tables.items():
            bench.local(writer).ask("create", **table, **source, **shape)
            bench.local(writer).ask("write", **table, **source)

        def measure(engine: str) -> Measurement:
            table = tables["parquet" if engine == "parquet" else "rust"]
            return read(bench, engine, table, columns, filtered=filtered)

        yield measure
        for table in tables.values():
            bench.drop(table)

    return run


def merging(columns: list[str] | None = None, *, filtered: bool = False) -> Run:
    """Read a table with a primary key, half of whose rows were written twice, into Arrow."""

    def run(bench: Bench) -> Iterator[Measure]:
        table = overlapping(bench)
        yield lambda engine: read(bench, engine, table, columns, filtered=filtered)
        bench.drop(table)

    return run


def compacting(bench: Bench) -> Iterator[Measure]:
    """Compact such a table fully; for plain Parquet, read and write as many rows again."""
    source = {"data": str(bench.key_data), "data_columns": COLUMNS}

    def measure(engine: str) -> Measurement:
        process = bench.local(engine)
        if engine == "parquet":
            table = bench.new_table()
            process.ask("create", **table, **source, **KEYED)
            process.ask("write", **table, **source)
        else:
            table = overlapping(bench)
        answer = process.ask("compact", **table)
        bench.drop(table)
        return Measurement.of(answer)

    yield measure


def planning(files: int, *, warm: bool = False) -> Run:
    """Plan a table of many files, first thing in a new process or for the third time."""

    def run(bench: Bench) -> Iterator[Measure]:
        table = table_of_many_files(bench, files)

        def measure(engine: str) -> Measurement:
            process = EngineProcess(LOCAL[engine])
            try:
                for _ in range(3 if warm else 1):
                    answer = process.ask("plan", **table)
            finally:
                process.close()
            return Measurement.of(answer)

        yield measure
        bench.drop(table)

    return run


def committing(files: int, *, durable: bool = False) -> Run:
    """Commit one more file to a table that has so many, until it is on the disk when asked."""

    def run(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.tiny_data), "data_columns": ["p", "id"]}

        def measure(engine: str) -> Measurement:
            process = bench.local(engine)
            if files:
                table = table_of_many_files(bench, files)
            else:
                table = bench.new_table()
                process.ask("create", **table, **source, partition_keys=["p"], options={})
            wish = {"folder": str(folder_of(table)), "durable": durable}
            answer = process.ask("commit", **table, **source, **wish)
            bench.drop(table)
            return Measurement.of(answer)

        yield measure

    return run


def importing(_: Bench) -> Iterator[Measure]:
    """The import of the package in a fresh interpreter."""

    def measure(name: str) -> Measurement:
        engine = LOCAL[name]
        program = (
            "import time; start = time.perf_counter(); "
            f"{IMPORTS[name]}; print(time.perf_counter() - start)"
        )
        command = [engine.python, "-c", program]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=engine.environment
        )
        if done.returncode:
            raise EngineFailed(done.stderr)
        return Measurement(float(done.stdout))

    yield measure


def overlapping(bench: Bench) -> dict[str, str]:
    """A table with a primary key, half of whose rows were written twice."""
    table, writer = bench.new_table(), bench.local("rust")
    source = {"data": str(bench.key_data), "data_columns": COLUMNS}
    writer.ask("create", **table, **source, **KEYED)
    writer.ask("write", **table, **source)
    writer.ask("write", **table, **source, data_rows=bench.settings.rows // UPDATED_SHARE)
    return table


def read(
    bench: Bench, engine: str, table: dict[str, str], columns: list[str] | None, *, filtered: bool
) -> Measurement:
    expected = bench.settings.rows // (FILTERED_SHARE if filtered else 1)
    limit = {"id_below": expected} if filtered else {}
    answer = bench.local(engine).ask("scan", **table, columns=columns, **limit)
    if answer["rows"] != expected:
        raise EngineFailed(f"read {answer['rows']} rows of {expected}")
    return Measurement.of(answer)


def local_jobs(many_files: tuple[int, ...]) -> list[Job]:
    """All jobs; plans and commits at the given numbers of files."""
    most = max(many_files)

    def job(name: str, title: str, engines: tuple[str, ...], run: Run) -> Job:
        compared = {name: LOCAL[name] for name in LOCAL if name in (*engines, "baseline")}
        return Job(name, title, compared, run)

    return [
        job("append", "append", ALL, writing(COLUMNS, [], {})),
        job("append-partitioned", "append, 5 partitions", ALL, writing(PARTITIONED, ["p"], {})),
        job(
            "append-bucketed",
            "append, 8 buckets",
            TABLE_ENGINES,
            writing(COLUMNS, [], {"bucket": "8", "bucket-key": "id"}),
        ),
        job("key-write", "key table, BIGINT key", ALL, writing_keys(["id"])),
        job("key-write-string", "key table, (STRING, BIGINT) key", ALL, writing_keys(["c", "id"])),
        job(
            "key-upsert",
            "upsert of half the rows",
            TABLE_ENGINES,
            writing_keys(["id"], update=True),
        ),
        job("scan", "scan", ALL, scanning()),
        job("scan-2-columns", "scan of two columns", ALL, scanning(["id", "b"])),
        job("scan-filtered", "scan of 5 % of the rows", ALL, scanning(filtered=True)),
        job("merge-read", "merged read", TABLE_ENGINES, merging()),
        job(
            "merge-read-2-columns",
            "merged read of two columns",
            TABLE_ENGINES,
            merging(["id", "b"]),
        ),
        job(
            "merge-read-filtered",
            "merged read of 5 % of the rows",
            TABLE_ENGINES,
            merging(filtered=True),
        ),
        job("compact", "full compaction", ("emberlake", "parquet"), compacting),
        *(
            job(f"plan-{files}-files", f"plan {files:,} files", TABLE_ENGINES, planning(files))
            for files in many_files
        ),
        job(
            f"plan-{most}-files-warm",
            f"plan {most:,} files again",
            TABLE_ENGINES,
            planning(most, warm=True),
        ),
        *(
            job(
                f"commit-{files}-files",
                f"commit on {files:,} files",
                TABLE_ENGINES,
                committing(files),
            )
            for files in (0, *many_files[1:])
        ),
        *(
            job(
                f"durable-commit-{files}-files",
                f"commit on {files:,} files, until it is on the disk",
                TABLE_ENGINES,
                committing(files, durable=True),
            )
            for files in (0, *many_files[1:])
        ),
        job("import", "import", TABLE_ENGINES, importing),
    ]
