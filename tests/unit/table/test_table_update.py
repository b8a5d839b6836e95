"""``new_update()``: changes of rows in two halves, with the names of pypaimon."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from builders import create_key_table, create_table
from emberlake import WhenMatched, WhenNotMatched, lit, source_col, target_col
from emberlake.errors import CommitConflict, InvalidInput, Unsupported
from emberlake.table import Table
from emberlake.wire import CommitMessage
from tracked_tables import COLUMNS, EVOLVING, TRACKED, VECTORS, put, with_ids

KINDS = {
    "rewrite": TRACKED,
    "vectors": {**TRACKED, **VECTORS},
    "columns": {**EVOLVING, **VECTORS},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def filled(kind: str) -> Table:
    table = create_table(columns=COLUMNS, options=KINDS[kind])
    put(table, (1, "a", 10), (2, "b", 20))
    put(table, (3, "c", 30))
    return table


def commit(table: Table, messages: list[CommitMessage]) -> None:
    table.new_batch_write_builder().new_commit().commit(messages)


def updater(table: Table):
    return table.new_batch_write_builder().new_update()


@every_kind
def test_rows_are_updated_by_their_ids(kind: str) -> None:
    table = filled(kind)
    values = pa.table({"_ROW_ID": [2, 0], "v": ["C", "A"]})
    commit(table, updater(table).update_by_arrow_with_row_id(values))
    assert with_ids(table) == {0: (1, "A", 10), 1: (2, "b", 20), 2: (3, "C", 30)}


@every_kind
def test_batches_are_updated_together(kind: str) -> None:
    table = filled(kind)
    parts = [pa.table({"_ROW_ID": [i], "v": ["x"]}) for i in (0, 1)]
    commit(table, updater(table).update_by_arrow_batches_with_row_id(parts))
    assert [row[1] for row in with_ids(table).values()].count("x") == 2


@every_kind
def test_rows_are_deleted_by_their_ids(kind: str) -> None:
    table = filled(kind)
    commit(table, updater(table).delete_by_row_id([1, 2]))
    assert with_ids(table) == {0: (1, "a", 10)}


@every_kind
def test_rows_are_changed_by_predicates(kind: str) -> None:
    table = filled(kind)
    update = updater(table)
    builder = update.new_predicate_builder()
    commit(table, update.update_by_predicate(builder.equal("id", 1), {"v": "text", "n": 5}))
    commit(table, update.delete_by_predicate(builder.greater_than("_ROW_ID", 1)))
    assert with_ids(table) == {0: (1, "text", 5), 1: (2, "b", 20)}


@every_kind
def test_rows_are_upserted_by_a_key(kind: str) -> None:
    table = filled(kind)
    data = pa.table({"id": [2, 9], "v": ["B", "N"], "n": pa.array([0, 9], pa.int32())})
    update = updater(table).with_update_type(["v"])
    commit(table, update.upsert_by_arrow_with_key(data, ["id"]))
    rows = with_ids(table)
    assert (rows[1], len(rows)) == ((2, "B", 20), 4)


@every_kind
def test_a_source_is_merged(kind: str) -> None:
    table = filled(kind)
    source = pa.table({"id": [1, 2, 9], "v": ["A", "B", "N"], "n": pa.array([1, 2, 9], pa.int32())})
    messages = updater(table).merge_into(
        source,
        on=["id"],
        when_matched=[
            WhenMatched.delete("s.n = 2"),
            WhenMatched.update({"v": source_col("v"), "n": target_col("id") }),
        ],
        when_not_matched=[WhenNotMatched({"id": source_col("id"), "v": lit("new")})],
    )  # fmt: skip
    commit(table, messages)
    assert sorted(with_ids(table).values()) == [(1, "A", 1), (3, "c", 30), (9, "new", None)]
    commit(table, updater(table).merge_into(source, on=["id"], when_matched=[WhenMatched.update()]))
    assert (9, "N", 9) in with_ids(table).values()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda u: u.delete_by_row_id([0, 99]), "_ROW_ID of no row that is in the table: 99"),
        (lambda u: u.delete_by_row_id([0, 0]), "keys: 0"),
        (lambda u: u.delete_by_row_id([None]), "holds 1 null"),
        (lambda u: u.update_by_arrow_with_row_id(pa.table({"v": ["x"]})), "no column _ROW_ID"),
        (lambda u: u.update_by_arrow_with_row_id(pa.table({"_ROW_ID": [0]})), "no columns"),
        (lambda u: u.with_update_type(["nope"]), "no such columns: nope"),
        (lambda u: u.with_update_type(["v"]).update_by_predicate(None, {"n": 1}), "does not name"),
        (lambda u: u.update_by_predicate(None, {"n": lambda rows: rows}), "are expressions"),
        (lambda u: u.merge_into(pa.table({"id": [1]}), on=["id"]), "at least one clause"),
    ],
)
@every_kind
def test_what_does_not_fit_is_refused(kind: str, call: Callable, said: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=said):
        call(updater(filled(kind)))


def test_nothing_to_do_makes_no_messages() -> None:
    table = filled("vectors")
    assert updater(table).delete_by_row_id([]) == []
    assert updater(table).delete_by_predicate("id = 99") == []


def test_messages_that_are_stale_are_refused() -> None:
    table = filled("rewrite")
    messages = updater(table).delete_by_row_id([0])
    table.update({"n": 1}, "id = 1")
    with pytest.raises(CommitConflict):
        commit(table, messages)


@pytest.mark.parametrize("order", [1, -1])
@every_kind
def test_messages_that_undo_each_other_are_not_one_commit(kind: str, order: int) -> None:
    table = filled(kind)
    values = [pa.table({"_ROW_ID": [i], "v": ["x"]}) for i in (0, 1)]
    made = [updater(table).update_by_arrow_with_row_id(some) for some in values][::order]
    if kind == "vectors":  # the rows of one file can be marked by several
        commit(table, made[0] + made[1])
        assert with_ids(table) == {0: (1, "x", 10), 1: (2, "x", 20), 2: (3, "c", 30)}
        made = [
            updater(table).delete_by_row_id([0]),
            updater(table).update_by_predicate(None, {"n": 1}),
        ]
        made = made[::order]
    before = with_ids(table)
    with pytest.raises(CommitConflict, match="several messages"):
        commit(table, made[0] + made[1])
    assert with_ids(table) == before


def test_messages_for_different_columns_go_together() -> None:
    table = filled("columns")
    update = updater(table)
    texts = update.update_by_arrow_with_row_id(pa.table({"_ROW_ID": [0], "v": ["x"]}))
    commit(table, texts + update.update_by_predicate("id = 2", {"n": 7}))
    assert with_ids(table) == {0: (1, "x", 10), 1: (2, "b", 7), 2: (3, "c", 30)}


def test_tables_of_other_kinds_are_refused() -> None:
    with pytest.raises(Unsupported, match="without a primary key"):
        updater(create_key_table(COLUMNS))
    with pytest.raises(Unsupported, match="have no ids"):
        updater(create_table(columns=COLUMNS)).delete_by_row_id([1])
    with pytest.raises(InvalidInput, match="give '\\*'"):
        updater(filled("rewrite")).merge_into(
            pa.table({"id": [1]}), on=["id"], when_matched=[WhenMatched.update("all")]
        )
