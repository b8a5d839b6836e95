"""Names and values from users: whatever they are, they stay in the warehouse and break no path.

What is refused is refused with a typed error before anything is written; what is taken is found
again. Everything happens on a real disk, inside a folder with neighbours that must stay untouched.
"""

import itertools
import shutil
import string
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from emberlake import CatalogFactory, Identifier, Schema, SchemaChange
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import EmberlakeError
from emberlake.store.consumers import ConsumerStore
from emberlake.table import Table
from emberlake.types import AtomicType
from torture.core import Step, Steps, chance_of

NASTY = (
    "",
    " ",
    ".",
    "..",
    "...",
    "/",
    "//",
    "a/b",
    "../../outside",
    "/etc/passwd",
    "a/../../../outside",
    "..\\..\\outside",
    "%2e%2e%2foutside",
    "%00",
    "a\x00b",
    "a\nb",
    "\r\n",
    "\t",
    "a\x7fb",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\ud800",
    "ü☃🎉",
    "e\u0301",
    "é",
    "\uff21\uff22",
    "a" * 255,
    "a" * 5_000,
    "☃" * 200,
    "a.b",
    ".hidden",
    "a$b",
    "t$branch_x",
    "t$files",
    "`a`",
    "a`b",
    "'; DROP TABLE t; --",
    "a=b",
    "a=b/c=d",
    "__DEFAULT_PARTITION__",
    "null",
    "snapshot",
    "schema",
    "bucket-0",
    "manifest",
    "a b",
    " a",
    "a ",
    "~",
    "$HOME",
    "*",
    "?",
    "[a]",
    "{a}",
    "a:b",
    "file:/etc",
    "s3://bucket/x",
    "-",
    "--help",
    "0",
    "-1",
    "1e999",
    "9" * 5_000,
    "NaN",
    "true",
)
ALPHABET = [*string.printable, "/", "/", ".", ".", "\\", "%", "\x00", "\u2028", "ü", "🎉", "\ud800"]
CANARY = "canary"


def _texts(seed: int) -> Iterator[str]:
    """The nasty ones, then any."""
    yield from NASTY
    for number in itertools.count():
        chance = chance_of(seed, "text", number)
        yield _random_text(chance)


