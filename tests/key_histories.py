"""Random histories of tables with a primary key, done to a table and to a dictionary of rows.

Chance decides everything, so that a history can come from hypothesis or from a number. A history
keeps away from what depends on when something is compacted: see ``_new_values`` and ``_retract``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa

from canonical import Row, canonical_rows, canonical_values, sorted_rows
from emberlake import AtomicType, DataField, Schema, SchemaChange, Table
from emberlake.catalog import FileSystemCatalog
from emberlake.spec.values import Value, to_arrow_array, to_arrow_scalar
from emberlake.wire import CommitMessage
from merge_tables import compare_values

NAME = "db.t"
NANOS = 1_700_000_000_123_456_789
VALUES: dict[str, tuple[Value, ...]] = {
    "BOOLEAN": (False, True),
    "TINYINT": (-128, -1, 0, 1, 127),
    "INT": (-(2**31), -1, 0, 1, 2, 3, 2**31 - 1),
    "BIGINT": (-(2**63), -1, 0, 1, 2, 3, 2**63 - 1),
    "FLOAT": (-1.5, -0.0, 0.0, 0.25, float("inf")),
    "DOUBLE": (float("-inf"), -0.0, 0.0, 0.1, 1e300),
    "DECIMAL(9, 2)": tuple(map(Decimal, ("-0.01", "0.00", "1.10", "9999999.99"))),
    "DECIMAL(38, 3)": tuple(
        map(Decimal, ("-" + "9" * 35 + ".999", "-0.001", "0.000", "0.001", "9" * 35 + ".999"))
    ),
    "STRING": ("", "a", "a\x00", "ab", "b", "ü☃🎉", "long " * 50),
    "BYTES": (b"", b"\x00", b"\x7f", b"\x80\xff", b"\xff" * 40),
    "DATE": (-25_567, -1, 0, 20_000),
    "TIME(3)": (0, 1, 86_399_999),
    "TIMESTAMP(3)": (-1_000_000, 0, 1_000_000, NANOS // 1_000_000 * 1_000_000),
    "TIMESTAMP(6)": (-1_000, 0, 1_000, NANOS // 1_000 * 1_000),
    "TIMESTAMP(9)": (-1, 0, 1, 5, NANOS, NANOS + 1),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": (-1, 0, NANOS, NANOS + 1),
}
NOT_A_NUMBER = float("nan")
WIDER = {"TINYINT": "INT", "INT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(9, 2)": "DECIMAL(18, 2)"}
DAYS = ("", "mon", "tue/wed", "2024-01-02")
ADDS, DELETES = ("+I", "+U"), ("-U", "-D")


@dataclass(frozen=True)
class Shape:
    """What a table of a history is like."""

    engine: str = "deduplicate"
    keys: tuple[str, ...] = ("INT",)
    value: str = "STRING"
    bucket: str = "2"
    partitioned: bool = False
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    partition_in_key: bool = True

    @property
    def all_options(self) -> dict[str, str]:
        given = {"bucket": self.bucket, "merge-engine": self.engine, **self.options}
        if self.engine == "partial-update":
            given["partial-update.remove-record-on-delete"] = "true"
        if self.engine == "first-row":
            given["ignore-delete"] = "true"
        if self.engine == "aggregation":
            given |= {"fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "max"}
            given |= {f"fields.{c}.ignore-retract": "true" for c in ("t", "v")}
        return given


@dataclass(frozen=True)
class Column:
    """A column as it is now; ``place`` stays when it is renamed."""

    place: int
    name: str
    type: str


@dataclass
class Entry:
    """What is known of a key: its values by place, and whether it is there."""

    values: dict[int, Value]
    is_alive: bool = True
    was_deleted: bool = False


Record = tuple[str, dict[int, Value]]  # the symbol of its kind, and values by place


def random_shape(chance: Random, engine: str) -> Shape:
    kinds = sorted(VALUES)
    options: dict[str, str] = {}
    if chance.random() < 0.5:
        options["write-buffer-size"] = "1 b"
    if chance.random() < 0.2:
        options["data-file.thin-mode"] = "true"
    if chance.random() < 0.3:
        options["target-file-row-num"] = "2"
    if engine == "deduplicate" and chance.random() < 0.4:
        options["sequence.field"] = "n"
    if engine == "deduplicate" and chance.random() < 0.3:
        options["changelog-producer"] = "input"
    if engine != "first-row" and chance.random() < 0.25:
        options["deletion-vectors.enabled"] = "true"
    bucket = chance.choice(["1", "3", "-1"])
    if bucket == "-1":
        options["dynamic-bucket.target-row-num"] = "2"
    shape = Shape(
        engine,
        tuple(chance.choice(kinds) for _ in range(chance.choice([1, 1, 2]))),
        chance.choice(kinds),
        bucket,
        chance.random() < 0.4,
        options,
    )
    may_lack_partition = bucket != "-1" and "sequence.field" not in options
    if shape.partitioned and may_lack_partition and chance.random() < 0.5:
        return replace(shape, partition_in_key=False)
    return shape


def _schema(shape: Shape) -> Schema:
    keys = [f"k{place}" for place in range(len(shape.keys))]
    types = {"day": "STRING"} | dict(zip(keys, shape.keys, strict=True))
    types |= {"n": "INT", "t": "STRING", "v": shape.value}
    fields = [DataField(i, name, AtomicType(text)) for i, (name, text) in enumerate(types.items())]
    partition = ["day"] if shape.partitioned else []
    primary = [*partition, *keys] if shape.partition_in_key else keys
    return Schema(fields, partition, primary, shape.all_options)


class History:
    """Does the same to a table and to a dictionary.

    Args:
        catalog: Where the table is made; its database is there.
        shape: What the table is like.
        chance: Decides what is done.
        kinds: The types that added columns can have.
    """

    def __init__(
        self,
        catalog: FileSystemCatalog,
        shape: Shape,
        chance: Random,
        kinds: Sequence[str] = tuple(sorted(VALUES)),
    ) -> None:
        self.catalog, self.shape, self.chance, self.kinds = catalog, shape, chance, kinds
        schema = _schema(shape)
        catalog.create_table(NAME, schema)
        self.columns = [Column(i, f.name, _bare(f)) for i, f in enumerate(self.table.fields)]
        names = {column.name: column.place for column in self.columns}
        self.day = names["day"] if shape.partitioned else None
        # A key is unique in its partition, whether the partition is a part of it or not.
        identity = {*self.table.partition_keys, *self.table.primary_keys}
        self.keys = [place for name, place in names.items() if name in identity]
        self.number, self.text, self.value = names["n"], names["t"], names["v"]
        self.sequence = self.number if "sequence.field" in shape.options else None
        self.entries: dict[str, Entry] = {}
        self.seen: dict[int, list[Row]] = {}  # what each snapshot holds
        self.done: list[str] = []

    @property
    def table(self) -> Table:
        """The table as another program sees it."""
        return self.catalog.get_table(NAME)

    # --- what can be done -------------------------------------------------------------------------

    def step(self) -> None:
        """Do something, and look whether the table says the same as the dictionary."""
        actions: list[Callable[[], None]] = [
            *[self.write] * 5,
            self.write_as_a_stream,
            self.overwrite,
            self.change_schema,
        ]
        if hasattr(self.table, "compact"):
            actions += [self.compact] * 2
        action = self.chance.choice(actions)
        self.done.append(action.__name__)
        action()
        self.check()

    def write(self) -> None:
        builder = self.table.new_batch_write_builder()
        with builder.new_write() as writer:
            for _ in range(self.chance.choice([1, 1, 2])):
                self._send(writer, self._records())
            builder.new_commit().commit(writer.prepare_commit())

    def fill(self, most: int) -> None:
        """Write rows of many keys at once, so that later records replace only a few of them."""
        types = {c.place: c.type for c in self.columns}
        choices = [DAYS if p == self.day else VALUES[types[p]] for p in self.keys]
        every = [dict(zip(self.keys, values, strict=True)) for values in product(*choices)]
        records = []
        for key in self.chance.sample(every, min(most, len(every))):
            records.append(("+I", key | self._new_values(key)))
            self._apply(*records[-1])
        builder = self.table.new_batch_write_builder()
        with builder.new_write() as writer:
            self._send(writer, records)
            builder.new_commit().commit(writer.prepare_commit())

    def write_as_a_stream(self) -> None:
        """Two commits of one writer, the first of which may come late."""
        builder = self.table.new_stream_write_builder()
        is_late = self.chance.random() < 0.5
        with builder.new_write() as writer:
            commit = builder.new_commit()
            prepared: dict[int, list[CommitMessage]] = {}
            for identifier in (1, 2):
                self._send(writer, self._records())
                prepared[identifier] = writer.prepare_commit(identifier)
                if not is_late:
                    commit.commit(prepared.pop(identifier), identifier)
            for identifier, messages in prepared.items():
                commit.commit(messages, identifier)

    def overwrite(self) -> None:
        builder = self.table.new_batch_write_builder().overwrite()
        before = self.entries
        self.entries = {}
        records = self._records(only_adds=True)
        if self.day is not None:  # only the partitions that are written to
            days = {values[self.day] for _, values in records}
            kept = {k: e for k, e in before.items() if e.values[self.day] not in days}
            self.entries |= kept
        with builder.new_write() as writer:
            self._send(writer, records)
            builder.new_commit().commit(writer.prepare_commit())

    def compact(self) -> None:
        self.table.compact(full=self.chance.random() < 0.5)

    def change_schema(self) -> None:
        place = self.chance.choice([c.place for c in self.columns if c.place not in self.keys])
        column = next(c for c in self.columns if c.place == place)
        kind = self.chance.choice(["add", "rename", "widen"])
        if kind == "widen" and column.type in WIDER:
            wider = WIDER[column.type]
            self._alter(SchemaChange.update_column_type(column.name, AtomicType(wider)))
            self._replace(Column(place, column.name, wider))
        elif kind == "rename":
            name = f"r{len(self.done)}"
            self._alter(SchemaChange.rename_column(column.name, name))
            self._replace(Column(place, name, column.type))
        elif len(self.columns) < 9:
            text = self.chance.choice(self.kinds)
            added = Column(len(self.columns), f"a{len(self.columns)}", text)
            self._alter(SchemaChange.add_column(added.name, AtomicType(text)))
            self.columns.append(added)

    def _alter(self, change: Any) -> None:
        self.catalog.alter_table(NAME, [change])

    def _replace(self, column: Column) -> None:
        self.columns = [column if c.place == column.place else c for c in self.columns]

    # --- records ----------------------------------------------------------------------------------

    def _records(self, *, only_adds: bool = False) -> list[Record]:
        """Some records, which are in the dictionary when this returns."""
        records = []
        for _ in range(self.chance.choice([1, 2, 3, 6])):
            is_delete = not only_adds and self.chance.random() < 0.3
            record = self._delete() if is_delete else self._add()
            if record is not None:
                records.append(record)
                self._apply(*record)
        return records

    def _key(self) -> dict[int, Value]:
        types = {c.place: c.type for c in self.columns}
        key: dict[int, Value] = {}
        for place in self.keys:
            choices = DAYS if place == self.day else VALUES[types[place]]
            key[place] = self.chance.choice(choices)
        return key

    def _add(self) -> Record:
        key = self._key()
        return self.chance.choice(ADDS), key | self._new_values(key)

    def _new_values(self, key: dict[int, Value]) -> dict[int, Value]:
        """Values of every column that is no key.

        A row that is written again after its delete is written whole: whether a delete is still
        known, and with it what the row was before, depends on when it was compacted. The same goes
        for its place in an order of the table's own.
        """
        entry = self.entries.get(self._name(key))
        is_whole = entry is not None and entry.was_deleted
        values = {
            c.place: self._value(c, is_whole=is_whole)
            for c in self.columns
            if c.place not in self.keys
        }
        if self.sequence is not None and entry is not None and not entry.is_alive:
            values[self.sequence] = 1_000
        return values

    def _value(self, column: Column, *, is_whole: bool) -> Value:
        if not is_whole and self.chance.random() < 0.25:
            return None
        if column.place == self.number:
            return self.chance.randint(-5, 5)
        if column.place == self.text:
            return f"{len(self.done)}-{self.chance.randint(0, 99)}"
        if column.type in ("DOUBLE", "FLOAT") and self.chance.random() < 0.2:
            return NOT_A_NUMBER
        return self.chance.choice(_values_of(column.type))

    def _delete(self) -> Record | None:
        key = self._key()
        entry = self.entries.get(self._name(key))
        others = {c.place: None for c in self.columns if c.place not in self.keys}
        match self.shape.engine:
            case "aggregation":
                return self._retract(key, others, entry)
            case "partial-update":
                return "-D", key | others
            case "first-row":
                return self.chance.choice(DELETES), key | self._new_values(key)
        if self.sequence is not None:
            others[self.sequence] = 1_000
        return self.chance.choice(DELETES), key | others

    def _retract(
        self, key: dict[int, Value], others: dict[int, Value], entry: Entry | None
    ) -> Record | None:
        """A number is taken back of rows that are there: else it would depend on compaction."""
        if entry is None:
            return None
        return self.chance.choice(DELETES), key | others | {self.number: self.chance.randint(-5, 5)}

    def _name(self, values: Mapping[int, Value]) -> str:
        """A key as a text that equals for equal keys: a dictionary takes 0.0 for -0.0."""
        types = {c.place: c.type for c in self.columns}
        arrays = (to_arrow_array(AtomicType(types[p]), [values[p]]) for p in self.keys)
        return json.dumps([canonical_values(array) for array in arrays])

    # --- the dictionary ---------------------------------------------------------------------------

    def _apply(self, kind: str, values: dict[int, Value]) -> None:
        name = self._name(values)
        entry = self.entries.get(name)
        is_delete = kind in DELETES
        match self.shape.engine:
            case "first-row" if is_delete or entry is not None:
                return
            case "aggregation" if entry is not None:
                self._aggregate(entry, values, is_delete=is_delete)
                return
            case "partial-update" if entry is not None and not is_delete and entry.is_alive:
                entry.values |= {p: v for p, v in values.items() if v is not None}
                return
            case "deduplicate" if entry is not None and self._is_older(values, entry):
                return
        was_deleted = is_delete or (entry is not None and entry.was_deleted)
        self.entries[name] = Entry(dict(values), not is_delete, was_deleted)

    def _is_older(self, values: dict[int, Value], entry: Entry) -> bool:
        if self.sequence is None:
            return False
        return compare_values(values[self.sequence], entry.values.get(self.sequence)) < 0

    def _aggregate(self, entry: Entry, values: dict[int, Value], *, is_delete: bool) -> None:
        now = entry.values
        number: Any = values[self.number]
        if number is not None:
            before: Any = now.get(self.number)
            now[self.number] = (before or 0) + (-number if is_delete else number)
        if is_delete:
            return
        for place, value in values.items():
            known = now.get(place)
            is_max = place == self.value and known is not None
            if place == self.number or value is None or place in self.keys:
                continue
            if not is_max or compare_values(value, known) > 0:
                now[place] = value

    # --- the table --------------------------------------------------------------------------------

    def _send(self, writer: Any, records: Sequence[Record]) -> None:
        data = self.arrow([values for _, values in records])
        kinds = [kind for kind, _ in records]
        if len(set(kinds)) == 1 and self.chance.random() < 0.5:
            writer.write_arrow(data, row_kind=kinds[0])
        else:
            column = pa.array(kinds, pa.string())
            writer.write_arrow(data.append_column("_row_kind", column))

    def arrow(self, rows: Sequence[Mapping[int, Value]]) -> pa.Table:
        return pa.table(
            {
                c.name: to_arrow_array(AtomicType(c.type), [row.get(c.place) for row in rows])
                for c in self.columns
            }
        )

    def expected(self) -> list[Row]:
        alive = [entry.values for entry in self.entries.values() if entry.is_alive]
        return sorted_rows(canonical_rows(self.arrow(alive)))

    def check(self) -> None:
        """The table holds what the dictionary holds, however it is read."""
        table = self.table
        expected = self.expected()
        assert read(table, as_stream=self.chance.random() < 0.5) == expected, self.done
        snapshot = table.latest_snapshot()
        if snapshot is not None and self.done[-1:] != ["change_schema"]:
            self.seen.setdefault(snapshot.id, expected)
        self._check_key_filter(table)
        self._check_value_filter(table)
        self._check_projection(table)

    def check_past(self) -> None:
        """Every snapshot that was looked at holds what it held then."""
        for snapshot_id, expected in self.seen.items():
            then = self.table.copy({"scan.snapshot-id": str(snapshot_id)})
            assert read(then) == expected, (self.done, snapshot_id)

    def _check_key_filter(self, table: Table) -> None:
        key = self._key()
        name = self._name(key)
        builder = table.new_read_builder()
        making = builder.new_predicate_builder()
        names = {c.place: c.name for c in self.columns}
        types = {c.place: AtomicType(c.type) for c in self.columns}
        literals = {place: to_arrow_scalar(types[place], value) for place, value in key.items()}
        leaves = [making.equal(names[place], value) for place, value in literals.items()]
        builder = builder.with_filter(making.and_predicates(leaves))
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        entry = self.entries.get(name)
        is_there = entry is not None and entry.is_alive
        # 0.0 equals -0.0, as key filters go; keys do not.
        same = [row for row in canonical_rows(found) if self._is_key(row, name)]
        assert len(same) == is_there, (self.done, key)

    def _is_key(self, row: Row, name: str) -> bool:
        place_of = {c.place: index for index, c in enumerate(self.columns)}
        return json.dumps([[row[1 + place_of[p]]] for p in self.keys]) == name

    def _check_value_filter(self, table: Table) -> None:
        number = next(c.name for c in self.columns if c.place == self.number)
        builder = table.new_read_builder().with_filter(f"{number} > 1")
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        at = 1 + [c.place for c in self.columns].index(self.number)
        wanted = [row for row in self.expected() if row[at] is not None and row[at] > 1]
        assert sorted_rows(canonical_rows(found)) == wanted, self.done

    def _check_projection(self, table: Table) -> None:
        column = self.chance.choice(self.columns)
        at = 1 + self.columns.index(column)
        builder = table.new_read_builder().with_projection([column.name])
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        wanted = sorted_rows([["+I", row[at]] for row in self.expected()])
        assert sorted_rows(canonical_rows(found)) == wanted, (self.done, column)


def read(table: Table, *, as_stream: bool = False) -> list[Row]:
    builder = table.new_read_builder()
    reading, splits = builder.new_read(), builder.new_scan().plan().splits()
    if as_stream:
        return sorted_rows(canonical_rows(reading.to_arrow_batch_reader(splits).read_all()))
    return sorted_rows(canonical_rows(reading.to_arrow(splits)))


def _values_of(kind: str) -> tuple[Value, ...]:
    return VALUES.get(kind, VALUES["DECIMAL(9, 2)"])


def _bare(column: DataField) -> str:
    return str(column.type.with_nullable(True))
