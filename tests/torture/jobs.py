"""What processes do that are killed, crowded, starved of space or locked out.

A job writes down what it is about to do and what it has done, so that others can tell what must be
in the table after it is gone.
"""

import itertools
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders import NAME, open_catalog
from emberlake import AtomicType, CatalogFactory, DataField, Schema, SchemaChange
from emberlake.base.env import SYSTEM_ENV
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import CommitConflict, EmberlakeError, StorageError
from emberlake.io import Output, Storage, WrappedStorage, open_storage
from emberlake.table import Table
from emberlake.wire import CommitMessage
from places import Place
from torture.core import chance_of
from torture.corruption import examine
from torture.faults import WHO
from torture.nesting import check_swallowed
from torture.subjects import OPERATIONS as SUBJECT_OPERATIONS
from torture.subjects import write as write_rows
from watched_storage import Call, WatchedStorage

ROWS = 3  # of one batch
KINDS: dict[str, dict[str, Any]] = {
    "append": {"options": {}},
    "append, orc": {"options": {"file.format": "orc"}},
    "append, avro": {"options": {"file.format": "avro"}},
    "keys": {"primary_keys": ["id"], "options": {"bucket": "1"}},
    "dynamic": {"primary_keys": ["id"], "options": {"bucket": "-1"}},
    "vectors": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "deletion-vectors.enabled": "true"},
    },
    "sums": {
        "primary_keys": ["id"],
        "options": {
            "bucket": "1",
            "merge-engine": "aggregation",
            "fields.batch.aggregate-function": "sum",
        },
    },
}
EAGER = {"manifest.merge-min-count": "3", "commit.max-retries": "1000"}


Options = Mapping[str, str]  # of a catalog


def create(options: Options, kind: str) -> Table:
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    fields = [DataField(i, n, AtomicType("BIGINT")) for i, n in enumerate(("id", "batch"))]
    shape = KINDS[kind]
    own = {**EAGER, **shape["options"]}
    catalog.create_table(NAME, Schema(fields, [], shape.get("primary_keys", []), own))
    return catalog.get_table(NAME)


def open_table(options: Options) -> Table:
    return CatalogFactory.create(options).get_table(NAME)


def read(table: Table) -> list[tuple[int, int]]:
    """Id and batch of every row."""
    builder = table.new_read_builder().with_projection(["id", "batch"])
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def write_batch(table: Table, batch: int, *, overwrite: bool = False) -> int | None:
    """All keys get the number of the batch; the snapshot."""
    builder = table.new_batch_write_builder()
    if overwrite:
        builder.overwrite()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(pa.table({"id": range(ROWS), "batch": [batch] * ROWS}))
        return commit.commit(write.prepare_commit()).snapshot_id


def write_many(table: Table, batch: int) -> None:
    """So many rows that no buffer holds them."""
    ids = list(range(60_000))
    chance_of(batch).shuffle(ids)
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(pa.table({"id": ids, "batch": ids[::-1]}))
        commit.commit(write.prepare_commit())


