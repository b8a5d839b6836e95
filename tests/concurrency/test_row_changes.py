"""Two operations on rows with ids, one in the middle of the other: both count, or one is refused.

Whatever comes in between, the table is what the two would make of it one after the other, or what
the one alone makes of it and the other is refused. No id is ever given to two rows.
"""

from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pytest

from builders import FakeEnv, copy_of, create_table, open_table
from emberlake.commit.change import CommitResult
from emberlake.errors import CommitConflict, InvalidInput
from emberlake.io import MemoryStorage
from emberlake.table import Table
from tracked_tables import (
    COLUMNS,
    EVOLVING,
    TRACKED,
    VECTORS,
    commit,
    delete,
    moved_by_marks,
    put,
    update,
    with_ids,
)
from watched_storage import Call, WatchedStorage

pytestmark = [pytest.mark.thorough, pytest.mark.memory_only]

Operation = Callable[[Table], CommitResult]
KINDS = {"tracked": {**TRACKED, **VECTORS}, "evolving": {**EVOLVING, **VECTORS}}


def replace_all(table: Table) -> CommitResult:
    return table.overwrite(pa.Table.from_pylist([{"id": 9, "v": "new", "n": 9}], schema=COLUMNS))


EVERYWHERE: dict[str, Operation] = {
    "append": lambda table: put(table, (7, "g", 7)),
    "delete": lambda table: delete(table, "id IN (1, 4)"),
    "delete another": lambda table: delete(table, "id = 2"),
    "delete files": lambda table: table.delete("id < 4"),
    "compact": lambda table: table.compact(full=True),
    "overwrite": replace_all,
}
OPERATIONS: dict[str, dict[str, Operation]] = {
    "tracked": {
        **EVERYWHERE,
        "move": lambda table: commit(table, moved_by_marks(table, "id IN (1, 3)", v="moved")),
    },
    "evolving": {
        **EVERYWHERE,
        "columns": lambda table: update(table, ids=[1, 2], v=["x", "y"]),
        "other columns": lambda table: update(table, ids=[1], n=[20]),
    },
}
PAIRS = [
    (kind, mine, other)
    for kind, operations in OPERATIONS.items()
    for mine in operations
    if mine not in ("append", "overwrite", "delete another")
    for other in operations
]


@cache
def template(kind: str) -> MemoryStorage:
    storage = MemoryStorage()
    table = create_table(storage, COLUMNS, options=KINDS[kind])
    put(table, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    put(table, (4, "d", 4), (5, "e", 5))
    delete(table, "id = 5")
    return storage


def rows(table: Table) -> list[tuple[object, ...]]:
    return sorted(with_ids(table).values())


@cache
def in_order(kind: str, *names: str) -> list[tuple[object, ...]] | None:
    """The rows after operations one after the other; None if the rows of one are gone by then."""
    table = open_table(copy_of(template(kind)))
    try:
        for name in names:
            OPERATIONS[kind][name](table)
    except InvalidInput:
        return None
    return rows(table)


class Interrupted:
    """A table on which another operation comes in between, at a call of its storage."""

    def __init__(self, storage: MemoryStorage, at: int, other: Operation) -> None:
        self.has_met = self.is_too_late = False
        self._storage, self._other, self._at = storage, other, 1 << 60
        watched = WatchedStorage(storage, self._watch)
        self.table = open_table(watched, FakeEnv().env())
        self._at = len(watched.calls) + at

    def _watch(self, call: Call) -> None:
        if call.number == self._at and not call.is_done:
            self.has_met = True
            try:
                self._other(open_table(self._storage))
            except InvalidInput:  # its rows are gone
                self.is_too_late = True


@pytest.mark.parametrize(("kind", "mine", "other"), PAIRS)
def test_both_count_or_one_is_refused(kind: str, mine: str, other: str) -> None:
    operations = OPERATIONS[kind]
    for at in range(1, 200, 5):
        storage = copy_of(template(kind))
        run = Interrupted(storage, at, operations[other])
        accepted = [in_order(kind, mine, other), in_order(kind, other, mine)]
        try:
            operations[mine](run.table)
        except (CommitConflict, InvalidInput):
            accepted = [in_order(kind, other)]
        if not run.has_met:
            return
        if run.is_too_late:
            accepted = [in_order(kind, mine)]
        assert rows(open_table(storage)) in accepted, f"at call {at}"
