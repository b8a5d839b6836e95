"""Random histories of writes and maintenance: every retained row stays readable.

The model knows the rows of every snapshot and tag of every branch. After each step all of them are
read, the table is checked, and once in a while orphans are removed.
"""

import random
from dataclasses import dataclass, field

import pytest

from builders import NAME, NUMBERED, FakeEnv, append, numbered, open_catalog, overwrite, upsert
from emberlake import Schema, Table
from emberlake.base.env import SYSTEM_ENV
from emberlake.options import DELETION_VECTORS
from places import new_storage
from table_reads import read_arrow

Rows = dict[int, str]
HOUR_MS = 3_600_000
SHAPES = {
    "append": {"options": {"manifest.merge-min-count": "3"}},
    "keys": {
        "primary_keys": ["id"],
        "options": {"bucket": "2", "num-sorted-run.compaction-trigger": "3"},
    },
    "vectors": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "deletion-vectors.enabled": "true"},
    },
    "changelog": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "changelog-producer": "input"},
    },
}


@dataclass
class Line:
    """What the model knows of one branch."""

    snapshots: dict[int, Rows] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    tagged: dict[str, Rows] = field(default_factory=dict)
    half: set[int] = field(default_factory=set)  # snapshots with rows that do not show yet

    @property
    def steady(self) -> list[int]:
        """Snapshots that show all they have; what goes on from others shows more than them."""
        return sorted(self.snapshots.keys() - self.half)

    @property
    def rows(self) -> Rows:
        return self.snapshots[max(self.snapshots)] if self.snapshots else {}


