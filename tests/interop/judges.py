"""Other implementations of Paimon, asked as processes: Java Paimon, pypaimon and pypaimon-rust.

Each is started when it is first needed and then answers any number of requests, one JSON line each.
What is not installed skips the test and says why; with CI=true in the environment it fails instead.
"""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from effort import JVM_OPTIONS
from needs import lacking

ROOT = Path(__file__).parents[2]
JAVA_BUILD = ROOT / ".build" / "java"
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
PYPAIMON_TESTS = ROOT / ".build" / "pypaimon-tests"
PYPAIMON_MOCK = Path(__file__).with_name("pypaimon_mock.py")
WORKER = Path(__file__).with_name("peer_worker.py")

NO_OPTIONS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Warehouse:
    """A warehouse in a store: its path, and the catalog options that reach it."""

    path: str
    options: Mapping[str, str]

    def __str__(self) -> str:
        return self.path


Place = str | Path | Warehouse


def catalog_options(warehouse: Place) -> dict[str, str]:
    """The options of the catalog of a warehouse, wherever that is."""
    return {"warehouse": str(warehouse), **store_options(warehouse)}


def store_options(warehouse: Place) -> dict[str, str]:
    return dict(warehouse.options) if isinstance(warehouse, Warehouse) else {}


class JudgeError(Exception):
    """The other implementation refused or failed; the message is its own."""


@dataclass(frozen=True)
class JavaRead:
    """What Java Paimon read: columns, rows in canonical form, and the bucket of every row."""

    columns: tuple[str, ...]
    rows: list[Row]
    buckets: list[int]


@dataclass(frozen=True)
class PostponedRecord:
    """A record of a postponed file, as Java understands it."""

    writer: int
    key: list[Any]
    sequence: int
    row: Row


