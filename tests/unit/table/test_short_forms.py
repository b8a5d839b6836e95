"""One call, one commit; one call, one read."""

import polars as pl
import pyarrow as pa
import pytest

from builders import NUMBERED, create_key_table, create_table, numbered
from emberlake.errors import (
    ColumnNotFound,
    DataMismatch,
    InvalidInput,
    SnapshotNotFound,
    TagNotFound,
)
from table_reads import read_ids

DAYS = pa.table({"id": [1, 2, 3], "day": ["mon", "tue", "tue"]})


def a_week(**options):
    table = create_table(partition_keys=["day"], options=options)
    table.append(DAYS)
    return table


def keys_of(table):
    return sorted(table.to_arrow(["id"]).column("id").to_pylist())


# --- writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows,
        lambda rows: rows.to_batches()[0],
        lambda rows: rows.to_reader(),
        lambda rows: rows.to_pandas(),
        pl.from_arrow,
    ],
    ids=["table", "batch", "stream", "pandas", "polars"],
)
def test_rows_of_any_kind_are_appended_in_one_commit(form):
    table = create_table()

    result = table.append(form(DAYS))

    assert (result.snapshot_id, result.rows_added) == (1, 3)
    assert read_ids(table) == [1, 2, 3]


def test_rows_that_do_not_fit_change_nothing():
    table = a_week()

    with pytest.raises(DataMismatch, match="town"):
        table.append(pa.table({"id": [1], "town": ["oslo"]}))
    assert table.latest_snapshot().id == 1


@pytest.mark.parametrize("option", ["true", "false"])
@pytest.mark.parametrize(
    ("partition", "ids"),
    [(None, [1, 9]), ({"day": "tue"}, [1, 9]), ({}, [9])],
    ids=["touched", "one", "all"],
)
def test_an_overwrite_replaces_what_its_argument_says(option, partition, ids):
    table = a_week(**{"dynamic-partition-overwrite": option})

    table.overwrite(pa.table({"id": [9], "day": ["tue"]}), partition)

    assert read_ids(table) == ids


@pytest.mark.parametrize(("partition", "ids"), [(None, [1, 2, 3]), ({"day": "tue"}, [1]), ({}, [])])
def test_an_overwrite_by_nothing_empties_only_what_it_names(partition, ids):
    table = a_week()

    table.overwrite(DAYS.slice(0, 0), partition)

    assert read_ids(table) == ids


def test_a_table_without_partitions_is_overwritten_as_a_whole():
    table = create_table()
    table.append(DAYS)

    table.overwrite(pa.table({"id": [9]}))
    assert read_ids(table) == [9]
    table.overwrite(pa.table({"id": pa.array([], pa.int64())}))
    assert read_ids(table) == []


# --- reading --------------------------------------------------------------------------------------


def test_columns_rows_and_their_number_are_chosen():
    table = a_week()

    assert table.to_arrow(["id"], "day = 'tue'").to_pydict() == {"id": [2, 3]}
    assert table.to_arrow(limit=2).num_rows == 2
    with pytest.raises(ColumnNotFound, match="town"):
        table.to_arrow(["town"])


def test_an_earlier_state_is_read():
    table = a_week()
    table.create_tag("first")
    table.append(pa.table({"id": [4], "day": ["wed"]}))

    assert table.to_arrow(snapshot=1).num_rows == 3
    assert table.to_arrow(tag="first").num_rows == 3
    assert table.to_arrow().num_rows == 4
    with pytest.raises(SnapshotNotFound):
        table.to_arrow(snapshot=7)
    with pytest.raises(TagNotFound):
        table.to_arrow(tag="second")
    with pytest.raises(InvalidInput, match="snapshot or tag"):
        table.to_arrow(snapshot=1, tag="first")


def test_rows_come_in_the_form_that_is_asked_for():
    table = a_week()
    asked = {"columns": ["id"], "filter": "day = 'tue'"}

    assert table.to_batches(**asked).read_all().to_pydict() == {"id": [2, 3]}
    assert table.to_pandas(**asked)["id"].tolist() == [2, 3]
    assert table.to_polars(**asked)["id"].to_list() == [2, 3]
    assert table.to_duckdb(**asked).aggregate("sum(id)").fetchall() == [(5,)]


