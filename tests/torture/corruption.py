"""Every file of a table is damaged in every way: a typed error that names it, or the right rows.

Bytes that are not what they were may crash a decoder, so all of it happens in processes that are
told apart from this one; what they do next is written down before they do it.
"""

import itertools
import resource
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from builders import NAME, FakeEnv, copy_of, open_catalog, open_table
from emberlake import Schema
from emberlake.errors import CorruptFile, EmberlakeError
from emberlake.io import MemoryStorage, Storage
from emberlake.store.manifests import forget_manifests
from emberlake.table import Table
from places import Place, here, living_at
from table_reads import files_under
from torture.core import Step, Steps, chance_of
from torture.forks import FAILED, Forks

COLUMNS = pa.schema([
    pa.field("id", pa.int64(), nullable=False),
    pa.field("day", pa.string(), nullable=False),
    ("n", pa.int32()),
    ("x", pa.float64()),
    ("d", pa.decimal128(12, 2)),
    ("t", pa.timestamp("us")),
    ("s", pa.string()),
    ("a", pa.list_(pa.int32())),
    ("m", pa.map_(pa.string(), pa.int64())),
    ("r", pa.struct([("p", pa.int32()), ("q", pa.string())])),
])  # fmt: skip
KEYS = {"bucket": "1", "changelog-producer": "input"}
VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}
TABLES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "append, parquet": ((), {"file.format": "parquet"}),
    "append, orc": ((), {"file.format": "orc"}),
    "append, avro": ((), {"file.format": "avro"}),
    "keys, parquet": (("day", "id"), {**KEYS, "file.format": "parquet"}),
    "keys, orc": (("day", "id"), {**KEYS, "file.format": "orc"}),
    "keys, avro": (("day", "id"), {**KEYS, "file.format": "avro"}),
    "vectors": (("day", "id"), {**VECTORS, "file.format": "parquet"}),
    "dynamic": (("day", "id"), {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}),
    "plain pages": ((), {"file.compression": "none", "parquet.enable.dictionary": "false"}),
}
SECONDS = 60  # that a process may take for one damaged file
BYTES = 6 << 30  # that it may ask for
PORTION = 40  # damages that it looks at, if it lives so long


# --- tables ---------------------------------------------------------------------------------------


def _rows(ids: range, salt: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": n,
                "day": ("mon", "tue")[n % 2],
                "n": n * 7 + salt,
                "x": n / 3,
                "d": Decimal(n * 11) / 100,
                "t": n * 1_000_000,
                "s": f"text {n} {salt}" if n % 3 else None,
                "a": [n, None, salt],
                "m": [(f"k{n}", n)],
                "r": {"p": n, "q": str(salt)},
            }
            for n in ids
        ],
        COLUMNS,
    )


@cache
def _build(name: str, salt: int) -> MemoryStorage:
    keys, options = TABLES[name]
    storage = MemoryStorage()
    catalog = open_catalog(storage, FakeEnv(prefix=f"f{salt}").env())
    catalog.create_database("db")
    catalog.create_table(NAME, Schema.from_pyarrow_schema(COLUMNS, ["day"], list(keys), options))
    for ids in (range(6), range(3, 9)):
        table = catalog.get_table(NAME)
        builder = table.new_batch_write_builder()
        with builder.new_write() as write, builder.new_commit() as commit:
            write.write_arrow(_rows(ids, salt))
            commit.commit(write.prepare_commit())
    catalog.get_table(NAME).create_tag("kept", 1)
    return storage


def _role(path: str) -> str:
    """What a file is for."""
    name = path.rpartition("/")[2]
    for role in ("manifest-list", "index-manifest", "manifest", "index", "snapshot", "schema"):
        if name.startswith(f"{role}-"):
            return role
    for role in ("tag", "LATEST", "EARLIEST"):
        if name.startswith(role):
            return {"tag": "tag"}.get(role, "hint")
    return "changelog file" if name.startswith("changelog-") else "data file"


# --- damage ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Damage:
    """What is done to one file."""

    table: str
    file: int  # its place among the files of the table
    kind: str
    at: int

    def __str__(self) -> str:
        path = _files(self.table)[self.file]
        return f"{self.table}: {_role(path)} {path.rpartition('/')[2]} {self.kind} {self.at}"


@cache
def _files(table: str) -> list[str]:
    return sorted(files_under(_build(table, 0), ""))


