"""Random histories of an append table against a model of plain Python lists."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from builders import NAME, append, create_table, open_catalog, open_table, overwrite, prepare
from emberlake.errors import AlreadyCommitted
from emberlake.spec.schema_change import SchemaChange
from emberlake.types import AtomicType
from emberlake.wire import CommitMessage
from table_reads import check_whole, read

Row = dict[str, Any]

DAYS = st.sampled_from(["mon", "tue", "", None])
ROWS = st.lists(st.fixed_dictionaries({"id": st.integers(0, 9), "day": DAYS}), max_size=4)
# Small limits, so that files roll and manifests are merged all the time.
OPTIONS = {
    "manifest.merge-min-count": "3",
    "manifest.full-compaction-threshold-size": "6000 b",
    "target-file-row-num": "2",
}


@dataclass
class State:
    """What a snapshot holds: its columns and rows, and the messages that were ever committed."""

    columns: tuple[str, ...] = ("id", "day")
    rows: list[Row] = field(default_factory=list)
    committed: frozenset[int] = frozenset()

    def seen_with(self, columns: tuple[str, ...]) -> list[Row]:
        rows = [{name: row.get(name) for name in columns} for row in self.rows]
        return sorted(rows, key=lambda row: [(v is None, str(type(v)), v) for v in row.values()])


class AppendHistory(RuleBasedStateMachine):
    """Does the same to a table and to a list of states."""

    def __init__(self) -> None:
        super().__init__()
        table = create_table(partition_keys=["day"], options=OPTIONS)
        self.storage = table.store.storage
        self.columns: tuple[str, ...] = ("id", "day")
        self.snapshots: dict[int, State] = {}
        self.tags: dict[str, State] = {}
        self.tag_ids: dict[str, int] = {}
        self.prepared: list[tuple[list[CommitMessage], list[Row]]] = []

    @property
    def table(self):
        return open_table(self.storage)

    @property
    def latest(self) -> State:
        return self.snapshots[max(self.snapshots)] if self.snapshots else State()

    def expect(self, result, rows: list[Row], committed: frozenset[int] | None = None) -> None:
        """A snapshot with these rows comes next."""
        committed = self.latest.committed if committed is None else committed
        before = len(self.latest.rows)
        state = State(self.columns, rows, committed)
        self.snapshots[max(self.snapshots, default=0) + 1] = state
        assert result.snapshot_id == max(self.snapshots)
        assert result.rows_added - result.rows_deleted == len(rows) - before

    # --- writing ----------------------------------------------------------------------------------

    @rule(rows=ROWS)
    def append(self, rows):
        result = append(self.table, rows)
        if rows:
            self.expect(result, self.latest.rows + rows)
        else:
            assert result.snapshot_id is None

    @rule(rows=ROWS)
    def overwrite_what_is_touched(self, rows):
        result = overwrite(self.table, rows)
        days = {row["day"] for row in rows}
        if rows:
            kept = [row for row in self.latest.rows if row["day"] not in days]
            self.expect(result, kept + rows)
        else:
            assert result.snapshot_id is None

    @rule(day=DAYS, ids=st.lists(st.integers(0, 9), max_size=3))
    def overwrite_a_partition(self, day, ids):
        rows = [{"id": n, "day": day} for n in ids]
        table = self.table.copy({"dynamic-partition-overwrite": "false"})
        result = overwrite(table, rows, {"day": day})
        self.replaced(result, [row for row in self.latest.rows if row["day"] != day], rows)

    @rule(day=DAYS)
    def truncate_a_partition(self, day):
        commit = self.table.new_batch_write_builder().new_commit()
        result = commit.truncate_partitions([{"day": day}])
        self.replaced(result, [row for row in self.latest.rows if row["day"] != day], [])

    @rule()
    def truncate(self):
        result = self.table.new_batch_write_builder().new_commit().truncate_table()
        self.replaced(result, [], [])

    def replaced(self, result, kept, rows):
        if rows or len(kept) < len(self.latest.rows):
            self.expect(result, kept + rows)
        else:
            assert result.snapshot_id is None

    @rule(rows=ROWS.filter(bool), as_bytes=st.booleans())
    def prepare(self, rows, as_bytes):
        messages = prepare(self.table, rows)
        if as_bytes:
            messages = [CommitMessage.from_bytes(m.to_bytes()) for m in messages]
        self.prepared.append((messages, rows))

    @precondition(lambda self: self.prepared)
    @rule(data=st.data())
    def commit_what_was_prepared(self, data):
        number = data.draw(st.integers(0, len(self.prepared) - 1))
        messages, rows = self.prepared[number]
        commit = self.table.new_batch_write_builder().new_commit()
        if number in self.latest.committed:
            with pytest.raises(AlreadyCommitted):
                commit.commit(messages)
        else:
            committed = self.latest.committed | {number}
            self.expect(commit.commit(messages), self.latest.rows + rows, committed)

    # --- everything else --------------------------------------------------------------------------

    @precondition(lambda self: len(self.columns) < 5)
    @rule()
    def add_a_column(self):
        name = f"c{len(self.columns)}"
        change = SchemaChange.add_column(name, AtomicType("INT"))
        open_catalog(self.storage).alter_table(NAME, [change])
        self.columns = (*self.columns, name)

    @precondition(lambda self: len(self.columns) > 2)
    @rule(value=st.integers(0, 9))
    def append_to_the_new_columns(self, value):
        row = dict.fromkeys(self.columns, value) | {"day": "mon"}
        result = append(self.table, [row])
        self.expect(result, [*self.latest.rows, row])

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def tag(self, data):
        snapshot_id = data.draw(st.sampled_from(sorted(self.snapshots)))
        name = f"t{len(self.tags)}-{snapshot_id}"
        self.table.create_tag(name, snapshot_id, ignore_if_exists=True)
        self.tags[name] = self.snapshots[snapshot_id]
        self.tag_ids[name] = snapshot_id

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def roll_back(self, data):
        targets = [*sorted(self.snapshots), *sorted(self.tags)]
        target = data.draw(st.sampled_from(targets))
        self.table.rollback_to(target)
        last = self.tag_ids[target] if isinstance(target, str) else target
        self.snapshots = {n: s for n, s in self.snapshots.items() if n <= last}
        self.tags = {name: s for name, s in self.tags.items() if self.tag_ids[name] <= last}

    # --- what must be true ------------------------------------------------------------------------

    @invariant()
    def the_latest_rows_are_there(self):
        assert read(self.table) == self.latest.seen_with(self.columns)

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def travel(self, data):
        snapshot_id = data.draw(st.sampled_from(sorted(self.snapshots)))
        state = self.snapshots[snapshot_id]
        assert read(self.table, **{"scan.snapshot-id": snapshot_id}) == state.seen_with(
            state.columns
        )

    def teardown(self) -> None:
        table = self.table
        check_whole(table)
        assert table.snapshot_manager().list_ids() == tuple(sorted(self.snapshots))
        assert table.list_tags() == sorted(self.tags)
        for name, state in self.tags.items():
            assert read(table, **{"scan.tag-name": name}) == state.seen_with(state.columns)


def test_an_append_table_holds_what_its_history_says():
    tried = settings(max_examples=40, stateful_step_count=15, deadline=None)

    run_state_machine_as_test(AppendHistory, settings=tried)
