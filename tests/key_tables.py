"""Tables with a primary key for tests: made in memory, written in one line with row kinds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from append_tables import NAME, Row, open_catalog
from emberlake import Schema, Table
from emberlake.io import MemoryStorage
from emberlake.types import arrow_schema
from table_reads import live_files, publish

COLUMNS = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())
])  # fmt: skip


def create_key_table(
    options: Mapping[str, str] | None = None,
    columns: pa.Schema = COLUMNS,
    keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
) -> Table:
    """A new table with a primary key, of one bucket unless the options say otherwise."""
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db", ignore_if_exists=True)
    schema = Schema.from_pyarrow_schema(
        columns,
        partition_keys=list(partition_keys),
        primary_keys=[*partition_keys, *keys],
        options={"bucket": "1", **(options or {})},
    )
    catalog.create_table(NAME, schema)
    return catalog.get_table(NAME)


def upsert(table: Table, rows: Sequence[Row], kind: str | None = None) -> None:
    """Write rows and commit; each write makes a file of its own in a bucket."""
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        data = pa.Table.from_pylist(list(rows), arrow_schema(tuple(table.fields)))
        write.write_arrow(data, row_kind=kind)
        builder.new_commit().commit(write.prepare_commit())


def numbered(ids: Sequence[int], value: str = "a", number: int | None = 0) -> list[Row]:
    return [{"id": n, "v": f"{value}{n}", "n": number} for n in ids]


def lift(table: Table, levels: Mapping[int, int]) -> None:
    """Say that files, by their place in order of writing, are on other levels than 0."""
    entries = live_files(table)
    lifted = [
        replace(entry, file=replace(entry.file, level=levels.get(place, entry.file.level)))
        for place, entry in enumerate(entries)
    ]
    publish(table, lifted)


def forget_deletes(table: Table) -> None:
    """Say that no file has deletes, as writers do that do not count them."""
    entries = live_files(table)
    publish(table, [replace(e, file=replace(e.file, delete_row_count=0)) for e in entries])
