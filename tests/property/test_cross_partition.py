"""Random histories of tables whose rows move between partitions, beside a dictionary of rows."""

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import create_key_table, data_of, prepare
from effort import examples
from emberlake import CommitConflict, DataMismatch, Table
from table_reads import check_whole, read_rows

COLUMNS = {"id": "INT", "region": "STRING", "day": "STRING", "n": "INT", "v": "STRING"}
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"partial-update.remove-record-on-delete": "true"},
    "aggregation": {"fields.n.aggregate-function": "sum"},
    "first-row": {"ignore-delete": "true"},
}
DAYS = (None, "mon", "tue", "wed")

Record = tuple[str, tuple[Any, ...]]  # its kind, and id, region, day, n, v
Rows = dict[tuple[int, str], tuple[Any, ...]]  # day, n and v by key


def merged(engine: str, rows: Rows, records: list[Record]) -> Rows:
    """The rows after one write."""
    rows, days = dict(rows), {key: row[0] for key, row in rows.items()}
    for kind, (number, region, day, n, v) in records:
        key = number, region
        place = days.setdefault(key, day)
        old = rows.get(key)
        if kind in ("-D", "-U"):
            if engine != "first-row":
                rows.pop(key, None)
        elif engine == "deduplicate" or (old is None and engine != "first-row"):
            rows[key] = (day if engine == "deduplicate" else place, n, v)
        elif engine == "partial-update":
            rows[key] = (place, old[1] if n is None else n, old[2] if v is None else v)
        elif engine == "aggregation":
            sums = [value for value in (old[1], n) if value is not None]
            rows[key] = (place, sum(sums) if sums else None, old[2] if v is None else v)
        else:
            rows.setdefault(key, (day, n, v))
    return rows


