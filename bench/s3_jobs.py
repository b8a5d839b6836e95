"""The jobs on an S3 server, on loopback: as it is, and behind a proxy that delays every answer."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import data
from emberlake import CatalogFactory, Schema
from emberlake.io import open_storage
from engines import S3, EngineFailed, EngineProcess, Measurement
from local_jobs import COLUMNS
from state import Bench, Job, Measure, Run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from servers import Server, free_ports, program, running, s3_server

DELAYS = (0, 30)  # milliseconds
ALL = ("emberlake", "rust", "pypaimon", "parquet")
TABLE_ENGINES = ("emberlake", "rust", "pypaimon")
FILES = 100
TWO_COLUMNS = ["id", "b"]
PROXY = Path(__file__).with_name("latency.py")
PROBE_BYTES = 64 << 20


@dataclass(frozen=True)
class Store:
    """A server, and how far away it is."""

    server: Server
    endpoints: dict[int, str]  # by milliseconds

    def options(self, delay: int) -> dict[str, str]:
        """Catalog options. Bodies are not hashed: over TLS they would not be."""
        far = replace(self.server, endpoint=self.endpoints[delay])
        return {**far.options, "s3.unsigned-payload": "true"}

    def rates(self) -> dict[int, float]:
        """How many MB a second one stream gets, by delay: proxies must not be what is measured."""
        found = {}
        for delay in self.endpoints:
            storage = open_storage(self.server.root, self.options(delay))[0]
            path = f"{self.server.root}/rate"
            storage.put(path, bytes(PROBE_BYTES))
            start = time.perf_counter()
            assert len(storage.read(path)) == PROBE_BYTES
            found[delay] = PROBE_BYTES / (time.perf_counter() - start) / 1e6
            storage.delete(path)
        return found


@contextmanager
def new_store(folder: Path) -> Iterator[Store]:
    if not program("versitygw") and not program("weed"):
        raise SystemExit("there is no S3 server; run .ci/object-stores one")
    folder.mkdir()
    with s3_server(folder) as server:
        (port,) = free_ports(1)
        delay = max(DELAYS)
        command = [sys.executable, str(PROXY), str(port), str(server.port), str(delay)]
        far = f"http://127.0.0.1:{port}"
        with running(command, far, folder / "latency.log"):
            yield Store(server, {0: server.endpoint, delay: far})


def store_of(bench: Bench) -> Store:
    """The server of this run, which is started for the first job."""
    if bench.store is None:
        bench.store = bench.open.enter_context(new_store(bench.folder / "s3"))
    return bench.store


def new_table(bench: Bench, delay: int = 0) -> dict[str, Any]:
    store = store_of(bench)
    bench.tables += 1
    where = {"warehouse": f"{store.server.root}/warehouse", "table": f"bench.t{bench.tables}"}
    return {**where, "store": store.options(delay)}


def drop(table: dict[str, Any]) -> None:
    database, name = table["table"].split(".")
    storage = open_storage(table["warehouse"], table["store"])[0]
    storage.delete_folder(f"{table['warehouse']}/{database}.db/{name}")


def at(delay: int, bench: Bench, table: dict[str, Any]) -> dict[str, Any]:
    """The same table, from so far away."""
    return {**table, "store": store_of(bench).options(delay)}


def writing(delay: int) -> Run:
    """Write all rows into a new table and commit them; pyarrow writes one file."""

    def run(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.row_data), "data_columns": COLUMNS}
        shape = {"partition_keys": [], "options": {}}

        def measure(engine: str) -> Measurement:
            table, process = new_table(bench), bench.s3(engine)
            process.ask("create", **table, **source, **shape)
            answer = process.ask("write", **at(delay, bench, table), **source)
            drop(table)
            return Measurement.of(answer)

        yield measure

    return run


def scanning(delay: int, columns: list[str] | None = None) -> Run:
    """Read one table, which pypaimon-rust wrote; pyarrow reads its file."""

    def run(bench: Bench) -> Iterator[Measure]:
        table = new_table(bench)
        source = {"data": str(bench.row_data), "data_columns": COLUMNS}
        writer = bench.s3("rust")
        writer.ask("create", **table, **source, partition_keys=[], options={})
        writer.ask("write", **table, **source)
        yield lambda engine: read(bench, engine, at(delay, bench, table), columns)
        drop(table)

    return run


def reading_many(delay: int) -> Run:
    """Plan and read two of eight columns of as many files as there are commits."""

    def run(bench: Bench) -> Iterator[Measure]:
        table = table_of_commits(bench)
        yield lambda engine: read(bench, engine, at(delay, bench, table), TWO_COLUMNS)
        drop(table)

    return run


def planning(delay: int, *, times: int = 1) -> Run:
    """From the catalog to the splits, in a new process, which has planned another table before."""

    def run(bench: Bench) -> Iterator[Measure]:
        table, other = table_of_commits(bench), table_of_commits(bench, 1)

        def measure(engine: str) -> Measurement:
            process = EngineProcess(S3[engine])
            try:
                process.ask("plan", **at(delay, bench, other))
                for _ in range(times):
                    answer = process.ask("plan", **at(delay, bench, table))
            finally:
                process.close()
            return Measurement.of(answer)

        yield measure
        drop(table)
        drop(other)

    return run


def committing(delay: int) -> Run:
    """Commit one more file, which is written before the clock starts."""

    def run(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.tiny_data), "data_columns": ["p", "id"]}

        def measure(engine: str) -> Measurement:
            table, process = new_table(bench), bench.s3(engine)
            process.ask("create", **table, **source, partition_keys=["p"], options={})
            for _ in range(3):
                process.ask("write", **table, **source, data_rows=1)
            answer = process.ask("commit", **at(delay, bench, table), **source)
            drop(table)
            return Measurement.of(answer)

        yield measure

    return run


def table_of_commits(bench: Bench, count: int = FILES) -> dict[str, Any]:
    """A table of as many commits, files and manifests; all rows together are those of the run."""
    table = new_table(bench)
    rows = data.rows(bench.settings.rows).select(COLUMNS)
    catalog = CatalogFactory.create({"warehouse": table["warehouse"], **table["store"]})
    catalog.create_database("bench", ignore_if_exists=True)
    options = {"manifest.merge-min-count": str(10 * FILES)}
    catalog.create_table(table["table"], Schema.from_pyarrow_schema(rows.schema, options=options))
    target = catalog.get_table(table["table"])
    share = rows.num_rows // count
    for start in range(0, rows.num_rows, share):
        target.append(rows.slice(start, share))
    return table


def read(
    bench: Bench, engine: str, table: dict[str, Any], columns: list[str] | None
) -> Measurement:
    answer = bench.s3(engine).ask("scan", **table, columns=columns)
    if answer["rows"] != bench.settings.rows:
        raise EngineFailed(f"read {answer['rows']} rows of {bench.settings.rows}")
    return Measurement.of(answer)


def s3_jobs() -> list[Job]:
    """All jobs, near and far."""

    def job(name: str, title: str, engines: tuple[str, ...], run: Run, delay: int) -> Job:
        compared = {name: S3[name] for name in S3 if name in (*engines, "baseline")}
        return Job(f"s3-{name}-{delay}ms", f"{title}, {delay} ms", compared, run, "s3")

    return [
        found
        for delay in DELAYS
        for found in (
            job("write", "write", ALL, writing(delay), delay),
            job("scan", "scan", ALL, scanning(delay), delay),
            job("scan-2-columns", "two columns", ALL, scanning(delay, TWO_COLUMNS), delay),
            job(f"read-{FILES}-files", f"of {FILES} files", ALL, reading_many(delay), delay),
            job(f"plan-{FILES}", f"plan {FILES} manifests", TABLE_ENGINES, planning(delay), delay),
            job(
                f"plan-{FILES}-warm",
                "plan them again",
                TABLE_ENGINES,
                planning(delay, times=3),
                delay,
            ),
            job("commit", "commit", TABLE_ENGINES, committing(delay), delay),
        )
    ]