@pytest.mark.parametrize(
    ("where", "rows"),
    [(None, 3), ("day = 'tue'", 2), ("id > 1", 2), ("day = 'tue' AND id > 2", 1), ("id > 9", 0)],
)
def test_rows_are_counted(where, rows):
    assert a_week().count(where) == rows


def test_rows_are_counted_from_metadata_where_that_knows(monkeypatch):
    table = a_week()
    monkeypatch.setattr(type(table.store.storage), "open_input", None)

    assert (table.count(), table.count("day = 'tue'")) == (3, 2)
    with pytest.raises(TypeError):
        table.count("id > 2")


@pytest.mark.parametrize(
    "options", [{}, {"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}]
)
def test_rows_of_key_tables_are_counted_once_a_key(options):
    table = create_key_table(NUMBERED, **options)
    table.append(pa.Table.from_pylist(numbered(range(10))))
    table.append(pa.Table.from_pylist(numbered(range(5, 15))))
    if not options.get("merge-engine"):
        table.delete_keys(pa.table({"id": [0, 14]}))

    expected = 15 if options.get("merge-engine") else 13
    assert table.count() == expected == table.to_arrow().num_rows
    assert table.count("id < 7") == table.to_arrow(filter="id < 7").num_rows
    table.compact(full=True)
    assert table.count() == expected


def test_a_lone_delete_counts_for_nothing():
    table = create_key_table(NUMBERED)
    table.append(pa.Table.from_pylist(numbered([1])))
    table.delete_keys(pa.table({"id": [5]}))

    assert table.count() == 1


@pytest.mark.parametrize(
    ("text", "ids"),
    [("1 = 1", [1, 2, 3]), ("1 = 2", []), ("NOT null", []), ("null IS NULL AND id < 3", [1, 2])],
)
def test_a_filter_may_name_no_column(text, ids):
    of_days, plain = a_week(), create_table(options={"bucket": "-1"})
    plain.append(DAYS)

    for table in (of_days, plain):
        assert sorted(table.to_arrow(["id"], text)["id"].to_pylist()) == ids
        assert table.count(text) == len(ids)


# --- what pandas and Polars are like --------------------------------------------------------------


def test_categories_of_polars_are_written_as_their_text() -> None:
    table = create_table(partition_keys=["day"])
    rows = pl.DataFrame(DAYS).with_columns(pl.col("day").cast(pl.Enum(["mon", "tue"])))

    table.append(rows)
    table.append(rows.with_columns(pl.col("day").cast(pl.Categorical)))

    assert table.count("day = 'tue'") == 4


def test_text_of_polars_is_read_as_values_where_bad_rows_are_allowed() -> None:
    table = create_table(partition_keys=["day"])

    done = table.append(pl.DataFrame({"id": ["7", "x"], "day": ["mon", "mon"]}), on_bad_rows="skip")

    assert (keys_of(table), done.rows_rejected) == ([7], 1)


def test_columns_of_the_same_name_in_pandas_are_refused() -> None:
    twice = DAYS.to_pandas().rename(columns={"day": "id"})

    with pytest.raises(DataMismatch, match="several columns with the names id"):
        create_table().append(twice)


def test_a_pandas_column_of_mixed_values_is_named() -> None:
    mixed = DAYS.to_pandas().assign(day=["mon", 2, "tue"])

    with pytest.raises(DataMismatch, match=r"column day .*: .*; give all values of a column one"):
        create_table(partition_keys=["day"]).append(mixed)


def test_wrong_kinds_of_arguments_are_refused_with_an_example() -> None:
    table = a_week()

    with pytest.raises(InvalidInput, match="a limit is a number of rows, not '3'"):
        table.to_arrow(limit="3")
    with pytest.raises(InvalidInput, match=r"a dictionary of columns, as in \{'price'"):
        table.update("id = 1")
    with pytest.raises(InvalidInput, match=r"'t.id = s.id'; columns are a list, as in on=\['id'\]"):
        table.merge(DAYS, "id").when_matched_update_all().execute()
