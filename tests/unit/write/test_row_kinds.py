"""Where row kinds come from."""

import numpy as np
import pyarrow as pa
import pytest

from builders import create_key_table, create_table, data_of, upsert
from emberlake.errors import DataMismatch, InvalidInput
from table_reads import all_records, data_files, read

SYMBOLS = ["+I", "-U", "+U", "-D"]
ROWS = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def kinds_in(table) -> dict[int, str]:
    return {record[0]: record[-1] for record in all_records(table)}


def with_kinds(table, kinds) -> pa.Table:
    return data_of(table, ROWS).append_column("_row_kind", kinds)


@pytest.mark.parametrize("kind", SYMBOLS)
def test_one_kind_for_all_rows(kind) -> None:
    table = create_key_table()

    upsert(table, ROWS, kind)

    assert set(kinds_in(table).values()) == {kind}


@pytest.mark.parametrize(
    "form", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_kinds_in_a_column_of_the_data(form) -> None:
    table = create_key_table()

    upsert(table, with_kinds(table, pa.array(SYMBOLS).cast(form)))

    assert kinds_in(table) == dict(enumerate(SYMBOLS, 1))


def test_kinds_in_a_column_of_the_table() -> None:
    table = create_key_table({"id": "INT", "op": "STRING"}, **{"rowkind.field": "op"})

    upsert(table, list(enumerate(SYMBOLS, 1)))

    assert [record[1:] for record in all_records(table)] == [
        (symbol, number, symbol) for number, symbol in enumerate(SYMBOLS)
    ]


def test_a_column_of_that_name_may_belong_to_the_table() -> None:
    table = create_key_table({"id": "INT", "_row_kind": "STRING"})

    upsert(table, [(1, "anything")])

    assert list(all_records(table)) == [(1, "anything", 0, "+I")]


def test_kinds_come_from_a_stream_too() -> None:
    table = create_key_table()
    reader = with_kinds(table, pa.array(SYMBOLS)).to_reader(max_chunksize=1)
    builder = table.new_batch_write_builder()

    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(reader)
        commit.commit(write.prepare_commit())

    assert kinds_in(table) == dict(enumerate(SYMBOLS, 1))


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (
            pa.array(["+I", "+I", "upsert", "+I"]),
            "_row_kind holds 'upsert', which is not a row kind",
        ),
        (pa.array(["+I", "+I", None, "+I"]), "_row_kind holds None, which is not a row kind"),
        (pa.array([[1]] * 4), "row kinds are text"),
    ],
)
def test_a_kind_that_is_none_is_refused(kinds, message) -> None:
    table = create_key_table()

    with pytest.raises(DataMismatch, match=message):
        upsert(table, with_kinds(table, kinds))
    with pytest.raises(InvalidInput, match="row kind 'x': expected one of"):
        upsert(table, ROWS, "x")

    assert data_files(table) == set()


def test_kinds_that_are_no_text_are_refused_with_the_way_to_give_several() -> None:
    table = create_key_table()

    for kinds in (pa.array(SYMBOLS), np.array(SYMBOLS), SYMBOLS, 3):
        with pytest.raises(InvalidInput, match="column _row_kind"):
            upsert(table, ROWS, kinds)


def test_a_key_is_enough_to_delete_its_row() -> None:
    table = create_key_table()
    upsert(table, ROWS)

    upsert(table, data_of(table, ROWS[:3]).select(["id"]), "-D")

    assert read(table) == [{"id": 4, "v": "d"}]


def test_kinds_from_two_places_are_refused() -> None:
    table = create_key_table({"id": "INT", "op": "STRING"}, **{"rowkind.field": "op"})
    data = data_of(table, [(1, "+I")])

    with pytest.raises(InvalidInput, match=r"row_kind=-D and the column op of the table"):
        upsert(table, data, "-D")
    with pytest.raises(InvalidInput, match="_row_kind of the data and the column op"):
        upsert(table, data.append_column("_row_kind", pa.array(["+I"])))
    with pytest.raises(InvalidInput, match="row_kind=-D and the column _row_kind of the data"):
        upsert(create_key_table(), pa.table({"id": [1], "_row_kind": ["+I"]}), "-D")


def test_a_missing_kind_column_is_refused() -> None:
    table = create_key_table({"id": "INT", "op": "STRING"}, **{"rowkind.field": "op"})

    with pytest.raises(DataMismatch, match="lacks the column op"):
        upsert(table, pa.table({"id": pa.array([1], pa.int32())}))


def test_rows_of_a_table_without_a_key_have_no_kinds() -> None:
    table = create_table()

    with pytest.raises(InvalidInput, match="no primary key"):
        upsert(table, [(1, "mon")], "+I")


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"ignore-delete": "true"}, {1: "+I", 3: "+U"}),
        ({"deduplicate.ignore-delete": "true"}, {1: "+I", 3: "+U"}),
        ({"ignore-update-before": "true"}, {1: "+I", 3: "+U", 4: "-D"}),
    ],
)
def test_ignored_kinds_are_dropped_and_take_no_sequence_number(options, kept) -> None:
    table = create_key_table(**options)

    upsert(table, with_kinds(table, pa.array(SYMBOLS)))

    assert kinds_in(table) == kept
    assert [record[-2] for record in all_records(table)] == list(range(len(kept)))


def test_a_write_of_ignored_rows_only_is_no_commit() -> None:
    table = create_key_table(**{"ignore-delete": "true"})

    assert upsert(table, ROWS, "-D").snapshot_id is None
