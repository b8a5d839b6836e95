"""Merging a source into a table, in every kind of table that allows it."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from builders import alter, create_key_table, create_table, open_table
from emberlake import SchemaChange, lit
from emberlake.errors import (
    ColumnNotFound,
    DataMismatch,
    InvalidExpression,
    InvalidInput,
    Unsupported,
)
from emberlake.rowops import merge as merge_module
from emberlake.rowops.join import KeyIndex
from emberlake.rowops.merge import Chosen, Merge
from emberlake.table import Table
from table_reads import files_under
from tracked_tables import EVOLVING, TRACKED, VECTORS, with_ids

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])
ROWS = [(1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "d", None), (5, "e", 50)]
SOURCE = pa.table(
    {
        "id": [2, 4, 6, None],
        "v": ["B", "D", "F", "G"],
        "n": pa.array([200, 400, 600, 0], pa.int32()),
    }
)

KINDS: dict[str, Callable[[], Table]] = {
    "rewrite": lambda: create_table(columns=COLUMNS),
    "vectors": lambda: create_table(columns=COLUMNS, options=VECTORS),
    "tracked": lambda: create_table(columns=COLUMNS, options=TRACKED),
    "tracked vectors": lambda: create_table(columns=COLUMNS, options={**TRACKED, **VECTORS}),
    "columns": lambda: create_table(columns=COLUMNS, options={**EVOLVING, **VECTORS}),
    "buckets": lambda: create_table(columns=COLUMNS, options={"bucket": "2", "bucket-key": "id"}),
    "keys": lambda: create_key_table(COLUMNS),
    "key vectors": lambda: create_key_table(COLUMNS, **VECTORS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def table_of(rows: list[tuple]) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def filled(kind: str) -> Table:
    table = KINDS[kind]()
    table.append(table_of(ROWS[:3]))
    table.append(table_of(ROWS[3:]))
    return table


def rows_of(table: Table) -> list[tuple]:
    return sorted((tuple(r.values()) for r in table.to_arrow().to_pylist()), key=repr)


def source_for(kind: str) -> pa.Table:
    """A key may not be null."""
    return SOURCE.slice(0, 3) if "key" in kind else SOURCE


def test_a_merge_is_shown_in_a_line() -> None:
    merge = filled("rewrite").merge(SOURCE, ["id"]).when_matched_update_all("s.id > 1")

    assert repr(merge) == "MergeBuilder(db.t, on=['id'], when matched update all)"


@every_kind
def test_updates_what_matches_and_inserts_the_rest(kind: str) -> None:
    table, source = filled(kind), source_for(kind)
    result = (
        table.merge(source, ["id"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    new = [tuple(row.values()) for row in source.to_pylist()]
    kept = [row for row in ROWS if row[0] not in (2, 4)]
    assert rows_of(table) == sorted([*kept, *new], key=repr)
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (2, len(new) - 2, 0)


@every_kind
def test_the_first_clause_that_is_true_decides(kind: str) -> None:
    table = filled(kind)
    result = (
        table.merge(source_for(kind), "t.id = s.id")
        .when_matched_delete("t.n IS NULL")
        .when_matched_update({"n": "t.n + s.n", "v": "UPPER(t.v) || s.v"}, "s.n >= 200")
        .when_not_matched_insert({"id": "s.id", "v": lit("new")}, "id > 5")
        .when_not_matched_by_source_update({"n": "n + 1"}, "id = 1")
        .when_not_matched_by_source_delete("t.id >= 5")
        .execute()
    )
    assert rows_of(table) == [(1, "a", 11), (2, "BB", 220), (3, "c", 30), (6, "new", None)]
    assert (result.rows_updated, result.rows_inserted, result.rows_deleted) == (2, 1, 2)


@every_kind
def test_an_insert_only_merge_leaves_files_alone(kind: str) -> None:
    table = filled(kind)
    result = table.merge(source_for(kind), ["id"]).when_not_matched_insert_all("id > 0").execute()
    assert (result.rows_inserted, result.files_marked) == (1, 0)
    assert result.files_removed == 0 or kind == "key vectors"  # which compact what they write
    assert table.store.snapshots.latest().commit_kind == "APPEND" or kind == "key vectors"
    assert (
        table.merge(source_for(kind), ["id"])
        .when_not_matched_insert_all("id > 0")
        .execute()
        .snapshot_id
        is None
    )


@every_kind
def test_a_merge_with_nothing_to_do_makes_no_snapshot(kind: str) -> None:
    table = filled(kind)
    before = set(files_under(table.store.storage, ""))
    empty = SOURCE.slice(0, 0)
    merge = table.merge(empty, ["id"]).when_matched_delete().when_not_matched_insert_all()
    assert merge.execute().snapshot_id is None
    assert set(files_under(table.store.storage, "")) == before


@every_kind
def test_a_row_that_the_condition_on_the_table_rules_out_matches_nothing(kind: str) -> None:
    table = filled(kind)

    merge = table.merge(SOURCE, "t.id = s.id AND t.v = 'b'").when_matched_delete()
    merge.when_not_matched_by_source_update({"n": lit(7)}, "t.id > 3").execute()

    assert rows_of(table) == [(1, "a", 10), (3, "c", 30), (4, "d", 7), (5, "e", 7)]


@every_kind
def test_a_merge_deletes_all_that_the_source_lacks(kind: str) -> None:
    table = filled(kind)
    table.merge(SOURCE, ["id"]).when_not_matched_by_source_delete().execute()
    assert [row[0] for row in rows_of(table)] == [2, 4]


def test_null_keys_match_nothing_unless_asked_to() -> None:
    table = create_table(columns=COLUMNS)
    table.append(table_of([(1, "a", 1), (None, "x", 2)]))
    source = table_of([(None, "y", 5)])
    assert table.merge(source, ["id"]).when_matched_delete().execute().snapshot_id is None
    result = table.merge(source, "t.id <=> s.id").when_matched_delete().execute()
    assert (result.rows_deleted, rows_of(table)) == (1, [(1, "a", 1)])


@pytest.mark.parametrize(
    "values",
    [
        {"n": pa.nulls(1), "v": pa.nulls(1)},
        {"id": pa.array([1], pa.uint8()), "n": pa.array([7], pa.uint64())},
    ],
)
def test_a_source_may_have_types_that_a_write_takes(values: dict) -> None:
    table = filled("rewrite")
    source = pa.table({"id": pa.array([1]), "v": ["x"], "n": pa.array([7], pa.int32()), **values})
    assert table.upsert(source, on=["id"]).rows_updated == 1
    assert rows_of(table)[0] == tuple(source.to_pylist()[0].values())


def test_a_number_that_the_column_of_its_name_cannot_hold_is_refused() -> None:
    source = pa.table({"id": pa.array([2**40], pa.uint64()), "n": pa.array([2**40], pa.uint64())})
    with pytest.raises(DataMismatch, match="n: "):
        filled("rewrite").merge(source, ["id"])


def test_columns_of_other_names_and_types_match() -> None:
    table = filled("vectors")
    source = pa.table({"key": pa.array([2, 6], pa.int8()), "v": ["B", "F"], "n": [1, 2]})
    merge = table.merge(source, {"id": "key"})
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows_of(table)[1] == (2, "B", 1)
    assert rows_of(table)[-1] == (6, "F", 2)


def test_a_condition_may_have_more_than_keys() -> None:
    table = filled("rewrite")
    on = "t.id = s.id + 1 AND t.n >= 20 AND s.v <> 'F' AND t.n < s.n"
    source = pa.table({"id": [1, 2, 5], "v": ["x", "y", "F"], "n": [100, 1, 100]})
    result = table.merge(source, on).when_matched_update({"v": "s.v"}).execute()
    assert (result.rows_updated, rows_of(table)[1]) == (1, (2, "x", 20))


def test_a_test_of_the_table_alone_leaves_other_rows_unmatched() -> None:
    table = filled("rewrite")
    merge = table.merge(SOURCE, "t.id = s.id AND t.id < 3")
    merge.when_matched_update({"v": lit("hit")}).when_not_matched_by_source_update(
        {"v": lit("miss")}
    ).execute()
    assert [row[1] for row in rows_of(table)] == ["miss", "hit", "miss", "miss", "miss"]


def test_other_aliases_and_another_table_as_source() -> None:
    table, other = filled("rewrite"), KINDS["rewrite"]()
    other.append(table_of([(1, "one", 1)]))
    merge = table.merge(other, "old.id = new.id", target_alias="old", source_alias="new")
    merge.when_matched_update({"v": "new.v || old.v"}).execute()
    assert rows_of(table)[0] == (1, "onea", 10)


def test_files_that_cannot_match_are_not_read() -> None:
    table = filled("rewrite")
    merge = table.merge(SOURCE.slice(0, 1), ["id"]).when_matched_update({"n": 0})
    explained = merge.explain()
    assert "strategy: rewrite" in explained
    assert "files that may be touched: 1 of 2" in explained
    assert "only rows with: id IN (2)" in explained
    assert "columns that matched rows may change: n" in explained
    assert merge.dry_run().rows_updated == 1
    assert merge.execute().files_removed == 1


def test_many_keys_prune_by_their_range() -> None:
    table = filled("rewrite")
    source = pa.table({"id": range(4, 3000)})
    explained = table.merge(source, ["id"]).when_matched_delete().explain()
    assert "1 of 2" in explained
    assert "id BETWEEN 4 AND 2999" in explained


@pytest.mark.parametrize("kind", ["tracked", "tracked vectors", "columns"])
def test_matched_rows_keep_their_ids_and_new_ones_get_others(kind: str) -> None:
    table = filled(kind)
    before = {row[0]: row_id for row_id, row in with_ids(table).items()}
    merge = table.merge(SOURCE.slice(0, 3), ["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    after = {row[0]: row_id for row_id, row in with_ids(table).items()}
    assert {n: after[n] for n in before} == before
    assert after[6] not in before.values()


# --- several rows of the source for one row -------------------------------------------------------


@every_kind
def test_two_rows_for_one_are_refused_by_their_keys(kind: str) -> None:
    table = filled(kind)
    before = set(files_under(table.store.storage, ""))
    source = pa.concat_tables([SOURCE.slice(0, 2), SOURCE.slice(0, 2), SOURCE.slice(2, 1)])
    with pytest.raises(DataMismatch, match=r"which of them counts; keys: 2"):
        table.merge(source, ["id"]).when_matched_update_all().execute()
    assert set(files_under(table.store.storage, "")) == before


@every_kind
def test_two_rows_that_both_delete_do_no_harm(kind: str) -> None:
    table = filled(kind)
    source = pa.concat_tables([SOURCE, SOURCE])
    assert table.merge(source, ["id"]).when_matched_delete().execute().rows_deleted == 2


def test_two_rows_of_which_one_acts_do_no_harm() -> None:
    table = filled("vectors")
    source = table_of([(2, "old", 1), (2, "new", 2)])
    table.merge(source, ["id"]).when_matched_update_all("s.n = 2").execute()
    assert rows_of(table)[1] == (2, "new", 2)


def test_new_rows_with_one_primary_key_are_refused() -> None:
    table = filled("keys")
    source = table_of([(9, "x", 1), (9, "y", 2)])
    with pytest.raises(DataMismatch, match="same primary key: 9"):
        table.merge(source, ["id"]).when_not_matched_insert_all().execute()
    assert table.count() == 5


# --- upsert ---------------------------------------------------------------------------------------


@every_kind
def test_an_upsert_replaces_and_adds(kind: str) -> None:
    table = filled(kind)
    table.upsert(SOURCE.slice(0, 3), on=["id"])
    assert [row[1] for row in rows_of(table)] == ["a", "B", "c", "D", "e", "F"]


def test_an_upsert_refuses_keys_that_are_given_twice() -> None:
    table = filled("rewrite")
    with pytest.raises(DataMismatch, match="keys: 9"):
        table.upsert(table_of([(9, "x", 1), (9, "y", 2)]), on=["id"])
    with pytest.raises(Unsupported, match="name the columns that tell rows apart"):
        table.upsert(SOURCE)
    with pytest.raises(ColumnNotFound, match=r"'t\.nope'"):
        table.upsert(SOURCE, on=["nope"])


def test_an_upsert_takes_several_columns_together() -> None:
    table = filled("vectors")
    source = table_of([(1, "a", 99), (1, "b", 98)])
    table.upsert(source, on=["id", "v"])
    assert [row for row in rows_of(table) if row[0] == 1] == [(1, "a", 99), (1, "b", 98)]


# --- schemas --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rewrite", "vectors", "columns", "keys"])
def test_new_columns_of_the_source_are_added_on_request(kind: str) -> None:
    table = filled(kind)
    source = pa.table({"id": [2, 6], "note": ["two", "six"]})
    with pytest.raises(InvalidInput, match=r"the table does not have: note.*merge_schema=True"):
        table.merge(source, ["id"]).when_matched_update_all().execute()
    merge = table.merge(source, ["id"], merge_schema=True)
    merge.when_matched_update_all().when_not_matched_insert_all()
    assert merge.dry_run().rows_inserted == 1
    assert "note" not in open_table(table.store.storage).store.schema.field_names
    merge.execute()
    seen = open_table(table.store.storage).to_arrow(["id", "v", "note"]).to_pylist()
    notes = {row["id"]: (row["v"], row["note"]) for row in seen}
    assert (notes[2], notes[6], notes[1]) == (("b", "two"), (None, "six"), ("a", None))


def test_columns_that_the_source_lacks_are_named() -> None:
    table = filled("rewrite")
    source = SOURCE.drop_columns(["n"])
    with pytest.raises(InvalidInput, match="lacks columns of the table: n"):
        table.merge(source, ["id"]).when_matched_update_all().execute()
    table.merge(source, ["id"]).when_matched_update_all(except_columns=["n"]).execute()
    assert rows_of(table)[1] == (2, "B", 20)


def test_a_column_that_was_added_meanwhile_is_kept() -> None:
    table = filled("rewrite")
    changed = alter(table, SchemaChange.add_column("note", "STRING"))
    changed.update({"note": lit("x")})
    merge = table.merge(SOURCE, ["id"]).when_matched_update({"v": "s.v"})
    merge.execute()
    assert set(changed.to_arrow().column("note").to_pylist()) == {"x"}


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "error", "said"),
    [
        (lambda t: t.merge(SOURCE, ["id"]), InvalidInput, "at least one clause"),
        (lambda t: t.merge(SOURCE, []).when_matched_delete(), InvalidInput, "when rows match"),
        (lambda t: t.merge(SOURCE, "t.id > s.id").when_matched_delete(),
         InvalidExpression, "has no equality"),
        (lambda t: t.merge(SOURCE, "id = 1").when_matched_delete(),
         InvalidExpression, "both sides"),
        (lambda t: t.merge(SOURCE, "t.id = s.v").when_matched_delete(),
         InvalidExpression, "BIGINT and STRING"),
        (lambda t: t.merge(SOURCE, ["nope"]).when_matched_delete(), ColumnNotFound, "nope"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_update({"nope": "1"}),
         ColumnNotFound, "when matched update: there is no column 'nope' to set"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_update({"n": "s.v"}),
         InvalidExpression, "does not fit n INT"),
        (lambda t: t.merge(SOURCE, ["id"]).when_not_matched_insert({"id": "t.id"}),
         ColumnNotFound, "only columns of s have"),
        (lambda t: t.merge(SOURCE, ["id"]).when_not_matched_by_source_delete("s.n > 1"),
         ColumnNotFound, "only columns of t have"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_delete("n + 1"),
         InvalidExpression, "both sides"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_delete("t.n + 1"),
         InvalidExpression, "is INT"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_delete().when_matched_update_all(),
         InvalidInput, "no row reaches it"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_update_all(except_columns=["nope"]),
         ColumnNotFound, "except_columns"),
        (lambda t: t.merge(SOURCE, ["id"]).when_matched_update({"n": "t.n % 0"}),
         DataMismatch, "division by zero"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["rewrite", "columns", "keys"])
def test_what_does_not_fit_is_refused_and_changes_nothing(
    kind: str, build: Callable, error: type[Exception], said: str
) -> None:
    table = filled(kind)
    before = set(files_under(table.store.storage, ""))
    with pytest.raises(error, match=said):
        build(table).execute()
    assert set(files_under(table.store.storage, "")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"source": 5}, "cannot write int"),
        ({"isolation": "weak"}, "there is no isolation 'weak'"),
        ({"source_alias": "t"}, "both sides have the alias 't'"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments: dict, said: str) -> None:
    given = {"source": SOURCE, "on": ["id"], **arguments}
    with pytest.raises(InvalidInput, match=said):
        filled("rewrite").merge(**given)


@pytest.mark.parametrize("set_", [{}, None])
def test_an_update_says_what_to_set(set_: object) -> None:
    with pytest.raises(InvalidInput, match="say what to set"):
        filled("rewrite").merge(SOURCE, ["id"]).when_matched_update(set_)


def test_a_key_column_is_never_updated_by_a_merge() -> None:
    with pytest.raises(Unsupported, match="tell rows apart"):
        filled("keys").merge(SOURCE, ["id"]).when_matched_update({"id": "s.id + 1"}).execute()


# --- the index of keys ----------------------------------------------------------------------------


def test_long_values_are_compared_in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    count, size = 10_000, 2_000
    noise = pa.py_buffer(np.random.default_rng(7).bytes(count * size))  # does not compress
    values = pa.Array.from_buffers(pa.binary(size), count, [None, noise]).cast(pa.binary())
    rows = pa.table({"id": pa.array(range(count)).cast(pa.string()), "raw": values})
    table = create_table(columns=rows.schema)
    table.append(rows)
    seen: list[int] = []
    choose = Merge.choose

    def watched(merge: Merge, some: pa.Table) -> Chosen:
        seen.append(some.nbytes)
        return choose(merge, some)

    monkeypatch.setattr(merge_module, "_BYTES_AT_ONCE", 1 << 20)
    monkeypatch.setattr(Merge, "choose", watched)
    merge = table.merge(rows.take([5, 9_999]), ["id"]).when_matched_delete("s.raw = t.raw")
    merge.when_not_matched_by_source_delete("id < '2'")

    assert merge.execute().rows_deleted == 1_112 + 2
    assert max(seen) < rows.nbytes / 2


def test_an_index_finds_all_pairs_of_several_columns() -> None:
    left = [pa.array([1, 1, 2, None, 2]), pa.array(["a", "b", "a", "a", None])]
    index = KeyIndex(left, [False, False])
    rows, found = index.pairs([pa.array([2, 1, 9, 1, None]), pa.array(["a", "b", "a", "z", "a"])])
    assert (rows.tolist(), found.tolist()) == ([0, 1], [2, 1])
    assert index.is_unique


def test_an_index_repeats_rows_for_every_match() -> None:
    index = KeyIndex([pa.array([7, 5, 7])], [False])
    rows, found = index.pairs([pa.array([5, 7, 6, 7])])
    assert (rows.tolist(), found.tolist()) == ([0, 1, 1, 3, 3], [1, 0, 2, 0, 2])
    assert (index.is_unique, index.repeated(5).tolist()) == (False, [0])


def test_an_index_knows_zeros_nan_and_null() -> None:
    index = KeyIndex([pa.array([0.0, float("nan"), None])], [True])
    rows, found = index.pairs([pa.array([-0.0, float("nan"), None, 1.0])])
    assert (rows.tolist(), found.tolist()) == ([0, 2], [0, 2])  # NaN equals nothing, nor is it null


@pytest.mark.parametrize("step", [1, 1_000_003])
@pytest.mark.parametrize("kind", [pa.int16(), pa.int64(), pa.timestamp("us"), pa.string()])
def test_an_index_finds_dense_and_sparse_values(step: int, kind: pa.DataType) -> None:
    step = 3 if kind == pa.int16() else step
    known = pa.array([-step * 2, 0, step, step * 5], pa.int64()).cast(kind)
    asked = pa.array([0, None, step * 5, step + 1, -step * 2, step * 9], pa.int64()).cast(kind)
    rows, found = KeyIndex([known], [False]).pairs([asked])
    assert (rows.tolist(), found.tolist()) == ([0, 2, 4], [1, 3, 0])


def test_an_index_reaches_the_ends_of_integers() -> None:
    ends = pa.array([-(2**63), 2**63 - 1])
    rows, found = KeyIndex([ends], [False]).pairs([pa.array([2**63 - 1, 0, -(2**63)])])
    assert (rows.tolist(), found.tolist()) == ([0, 2], [1, 0])


def test_an_empty_index_finds_nothing() -> None:
    rows, _ = KeyIndex([pa.array([], pa.int64())], [False]).pairs([pa.array([1, 2])])
    assert rows.tolist() == []


def test_an_index_of_very_many_combinations_is_renumbered() -> None:
    count = 70_000
    wide = pa.array(range(count))
    index = KeyIndex([wide] * 4, [False] * 4)
    rows, found = index.pairs([pa.array([5, 69_999, 5])] * 3 + [pa.array([5, 69_999, 6])])
    assert (rows.tolist(), found.tolist()) == ([0, 1], [5, 69_999])
