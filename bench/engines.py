"""Measures emberlake, pypaimon and pypaimon-rust side by side, in one run on one machine.

Every engine is a process of its own that gets the same Arrow data. Repetitions alternate between
the engines, so that a slow moment of the machine hits all. bench/README.md says how to read it.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data

ROOT = Path(__file__).parents[1]
BUILD = ROOT / ".build" / "bench"
WORKER = Path(__file__).with_name("engine_worker.py")
PEERS_PYTHON = str(ROOT / ".venv-peers" / "bin" / "python")
PYTHONS = {"emberlake": sys.executable, "pypaimon": PEERS_PYTHON, "rust": PEERS_PYTHON}
IMPORTS = {
    "emberlake": "from emberlake import CatalogFactory, Schema",
    "pypaimon": "from pypaimon import CatalogFactory, Schema",
    "rust": "from pypaimon_rust.datafusion import PaimonCatalog",
}

COLUMNS = ["id", "a", "b", "c", "d", "e", "f", "g"]
PARTITIONED = ["id", "a", "b", "c", "d", "e", "f", "p"]
FILES, MANIFESTS = 10_000, 10


class EngineProcess:
    """A running engine_worker."""

    def __init__(self, engine: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(
            [PYTHONS[engine], str(WORKER), engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(
                json.dumps({"operation": operation, **request}).encode() + b"\n"
            )
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died at its start: the empty answer below says so
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": self._last_words()}
        if "error" in answer:
            raise EngineFailed(answer["error"])
        return answer

    def close(self) -> None:
        self._process.communicate()
        self._errors.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return self._errors.read().decode()[-3000:]


class EngineFailed(Exception):
    """An engine could not do a job; the others are measured all the same."""


@dataclass
class Bench:
    """The settings, folders and processes of one run."""

    engines: list[str]
    repeat: int
    budget_seconds: float
    folder: Path
    row_data: Path
    tiny_data: Path
    key_data: Path
    processes: dict[str, EngineProcess] = field(default_factory=dict)
    tables: int = 0

    def process(self, engine: str) -> EngineProcess:
        if engine not in self.processes:
            self.processes[engine] = EngineProcess(engine)
        return self.processes[engine]

    def new_table(self) -> dict[str, str]:
        self.tables += 1
        return {"warehouse": str(self.folder / "warehouse"), "table": f"bench.t{self.tables}"}

    def drop(self, table: Mapping[str, str]) -> None:
        shutil.rmtree(folder_of(table))

    def close(self) -> None:
        for process in self.processes.values():
            process.close()


Measure = Callable[[str], float]
Job = Callable[[Bench], Iterator[Measure]]


def main() -> None:
    arguments = parse_arguments()
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=BUILD) as folder:
        bench = open_bench(arguments, Path(folder))
        results = {}
        for name in arguments.jobs or JOBS:
            results[name] = run_job(bench, JOBS[name])
            print_row(name, results[name], bench.engines)
        bench.close()
    if arguments.json:
        report = {"machine": machine(), "rows": arguments.rows, "seconds": results}
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", nargs="+", choices=list(PYTHONS), default=list(PYTHONS))
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), help="default: all of them")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--budget",
        type=float,
        default=20,
        help="seconds after which an engine repeats a job no more",
    )
    parser.add_argument("--json", metavar="FILE", help="write every single measurement to FILE")
    return parser.parse_args()


def open_bench(arguments: argparse.Namespace, folder: Path) -> Bench:
    print(f"{machine()}; {arguments.rows} rows; seconds: min (median) of {arguments.repeat}")
    header = "".join(f"{engine:>20}" for engine in arguments.engines)
    print(f"{'':34}{header}{'x rust':>10}{'x pypaimon':>12}")
    row_data, tiny_data = folder / "rows.arrow", folder / "tiny.arrow"
    key_data = folder / "keys.arrow"
    rows = data.rows(arguments.rows)
    data.save(rows, row_data)
    data.save(data.shuffled(rows), key_data)
    data.save(data.tiny_rows(FILES // MANIFESTS), tiny_data)
    settings = arguments.engines, arguments.repeat, arguments.budget
    return Bench(*settings, folder, row_data, tiny_data, key_data)


def run_job(bench: Bench, job: Job) -> dict[str, list[float] | str]:
    """The seconds of every repetition by engine, or what went wrong."""
    results: dict[str, list[float] | str] = {}
    with contextmanager(job)(bench) as measure:
        for repetition in range(bench.repeat):
            # Every engine comes first in turn: the first pays for a cold disk cache.
            first = repetition % len(bench.engines)
            for engine in bench.engines[first:] + bench.engines[:first]:
                seconds = results.setdefault(engine, [])
                if isinstance(seconds, str) or sum(seconds) > bench.budget_seconds:
                    continue
                try:
                    seconds.append(measure(engine))
                except EngineFailed as problem:
                    results[engine] = str(problem)
    return results


def print_row(name: str, results: Mapping[str, list[float] | str], engines: list[str]) -> None:
    best = {engine: min(s) for engine, s in results.items() if isinstance(s, list) and s}
    cells = ""
    for engine in engines:
        seconds = results[engine]
        if isinstance(seconds, str):
            cells += f"{'failed':>20}"
        else:
            cells += f"{f'{best[engine]:.4f} ({statistics.median(seconds):.4f})':>20}"
    ratios = ""
    for other, width in (("rust", 10), ("pypaimon", 12)):
        known = "emberlake" in best and other in best
        ratio = f"{best['emberlake'] / best[other]:.2f}" if known else "-"
        ratios += f"{ratio:>{width}}"
    print(f"{name:34}{cells}{ratios}", flush=True)
    for engine, problem in results.items():
        if isinstance(problem, str):
            print(f"    {engine}: {problem.strip().splitlines()[-1][:160]}")


def writing(columns: list[str], partition_keys: list[str], options: dict[str, str]) -> Job:
    """Write all rows into a new table: routing, files and commit."""

    def job(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.row_data), "data_columns": columns}

        def measure(engine: str) -> float:
            table, process = bench.new_table(), bench.process(engine)
            shape = {"partition_keys": partition_keys, "options": options}
            process.ask("create", **table, **source, **shape)
            seconds: float = process.ask("write", **table, **source)["seconds"]
            bench.drop(table)
            return seconds

        yield measure

    return job


def writing_keys(primary_keys: list[str], *, update_share: float = 0) -> Job:
    """Write all rows into a new table with a primary key, or a share of them again."""

    def job(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.key_data), "data_columns": COLUMNS}
        shape = {"primary_keys": primary_keys, "options": {"bucket": "4"}}

        def measure(engine: str) -> float:
            table, process = bench.new_table(), bench.process(engine)
            process.ask("create", **table, **source, **shape)
            written = process.ask("write", **table, **source)
            if update_share:
                rows = int(written["rows"] * update_share)
                written = process.ask("write", **table, **source, data_rows=rows)
            bench.drop(table)
            seconds: float = written["seconds"]
            return seconds

        yield measure

    return job


def scanning(columns: list[str] | None) -> Job:
    """Read one table, the same for all engines, into Arrow."""

    def job(bench: Bench) -> Iterator[Measure]:
        table = bench.new_table()
        source = {"data": str(bench.row_data), "data_columns": COLUMNS}
        writer = bench.process("rust")
        writer.ask("create", **table, **source, partition_keys=[], options={})
        row_count = writer.ask("write", **table, **source)["rows"]

        def measure(engine: str) -> float:
            answer = bench.process(engine).ask("scan", **table, columns=columns)
            if answer["rows"] != row_count:
                raise EngineFailed(f"read {answer['rows']} rows of {row_count}")
            seconds: float = answer["seconds"]
            return seconds

        yield measure
        bench.drop(table)

    return job


def merging(columns: list[str] | None) -> Job:
    """Read a table with a primary key, half of whose rows were written twice, into Arrow."""

    def job(bench: Bench) -> Iterator[Measure]:
        table, writer = bench.new_table(), bench.process("rust")
        source = {"data": str(bench.key_data), "data_columns": COLUMNS}
        shape = {"primary_keys": ["id"], "options": {"bucket": "4"}}
        writer.ask("create", **table, **source, **shape)
        row_count = writer.ask("write", **table, **source)["rows"]
        writer.ask("write", **table, **source, data_rows=row_count // 2)

        def measure(engine: str) -> float:
            answer = bench.process(engine).ask("scan", **table, columns=columns)
            if answer["rows"] != row_count:
                raise EngineFailed(f"read {answer['rows']} rows of {row_count}")
            seconds: float = answer["seconds"]
            return seconds

        yield measure
        bench.drop(table)

    return job


def planning(*, warm: bool) -> Job:
    """Plan 10,000 files in 10 manifests, first thing in a new process or for the third time."""

    def job(bench: Bench) -> Iterator[Measure]:
        table = table_of_many_files(bench)

        def measure(engine: str) -> float:
            process = EngineProcess(engine)
            try:
                for _ in range(3 if warm else 1):
                    answer = process.ask("plan", **table)
            finally:
                process.close()
            seconds: float = answer["seconds"]
            return seconds

        yield measure
        bench.drop(table)

    return job


def committing(*, many_files: bool) -> Job:
    """Commit one more file to an empty table, or to one of 10,000 files."""

    def job(bench: Bench) -> Iterator[Measure]:
        source = {"data": str(bench.tiny_data), "data_columns": ["p", "id"]}

        def measure(engine: str) -> float:
            process = bench.process(engine)
            if many_files:
                table = table_of_many_files(bench)
            else:
                table = bench.new_table()
                process.ask("create", **table, **source, partition_keys=["p"], options={})
            seconds: float = process.ask("commit", **table, **source)["seconds"]
            bench.drop(table)
            return seconds

        yield measure

    return job


def importing(_: Bench) -> Iterator[Measure]:
    """The import of the package in a fresh interpreter."""

    def measure(engine: str) -> float:
        program = (
            "import time; start = time.perf_counter(); "
            f"{IMPORTS[engine]}; print(time.perf_counter() - start)"
        )
        done = subprocess.run(
            [PYTHONS[engine], "-c", program], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise EngineFailed(done.stderr)
        return float(done.stdout)

    yield measure


JOBS: dict[str, Job] = {
    "append": writing(COLUMNS, [], {}),
    "append-5-partitions": writing(PARTITIONED, ["p"], {}),
    "append-8-buckets": writing(COLUMNS, [], {"bucket": "8", "bucket-key": "id"}),
    "key-write-bigint": writing_keys(["id"]),
    "key-write-string-bigint": writing_keys(["c", "id"]),
    "key-upsert": writing_keys(["id"], update_share=0.5),
    "scan": scanning(None),
    "scan-2-columns": scanning(["id", "b"]),
    "merge-read": merging(None),
    "merge-read-2-columns": merging(["id", "b"]),
    "plan-10000-files-cold": planning(warm=False),
    "plan-10000-files-warm": planning(warm=True),
    "commit-empty": committing(many_files=False),
    "commit-10000-files": committing(many_files=True),
    "import": importing,
}


def table_of_many_files(bench: Bench) -> dict[str, str]:
    """A copy of a table of 10,000 files in 10 manifests; only its metadata is on disk."""
    template = BUILD / f"table-of-{FILES}-files"
    if not template.exists():
        make_table_of_many_files(bench, template)
    table = bench.new_table()
    shutil.copytree(template, folder_of(table))
    return table


def make_table_of_many_files(bench: Bench, template: Path) -> None:
    table, writer = bench.new_table(), bench.process("rust")
    source = {"data": str(bench.tiny_data), "data_columns": ["p", "id"]}
    writer.ask("create", **table, **source, partition_keys=["p"], options={})
    for _ in range(MANIFESTS):
        writer.ask("write", **table, **source)
    for partition in folder_of(table).glob("p=*"):
        shutil.rmtree(partition)  # neither a plan nor an append looks at data files
    folder_of(table).rename(template)


def folder_of(table: Mapping[str, str]) -> Path:
    database, name = table["table"].split(".")
    return Path(table["warehouse"]) / f"{database}.db" / name


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