class History:
    """Does the same to a table and to a dictionary."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.engine = chance.choice(list(ENGINES))
        self.rows: Rows = {}
        self.in_key = chance.random() < 0.3
        self.table = self._create()

    def _create(self) -> Table:
        chance, options = self.chance, {"bucket": "-1", "merge-engine": self.engine}
        options |= ENGINES[self.engine]
        options["dynamic-bucket.target-row-num"] = chance.choice(["1", "2", "100"])
        if chance.random() < 0.4:
            options["write-buffer-size"] = "1 b"
        if chance.random() < 0.3:
            options["dynamic-bucket.max-buckets"] = "2"
        if chance.random() < 0.2:
            options["data-file.thin-mode"] = "true"
        if self.engine != "first-row" and chance.random() < 0.3:
            options["deletion-vectors.enabled"] = "true"
        producers = ["none", "none", "lookup", "full-compaction", "input"]
        if self.engine != "first-row" and "deletion-vectors.enabled" not in options:
            options["changelog-producer"] = chance.choice(producers)
        parts = ["region", "day"] if self.in_key else ["day"]
        return create_key_table(COLUMNS, ["id", "region"], parts, **options)

    def records(self, *, only_adds: bool = False) -> list[Record]:
        """Random records; a delete has only the key and where it claims to be."""
        chance, records = self.chance, []
        are_deletes = self.engine == "partial-update" and not only_adds and chance.random() < 0.2
        for _ in range(chance.choice([1, 2, 5, 9])):
            key = chance.choice([1, 2, 3, 4]), chance.choice(["eu", "us"])
            kinds = ["+I", "+U"]
            if not only_adds and self.engine == "deduplicate":
                kinds += ["-D", "-U"]
            # partial-update merges the records of a write first, which loses a delete among them.
            if are_deletes:
                kinds = ["-D"]
            kind, day = chance.choice(kinds), chance.choice(DAYS)
            values = (None, None)
            if kind[0] == "+":
                values = (chance.choice([None, 1, 5]), chance.choice([None, "a", "b"]))
            records.append((kind, (*key, day, *values)))
        return records

    def data(self, records: list[Record]) -> Any:
        data = data_of(self.table, [row for _, row in records])
        return data.append_column("_row_kind", [[kind for kind, _ in records]])

    def step(self) -> None:
        actions: list[Callable[[], None]] = [
            *[self.write] * 3, self.stream, self.race, self.compact, self.overwrite, self.delete,
        ]  # fmt: skip
        self.chance.choice(actions)()
        self.check()

    def write(self) -> None:
        builder = self.table.new_batch_write_builder()
        calls = [self.records()]
        if self.engine != "partial-update" and self.chance.random() < 0.5:
            calls.append(self.records())
        with builder.new_write() as writer:
            for records in calls:
                writer.write_arrow(self.data(records))
            builder.new_commit().commit(writer.prepare_commit())
        self.rows = merged(self.engine, self.rows, [r for call in calls for r in call])

    def stream(self) -> None:
        """Two commits of one writer, the first of which may come late."""
        builder, is_late = self.table.new_stream_write_builder(), self.chance.random() < 0.5
        first, second = self.records(), self.records(only_adds=True)
        with builder.new_write() as writer:
            commit = builder.new_commit()
            writer.write_arrow(self.data(first))
            one = writer.prepare_commit(1)
            if not is_late:
                commit.commit(one, 1)
            writer.write_arrow(self.data(second))
            two = writer.prepare_commit(2)
            if is_late:
                commit.commit(one, 1)
            commit.commit(two, 2)
        self.rows = merged(self.engine, self.rows, first)
        self.rows = merged(self.engine, self.rows, second)

    def race(self) -> None:
        """Two writers that do not know of each other."""
        ours, theirs = self.records(), self.records()
        builders = [self.table.new_batch_write_builder() for _ in range(2)]
        messages = [
            prepare(self.table, self.data(records), builder=builder)
            for records, builder in zip((ours, theirs), builders, strict=True)
        ]
        for records, builder, made in zip((ours, theirs), builders, messages, strict=True):
            try:
                builder.new_commit().commit(made)
            except CommitConflict:
                assert records is theirs
            else:
                self.rows = merged(self.engine, self.rows, records)

    def compact(self) -> None:
        self.table.compact(full=self.chance.random() < 0.5)

    def overwrite(self) -> None:
        """An overwrite of everything, of what the data touches, or of one day."""
        records = self.records(only_adds=True)
        kind = self.chance.choice(["all", "dynamic", "static"])
        day = self.chance.choice(DAYS[1:])
        if kind == "static":
            records = [r for r in records if r[1][2] == day] or [("+I", (1, "eu", day, 1, "a"))]
        new = merged(self.engine, {}, records)
        touched = {self._partition(key, row) for key, row in new.items()}
        kept = {
            key: row
            for key, row in self.rows.items()
            if (kind == "dynamic" and self._partition(key, row) not in touched)
            or (kind == "static" and row[0] != day)
        }  # fmt: skip
        table = self.table
        if kind == "static":
            table = table.copy({"dynamic-partition-overwrite": "false"})
        partition = {"all": {}, "dynamic": None, "static": {"day": day}}[kind]
        builder = table.new_batch_write_builder().overwrite(partition)
        try:
            made = prepare(table, self.data(records), builder=builder)
        except DataMismatch:
            assert kept.keys() & new.keys()
            return
        assert not kept.keys() & new.keys()
        builder.new_commit().commit(made)
        self.rows = kept | new

    def _partition(self, key: tuple[int, str], row: tuple[Any, ...]) -> tuple[str | None, Any]:
        return key[1] if self.in_key else None, row[0]

    def delete(self) -> None:
        if self.engine == "deduplicate":
            number = self.chance.choice([1, 2, 3, 4])
            self.table.delete(f"id = {number}")
            self.rows = {key: row for key, row in self.rows.items() if key[0] != number}

    def check(self) -> None:
        found = [tuple(row.values()) for row in read_rows(self.table)]
        expected = [(*key, *row) for key, row in self.rows.items()]
        assert sorted(found, key=repr) == sorted(expected, key=repr)


@examples(40)
@given(st.integers(0, 2**32))
def test_a_key_is_in_one_partition_at_a_time(seed: int) -> None:
    history = History(Random(seed))

    for _ in range(8):
        history.step()

    assert history.table.check().ok
    check_whole(history.table)