def damages(seed: int, table: str, flips: int) -> Iterator[Damage]:
    """Every file of a table: cut off, emptied, bits flipped, or another table's."""
    storage = _build(table, 0)
    for place, path in enumerate(_files(table)):
        size = storage.size(path)
        chance = chance_of(seed, table, place)
        for at in sorted({0, 1, size // 4, size // 2, size - 1, chance.randrange(size)} - {size}):
            yield Damage(table, place, "cut off at", at)
        yield Damage(table, place, "goes on after", size)
        for donor in range(2):
            yield Damage(table, place, "replaced by another table's", donor)
        for bit in sorted(chance.sample(range(size * 8), min(flips, size * 8))):
            yield Damage(table, place, "has a flipped bit", bit)


def _shuffled(seed: int, table: str, flips: int) -> list[Damage]:
    found = list(damages(seed, table, flips))
    chance_of(seed, table).shuffle(found)
    return found


def _damaged(damage: Damage) -> Storage | None:
    """The table with its damage; None when it is none."""
    storage = copy_of(_build(damage.table, 0))
    path = _files(damage.table)[damage.file]
    raw = storage.read(path)
    match damage.kind:
        case "cut off at":
            new = raw[: damage.at]
        case "goes on after":
            new = raw + raw[-20:]
        case "has a flipped bit":
            new = _flip(raw, damage.at)
        case _:
            new = _other(damage, path)
    storage.put(path, new)
    return None if new == raw else storage


def _flip(raw: bytes, bit: int) -> bytes:
    changed = bytearray(raw)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _other(damage: Damage, path: str) -> bytes:
    """A file for the same thing: of a table of the same kind, or of any kind."""
    chance = Random(str(damage))
    name = damage.table if damage.at == 0 else chance.choice(sorted(TABLES))
    donor = _build(name, 1)
    same = [p for p in sorted(files_under(donor, "")) if _role(p) == _role(path)]
    return donor.read(chance.choice(same)) if same else b"\0" * 100


# --- what comes of it -----------------------------------------------------------------------------


def _rows_of(table: Table, where: str | None = None) -> list[str]:
    builder = table.new_read_builder().with_filter(where)
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    try:
        found.validate(full=True)
    except pa.ArrowInvalid as error:
        return [f"values that are none: {error}"]
    return sorted(map(repr, found.to_pylist()))


def _read(storage: Storage) -> list[str]:
    return _rows_of(open_table(storage))


def _filter(storage: Storage) -> list[str]:
    return _rows_of(open_table(storage), "day = 'mon' AND n > 20")


def _read_tag(storage: Storage) -> list[str]:
    return _rows_of(open_table(storage).copy({"scan.tag-name": "kept"}))


def _commit(storage: Storage) -> list[str]:
    table = open_table(storage)
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(_rows(range(20, 22), 5))
        commit.commit(write.prepare_commit())
    return _rows_of(table)


def _compact(storage: Storage) -> list[str]:
    table = open_table(storage)
    table.compact(full=True)
    return _rows_of(table)


def _inspect(storage: Storage) -> list[str]:
    catalog = open_catalog(storage)
    names = ("snapshots", "schemas", "files", "manifests", "tags", "partitions", "buckets")
    for name in names:
        builder = catalog.get_table(f"{NAME}${name}").new_read_builder()
        builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return []


ACTIONS: dict[str, Any] = {
    "read": _read,
    "filter": _filter,
    "tag": _read_tag,
    "commit": _commit,
    "compact": _compact,
    "inspect": _inspect,
}


OTHER_ACTIONS = [name for name in ACTIONS if name != "read"]


@cache
def _right(table: str, action: str) -> list[str]:
    rows: list[str] = ACTIONS[action](copy_of(_build(table, 0)))
    return rows


def _try(damage: Damage, action: str) -> tuple[str, str]:
    """What an action does on a damaged table: its outcome, and what is wrong with it."""
    storage = _damaged(damage)
    if storage is None:
        return "same bytes", ""
    forget_manifests()
    path = _files(damage.table)[damage.file]
    try:
        rows = ACTIONS[action](storage)
    except CorruptFile as error:
        named = error.path.rpartition("/")[2]
        is_metadata = _role(path) not in ("data file", "changelog file")
        return "error", "" if named == path.rpartition("/")[2] or is_metadata else f"names {named}"
    except EmberlakeError:
        return "error", ""
    except Exception as error:  # noqa: BLE001 - whatever it is, it should have been typed
        return "raw", f"{type(error).__name__}: {str(error)[:200]}"
    if rows == _right(damage.table, action):
        return "right rows", ""
    return "wrong rows", ""


def examine(
    place: dict[str, Any], seed: int, table: str, flips: int, first: int, diary: str
) -> None:
    """The job of a process: some damages of a table from one on, each met by two actions."""
    with living_at(Place(**place)):
        _examine_here(seed, table, flips, first, diary)


def _examine_here(seed: int, table: str, flips: int, first: int, diary: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pa.set_cpu_count(1)
    todo = list(enumerate(_shuffled(seed, table, flips)))[first : first + PORTION]
    with Path(diary).open("a", encoding="utf-8", buffering=1) as notes:
        for number, damage in todo:
            notes.write(f"{number}\tbegin\t\t\n")
            for action in ("read", chance_of(seed, damage).choice(OTHER_ACTIONS)):
                signal.alarm(SECONDS)
                outcome, problem = _try(damage, action)
                notes.write(f"{number}\t{action}\t{outcome}\t{' '.join(problem.split())}\n")
            signal.alarm(0)
            notes.write(f"{number}\tend\t\t\n")


# --- the judge ------------------------------------------------------------------------------------


def corruption(seed: int, flips: int = 25, tables: tuple[str, ...] = tuple(TABLES)) -> Steps:
    """All tables, again and again with other bits; does not end."""
    with Forks() as forks, tempfile.TemporaryDirectory() as folder:
        for number in itertools.count(seed):
            for table in tables:
                diary = Path(folder) / f"{number}-{table.replace(' ', '-')}"
                yield from _examine(forks, number, table, flips, diary)


def _examine(forks: Forks, seed: int, table: str, flips: int, diary: Path) -> Steps:
    # In an order of chance, so that a part of them is of all kinds.
    todo = _shuffled(seed, table, flips)
    first = 0
    while first < len(todo):
        arguments = {"seed": seed, "table": table, "flips": flips, "first": first}
        arguments["place"] = asdict(here())
        status = forks.wait(forks.start("examine", diary=str(diary), **arguments))
        notes = [line.split("\t") for line in diary.read_text().splitlines()]
        diary.unlink()
        last = max((int(note[0]) for note in notes), default=first)
        for number in range(first, last + 1):
            own = [note[1:] for note in notes if int(note[0]) == number]
            crash = _crash(status, own)
            yield _judge(todo[number], own, crash)
        if status == FAILED:
            yield Step(f"{table}, seed {seed}", {}, "the examiner itself failed")
            return
        first = last + 1


def _crash(status: int, own: list[list[str]]) -> str | None:
    if own and own[-1][0] == "end":
        return None
    done = own[-1][0] if own else "the start"
    return f"the process ended with {status} after {done}"


def _judge(damage: Damage, notes: list[list[str]], crash: str | None) -> Step:
    path = _files(damage.table)[damage.file]
    role = _role(path)
    outcomes = {action: (outcome, problem) for action, outcome, problem in notes}
    problems = [f"{action}: {problem}" for action, (_, problem) in outcomes.items() if problem]
    wrong = [action for action, (outcome, _) in outcomes.items() if outcome == "wrong rows"]
    counts = {"corrupt files": 1}
    if crash is not None:
        problems.append(crash)
    if wrong and _is_undetectable(damage, role):
        kind = "in data" if role in ("data file", "changelog file") else "in metadata"
        counts[f"undetectable {kind} (no checksum in the file)"] = 1
    elif wrong:
        problems.append(f"wrong rows: {', '.join(wrong)}")
    return Step(str(damage), counts, "; ".join(problems) or None)


def _is_undetectable(damage: Damage, role: str) -> bool:
    """Whether nothing that the format keeps tells that a file is not what it was.

    Values in data files have no checksum, neither have the names and types in a schema, nor the
    statistics in a manifest that is compressed by zstd; another data file with the same number of
    rows and bytes may as well be the right one.
    """
    if role == "schema":
        return damage.kind in ("has a flipped bit", "replaced by another table's")
    if role in ("manifest", "manifest-list", "index-manifest"):
        return damage.kind == "has a flipped bit"
    if role not in ("data file", "changelog file"):
        return False
    with living_at(Place()):
        storage = _damaged(damage)
    path = _files(damage.table)[damage.file]
    return storage is not None and storage.size(path) == _build(damage.table, 0).size(path)
