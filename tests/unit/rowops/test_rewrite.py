"""Files that are rewritten column by column: what does not change is copied as it is encoded."""

import datetime as dt
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders import alter, create_table
from emberlake import SchemaChange
from emberlake.errors import CorruptFile
from emberlake.spec.stats import decode_stats
from emberlake.table import Table
from table_reads import live_files
from tracked_tables import TRACKED, with_ids

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("big", pa.decimal128(30, 2)),
        ("at", pa.timestamp("us")),
        ("precise", pa.timestamp("ns")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("value", pa.float64()),
    ]
)


def rows(numbers: range) -> pa.Table:
    def unless(value: object, n: int, step: int) -> object:
        return None if n % step == 0 else value

    made = [
        {
            "id": n,
            "name": unless(f"name {n % 7}", n, 5),
            "price": Decimal(n) / 100,
            "big": unless(Decimal(n) * 10**20, n, 3),
            "at": dt.datetime(2026, 1, 1) + dt.timedelta(hours=n),  # noqa: DTZ001
            "precise": n * 1_000_000_007,
            "tags": unless([str(n), None], n, 4),
            "place": unless({"x": n, "y": None if n % 2 else "y"}, n, 6),
            "value": unless(n / 3, n, 7),
        }
        for n in numbers
    ]
    columns = {f.name: pa.array([r[f.name] for r in made], f.type) for f in COLUMNS}
    return pa.table(columns, schema=COLUMNS)


def table_of(count: int, *, groups: int = 1, **options: str) -> Table:
    """A table with one file of some row groups."""
    size = count // groups
    limits = {} if groups == 1 else {"file.block-size": f"{size * 100} b"}
    table = create_table(columns=COLUMNS, options={**options, **limits})
    table.append(rows(range(count)))
    return table


def content(table: Table) -> bytes:
    return table.store.storage.read(path_of(table))


def path_of(table: Table) -> str:
    (entry,) = live_files(table)
    folder = table.store.bucket_folder(entry.partition, entry.bucket)
    return f"{folder}/{entry.file.file_name}"


def chunk(raw: bytes, group: int, name: str) -> bytes:
    """The bytes of a column in a row group."""
    metadata = pq.read_metadata(io.BytesIO(raw))
    found = [metadata.row_group(group).column(n) for n in range(metadata.num_columns)]
    parts = []
    for column in found:
        if column.path_in_schema.split(".")[0] == name:
            start = column.dictionary_page_offset or column.data_page_offset
            parts.append(raw[start : start + column.total_compressed_size])
    return b"".join(parts)


def test_an_update_copies_the_columns_that_it_does_not_set() -> None:
    table = table_of(1000)
    before = content(table)

    table.update({"value": "value + 1"}, "id % 10 = 3")

    after = content(table)
    for name in COLUMNS.names:
        assert (chunk(after, 0, name) == chunk(before, 0, name)) == (name != "value"), name
    expected = rows(range(1000)).to_pylist()
    for row in expected:
        if row["id"] % 10 == 3 and row["value"] is not None:
            row["value"] += 1
    assert table.to_arrow().to_pylist() == expected


def test_what_is_copied_keeps_its_statistics() -> None:
    table = table_of(1000)
    exact = create_table(columns=COLUMNS)
    table.update({"value": "0.5"}, "id >= 990")

    exact.append(table.to_arrow())

    (ours,), (theirs,) = live_files(table), live_files(exact)
    fields = table.store.schema.fields
    assert decode_stats(fields, ours.file.value_stats) == decode_stats(
        fields, theirs.file.value_stats
    )
    assert table.check().ok


def texts(*values: str | None) -> pa.Table:
    ids = pa.array(range(len(values)), pa.int64())
    return pa.table({"id": ids, "text": pa.array(values, pa.string())})


def text_of(table: Table) -> pq.ColumnChunkMetaData:
    return pq.read_metadata(io.BytesIO(content(table))).row_group(0).column(1)


