"""Merges that fail because of their source alone have written nothing."""

from typing import Any

import pyarrow as pa
import pytest

from builders import create_key_table, create_table
from emberlake.errors import DataMismatch
from emberlake.io import MemoryStorage
from emberlake.rowops.merge_builder import MergeBuilder
from emberlake.table import Table
from tracked_tables import EVOLVING, VECTORS
from watched_storage import WatchedStorage

COLUMNS = pa.schema(
    [("id", pa.int64()), pa.field("n", pa.int32(), nullable=False), ("short", pa.string())]
)
KINDS: dict[str, dict[str, str]] = {"rewrite": {}, "vectors": VECTORS, "columns": EVOLVING}
SOURCE = pa.table(
    {
        "id": [1, 2, 3],
        "n": pa.array([10, None, 30], pa.int32()),
        "text": ["1", "two", "3"],
        "fine": pa.array([1, 2, 3], pa.int32()),
        "row": pa.array([{"n": 1}, {"n": None}, {"n": 3}], pa.struct([("n", pa.int32())])),
    }
)


def watched_table(kind: str = "rewrite") -> tuple[Table, WatchedStorage]:
    storage = WatchedStorage(MemoryStorage())
    table = create_table(storage, COLUMNS, options=KINDS[kind])
    for n in range(1, 4):  # a file for each row
        row = {"id": [n], "n": pa.array([n], pa.int32()), "short": ["x"]}
        table.append(pa.table(row, schema=COLUMNS))
    storage.calls.clear()
    return table, storage


def written(storage: WatchedStorage) -> list[str]:
    return [call.path for call in storage.calls if call.method == "open_output"]


def matching(table: Table, values: dict[str, Any], where: str | None = None) -> MergeBuilder:
    return table.merge(SOURCE, ["id"]).when_matched_update(values, where)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": "s.n"}, "n: "),
        ({"n": "s.row.n"}, "n: "),
        ({"n": "CAST(s.text AS INT)"}, "'two'"),
        ({"n": "CAST(10 / (s.fine - 2) AS INT)", "short": "s.text"}, "division by zero"),
        ({"n": "CAST(1 / 0 AS INT)"}, "division by zero"),
    ],
)
def test_a_value_of_the_source_fails_before_any_file_is_written(
    kind: str, values: dict[str, Any], message: str
) -> None:
    table, storage = watched_table(kind)

    with pytest.raises(DataMismatch, match=message):
        matching(table, values).execute()

    assert written(storage) == []


def test_values_of_rows_that_do_not_match_are_not_computed() -> None:
    table, _ = watched_table()

    result = matching(table, {"n": "CAST(s.text AS INT)"}, "s.text <> 'two'").execute()
    only_new = table.merge(SOURCE.set_column(0, "id", pa.array([7, 8, 9])), ["id"])
    nothing = only_new.when_matched_update({"n": "s.n"}).execute()

    assert result.rows_updated == 2
    assert nothing.rows_updated == 0


def test_a_null_of_a_row_that_another_clause_takes_does_no_harm() -> None:
    table, _ = watched_table()

    merge = table.merge(SOURCE, ["id"]).when_matched_delete("s.n IS NULL")
    result = merge.when_matched_update({"n": "s.n"}).execute()

    assert (result.rows_deleted, result.rows_updated) == (1, 2)
    assert sorted(table.to_arrow().column("n").to_pylist()) == [10, 30]


def test_values_without_a_source_are_set_where_nothing_matches() -> None:
    table, _ = watched_table()

    merge = table.merge(SOURCE.slice(0, 1), ["id"])
    result = merge.when_not_matched_by_source_update({"n": "1 + 6", "short": "'y'"}).execute()

    assert result.rows_updated == 2
    assert sorted(table.to_arrow().column("n").to_pylist()) == [1, 7, 7]


def test_new_rows_fail_before_those_of_other_clauses_are_written() -> None:
    table, storage = watched_table()
    merge = table.merge(SOURCE.set_column(0, "id", pa.array([7, 8, 9])), ["id"])
    merge.when_not_matched_insert({"id": "s.id", "n": "s.fine"}, "s.fine = 1")

    with pytest.raises(DataMismatch, match="n: "):
        merge.when_not_matched_insert({"id": "s.id", "n": "s.n"}).execute()

    assert written(storage) == []


def test_a_text_that_is_too_long_fails_before_any_file_is_written() -> None:
    storage = WatchedStorage(MemoryStorage())
    columns = {"id": "BIGINT", "code": "VARCHAR(3)"}
    table = create_key_table(columns, (), storage=storage, bucket="-1")  # without a key
    table.append(pa.table({"id": [1, 2], "code": ["a", "b"]}))
    storage.calls.clear()
    source = pa.table({"id": [1, 2], "code": ["ok", "too long"]})

    with pytest.raises(DataMismatch, match="code"):
        table.merge(source, ["id"]).when_matched_update_all().execute()

    assert written(storage) == []