class LineProcess:
    """A process that answers one JSON line for each JSON line it is given."""

    def __init__(self, command: Sequence[str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="emberlake-judge-"))
        self._errors = (self.folder / "stderr").open("w+b")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self._files = 0
        atexit.register(self.close)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise JudgeError(f"the process ended: {self._errors.read().decode()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise JudgeError(answer["error"])
        return answer

    def new_file(self) -> Path:
        """A path of its own for data that is too large for a line."""
        self._files += 1
        return self.folder / f"data-{self._files}"

    def close(self) -> None:
        """End the process by ending its input; a second call does nothing."""
        if self._errors.closed:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
        self._errors.close()
        shutil.rmtree(self.folder)


class JavaJudge:
    """Java Paimon: reads, writes and compacts tables, through the program of java/."""

    def __init__(self, process: LineProcess) -> None:
        self._process = process

    def read(
        self, warehouse: Place, table: str, options: Mapping[str, str] = NO_OPTIONS
    ) -> JavaRead:
        out = self._process.new_file()
        answer = self._ask("read", warehouse, table, options, out=str(out))
        return JavaRead(tuple(answer["columns"]), _load_lines(out), answer["buckets"])

    def rows(
        self, warehouse: Place, table: str, options: Mapping[str, str] = NO_OPTIONS
    ) -> list[Row]:
        """The table's rows in canonical form and order."""
        return sorted_rows(self.read(warehouse, table, options).rows)

    def follow(
        self, warehouse: Place, table: str, options: Mapping[str, str] = NO_OPTIONS
    ) -> list[list[Row]]:
        """The changes that a stream from the first snapshot on brings, plan by plan."""
        out = self._process.new_file()
        self._ask("stream", warehouse, table, options, **{"from": 1, "out": str(out)})
        plans = groupby(_load_lines(out), key=itemgetter(0))
        return [[line[1:] for line in lines] for _, lines in plans]

    def write(self, warehouse: Place, table: str, data: pa.Table, *, row_kind: str = "+I") -> None:
        """Write `data` in one commit; of tables with dynamic buckets Java needs an engine."""
        path = self._process.new_file()
        rows = canonical_rows(data, kinds=[row_kind] * data.num_rows)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        self._ask("write", warehouse, table, data=str(path))
        path.unlink()

    def delete(self, warehouse: Place, table: str, column: str, values: Sequence[int]) -> None:
        """Delete the rows that have one of the values in a BIGINT column, in one commit."""
        self._ask("delete", warehouse, table, column=column, values=list(values))

    def compact(self, warehouse: Place, table: str, *, full: bool = False) -> None:
        """Compact all buckets; postponed rows get theirs."""
        self._ask("compact", warehouse, table, full=full)

    def postponed(self, warehouse: Place, table: str) -> list[PostponedRecord]:
        """The records that have no bucket yet, in the order in which they are replayed."""
        out = self._process.new_file()
        self._ask("postponed", warehouse, table, out=str(out))
        return [PostponedRecord(*line[:3], line[3:]) for line in _load_lines(out)]

    def _ask(
        self,
        operation: str,
        warehouse: Place,
        table: str,
        options: Mapping[str, str] = NO_OPTIONS,
        **more: Any,
    ) -> dict[str, Any]:
        where = {"warehouse": str(warehouse), "store": store_options(warehouse), "table": table}
        request = {"operation": operation, **where, "options": dict(options), **more}
        return self._process.ask(request)


class Peer:
    """pypaimon or pypaimon-rust: creates, writes and reads tables in the peers' environment.

    pypaimon-rust cannot create tables from an Arrow schema, so both leave that to pypaimon.
    """

    def __init__(self, engine: Literal["pypaimon", "rust"], process: LineProcess) -> None:
        self.engine = engine
        self._process = process

    def create_table(
        self,
        warehouse: Place,
        table: str,
        schema: pa.Schema,
        *,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] = NO_OPTIONS,
    ) -> None:
        """Create the table, and its database where that is missing."""
        self._ask(
            "create_table",
            warehouse=warehouse,
            table=table,
            schema=str(self._save(schema.empty_table())),
            partition_keys=list(partition_keys),
            primary_keys=list(primary_keys),
            options=dict(options),
        )

    def write(
        self,
        warehouse: Place,
        table: str,
        data: pa.Table,
        *,
        overwrite: Mapping[str, Any] | bool = False,
        in_fixed_buckets: bool = False,
    ) -> None:
        """Append `data`, or overwrite by it, in one commit: with a partition, or without (True).

        What goes to a postpone table `in_fixed_buckets` is not postponed.
        """
        self._ask(
            "write",
            warehouse=warehouse,
            table=table,
            data=str(self._save(data)),
            overwrite=_arguments(overwrite),
            in_fixed_buckets=in_fixed_buckets,
        )

    def read(
        self,
        warehouse: Place,
        table: str,
        options: Mapping[str, str] = NO_OPTIONS,
        *,
        columns: Sequence[str] | None = None,
        shard: tuple[int, int] | None = None,
        rows: tuple[int, int] | None = None,
    ) -> pa.Table:
        out = self._process.new_file()
        self._ask(
            "read",
            warehouse=warehouse,
            table=table,
            options=dict(options),
            columns=None if columns is None else list(columns),
            shard=shard,
            slice=rows,
            out=str(out),
        )
        return _load(out)

    def rows(
        self, warehouse: Place, table: str, options: Mapping[str, str] = NO_OPTIONS
    ) -> list[Row]:
        """The table's rows in canonical form and order."""
        return sorted_rows(canonical_rows(self.read(warehouse, table, options)))

    def buckets(self, warehouse: Place, table: str, data: pa.Table) -> list[int]:
        """The bucket that the engine gives to each row of `data`, in a table of fixed buckets."""
        path = str(self._save(data))
        answer = self._ask("buckets", warehouse=warehouse, table=table, data=path)
        found: list[int] = answer["buckets"]
        return found

    def _ask(self, operation: str, *, warehouse: Place, **request: Any) -> dict[str, Any]:
        where = {"engine": self.engine, "catalog": catalog_options(warehouse)}
        return self._process.ask({"operation": operation, **where, **request})

    def _save(self, data: pa.Table) -> Path:
        path = self._process.new_file()
        with pa.ipc.new_file(str(path), data.schema) as writer:
            writer.write_table(data)
        return path


def _arguments(overwrite: Mapping[str, Any] | bool) -> list[dict[str, Any]] | None:
    """What `overwrite` of a builder is called with; None: it is not."""
    if isinstance(overwrite, bool):
        return [] if overwrite else None
    return [dict(overwrite)]


def java_rows(
    warehouse: Place, requests: Iterable[tuple[str, Mapping[str, str]]]
) -> list[list[Row]]:
    """The rows that Java reads for each (table, options), in canonical form and order."""
    judge = java_judge()
    return [judge.rows(warehouse, table, options) for table, options in requests]


@cache
def java_judge() -> JavaJudge:
    """Java Paimon, started when first asked for."""
    stores = sorted(JAVA_BUILD.glob("paimon-s3-*.jar"))  # where it is there
    return JavaJudge(LineProcess(_java_command(JAVA_BUILD / "PaimonJudge.class", *stores)))