class History:
    """A table, the model of it, and steps that change both."""

    def __init__(self, seed: int, shape: str) -> None:
        self.chance = random.Random(seed)
        # A little later than it is: the clock of a server may be what files have their time from.
        self.world = FakeEnv(time_ms=SYSTEM_ENV.now_ms() + HOUR_MS)
        self.storage = new_storage(self.world.env())
        self.catalog = open_catalog(self.storage, self.world.env())
        self.catalog.create_database("db")
        self.catalog.create_table(NAME, Schema.from_pyarrow_schema(NUMBERED, **SHAPES[shape]))
        self.lines = {"main": Line()}
        self.made = 0

    def table(self, branch: str) -> Table:
        name = NAME if branch == "main" else f"{NAME}$branch_{branch}"
        table = self.catalog.get_table(name)
        assert isinstance(table, Table)
        return table

    def step(self) -> str:
        self.world.time_ms += 60_000
        branch = self.chance.choice(sorted(self.lines))
        step = self.chance.choice([
            self.write, self.write, self.write, self.replace, self.replace, self.compact, self.tag,
            self.untag, self.expire, self.expire, self.roll_back, self.branch_off, self.drop,
            self.forward, self.sweep,
        ])  # fmt: skip
        step(branch)
        return f"{step.__name__} {branch}"

    def new_rows(self) -> list[dict[str, object]]:
        self.made += 1
        ids = self.chance.sample(range(20), self.chance.randint(1, 8))
        if not self.table("main").primary_keys:
            ids = [1000 * self.made + n for n in ids]
        return numbered(ids, value=f"t{self.made}-")

    def landed(self, branch: str, rows: Rows) -> None:
        """The snapshots that the last step has made hold these rows."""
        line, table = self.lines[branch], self.table(branch)
        newest, before = max(line.snapshots, default=0), line.rows
        made = [n for n in table.snapshot_manager().list_ids() if n > newest]
        for number in made:
            # Tables with vectors show what was written when it is compacted.
            is_hidden = number != made[-1] and table.options.value(DELETION_VECTORS)
            line.snapshots[number] = before if is_hidden else rows
            line.half |= {number} if is_hidden else set()

    def write(self, branch: str) -> None:
        table, rows = self.table(branch), self.new_rows()
        (upsert if table.primary_keys else append)(table, rows)
        self.landed(branch, {**self.lines[branch].rows, **values_of(rows)})

    def replace(self, branch: str) -> None:
        rows = self.new_rows()
        overwrite(self.table(branch), rows)
        self.landed(branch, values_of(rows))

    def compact(self, branch: str) -> None:
        self.table(branch).compact(full=self.chance.random() < 0.5)
        self.landed(branch, self.lines[branch].rows)

    def tag(self, branch: str) -> None:
        line = self.lines[branch]
        if line.steady:
            self.made += 1
            name, number = f"v{self.made}", self.chance.choice(line.steady)
            self.table(branch).create_tag(name, snapshot_id=number)
            line.tags[name], line.tagged[name] = number, line.snapshots[number]

    def untag(self, branch: str) -> None:
        line = self.lines[branch]
        if line.tags:
            name = self.chance.choice(sorted(line.tags))
            self.table(branch).delete_tag(name)
            del line.tags[name], line.tagged[name]

    def expire(self, branch: str) -> None:
        keep = self.chance.randint(1, 4)
        expired = self.table(branch).expire_snapshots(retain_max=keep, retain_min=1).snapshots
        line = self.lines[branch]
        for number in expired:
            del line.snapshots[number]
        assert len(line.snapshots) <= keep

    def roll_back(self, branch: str) -> None:
        line = self.lines[branch]
        if line.tags and self.chance.random() < 0.5:
            name = self.chance.choice(sorted(line.tags))
            self.table(branch).rollback_to(name)
            number = line.tags[name]
            line.snapshots[number] = line.tagged[name]
        elif line.steady:
            number = self.chance.choice(line.steady)
            self.table(branch).rollback_to(number)
        else:
            return
        cut(line, number + 1)

    def branch_off(self, branch: str) -> None:
        main = self.lines["main"]
        if main.tags and len(self.lines) < 4:
            self.made += 1
            name, tag = f"b{self.made}", self.chance.choice(sorted(main.tags))
            self.table("main").create_branch(name, tag)
            number, rows = main.tags[tag], main.tagged[tag]
            self.lines[name] = Line({number: rows}, {tag: number}, {tag: rows})

    def drop(self, branch: str) -> None:
        if branch != "main" and self.chance.random() < 0.5:
            self.table("main").delete_branch(branch)
            del self.lines[branch]

    def forward(self, branch: str) -> None:
        source, main = self.lines[branch], self.lines["main"]
        if branch == "main" or not source.snapshots:
            return
        self.table("main").fast_forward(branch)
        cut(main, min(source.snapshots))
        main.snapshots.update(source.snapshots)
        main.half |= source.half
        main.tags.update(source.tags)
        main.tagged.update(source.tagged)

    def sweep(self, branch: str) -> None:
        self.table(branch).remove_orphan_files(older_than=self.world.time_ms)
        assert self.table(branch).remove_orphan_files(older_than=self.world.time_ms).paths == ()

    def check(self, steps: str) -> None:
        for branch, line in self.lines.items():
            table = self.table(branch)
            assert table.snapshot_manager().list_ids() == tuple(sorted(line.snapshots)), steps
            for number, rows in line.snapshots.items():
                assert rows_at(table, "scan.snapshot-id", number) == rows, (steps, branch, number)
            assert table.list_tags() == sorted(line.tags), steps
            for name, rows in line.tagged.items():
                assert rows_at(table, "scan.tag-name", name) == rows, (steps, branch, name)
            assert table.check().problems == (), (steps, branch)


def cut(line: Line, number: int) -> None:
    """Forget snapshots and tags from a number on."""
    line.snapshots = {n: rows for n, rows in line.snapshots.items() if n < number}
    line.tags = {name: n for name, n in line.tags.items() if n < number}
    line.tagged = {name: line.tagged[name] for name in line.tags}
    line.half = {n for n in line.half if n < number}


def values_of(rows: list[dict[str, object]]) -> Rows:
    return {row["id"]: row["v"] for row in rows}  # type: ignore[misc]


def rows_at(table: Table, option: str, value: object) -> Rows:
    rows = read_arrow(table.copy({option: value})).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return values_of(rows)


@pytest.mark.also_on_s3
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))]
)
def test_what_anybody_may_read_stays_readable(seed: int, shape: str) -> None:
    history = History(seed, shape)
    steps = []

    for _ in range(25):
        steps.append(history.step())
        history.check(" -> ".join(steps))
