"""Random histories over the whole public API, against plain Python, and read by others at the end.

Tables with keys are those of ``key_histories``, with tags, rollbacks, truncates, repeated and given
up commits and renames added; tables without keys have a history of their own.
"""

import itertools
import shutil
import tempfile
import traceback
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, SchemaChange, Table
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import AlreadyCommitted
from emberlake.spec.values import to_arrow_array
from emberlake.wire import CommitMessage
from interop.engines import READERS
from interop.judges import PEERS_PYTHON
from interop.test_key_histories import IN_ALL_ENGINES, NANOSECONDS, PlainHistory, PlainShape
from key_histories import NAME, VALUES, WIDER, Entry, History, random_shape, read
from places import here
from table_reads import check_whole
from torture.core import Step, Steps, chance_of

STEPS = 12
DAYS = ("mon", "tue/wed", "2024-01-02")
KINDS = sorted({*VALUES} - {*NANOSECONDS})
PEERS = ("pypaimon", "rust")


# --- tables with keys -----------------------------------------------------------------------------


class WholeHistory(History):
    """A history in which also everything around writing happens."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.states: dict[int, dict[str, Entry]] = {}
        self.tags: dict[str, int] = {}

    def step(self) -> None:
        more = [self.tag, self.roll_back, self.truncate, self.repeat, self.give_up, self.rename]
        if self.chance.random() < 0.6:
            super().step()
        else:
            action = self.chance.choice(more)
            self.done.append(action.__name__)
            action()
            self.check()
        latest = self.table.latest_snapshot()
        if latest is not None and self.done[-1] != "change_schema":
            self.states[latest.id] = deepcopy(self.entries)

    def tag(self) -> None:
        if self.seen:
            chosen = self.chance.choice(sorted(self.seen))
            name = f"tag {len(self.done)}"
            self.table.create_tag(name, chosen)
            self.tags[name] = chosen

    def roll_back(self) -> None:
        known = sorted(self.states.keys() & self.seen.keys())
        if not known:
            return
        to = self.chance.choice(known)
        named = [name for name, tagged in self.tags.items() if tagged == to]
        self.table.rollback_to(self.chance.choice([to, *named]))
        self.entries = deepcopy(self.states[to])
        self.states = {n: state for n, state in self.states.items() if n <= to}
        self.seen = {n: rows for n, rows in self.seen.items() if n <= to}
        self.tags = {name: n for name, n in self.tags.items() if n <= to}

    def truncate(self) -> None:
        commit = self.table.new_batch_write_builder().new_commit()
        if self.day is None or self.chance.random() < 0.3:
            commit.truncate_table()
            self.entries = {}
            return
        day = self.chance.choice(("mon", "tue/wed"))
        if self.chance.random() < 0.5:
            commit.truncate_partitions([{"day": day}])
        else:
            self.catalog.drop_partitions(NAME, [{"day": day}])
        self.entries = {k: e for k, e in self.entries.items() if e.values[self.day] != day}

    def repeat(self) -> None:
        """Messages are committed once, however often it is tried."""
        builder = self.table.new_batch_write_builder()
        with builder.new_write() as writer:
            self._send(writer, self._records())
            messages = [CommitMessage.from_bytes(m.to_bytes()) for m in writer.prepare_commit()]
        builder.new_commit().commit(messages)
        if messages:
            _must_be_refused(lambda: builder.new_commit().commit(messages))

    def give_up(self) -> None:
        """What is aborted never happened."""
        before = deepcopy(self.entries)
        builder = self.table.new_batch_write_builder()
        with builder.new_write() as writer:
            self._send(writer, self._records())
            builder.new_commit().abort(writer.prepare_commit())
        self.entries = before

    def rename(self) -> None:
        _rename_and_back(self.catalog)

    def check_end(self) -> None:
        self.check_past()
        check_whole(self.table)
        assert self.table.list_tags() == sorted(self.tags)
        for name, snapshot_id in self.tags.items():
            assert read(self.table.copy({"scan.tag-name": name})) == self.seen[snapshot_id], name


class PlainWholeHistory(WholeHistory, PlainHistory):
    """Without deletes."""


def _rename_and_back(catalog: FileSystemCatalog) -> None:
    if catalog.storage.traits.moves_folders:
        catalog.rename_table(NAME, "db.other")
        catalog.rename_table("db.other", NAME)


def _must_be_refused(act: Callable[[], object]) -> None:
    try:
        act()
    except AlreadyCommitted:
        return
    raise AssertionError("messages were committed twice")


# --- tables without keys --------------------------------------------------------------------------

AppendRow = dict[int, Any]  # values by the id of their column


class AppendHistory:
    """Does the same to an append table and to a list of rows."""

    def __init__(self, catalog: FileSystemCatalog, chance: Random) -> None:
        self.catalog, self.chance = catalog, chance
        self.columns = {0: ("id", "BIGINT"), 1: ("day", "STRING"), 2: ("v", chance.choice(KINDS))}
        options = {"manifest.merge-min-count": chance.choice(["2", "30"])}
        if chance.random() < 0.3:
            options |= {"bucket": "2", "bucket-key": "id"}
        if chance.random() < 0.4:
            options["target-file-row-num"] = "2"
        self.partitioned = chance.random() < 0.6
        fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in self.columns.items()]
        catalog.create_table(NAME, Schema(fields, ["day"] * self.partitioned, [], options))
        self.rows: list[AppendRow] = []
        self.states: dict[int, list[AppendRow]] = {}
        self.views: dict[int, list[Row]] = {}
        self.tags: dict[str, int] = {}
        self.waiting: list[tuple[list[CommitMessage], list[AppendRow]]] = []
        self.done: list[str] = []

    @property
    def table(self) -> Table:
        table = self.catalog.get_table(NAME)
        assert isinstance(table, Table)
        return table

    def step(self) -> None:
        action = self.chance.choice(
            [
                *[self.append] * 4, self.overwrite, self.overwrite_partition, self.truncate,
                self.prepare, self.commit_late, self.stream, self.compact, self.compact,
                self.alter, self.alter, self.tag, self.roll_back, self.rename,
            ]
        )  # fmt: skip
        self.done.append(action.__name__)
        action()
        self.check()
        latest = self.table.latest_snapshot()
        if latest is not None and action != self.alter:
            self.states[latest.id] = list(self.rows)
            # Nothing may have happened since a column was changed.
            self.views.setdefault(latest.id, self.expected())

    # --- writing ----------------------------------------------------------------------------------

    def _some(self, day: str | None = None) -> list[AppendRow]:
        return [self._row(day) for _ in range(self.chance.choice([1, 1, 2, 5]))]

    def _row(self, day: str | None) -> AppendRow:
        row: AppendRow = {}
        for place, (_, kind) in self.columns.items():
            choices = VALUES.get(kind, VALUES["DECIMAL(9, 2)"])
            row[place] = None if self.chance.random() < 0.15 else self.chance.choice(choices)
        return row | {0: self.chance.randint(0, 9), 1: day or self.chance.choice(DAYS)}

    def arrow(self, rows: Sequence[AppendRow]) -> pa.Table:
        return pa.table(
            {
                name: to_arrow_array(AtomicType(kind), [row.get(place) for row in rows])
                for place, (name, kind) in self.columns.items()
            }
        )

    def _prepare(self, builder: Any, rows: list[AppendRow]) -> list[CommitMessage]:
        with builder.new_write() as writer:
            for part in (rows[:1], rows[1:]):
                writer.write_arrow(self.arrow(part))
            messages: list[CommitMessage] = writer.prepare_commit()
        return messages

    def append(self) -> None:
        rows = self._some()
        builder = self.table.new_batch_write_builder()
        result = builder.new_commit().commit(self._prepare(builder, rows))
        assert result.rows_added == len(rows)
        self.rows = self.rows + rows

    def overwrite(self) -> None:
        rows = self._some()
        builder = self.table.new_batch_write_builder().overwrite()
        builder.new_commit().commit(self._prepare(builder, rows))
        days = {row[1] for row in rows}
        kept = [row for row in self.rows if self.partitioned and row[1] not in days]
        self.rows = kept + rows

    def overwrite_partition(self) -> None:
        if not self.partitioned:
            return
        day = self.chance.choice(DAYS)
        rows = self._some(day)
        builder = self.table.new_batch_write_builder()
        builder.new_commit().overwrite(self._prepare(builder, rows), {"day": day})
        self.rows = [row for row in self.rows if row[1] != day] + rows

    def truncate(self) -> None:
        commit = self.table.new_batch_write_builder().new_commit()
        if not self.partitioned or self.chance.random() < 0.3:
            commit.truncate_table()
            self.rows = []
            return
        day = self.chance.choice(DAYS)
        commit.truncate_partitions([{"day": day}])
        self.rows = [row for row in self.rows if row[1] != day]

    def prepare(self) -> None:
        rows = self._some()
        self.waiting.append((self._prepare(self.table.new_batch_write_builder(), rows), rows))

    def commit_late(self) -> None:
        if not self.waiting:
            return
        messages, rows = self.waiting.pop()
        commit = self.table.new_batch_write_builder().new_commit()
        if self.chance.random() < 0.3:
            commit.abort(messages)
            return
        commit.commit(messages)
        self.rows = self.rows + rows
        _must_be_refused(lambda: commit.commit(messages))

    def stream(self) -> None:
        """Commits that are sent again after a restart count once."""
        user = f"user {len(self.done)}"
        builder = self.table.new_stream_write_builder(user)
        prepared: dict[int, list[CommitMessage]] = {}
        rows = []
        with builder.new_write() as writer:
            for identifier in (1, 2, 3):
                part = self._some()
                rows += part
                writer.write_arrow(self.arrow(part))
                prepared[identifier] = writer.prepare_commit(identifier)
        builder.new_commit().commit(prepared[1], 1)
        again = self.table.new_stream_write_builder(user).new_commit()
        assert again.filter_and_commit(prepared) == 2
        assert again.filter_and_commit(prepared) == 0
        self.rows = self.rows + rows

    # --- everything else --------------------------------------------------------------------------

    def compact(self) -> None:
        self.table.compact(full=self.chance.random() < 0.5)

    def alter(self) -> None:
        place = self.chance.choice([p for p in self.columns if p > 1] or [0])
        name, kind = self.columns[place]
        what = self.chance.choice(["add", "rename", "widen", "drop", "comment"])
        change = None
        if what == "add" and len(self.columns) < 8:
            place, name = max(self.columns) + 1 + len(self.done) * 100, f"c{len(self.done)}"
            kind = self.chance.choice(KINDS)
            change = SchemaChange.add_column(name, AtomicType(kind))
        elif place > 1 and what == "rename":
            name, old = f"n{len(self.done)}", name
            change = SchemaChange.rename_column(old, name)
        elif place > 1 and what == "widen" and kind in WIDER:
            kind = WIDER[kind]
            change = SchemaChange.update_column_type(name, AtomicType(kind))
        elif what == "drop" and len(self.columns) > 3 and place > 1:
            self.catalog.alter_table(NAME, [SchemaChange.drop_column(name)])
            del self.columns[place]
            return
        else:
            self.catalog.alter_table(NAME, [SchemaChange.update_comment(f"{len(self.done)}")])
        if change is not None:
            self.catalog.alter_table(NAME, [change])
            self.columns[place] = (name, kind)

    def tag(self) -> None:
        if self.views:
            chosen = self.chance.choice(sorted(self.views))
            name = f"tag {len(self.done)}"
            self.table.create_tag(name, chosen)
            self.tags[name] = chosen

    def roll_back(self) -> None:
        if not self.states:
            return
        to = self.chance.choice(sorted(self.states))
        named = [name for name, tagged in self.tags.items() if tagged == to]
        self.table.rollback_to(self.chance.choice([to, *named]))
        self.rows = list(self.states[to])
        self.states = {n: rows for n, rows in self.states.items() if n <= to}
        self.views = {n: rows for n, rows in self.views.items() if n <= to}
        self.tags = {name: n for name, n in self.tags.items() if n <= to}

    def rename(self) -> None:
        _rename_and_back(self.catalog)

    # --- what must be true ------------------------------------------------------------------------

    def expected(self) -> list[Row]:
        return sorted_rows(canonical_rows(self.arrow(self.rows)))

    def check(self) -> None:
        table = self.table
        assert read(table, as_stream=self.chance.random() < 0.5) == self.expected()
        day, least = self.chance.choice(DAYS), self.chance.randint(0, 9)
        builder = table.new_read_builder().with_filter(f"day = '{day}' AND id >= {least}")
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        wanted = [row for row in self.rows if row[1] == day and row[0] >= least]
        assert sorted_rows(canonical_rows(found)) == sorted_rows(canonical_rows(self.arrow(wanted)))

    def check_end(self) -> None:
        table = self.table
        check_whole(table)
        for snapshot_id, rows in self.views.items():
            assert read(table.copy({"scan.snapshot-id": snapshot_id})) == rows, snapshot_id
        for name, snapshot_id in self.tags.items():
            assert read(table.copy({"scan.tag-name": name})) == self.views[snapshot_id], name


# --- telling them ---------------------------------------------------------------------------------

ENGINES = ("append", "append", "deduplicate", "first-row", "partial-update, plain",
           "aggregation, plain", "partial-update", "aggregation")  # fmt: skip
# What pypaimon does not do, or not do right: see tests/interop/test_key_histories.py.
GAPS = {("partial-update", "pypaimon"), ("aggregation", "pypaimon")}


def histories(seed: int, peers: tuple[str, ...] = PEERS) -> Steps:
    """One history after the other, read by others where they are installed; does not end."""
    peers = peers if PEERS_PYTHON.exists() else ()
    for number in itertools.count():
        name = ENGINES[number % len(ENGINES)]
        yield tell(name, seed + number, peers)


def tell(name: str, seed: int, peers: tuple[str, ...]) -> Step:
    """Let a history happen, and let others read what it left on a disk."""
    chance = chance_of(seed, name)
    warehouse = Path(tempfile.mkdtemp(prefix="emberlake-history-"))
    is_on_disk = here().name != "s3"
    options = {"warehouse": str(warehouse)} if is_on_disk else here().new_warehouse()
    history: Any = None
    counts = {"histories": 1, "steps of histories": 0}
    problem: str | None = None
    try:
        history = _history(name, options, chance)
        for _ in range(STEPS):
            history.step()
            counts["steps of histories"] += 1
        history.check_end()
        for peer in peers if is_on_disk else ():
            if (name, peer) not in GAPS and history.table.latest_snapshot() is not None:
                assert READERS[peer](warehouse) == history.expected(), f"{peer} reads other rows"
                counts[f"read by {peer}"] = 1
    except Exception:  # noqa: BLE001 - every error is reported
        problem = f"{getattr(history, 'done', [])}: {traceback.format_exc(limit=-3)}"
    finally:
        shutil.rmtree(warehouse)
    return Step(f"history of {name}, seed {seed}", counts, problem)


def _history(name: str, options: dict[str, str], chance: Random) -> AppendHistory | WholeHistory:
    catalog: Any = CatalogFactory.create(options)
    catalog.create_database("db")
    if name == "append":
        return AppendHistory(catalog, chance)
    shape = random_shape(chance, name.removesuffix(", plain"))
    keys = tuple(IN_ALL_ENGINES.get(key, key) for key in shape.keys)
    in_all = {**dict.fromkeys(NANOSECONDS, "TIMESTAMP(6)"), "BOOLEAN": "INT"}
    shape = replace(shape, keys=keys, value=in_all.get(shape.value, shape.value))
    if name.endswith("plain"):
        return PlainWholeHistory(catalog, PlainShape(**vars(shape)), chance, KINDS)
    return WholeHistory(catalog, shape, chance, KINDS)