class Diary:
    """Lines that are on the disk when they are written, as far as a kill is concerned."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


# --- jobs -----------------------------------------------------------------------------------------


def write_until_killed(options: Options, diary: str, first: int, seed: int) -> None:
    """Batches, one after the other, with compactions and changes of the schema in between."""
    chance, notes = chance_of(seed, first), Diary(diary)
    catalog = CatalogFactory.create(options)
    for batch in itertools.count(first):
        kind = chance.choices(["write", "compact", "alter", "overwrite"], [12, 4, 1, 2])[0]
        table = catalog.get_table(NAME)
        # The rows of batches before stay in append tables, and in sums.
        if kind == "overwrite" and (not table.primary_keys or "merge-engine" in table.options):
            kind = "write"
        notes.note("begin", batch, kind)
        match kind:
            case "compact":
                table.compact(full=chance.random() < 0.5)
            case "alter":
                change = SchemaChange.set_option("snapshot.num-retained.max", str(1000 + batch))
                catalog.alter_table(NAME, [change])
            case _:
                write_batch(table, batch, overwrite=kind == "overwrite")
        notes.note("done", batch, kind)


def commit_many(options: Options, diary: str, number: int, commits: int, slow: bool) -> None:
    """Commits among others who commit; refused ones are written again."""
    notes = Diary(diary)
    catalog = CatalogFactory.create(options)
    if slow:
        chance = chance_of(number)

        def delay(call: Call) -> None:
            time.sleep(chance.random() * 0.004)

        opened, warehouse = open_storage(options["warehouse"], options)
        storage: Any = WatchedStorage(opened, delay)
        catalog = FileSystemCatalog(storage, warehouse)
    for turn in range(commits):
        batch = number * commits + turn
        while True:
            try:
                snapshot = write_batch(catalog.get_table(NAME), batch)
            except CommitConflict as conflict:
                notes.note("refused", batch, conflict.reason.name)
                continue
            notes.note("done", batch, snapshot)
            break
        if turn % 4 == number % 4:
            try:
                catalog.get_table(NAME).compact()
            except CommitConflict as conflict:
                notes.note("refused", -1, conflict.reason.name)


def read_until_killed(options: Options, diary: str) -> None:
    """What is seen while others commit."""
    notes = Diary(diary)
    while True:
        rows = read(open_table(options))
        batches = sorted({batch for _, batch in rows})
        notes.note("saw", len(rows), ",".join(map(str, batches)))


def die_at(place: Any, root: str, operation: str, call: int, after_effect: bool) -> None:
    """An operation of a process that dies at a call."""
    pa.set_cpu_count(1)
    storage: Any = _deadly(Place(**place).storage_at(root), call, after_effect=after_effect)
    SUBJECT_OPERATIONS[operation](open_catalog(storage, SYSTEM_ENV), WHO)


class _Unfinished(WrappedStorage):
    """Files get all of their bytes and are not finished, so that there is time for a kill.

    A machine may be so busy that whoever is to kill a process comes after its whole upload.
    """

    def open_output(self, path: str, target: int | None = None) -> Output:
        output = super().open_output(path, target)
        output.close = lambda: time.sleep(600)  # type: ignore[method-assign, assignment]
        return output


def upload_much(place: Any, root: str) -> None:
    """A write that takes many parts, of rows that cannot be made small; it does not end."""
    storage = _Unfinished(Place(**place).storage_at(root))
    table = open_catalog(storage, SYSTEM_ENV).get_table(NAME)
    write_rows(table, [(n, "mon", 1, os.urandom(1000).hex()) for n in range(30_000)])


def stream(
    options: Options, checkpoint: str, kill_at: int, after_effect: bool, batches: int
) -> None:
    """One life of a stream: what was to be committed is, then come more batches."""
    opened, warehouse = open_storage(options["warehouse"], options)
    storage: Any = _deadly(opened, kill_at, after_effect=after_effect)
    builder = FileSystemCatalog(storage, warehouse).get_table(NAME).new_stream_write_builder("me")
    commit = builder.new_commit()
    last, messages = read_checkpoint(Path(checkpoint))
    commit.filter_and_commit({last: messages} if messages else {})
    with builder.new_write() as write:
        for batch in range(last + 1, last + 1 + batches):
            write.write_arrow(pa.table({"id": range(ROWS), "batch": [batch] * ROWS}))
            prepared = write.prepare_commit(batch)
            _write_checkpoint(Path(checkpoint), batch, prepared)
            commit.commit(prepared, batch)


def read_checkpoint(path: Path) -> tuple[int, list[CommitMessage]]:
    """The last batch that was to be committed, and its messages."""
    if not path.exists():
        return -1, []
    kept = json.loads(path.read_text())
    return kept["batch"], [CommitMessage.from_bytes(bytes.fromhex(m)) for m in kept["messages"]]


def _write_checkpoint(path: Path, batch: int, messages: list[CommitMessage]) -> None:
    kept = {"batch": batch, "messages": [message.to_bytes().hex() for message in messages]}
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kept))
    new.replace(path)


def _deadly(storage: Storage, call: int, *, after_effect: bool) -> WatchedStorage:
    """A storage whose process dies at a call of it."""

    def watch(made: Call) -> None:
        if made.number == call and made.is_done is after_effect:
            os.kill(os.getpid(), signal.SIGKILL)

    return WatchedStorage(storage, watch)


def write_within(options: Options, diary: str, file_bytes: int, operation: str) -> None:
    """One operation on a disk that takes no file beyond a size."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    table = open_table(options)

    def act() -> None:
        with _limited(file_bytes):
            operate(table, operation)

    _note_outcome(Diary(diary), act)


def fill(options: Options, diary: str, first: int, most: int) -> None:
    """Batches until the disk is full."""
    notes = Diary(diary)
    for batch in range(first, first + most):
        notes.note("begin", batch, "write")
        try:
            write_batch(open_table(options), batch)
        except StorageError as error:
            notes.note("failed", batch, type(error).__name__)
            return
        notes.note("done", batch, "write")


def locked_out(options: Options, diary: str, operation: str) -> None:
    """One operation of a user who may not do everything."""
    if os.getuid() == 0:
        os.setgid(65_534)
        os.setuid(65_534)
    _note_outcome(Diary(diary), lambda: operate(open_table(options), operation))


def swallow(place: str, name: str, diary: str, most: int) -> None:
    """Meet a file that announces the enormous, with so much memory and no more."""
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.alarm(120)
    Path(diary).write_text(check_swallowed(place, name))


def operate(table: Table, operation: str) -> None:
    """Do something to a table, or read it; what cannot be published is soon given up."""
    table = table.copy({"commit.max-retries": "2"})
    match operation:
        case "write much":
            write_many(table, 2_000)
        case "read":
            read(table)
        case "compact":
            table.compact(full=True)
        case "truncate":
            table.new_batch_write_builder().new_commit().truncate_table()
        case _:
            write_batch(table, 1_000, overwrite=operation == "overwrite")


def _note_outcome(notes: Diary, act: Callable[[], None]) -> None:
    try:
        act()
    except EmberlakeError as error:
        notes.note("typed", type(error).__name__, error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it should have been typed
        notes.note("raw", type(error).__name__, error)
    else:
        notes.note("fine")


@contextmanager
def _limited(file_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


JOBS: dict[str, Callable[..., None]] = {
    job.__name__: job
    for job in (
        write_until_killed, die_at, upload_much, stream, commit_many, read_until_killed,
        write_within, fill, locked_out, examine, swallow,
    )
}  # fmt: skip
