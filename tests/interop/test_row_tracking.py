"""Rows with ids, both ways: others read what we wrote and changed, with the ids, and go on from it.

Java 1.4 knows no deletion vectors in tables with data evolution, so pypaimon and Rust judge those.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import CatalogFactory, Schema, Table
from emberlake.spec.row_tracking import HIDDEN_NAMES
from interop.judges import java_judge, peer
from tracked_tables import (
    EVOLVING,
    TRACKED,
    VECTORS,
    columns_for,
    commit,
    delete,
    moved_by_marks,
    moved_by_rewriting,
    put,
    update,
)

pytestmark = pytest.mark.interop

NAME = "db.t"
COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])


def create(warehouse: Path, options: dict[str, str]) -> Table:
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", True)
    catalog.create_table(NAME, Schema.from_pyarrow_schema(COLUMNS, options=options), False)
    return catalog.get_table(NAME)


def open_table(warehouse: Path) -> Table:
    return CatalogFactory.create({"warehouse": str(warehouse)}).get_table(NAME)


def filled(warehouse: Path, **options: str) -> Table:
    table = create(warehouse, options)
    put(table, (1, "a", 1), (2, "b", None), (3, None, 3))
    put(table, (4, "d", 4), (5, "e", 5))
    return table


def appended(warehouse: Path) -> None:
    filled(warehouse, **TRACKED)


def overwritten(warehouse: Path) -> None:
    filled(warehouse, **TRACKED).overwrite(pa.Table.from_pylist([{"id": 9}], schema=COLUMNS))


def compacted(warehouse: Path) -> None:
    table = filled(warehouse, **TRACKED)
    table.compact(full=True)
    put(table, (6, "f", 6))


def compacted_orc(warehouse: Path) -> None:
    filled(warehouse, **TRACKED, **{"file.format": "orc"}).compact(full=True)


def deleted(warehouse: Path) -> None:
    delete(filled(warehouse, **TRACKED, **VECTORS), "id IN (2, 4)")


def deleted_and_compacted(warehouse: Path) -> None:
    table = filled(warehouse, **TRACKED, **VECTORS)
    delete(table, "id IN (2, 4)")
    table.compact(full=True)
    put(table, (6, "f", 6))
    delete(table, "id = 5")


def moved_by_vectors(warehouse: Path) -> None:
    table = filled(warehouse, **TRACKED, **VECTORS)
    commit(table, moved_by_marks(table, "id IN (2, 4)", v="moved"))


def moved_with_their_file(warehouse: Path) -> None:
    table = filled(warehouse, **TRACKED)
    commit(table, moved_by_rewriting(table, "id = 2", v="moved"))
    commit(table, moved_by_rewriting(table, "id = 4", v="again"))


def columns_written(warehouse: Path) -> None:
    table = filled(warehouse, **EVOLVING)
    update(table, ids=[4, 0], v=["x", "y"])
    update(table, ids=[1], n=[20])


def some_columns_appended(warehouse: Path) -> None:
    table = filled(warehouse, **EVOLVING)
    with table.new_batch_write_builder().new_write() as write:
        write.with_write_type(["id", "n"])
        write.write_arrow(pa.table({"id": [6, 7], "n": pa.array([6, 7], pa.int32())}))
        commit(table, write.prepare_commit())
    update(table, ids=[6], v=["late"])


def groups_compacted(warehouse: Path) -> None:
    columns_written(warehouse)
    table = open_table(warehouse)
    table.compact(full=True)
    update(table, ids=[2], v=["after"])


def groups_with_deletes(warehouse: Path) -> None:
    table = filled(warehouse, **EVOLVING, **VECTORS)
    delete(table, "id IN (1, 5)")
    update(table, ids=[1, 3], v=["x", "y"])


def groups_with_deletes_compacted(warehouse: Path) -> None:
    groups_with_deletes(warehouse)
    table = open_table(warehouse)
    table.compact(full=True)
    delete(table, "id = 4")


def shards_updated(warehouse: Path) -> None:
    table = filled(warehouse, **EVOLVING)
    _update_shards(table)


def shards_with_deletes_updated(warehouse: Path) -> None:
    table = filled(warehouse, **EVOLVING, **VECTORS)
    delete(table, "id IN (1, 5)")
    _update_shards(table)


def _update_shards(table: Table) -> None:
    builder = table.new_batch_write_builder()
    change = builder.new_update().with_update_type(["v"]).with_read_projection(["id"])
    messages = []
    for number in range(2):
        shard = change.new_shard_updator(number, 2)
        for batch in shard.arrow_reader():
            shard.update_by_arrow_batch(pa.record_batch({"v": batch["id"].cast(pa.string())}))
        messages += shard.prepare_commit()
    builder.new_commit().commit(messages)


States = dict[str, Callable[[Path], None]]
PLAIN: States = {f.__name__: f for f in (appended, overwritten, compacted, compacted_orc, deleted)}
PLAIN |= {f.__name__: f for f in (deleted_and_compacted, moved_by_vectors, moved_with_their_file)}
SIDE_BY_SIDE: States = {
    f.__name__: f
    for f in (columns_written, some_columns_appended, groups_compacted, shards_updated)
}
WITH_DELETES: States = {
    f.__name__: f
    for f in (groups_with_deletes, groups_with_deletes_compacted, shards_with_deletes_updated)
}
WIDE = {"deletion-vectors.bitmap64": "true"}


def ours(warehouse: Path) -> list[Row]:
    names = [*COLUMNS.names, *HIDDEN_NAMES]
    return sorted_rows(canonical_rows(open_table(warehouse).to_arrow(names)))


@pytest.mark.parametrize("state", PLAIN | SIDE_BY_SIDE)
def test_java_reads_our_rows_with_their_ids(state: str, tmp_path: Path) -> None:
    (PLAIN | SIDE_BY_SIDE)[state](tmp_path)

    assert java_judge().rows(tmp_path, f"{NAME}$row_tracking") == ours(tmp_path)
    assert java_judge().rows(tmp_path, NAME) == sorted_rows(row[:-2] for row in ours(tmp_path))


@pytest.mark.parametrize("state", PLAIN | SIDE_BY_SIDE)
def test_java_goes_on_writing(state: str, tmp_path: Path) -> None:
    (PLAIN | SIDE_BY_SIDE)[state](tmp_path)
    before = ours(tmp_path)

    java_judge().write(tmp_path, NAME, pa.table({
        "id": [100, 101], "v": ["java", None], "n": pa.array([1, 2], pa.int32()),
    }, schema=COLUMNS))  # fmt: skip

    after = ours(tmp_path)
    assert [row for row in after if row[1] < 100] == before
    new = [row[-2] for row in after if row[1] >= 100]
    assert len(new) == 2
    assert min(new) > max(row[-2] for row in before)
    put(open_table(tmp_path), (102, "ours", 3))
    assert java_judge().rows(tmp_path, f"{NAME}$row_tracking") == ours(tmp_path)


@pytest.mark.parametrize("state", PLAIN | SIDE_BY_SIDE | WITH_DELETES)
def test_pypaimon_reads_our_rows(state: str, tmp_path: Path) -> None:
    (PLAIN | SIDE_BY_SIDE | WITH_DELETES)[state](tmp_path)

    assert peer("pypaimon").rows(tmp_path, NAME) == sorted_rows(r[:-2] for r in ours(tmp_path))


@pytest.mark.parametrize("state", SIDE_BY_SIDE | WITH_DELETES)
@pytest.mark.parametrize("engine", ["pypaimon", "rust"])
def test_peers_read_files_side_by_side_with_their_ids(
    engine: str, state: str, tmp_path: Path
) -> None:
    (SIDE_BY_SIDE | WITH_DELETES)[state](tmp_path)

    read = peer(engine).read(tmp_path, NAME, columns=[*COLUMNS.names, *HIDDEN_NAMES])

    assert sorted_rows(canonical_rows(read)) == ours(tmp_path)


def test_rust_reads_wide_vectors_of_files_side_by_side(tmp_path: Path) -> None:
    table = filled(tmp_path, **EVOLVING, **VECTORS, **WIDE)
    delete(table, "id = 2")
    update(table, ids=[0], v=["x"])

    read = peer("rust").read(tmp_path, NAME, columns=[*COLUMNS.names, *HIDDEN_NAMES])

    assert sorted_rows(canonical_rows(read)) == ours(tmp_path)


@pytest.mark.parametrize("wide", [False, True])
def test_java_reads_what_we_delete(wide: bool, tmp_path: Path) -> None:
    table = filled(tmp_path, **VECTORS, **(WIDE if wide else {}))
    delete(table, "id IN (2, 4)")
    delete(table, "id = 1")

    rows = sorted_rows(canonical_rows(open_table(tmp_path).to_arrow()))
    assert java_judge().rows(tmp_path, NAME) == rows
    assert [row[1] for row in rows] == [3, 5]
    assert peer("rust").rows(tmp_path, NAME) == rows


def test_we_go_on_from_what_pypaimon_wrote(tmp_path: Path) -> None:
    pypaimon = peer("pypaimon")
    pypaimon.create_table(tmp_path, NAME, COLUMNS, options=EVOLVING)
    rows = pa.table({"id": [1, 2], "v": ["a", "b"], "n": [1, 2]}, schema=COLUMNS)
    pypaimon.write(tmp_path, NAME, rows)

    commit(open_table(tmp_path), columns_for(open_table(tmp_path), {"_ROW_ID": [1], "v": ["x"]}))
    pypaimon.write(tmp_path, NAME, rows)

    assert [row[1:] for row in ours(tmp_path)] == [
        [1, "a", 1, 0, 2], [1, "a", 1, 2, 3], [2, "b", 2, 3, 3], [2, "x", 2, 1, 2],
    ]  # fmt: skip
    read = pypaimon.read(tmp_path, NAME, columns=[*COLUMNS.names, *HIDDEN_NAMES])
    assert sorted_rows(canonical_rows(read)) == ours(tmp_path)
