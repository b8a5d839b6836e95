"""Columns that are left out of a write to a key table, and would silently become null."""

from typing import Any

import pyarrow as pa
import pytest

from builders import alter, create_key_table, upsert
from emberlake import DataMismatch, SchemaChange, Table
from table_reads import data_files, read_rows

COLUMNS = {"id": "BIGINT", "day": "STRING", "n": "INT", "v": "STRING"}
WHOLE = {"id": [1], "day": ["mon"], "n": [1], "v": ["one"]}
AGGREGATED = {"merge-engine": "aggregation", "fields.v.aggregate-function": "last_value"}
GROUPED = {"merge-engine": "partial-update", "fields.n.sequence-group": "v"}


def write(table: Table, columns: tuple[str, ...] | None = None, **data: list[Any]) -> None:
    write_arrow(table, pa.table(data), columns)


def write_arrow(table: Table, data: object, columns: tuple[str, ...] | None = None) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as writing:
        if columns is not None:
            writing.with_write_type(columns)
        writing.write_arrow(data)
        builder.new_commit().commit(writing.prepare_commit())


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in read_rows(table))


@pytest.mark.parametrize("options", [{"bucket": "1"}, {"bucket": "-1"}, {"bucket": "-2"}])
def test_a_row_that_replaces_another_has_all_columns(options: dict[str, str]) -> None:
    table = create_key_table(COLUMNS, **options)

    with pytest.raises(DataMismatch) as refused:
        write(table, id=[1], n=[2])

    (line,) = str(refused.value).splitlines()[1:]
    assert line.startswith("  - day, v: left out, and would become null")
    for remedy in ("nulls where null is meant", "with_write_type", "merge-engine=partial-update"):
        assert remedy in line
    assert not data_files(table)


def test_nulls_that_are_given_are_meant() -> None:
    table = create_key_table(COLUMNS)
    write(table, **WHOLE)

    write(table, id=[1], day=pa.nulls(1), n=[2], v=pa.nulls(1))

    assert rows(table) == [(1, None, 2, None)]


def test_columns_that_are_named_are_meant() -> None:
    table = create_key_table(COLUMNS)
    write(table, **WHOLE)

    write(table, ("id", "n"), id=[1], n=[2])

    assert rows(table) == [(1, None, 2, None)]


def test_a_column_with_a_default_may_be_left_out() -> None:
    table = alter(
        create_key_table(COLUMNS),
        SchemaChange.update_column_default_value("v", "said by the table"),
    )

    write(table, id=[1], day=["mon"], n=[2])

    assert rows(table) == [(1, "mon", 2, "said by the table")]


# --- rows that go ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["-D", "-U"])
def test_the_key_is_enough_for_rows_that_go(kind: str) -> None:
    table = create_key_table(COLUMNS)
    write(table, **WHOLE)

    upsert(table, pa.table({"id": [1]}), kind)

    assert rows(table) == []


def test_kinds_in_a_column_are_looked_at_together() -> None:
    table = create_key_table(COLUMNS)
    write(table, **WHOLE)

    with pytest.raises(DataMismatch, match="day, n, v: left out"):
        write(table, id=[1, 2], _row_kind=["-D", "+U"])
    write(table, id=[1, 2], _row_kind=["-D", "-U"])

    assert rows(table) == []


def test_a_stream_of_deletes_needs_the_key_alone() -> None:
    table = create_key_table(COLUMNS)
    write(table, **WHOLE)
    keys = pa.table({"id": [1], "_row_kind": ["-D"]})

    write_arrow(table, keys.to_reader())

    assert rows(table) == []


def test_a_stream_that_says_nothing_of_kinds_is_refused_before_its_first_batch() -> None:
    empty = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), [])

    with pytest.raises(DataMismatch, match="day, n, v: left out"):
        write_arrow(create_key_table(COLUMNS), empty)


def test_kinds_from_a_column_of_the_table_count_as_well() -> None:
    table = create_key_table(COLUMNS, **{"rowkind.field": "v"})

    write(table, id=[1], v=["-D"])

    with pytest.raises(DataMismatch, match="day, n: left out"):
        write(table, id=[1], v=["+I"])


# --- other merge engines --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "merged"),
    [
        ({"merge-engine": "partial-update"}, (1, "mon", 2, "one")),
        ({"merge-engine": "aggregation"}, (1, "mon", 2, "one")),
        ({"merge-engine": "first-row"}, (1, "mon", 1, "one")),
    ],
)
def test_engines_that_keep_what_is_left_out_take_it_so(
    options: dict[str, str], merged: tuple[Any, ...]
) -> None:
    table = create_key_table(COLUMNS, **options)
    write(table, **WHOLE)

    write(table, id=[1], n=[2])

    assert rows(table) == [merged]


@pytest.mark.parametrize(
    ("options", "data", "names"),
    [
        (AGGREGATED, {"id": [1], "n": [2]}, "v"),
        (GROUPED, {"id": [1], "n": [2]}, "v"),
        (GROUPED, {"id": [1], "day": ["mon"]}, None),
        (
            {"merge-engine": "partial-update", "fields.n,day.sequence-group": "v"},
            {"id": [1], "n": [2]},
            "day, v",
        ),
        (
            {**GROUPED, "fields.v.aggregate-function": "max"},
            {"id": [1], "n": [2]},
            None,
        ),
    ],
)
def test_a_last_value_that_may_be_null_is_not_left_out(
    options: dict[str, str], data: dict[str, list[Any]], names: str | None
) -> None:
    table = create_key_table(COLUMNS, **options)

    if names is None:
        write(table, **data)
        return
    with pytest.raises(DataMismatch, match=f"- {names}: left out, .* the last value of these"):
        write(table, **data)


# --- keys and partitions --------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, ("id", "n", "v")])
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "first-row"])
def test_a_partition_beside_the_key_is_never_left_out(
    engine: str, columns: tuple[str, ...] | None
) -> None:
    table = create_key_table(COLUMNS, ["id"], ["day"], **{"merge-engine": engine})

    with pytest.raises(DataMismatch, match="day: is missing, and a key is looked for in the part"):
        write(table, columns, id=[1], n=[2], v=["two"])


def test_a_delete_says_its_partition() -> None:
    table = create_key_table(COLUMNS, ["id"], ["day"])
    write(table, id=[1, 1], day=["mon", None], n=[1, 2], v=["a", "b"])

    with pytest.raises(DataMismatch, match="day: is missing"):
        upsert(table, pa.table({"id": [1]}), "-D")
    upsert(table, pa.table({"id": [1], "day": ["mon"]}), "-D")

    assert rows(table) == [(1, None, 2, "b")]


def test_a_key_that_may_be_null_is_not_left_out() -> None:
    table = create_key_table(COLUMNS, ["id", "day"], **{"primary-key.nullable": "true"})

    with pytest.raises(DataMismatch, match="day: is missing, and is in the primary key"):
        upsert(table, pa.table({"id": [1]}), "-D")
