"""Rows one at a time: gathered, checked, in order with what else is written."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from builders import NUMBERED, append, create_key_table, create_table, rows_of
from emberlake import GenericRow, RowKind, Table
from emberlake.errors import DataMismatch, InvalidInput, InvalidState
from emberlake.write import rows as rows_module
from emberlake.write.table_writer import TableWriter
from table_reads import data_files, read, read_arrow


def write(table: Table, *rows: Any) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        for row in rows:
            writer.write_row(row)
        builder.new_commit().commit(writer.prepare_commit())


def test_a_row_is_a_dict_a_tuple_or_a_generic_row() -> None:
    table = create_table()

    write(
        table,
        {"day": "mon", "id": 1},
        (2, "tue"),
        [3, None],
        GenericRow(["wed", 4], [table.fields[1], table.fields[0]]),
        {"id": 5},
    )

    assert read(table) == [
        {"id": 1, "day": "mon"},
        {"id": 2, "day": "tue"},
        {"id": 3, "day": None},
        {"id": 4, "day": "wed"},
        {"id": 5, "day": None},
    ]


@pytest.mark.parametrize(("bound", "writes"), [("_MAX_ROWS", 3), ("_MAX_BYTES", 4)])
def test_rows_are_written_many_at_a_time(
    monkeypatch: pytest.MonkeyPatch, bound: str, writes: int
) -> None:
    table, sizes = create_table(), []
    monkeypatch.setattr(rows_module, bound, 40 if bound == "_MAX_ROWS" else 90)
    plain = TableWriter.write

    def watched(self: TableWriter, data: pa.Table, row_kind: str | None = None) -> None:
        sizes.append(data.num_rows)
        plain(self, data, row_kind)

    monkeypatch.setattr(TableWriter, "write", watched)

    write(table, *[(n, "mon") for n in range(100)])

    assert len(sizes) == writes
    assert len(data_files(table)) == 1
    assert len(read(table)) == 100


def test_rows_keep_their_place_among_batches() -> None:
    table = create_key_table(NUMBERED)
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write_row((1, "row", 1))
        writer.write_arrow(pa.table({"id": [1], "v": ["batch"], "n": [1]}))
        writer.write_arrow(pa.table({"id": [2], "v": ["batch"], "n": [1]}))
        writer.write_row((2, "row", 2))
        builder.new_commit().commit(writer.prepare_commit())

    assert [row["v"] for row in read(table)] == ["batch", "row"]


def test_rows_of_all_kinds_are_gathered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    table, calls = create_key_table(NUMBERED), []
    plain = TableWriter.write
    monkeypatch.setattr(TableWriter, "write", lambda *a: calls.append(a) or plain(*a))
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write_row(GenericRow([1, "a", 1], table.fields))
        writer.write_row(GenericRow([2, "b", 1], table.fields))
        writer.write_row(GenericRow([1, "a", 1], table.fields, RowKind.DELETE))
        writer.write_row((3, "c", 1), row_kind="+U")
        builder.new_commit().commit(writer.prepare_commit())

    assert [row["id"] for row in read(table)] == [2, 3]
    assert len(calls) == 1


def test_declared_columns_are_those_of_a_tuple() -> None:
    table = create_table()
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.with_write_type(["day"])
        writer.write_row(("mon",))
        builder.new_commit().commit(writer.prepare_commit())

    assert read(table) == [{"id": None, "day": "mon"}]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"id": 1, "nope": 2}, "nope"),
        ((1, "mon", 3), "3 values"),
        (GenericRow([1], []), "1 values"),
        ("mon", "a row is a dict"),
        (7, "a row is a dict"),
    ],
)
def test_a_row_that_is_none_of_the_table_is_refused_and_the_others_stay(
    row: Any, says: str
) -> None:
    table = create_table()
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write_row((1, "mon"))
        with pytest.raises(DataMismatch, match=says):
            writer.write_row(row)
        writer.write_row((2, "mon"))
        builder.new_commit().commit(writer.prepare_commit())

    assert read(table) == rows_of([1, 2])


def test_a_key_cannot_be_missing() -> None:
    with pytest.raises(DataMismatch, match="NOT NULL columns id"):
        write(create_key_table(NUMBERED), {"v": "a"})


@pytest.mark.parametrize("bad", ["text", 1.5, 2**70])
def test_a_value_that_does_not_fit_ends_the_write_and_leaves_nothing(bad: Any) -> None:
    table = create_table()
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write_arrow(pa.table({"id": [1]}))
        writer.write_row((bad, "mon"))
        with pytest.raises(DataMismatch, match=r"\bid\b"):
            writer.prepare_commit()
        with pytest.raises(InvalidState):
            writer.prepare_commit()

    assert data_files(table) == set()


NESTED = pa.schema(
    [
        ("many", pa.list_(pa.int32())),
        ("by_name", pa.map_(pa.string(), pa.int64())),
        ("inside", pa.struct([("n", pa.int16()), ("days", pa.list_(pa.date32()))])),
    ]
)
DAY = date(2026, 6, 26)


def test_values_may_be_nested() -> None:
    table = create_table(columns=NESTED)
    rows = [
        {"many": [1, None], "by_name": {"a": 1}, "inside": {"n": 1, "days": [DAY]}},
        {"many": None, "by_name": None, "inside": None},
        {"many": [], "by_name": [("b", None)], "inside": {"n": None, "days": None}},
    ]

    write(table, *rows)

    found = read_arrow(table).to_pylist()
    assert [row["many"] for row in found] == [[1, None], None, []]
    assert [row["by_name"] for row in found] == [[("a", 1)], None, [("b", None)]]
    assert [row["inside"] for row in found] == [row["inside"] for row in rows]


@pytest.mark.parametrize(
    "row",
    [
        {"many": [1.5]},
        {"many": [2**40]},
        {"many": 3},
        {"by_name": {"a": 0.5}},
        {"by_name": {None: 1}},
        {"inside": {"n": 70_000}},
        {"inside": {"nope": 1}},
        {"inside": [1]},
        {"inside": {"days": [datetime(2026, 6, 26, 12, tzinfo=UTC)]}},
    ],
)
def test_nothing_is_cut_off_to_fit(row: dict[str, Any]) -> None:
    with pytest.raises(DataMismatch, match=next(iter(row))):
        write(create_table(columns=NESTED), row)


def test_an_append_table_takes_no_row_kinds() -> None:
    table = create_table()

    with pytest.raises(InvalidInput, match="no primary key"):
        write(table, GenericRow([1, "mon"], table.fields, RowKind.DELETE))


def test_what_is_gathered_is_dropped_with_the_write() -> None:
    table = create_table()
    append(table, rows_of([1]))
    writer = table.new_batch_write_builder().new_write()
    writer.write_row((2, "mon"))
    writer.close()

    assert read(table) == rows_of([1])


def test_a_stream_takes_rows_too() -> None:
    table = create_table()
    builder = table.new_stream_write_builder("me")
    with builder.new_write() as writer, builder.new_commit() as commit:
        for identifier in (1, 2):
            writer.write_row((identifier, "mon"))
            commit.commit(writer.prepare_commit(identifier), identifier)

    assert read(table) == rows_of([1, 2])


def test_floats_of_python_fit_a_float() -> None:
    table = create_table(columns=pa.schema([("f", pa.float32()), ("l", pa.list_(pa.float32()))]))
    builder = table.new_batch_write_builder()
    with builder.new_write() as writer:
        writer.write_row({"f": 0.5, "l": [1.5, None]})
        builder.new_commit().commit(writer.prepare_commit())

    assert read(table) == [{"f": 0.5, "l": [1.5, None]}]


def test_times_with_and_without_a_zone_are_not_mixed() -> None:
    table = create_table(columns=pa.schema([("t", pa.timestamp("us"))]))
    plain = datetime(2020, 1, 1)  # noqa: DTZ001
    with table.new_batch_write_builder().new_write() as writer:
        writer.write_row({"t": plain})
        writer.write_row({"t": plain.replace(tzinfo=UTC)})

        with pytest.raises(DataMismatch, match="some have none"):
            writer.prepare_commit()