def _random_text(chance: Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(("", "/", ".", "\n")).join(chance.choices(NASTY, k=2))[:6_000]
    return "".join(chance.choices(ALPHABET, k=chance.randint(1, 12)))


# --- a warehouse with neighbours ------------------------------------------------------------------


@contextmanager
def _world() -> Iterator[tuple[FileSystemCatalog, Path]]:
    """A warehouse two folders deep, so that a few steps up still end in a folder of ours."""
    root = Path(tempfile.mkdtemp(prefix="emberlake-names-"))
    warehouse = root / "one" / "two" / "warehouse"
    warehouse.mkdir(parents=True)
    for folder in (root, root / "one", root / "one" / "two"):
        (folder / CANARY).write_text(CANARY)
    try:
        catalog: Any = CatalogFactory.create({"warehouse": str(warehouse)})
        catalog.create_database("db")
        yield catalog, warehouse
    finally:
        shutil.rmtree(root)


def _escaped(warehouse: Path) -> str | None:
    """What is outside the warehouse that was not there, or is not there any more."""
    root = warehouse.parents[2]
    found = {p for p in root.rglob("*") if not p.is_relative_to(warehouse)}
    expected = {root / "one", root / "one" / "two"}
    expected |= {f / CANARY for f in (root, root / "one", root / "one" / "two")}
    if found != expected:
        return f"the neighbours changed: {sorted(map(str, found ^ expected))}"
    links = [p for p in warehouse.rglob("*") if p.is_symlink()]
    return f"links appeared: {links}" if links else None


def _create(catalog: FileSystemCatalog, name: str | Identifier = "db.t", **schema: Any) -> Table:
    columns = pa.schema([("id", pa.int64()), ("p", pa.string())])
    catalog.create_table(name, Schema.from_pyarrow_schema(columns, **schema))
    table = catalog.get_table(name)
    assert isinstance(table, Table)
    return table


def _write(table: Table, value: str | None) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(pa.table({"id": [1], "p": pa.array([value], pa.string())}))
        commit.commit(write.prepare_commit())


def _rows(table: Table, where: Any = None) -> list[dict[str, Any]]:
    builder = table.new_read_builder().with_filter(where)
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


# --- what users name ------------------------------------------------------------------------------


def _as_database(catalog: FileSystemCatalog, text: str) -> None:
    catalog.create_database(text)
    assert text in catalog.list_databases()
    _create(catalog, Identifier(text, "t"))
    assert catalog.list_tables(text) == ["t"]
    catalog.drop_database(text, cascade=True)
    assert catalog.list_databases() == ["db"]


def _as_table(catalog: FileSystemCatalog, text: str) -> None:
    name = Identifier("db", text)
    _write(_create(catalog, name), "x")
    assert catalog.list_tables("db") == [text]
    assert len(_rows(catalog.get_table(name))) == 1
    catalog.rename_table(name, "db.other")
    catalog.rename_table("db.other", name)
    catalog.drop_table(name)
    assert catalog.list_tables("db") == []


def _as_identifier(catalog: FileSystemCatalog, text: str) -> None:
    catalog.get_table(f"db.{text}")


def _as_renamed(catalog: FileSystemCatalog, text: str) -> None:
    _create(catalog)
    catalog.rename_table("db.t", Identifier("db", text))
    assert catalog.list_tables("db") == [text]


def _as_tag(catalog: FileSystemCatalog, text: str) -> None:
    table = _create(catalog)
    _write(table, "x")
    table.create_tag(text)
    assert table.list_tags() == [text]
    assert len(_rows(table.copy({"scan.tag-name": text}))) == 1
    table.rename_tag(text, "other")
    table.rename_tag("other", text)
    assert table.delete_tag(text)
    assert table.list_tags() == []


def _as_missing_tag(catalog: FileSystemCatalog, text: str) -> None:
    table = _create(catalog)
    _write(table, "x")
    table.delete_tag(text)
    with suppress(EmberlakeError):
        table.rename_tag(text, "other")
    _rows(table.copy({"scan.tag-name": text}))


def _as_branch(catalog: FileSystemCatalog, text: str) -> None:
    _create(catalog)
    catalog.get_table(Identifier("db", "t", branch=text))


def _as_partition(catalog: FileSystemCatalog, text: str) -> None:
    table = _create(catalog, partition_keys=["p"])
    _write(table, "plain")
    _write(table, text)
    builder = table.new_read_builder()
    equal = builder.new_predicate_builder().equal("p", text)
    assert [row["p"] for row in _rows(table, equal)] == [text] * (1 + (text == "plain"))
    assert sorted(row["p"] for row in _rows(table)) == sorted(["plain", text])
    table.compact(full=True)
    assert sorted(row["p"] for row in _rows(table)) == sorted(["plain", text])
    catalog.list_partitions_paged("db.t")


def _as_column(catalog: FileSystemCatalog, text: str) -> None:
    columns = pa.schema([("id", pa.int64()), (text, pa.string())])
    catalog.create_table("db.t", Schema.from_pyarrow_schema(columns, partition_keys=[text]))
    table = catalog.get_table("db.t")
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(pa.table([[1], pa.array(["v"], pa.string())], schema=columns))
        commit.commit(write.prepare_commit())
    assert _rows(table) == [{"id": 1, text: "v"}]


def _as_new_column(catalog: FileSystemCatalog, text: str) -> None:
    _write(_create(catalog), "x")
    catalog.alter_table("db.t", [SchemaChange.add_column(text, AtomicType("STRING"))])
    assert _rows(catalog.get_table("db.t")) == [{"id": 1, "p": "x", text: None}]


def _as_value(catalog: FileSystemCatalog, text: str) -> None:
    for file_format in ("parquet", "orc", "avro"):
        table = _create(catalog, f"db.{file_format}", options={"file.format": file_format})
        _write(table, text)
        assert _rows(table) == [{"id": 1, "p": text}]


OPTIONS = (
    "data-file.path-directory",
    "data-file.prefix",
    "changelog-file.prefix",
    "file.suffix.include.compression",
    "partition.default-name",
    "file.format",
    "file.compression",
    "bucket",
    "bucket-key",
    "merge-engine",
    "manifest.format",
    "manifest.compression",
    "manifest.target-file-size",
    "target-file-size",
    "write-buffer-size",
    "sequence.field",
    "scan.tag-name",
    "scan.snapshot-id",
    "scan.timestamp-millis",
    "consumer-id",
    "branch",
    "path",
    "commit.timeout",
    "snapshot.time-retained",
    "anything.else",
)


def _as_option(catalog: FileSystemCatalog, text: str) -> None:
    """Every option takes the text, or refuses it with a word; the table works with what it took."""
    for number, key in enumerate(OPTIONS):
        with suppress(EmberlakeError):
            table = _create(catalog, f"db.o{number}", options={key: text})
            _write(table, "x")
            assert len(_rows(table)) == 1
    table = _create(catalog)
    _write(table, "x")
    for key in OPTIONS:
        with suppress(EmberlakeError):
            copied = table.copy({key: text})
            _write(copied, "y")
            _rows(copied)
        with suppress(EmberlakeError):
            catalog.alter_table("db.t", [SchemaChange.set_option(key, text)])
            catalog.alter_table("db.t", [SchemaChange.remove_option(key)])
    with suppress(EmberlakeError):
        catalog.alter_table("db.t", [SchemaChange.set_option(text, "x")])
    with suppress(EmberlakeError):
        catalog.alter_table("db.t", [SchemaChange.update_comment(text)])
    assert _rows(catalog.get_table("db.t"))


def _as_consumer(catalog: FileSystemCatalog, text: str) -> None:
    table = _create(catalog)
    _write(table, "x")
    consumers = ConsumerStore(table.store.storage, table.store.layout)
    consumers.save(text, 1)
    assert consumers.next_snapshot(text) == 1


def _as_filter(catalog: FileSystemCatalog, text: str) -> None:
    table = _create(catalog)
    _write(table, "x")
    for where in (text, f"p = '{text}'", f"{text} = 1", f"p LIKE '{text}'", f"`{text}` IS NULL"):
        with suppress(EmberlakeError):
            _rows(table, where)


def _as_user(catalog: FileSystemCatalog, text: str) -> None:
    table = _create(catalog)
    builder = table.new_stream_write_builder(text)
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(pa.table({"id": [1], "p": ["x"]}))
        commit.commit(write.prepare_commit(1), 1)
    assert len(_rows(table)) == 1


USES: dict[str, Callable[[FileSystemCatalog, str], None]] = {
    use.__name__.removeprefix("_as_").replace("_", " "): use
    for use in (
        _as_database, _as_table, _as_identifier, _as_renamed, _as_tag, _as_missing_tag, _as_branch,
        _as_partition, _as_column, _as_new_column, _as_value, _as_option, _as_consumer, _as_filter,
        _as_user,
    )
}  # fmt: skip


def names(seed: int) -> Steps:
    """Every use of every nasty text; then any text for any use, which does not end."""
    cases = list(itertools.product(USES, NASTY))
    chance_of(seed, "names").shuffle(cases)
    for use, text in cases:
        yield name_it(use, text)
    for number, text in enumerate(_texts(seed)):
        if number >= len(NASTY):
            yield name_it(chance_of(seed, "use", number).choice(sorted(USES)), text)


def name_it(use: str, text: str) -> Step:
    """Use a text for something, and look whether it stayed where it belongs."""
    if use in ("partition", "column", "value"):
        text = text.replace("\ud800", "\ufffd")  # Arrow itself has no such text
    shown = text if len(text) < 40 else f"{text[:20]}... ({len(text)} characters)"
    problem: str | None = None
    with _world() as (catalog, warehouse):
        try:
            USES[use](catalog, text)
        except EmberlakeError:
            pass  # refused with a word
        except AssertionError as error:
            problem = f"it is not found again: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it should have been typed
            problem = f"{type(error).__name__} is not typed: {str(error)[:200]}"
        problem = problem or _escaped(warehouse)
    return Step(f"{use} {shown!r}", {"names": 1}, problem)