def test_texts_with_a_dictionary_keep_it() -> None:
    table = create_table(columns=texts().schema)
    table.append(texts(*["b", "c", None, "d"] * 50))

    table.update(
        {"text": "CASE WHEN id = 0 THEN 'new' WHEN id = 1 THEN NULL ELSE 'c' END"}, "id < 4"
    )
    table.delete("text = 'd' OR id > 190")

    expected = texts(*["b", "c", None, "d"] * 50).column("text").to_pylist()
    expected[:4] = ["new", None, "c", "c"]
    left = [text for n, text in enumerate(expected) if text != "d" and n <= 190]
    assert table.to_arrow().column("text").to_pylist() == left
    found = text_of(table)
    assert "RLE_DICTIONARY" in found.encodings
    statistics = found.statistics
    assert (statistics.min, statistics.max, statistics.null_count) == ("b", "new", left.count(None))
    (entry,) = live_files(table)
    stats = decode_stats(table.store.schema.fields, entry.file.value_stats)
    assert stats["text"] == ("b", "new", left.count(None))
    assert table.check().ok


def test_texts_that_outgrow_their_dictionary_are_stored_without_one() -> None:
    table = create_table(columns=texts().schema)
    table.append(texts(*["few"] * 4000))
    many = texts(*[f"{n:05}{'x' * 400}" for n in range(4000)])

    table.merge(many, on=["id"]).when_matched_update_all().execute()

    assert table.to_arrow().to_pydict() == many.to_pydict()
    assert "RLE_DICTIONARY" not in text_of(table).encodings


def test_only_nulls_are_left_of_a_dictionary() -> None:
    table = create_table(columns=texts().schema)
    table.append(texts(*["one", None] * 10))
    table.delete("text IS NOT NULL")
    assert table.to_arrow().column("text").to_pylist() == [None] * 10
    assert not text_of(table).statistics.has_min_max


def test_row_groups_without_a_changed_row_are_copied() -> None:
    table = table_of(8000, groups=4)
    before = content(table)
    count = pq.read_metadata(io.BytesIO(before)).num_row_groups
    assert count > 2

    table.delete("id = 0")

    after = content(table)
    for group in range(1, count):
        for name in ("id", "name", "big", "precise", "value"):
            assert chunk(after, group, name) == chunk(before, group, name)
    assert chunk(after, 0, "id") != chunk(before, 0, "id")
    assert table.to_arrow().to_pylist() == rows(range(1, 8000)).to_pylist()
    assert table.check().ok


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("options", [{}, TRACKED], ids=["plain", "tracked"])
def test_updates_and_deletes_in_one_file(groups: int, options: dict[str, str]) -> None:
    table = table_of(6000, groups=groups, **options)
    ids = {row[0]: number for number, row in with_ids(table).items()} if options else {}
    source = pa.table({"id": np.arange(0, 6000, 7), "name": pa.array(["new"] * 858)})

    result = (
        table.merge(source, on=["id"])
        .when_matched_delete("s.id % 2 = 0")
        .when_matched_update({"name": "s.name", "value": "NULL"})
        .execute()
    )

    assert (result.rows_deleted, result.rows_updated) == (429, 429)
    assert result.rows_copied == 6000 - 858
    expected = [r for r in rows(range(6000)).to_pylist() if r["id"] % 14]
    for row in expected:
        if row["id"] % 7 == 0:
            row |= {"name": "new", "value": None}
    assert table.to_arrow().to_pylist() == expected
    assert table.check().ok
    if options:
        kept = {row[0]: number for number, row in with_ids(table).items()}
        assert kept == {key: number for key, number in ids.items() if key % 14}


def test_columns_of_an_older_schema_are_decoded() -> None:
    table = table_of(100)
    table = alter(table, SchemaChange.update_column_type("price", "DECIMAL(12, 2)"))
    table = alter(table, SchemaChange.rename_column("name", "title"))
    table = alter(table, SchemaChange.add_column("extra", "INT"))

    table.update({"value": "1.5"}, "id = 7")

    row = table.to_arrow(filter="id = 7").to_pylist()[0]
    assert (row["price"], row["title"], row["extra"]) == (Decimal("0.07"), "name 0", None)
    assert row["value"] == 1.5
    assert table.to_arrow(["id"], "title = 'name 1'").num_rows == 12
    assert table.check().ok


def test_other_formats_are_rewritten_too() -> None:
    table = create_table(columns=COLUMNS, options={"file.format": "orc"})
    table.append(rows(range(100)))

    table.update({"name": "'x'"}, "id < 2")

    assert table.to_arrow(["id"], "name = 'x'").to_pydict() == {"id": [0, 1]}


def test_a_file_that_was_cut_off_is_corrupt() -> None:
    table = table_of(100)
    path = path_of(table)
    raw = table.store.storage.read(path)
    table.store.storage.delete(path)
    table.store.storage.create(path, raw[: len(raw) // 2])

    with pytest.raises(CorruptFile):
        table.update({"name": "'x'"})
