"""New values for the rows of shards: workers read and write, a driver commits."""

import pickle
from collections.abc import Mapping

import pyarrow as pa
import pytest

from builders import create_table
from emberlake import Table
from emberlake.errors import (
    ColumnNotFound,
    CommitConflict,
    InvalidExpression,
    InvalidInput,
    InvalidState,
    Unsupported,
)
from emberlake.table.table_update import BatchTableUpdate, ShardTableUpdator
from emberlake.wire import CommitMessage
from table_reads import live_files
from tracked_tables import COLUMNS, EVOLVING, TRACKED, VECTORS, put, with_ids

KINDS: Mapping[str, Mapping[str, str]] = {
    "rewrite": TRACKED,
    "vectors": {**TRACKED, **VECTORS},
    "columns": EVOLVING,
    "columns and vectors": {**EVOLVING, **VECTORS},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def filled(kind: str) -> Table:
    table = create_table(columns=COLUMNS, options=KINDS[kind])
    put(table, (1, "a", 10), (2, "b", 20))
    put(table, (3, None, 30))
    put(table, (4, "d", None), (5, "e", 50))
    return table


def update_of(table: Table) -> BatchTableUpdate:
    return table.new_batch_write_builder().new_update()


def commit(table: Table, messages: list[CommitMessage]) -> None:
    table.new_batch_write_builder().new_commit().commit(messages)


def uncommitted(table: Table) -> tuple[str, ...]:
    """The files that no snapshot knows."""
    named = {entry.file.file_name for entry in live_files(table)}
    stored = (info.path for info in table.store.storage.list_all("/warehouse/db.db/t/bucket-0"))
    return tuple(path for path in stored if path.rpartition("/")[2] not in named)


def work(shard: ShardTableUpdator) -> list[CommitMessage]:
    """What a worker does: text of the ids becomes the new value of ``v``."""
    for batch in shard.arrow_reader():
        texts = [f"#{i}" for i in batch.column("id").to_pylist()]
        shard.update_by_arrow_batch(pa.record_batch({"v": texts}))
    return shard.prepare_commit()


@every_kind
@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_row_is_in_one_shard_and_keeps_its_id(kind: str, count: int) -> None:
    table = filled(kind)
    update = update_of(table).with_update_type(["v"]).with_read_projection(["id"])
    shards = [update.new_shard_updator(number, count) for number in range(count)]
    commit(table, [message for shard in shards for message in work(shard)])
    expected = [(1, "#1", 10), (2, "#2", 20), (3, "#3", 30), (4, "#4", None), (5, "#5", 50)]
    assert with_ids(table) == dict(enumerate(expected))
    assert table.check().ok


def test_workers_get_updators_and_return_bytes() -> None:
    table = filled("columns")
    update = update_of(table).with_update_type(["v"])
    sent = [pickle.dumps(update.new_shard_updator(number, 2)) for number in range(2)]
    returned = [m.to_bytes() for shard in map(pickle.loads, sent) for m in work(shard)]
    commit(table, [CommitMessage.from_bytes(raw) for raw in returned])
    assert [row[1] for row in with_ids(table).values()] == ["#1", "#2", "#3", "#4", "#5"]


@pytest.mark.parametrize("kind", ["vectors", "columns and vectors"])
def test_deleted_rows_are_neither_read_nor_written(kind: str) -> None:
    table = filled(kind)
    table.delete("id IN (1, 3, 5)")
    commit(table, work(update_of(table).new_shard_updator(0, 1)))
    assert with_ids(table) == {1: (2, "#2", 20), 3: (4, "#4", None)}


def test_rows_without_ids_are_updated_too() -> None:
    table = create_table(columns=COLUMNS)
    put(table, (1, "a", 10), (2, "b", 20))
    commit(table, work(update_of(table).new_shard_updator(0, 1)))
    assert table.to_arrow(["id", "v"]).to_pydict() == {"id": [1, 2], "v": ["#1", "#2"]}


def test_batches_need_not_end_where_files_do() -> None:
    table = filled("columns")
    shard = update_of(table).new_shard_updator(0, 1)
    for size in (1, 3, 1):
        shard.update_by_arrow_batch(pa.table({"n": pa.array([7] * size, pa.int32())}))
    commit(table, shard.prepare_commit())
    assert table.to_arrow(["n"]).column("n").to_pylist() == [7] * 5


def test_batches_of_nulls_need_no_type() -> None:
    table = filled("columns")
    shard = update_of(table).new_shard_updator(0, 1)
    shard.update_by_arrow_batch(pa.table({"v": pa.nulls(3)}))
    shard.update_by_arrow_batch(pa.table({"v": ["x", "y"]}))
    commit(table, shard.prepare_commit())
    assert table.to_arrow(["v"]).column("v").to_pylist() == [None, None, None, "x", "y"]


def test_row_ids_can_be_read() -> None:
    update = update_of(filled("columns")).with_read_projection(["_ROW_ID", "v"])
    rows = update.new_shard_updator(1, 3).arrow_reader().read_all()
    assert rows.to_pydict() == {"_ROW_ID": [2], "v": [None]}


def test_all_shards_are_parts_of_one_snapshot() -> None:
    table = filled("columns")
    update = update_of(table)
    first = update.new_shard_updator(0, 2)
    put(table, (6, "late", 60))
    second = update.new_shard_updator(1, 2)
    commit(table, work(first) + work(second))
    assert [row[1] for row in with_ids(table).values()] == ["#1", "#2", "#3", "#4", "#5", "late"]


def test_columns_that_others_wrote_meanwhile_are_a_conflict() -> None:
    table = filled("columns")
    messages = work(update_of(table).new_shard_updator(0, 1))
    table.update({"v": "'other'"}, "id = 1")
    with pytest.raises(CommitConflict):
        commit(table, messages)


def test_an_empty_table_has_shards_without_rows() -> None:
    table = create_table(columns=COLUMNS, options=EVOLVING)
    shard = update_of(table).with_read_projection(["v"]).new_shard_updator(0, 2)
    assert shard.arrow_reader().read_all() == pa.table({"v": pa.array([], pa.string())})
    assert shard.prepare_commit() == []


def test_a_shard_without_new_values_stays_as_it_is() -> None:
    assert update_of(filled("columns")).new_shard_updator(0, 1).prepare_commit() == []


def test_what_was_written_is_deleted_unless_it_is_handed_over() -> None:
    table = filled("columns")
    with update_of(table).new_shard_updator(0, 1) as shard:
        shard.update_by_arrow_batch(pa.table({"v": ["x", "y", "z"]}))
        assert len(uncommitted(table)) == 2  # files are written when their rows are complete
    assert uncommitted(table) == ()
    with pytest.raises(InvalidState, match="has ended"):
        shard.update_by_arrow_batch(pa.table({"v": ["x"]}))
    with update_of(table).new_shard_updator(0, 1) as shard:
        messages = work(shard)
    commit(table, messages)
    assert table.check().ok


def test_what_does_not_fit_is_refused() -> None:
    table = filled("columns")
    shard = update_of(table).with_update_type(["v"]).new_shard_updator(0, 1)
    with pytest.raises(InvalidInput, match="for v, not for n"):
        shard.update_by_arrow_batch(pa.table({"n": [1]}))
    with pytest.raises(InvalidInput, match="6 rows of new values for a shard of 5"):
        shard.update_by_arrow_batch(pa.table({"v": ["x"] * 6}))
    shard.update_by_arrow_batch(pa.table({"v": ["x"]}))
    with pytest.raises(InvalidInput, match="must have the columns v, not n"):
        shard.update_by_arrow_batch(pa.table({"n": [1]}))
    with pytest.raises(InvalidInput, match="1 rows of a shard of 5"):
        shard.prepare_commit()
    update = update_of(table)
    with pytest.raises(InvalidInput, match="shard 2 of 2"):
        update.new_shard_updator(2, 2)
    with pytest.raises(InvalidExpression, match="n"):
        update.new_shard_updator(0, 1).update_by_arrow_batch(pa.table({"n": [b"no number"]}))
    with pytest.raises(ColumnNotFound, match="nope"):
        update.with_read_projection(["nope"]).new_shard_updator(0, 1)


def test_partition_columns_of_groups_stay() -> None:
    table = create_table(columns=COLUMNS, partition_keys=["n"], options=EVOLVING)
    put(table, (1, "a", 10), (2, "b", 20))
    shard = update_of(table).new_shard_updator(0, 1)
    with pytest.raises(Unsupported, match="stay in their partition"):
        shard.update_by_arrow_batch(pa.table({"n": pa.array([1, 2], pa.int32())}))
    commit(table, work(update_of(table).with_update_type(["v"]).new_shard_updator(0, 1)))
    assert sorted(with_ids(table).values()) == [(1, "#1", 10), (2, "#2", 20)]