@contextmanager
def java_rest_mock(folder: Path, token: str, *, loses_one: bool = False) -> Iterator[Warehouse]:
    """Java Paimon's own mock of a REST catalog server; it may lose the answer to one commit."""
    build = JAVA_BUILD / "rest"
    main = build / "org" / "apache" / "paimon" / "rest" / "RestMock.class"
    command = _java_command(
        main, build / "lib" / "*", build, name="org.apache.paimon.rest.RestMock"
    )
    words = [str(folder), token, *(["lose-one"] if loses_one else [])]
    with _rest_mock([*command, *words], token) as warehouse:
        yield warehouse


@contextmanager
def pypaimon_rest_mock(folder: Path, token: str) -> Iterator[Warehouse]:
    """The mock that pypaimon tests its client with; only some of its releases have it."""
    if not PYPAIMON_TESTS.exists():
        lacking(f"{PYPAIMON_TESTS} is not there: run make setup")
    command = [str(_peers_python()), str(PYPAIMON_MOCK), str(folder), token]
    with _rest_mock(command, token, {"PYTHONPATH": str(PYPAIMON_TESTS)}) as warehouse:
        yield warehouse


@contextmanager
def _rest_mock(
    command: Sequence[str], token: str, env: Mapping[str, str] = NO_OPTIONS
) -> Iterator[Warehouse]:
    """A server that says in its first line where it is, and ends with its input."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    try:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        options = {"metastore": "rest", "uri": found["uri"], "token.provider": "bear"}
        yield Warehouse(found["warehouse"], {**options, "token": token})
    finally:
        process.communicate(timeout=30)


def _java_command(
    main: Path, *more: Path, name: str | None = None, release: str | None = None
) -> list[str]:
    """The command that runs a class of the Java judge, or a skip that says what is missing."""
    jars = sorted(JAVA_BUILD.glob("paimon-bundle-*.jar"))
    spark_jars = sorted((ROOT / ".venv" / "lib").glob("python3*/site-packages/pyspark/jars"))
    if not shutil.which("java"):
        lacking("java is not installed")
    if not jars or not main.exists():
        lacking("the Java judge is not built: run make setup with a JDK and Maven installed")
    if not spark_jars:
        lacking("pyspark, whose jars Java Paimon needs, is not in .venv: run make setup")
    jar = jars[-1]
    if release is not None and not jar.stem.endswith(release):
        jar = JAVA_BUILD / "old" / f"paimon-bundle-{release}.jar"
        if not jar.exists():
            lacking(f"Java Paimon {release} is not there: run tests/interop/java/build old")
    parts = (JAVA_BUILD, jar, *more, f"{spark_jars[-1]}/*")
    options = [*JVM_OPTIONS, "-Duser.timezone=UTC"]
    return ["java", *options, "-cp", ":".join(map(str, parts)), name or main.stem]


@cache
def old_java_judge(release: str) -> JavaJudge:
    """An earlier release of Java Paimon, behind the same program."""
    return JavaJudge(LineProcess(_java_command(JAVA_BUILD / "PaimonJudge.class", release=release)))


def java_probe(release: str, folder: Path) -> list[str]:
    """The command that takes all steps through a REST catalog; it may have tables in a folder."""
    java, *words = _java_command(JAVA_BUILD / "RestProbe.class", release=release)
    return [java, f"-Doutside={folder}", *words]


def peer_probe(engine: Literal["pypaimon", "rust"]) -> list[str]:
    """The same for a client in Python."""
    return [str(_peers_python()), str(Path(__file__).with_name("rest_probe.py")), engine]


def java_on_stores() -> None:
    """Skip, or fail, where Java Paimon lacks what it needs for S3."""
    if not list(JAVA_BUILD.glob("paimon-s3-*.jar")):
        lacking("Java Paimon cannot reach S3: run tests/interop/java/build s3")


@cache
def peer(engine: Literal["pypaimon", "rust"]) -> Peer:
    """pypaimon or pypaimon-rust, started when first asked for; both share one process."""
    return Peer(engine, _peer_process())


@cache
def _peer_process() -> LineProcess:
    return LineProcess([str(_peers_python()), str(WORKER)])


def _peers_python() -> Path:
    if not PEERS_PYTHON.exists():
        lacking(".venv-peers is not built: run make setup")
    return PEERS_PYTHON


def known_gap(request: pytest.FixtureRequest, reason: str) -> None:
    """Expect a failure whose reason lies with a peer; the day it passes, the test says so."""
    failures = (AssertionError, JudgeError)
    request.applymarker(pytest.mark.xfail(reason=reason, raises=failures, strict=True))


def _load_lines(path: Path) -> list[list[Any]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    path.unlink()
    return [json.loads(line) for line in lines if line]


def _load(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:  # not mapped: the file goes away
        table = pa.ipc.open_file(source).read_all()
    path.unlink()
    return table
