"""A writer for tables whose rows may move: it finds out where each key is before it writes.

Rows are checked as they come, and wait (``parts``) until all of them are there. Then the keys of
the table are read once, and ``decide`` says for every record where it goes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.errors import DataMismatch, InvalidState, StorageError
from emberlake.merge.order import key_at
from emberlake.merge.rows import take_rows
from emberlake.options import DYNAMIC_BUCKET_MAX, DYNAMIC_BUCKET_ROWS, WRITE_BUFFER_SIZE
from emberlake.places.decide import NOWHERE, Decided, Known, Numbers, Records, decide
from emberlake.places.handed_over import HandedOver
from emberlake.places.live_keys import (
    PLACE,
    KeySpan,
    LiveKeys,
    joined_spans,
    keys_between,
    spans_of,
)
from emberlake.places.parts import Hashes, HashFilter, HashParts
from emberlake.spec.column_buffers import I64
from emberlake.spec.key_value import KIND
from emberlake.spec.manifest import BucketKey
from emberlake.spec.replacement import Replacement
from emberlake.spec.row_columns import hash_rows
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.values import Value, to_arrow_array
from emberlake.store.table_store import TableStore
from emberlake.types import DataField
from emberlake.wire import CommitMessage
from emberlake.write.align import as_tables
from emberlake.write.bucket_rooms import SINGLE_ASSIGNER, Assigner, BucketRooms
from emberlake.write.fitting import slices
from emberlake.write.route import group_rows, partition_codes
from emberlake.write.table_writer import TableWriter

_ROWS: Final = "rows"
_KNOWN: Final = "known"
_SLICE_ROWS: Final = 1_000_000
_SLICE_BYTES: Final = 256 << 20


class PlacingWriter:
    """Writes rows to where their keys are, with deletes where they were.

    Args:
        writer: Writes the files.
        store: The table.
        replaces: What an overwrite replaces; None: the rows are added.
        as_of: The snapshot that the rows were read from, if they come from the table itself.
        assigner: Which of the writers of one commit this is; each has its own keys.
        given: Where the keys are that ``add_live`` brings; None: the writer reads them by itself.
        name: What several writers have in common that share the keys of one commit.
    """

    def __init__(
        self,
        writer: TableWriter,
        store: TableStore,
        *,
        replaces: Replacement | None = None,
        as_of: Snapshot | None = None,
        assigner: Assigner = SINGLE_ASSIGNER,
        given: LiveKeys | None = None,
        name: str | None = None,
    ) -> None:
        self._writer = writer
        self._store = store
        self._replaces = replaces
        self._as_of = as_of
        self._assigner = assigner
        self._given = given
        self._name = name or store.env.new_id()
        self._fields = [store.schema.field_by_name[name] for name in store.schema.primary_keys]
        self._parts = HashParts(store.options.value(WRITE_BUFFER_SIZE) // 2)
        self._filter: HashFilter | None = None
        self._spans: dict[str, KeySpan] | None = None
        self._places = _Places(store)
        self._rooms: dict[bytes, BucketRooms] = {}
        self._handed_over = HandedOver(store)
        self._closed_because: str | None = None

    # --- rows arrive ------------------------------------------------------------------------------

    @property
    def write_columns(self) -> tuple[str, ...] | None:
        return self._writer.write_columns

    @property
    def has_rows(self) -> bool:
        return self._spans is not None or self._writer.has_rows

    def set_write_columns(self, columns: Iterable[str]) -> None:
        self._writer.set_write_columns(columns)

    def write(self, data: object, row_kind: str | None = None) -> None:
        """Take rows; they are written once all of them are there.

        Raises:
            InvalidInput: unknown row kinds, or kinds from several places.
            DataMismatch: lists every column that does not fit. None of the data was written; in
                the middle of a stream, the writer is closed and everything is undone.
        """
        self._check_open()
        has_begun = False
        try:
            for rows in self._fitting(data, row_kind):
                partitions, codes = partition_codes(rows, self._store.schema.partition_fields)
                self._writer.check_partitions(partitions)
                if not rows.num_rows:
                    continue
                numbers = self._places.partition_numbers(partitions)[codes]
                has_begun = True
                self._add(rows.append_column(PLACE, pa.array(numbers)))
        except BaseException as error:
            if has_begun:  # without some of its rows the data must not be committed
                self._fail(error)
            raise

    def _fitting(self, data: object, row_kind: str | None) -> Iterator[pa.Table]:
        for table in as_tables(data):
            yield from slices(self._writer.fit(table, row_kind))

    def _add(self, rows: pa.Table) -> None:
        hashes = self._hashes(rows)
        if self._given is None:
            self._filter = self._filter or HashFilter()
            self._filter.add(hashes)
        self._spans = joined_spans(self._spans, spans_of(self._store.schema, rows))
        self._parts.add(_ROWS, rows, hashes)

    def add_live(self, keys: pa.Table) -> None:
        """Take keys of the table, with their ``PLACE`` among those that were given."""
        self._check_open()
        assert self._given is not None
        numbers = self._places.numbers(self._given.places)[keys.column(PLACE).to_numpy()]
        self._add_known(keys, numbers)

    def _add_known(self, keys: pa.Table, numbers: Numbers) -> None:
        names = [f.name for f in self._fields]
        hashes = self._hashes(keys)
        keys = keys.select(names).append_column(PLACE, pa.array(numbers, pa.int32()))
        if self._filter is not None:
            some = np.flatnonzero(self._filter.may_have(hashes))
            keys, hashes = keys.take(pa.array(some)), hashes[some]
        self._parts.add(_KNOWN, keys, hashes)

    def _hashes(self, rows: pa.Table) -> Hashes:
        types = [f.type for f in self._fields]
        return hash_rows(types, [rows.column(f.name) for f in self._fields])

    # --- rows are written -------------------------------------------------------------------------

    def prepare(self) -> list[CommitMessage]:
        """Find the places of all rows, write them, and hand over the files."""
        self._check_open()
        try:
            if self._spans is not None:
                self._settle(self._spans)
            made = self._writer.prepare()
        except BaseException as error:
            self._fail(error)
            raise
        known = self._handed_over.names
        messages = [replace(m, placed_by=self._name, counts_on=known) for m in made]
        self._handed_over.add(messages)
        return messages

    def _settle(self, spans: Mapping[str, KeySpan]) -> None:
        snapshot = self._as_of
        if snapshot is None and self._given is None:
            snapshot = self._store.snapshots.latest()
        self._handed_over.forget_committed(snapshot)
        self._writer.look_at(snapshot)
        if self._given is None:
            self._read_known(snapshot, spans)
        overwrite = _Overwrite(self._store, self._replaces)
        for part in self._parts.take():
            if _ROWS in part:
                self._place(part[_ROWS], part.get(_KNOWN), overwrite)
        overwrite.check()
        self._parts.close()
        self._filter = self._spans = None

    def _read_known(self, snapshot: Snapshot | None, spans: Mapping[str, KeySpan]) -> None:
        """Read where the keys are."""
        wanted = keys_between(self._store.schema, spans)
        live = LiveKeys.plan(self._store, snapshot, wanted, kept_partitions(self._replaces))
        numbers = self._places.numbers(live.places)
        for keys in live.tables():
            self._add_known(keys, numbers[keys.column(PLACE).to_numpy()])
        for place, keys in self._handed_over.known():
            number = NOWHERE if place is None else int(self._places.numbers([place])[0])
            self._add_known(keys, np.full(keys.num_rows, number, np.int32))

    def _place(self, rows: pa.Table, known: pa.Table | None, overwrite: "_Overwrite") -> None:
        records = Records(
            rows,
            rows.column(KIND).to_numpy(),
            rows.column(PLACE).to_numpy(),
        )
        if known is None:
            known = rows.select([*(f.name for f in self._fields), PLACE]).slice(0, 0)
        places = known.column(PLACE).to_numpy()
        where = Known(known, places, self._places.partitions_of(places))
        engine = self._store.schema.profile.merge_engine
        if self._replaces is not None:  # rows that stay do not attract others, they contradict them
            found = decide(engine, self._fields, records, where).found
            overwrite.found(known, self._fields, where.partitions, found, self._places)
            where = Known(known.slice(0, 0), places[:0], where.partitions[:0])
        decided = decide(engine, self._fields, records, where)
        adds = decided.partitions
        overwrite.touched.update(self._places.partition(n) for n in np.unique(adds).tolist())
        self._write(rows, decided, self._with_buckets(decided))

    def _with_buckets(self, decided: Decided) -> Numbers:
        """The place of every record; keys that are new to a partition get one with room."""
        places = decided.places.copy()
        new = np.flatnonzero(places == NOWHERE)
        partitions = decided.partitions[new]
        for number in np.unique(partitions).tolist():
            own = new[partitions == number]
            distinct, inverse = _distinct(decided.keys[own])
            partition = self._places.partition(number)
            buckets = self._room(partition).assign(len(distinct))
            numbers = self._places.numbers_in(partition, buckets)
            places[own] = numbers[inverse]
        return places

    def _room(self, partition: bytes) -> BucketRooms:
        if partition not in self._rooms:
            states = self._writer.bucket_states(partition)
            self._rooms[partition] = BucketRooms(
                {bucket: states[bucket].record_count for bucket in sorted(states)},
                self._store.options.value(DYNAMIC_BUCKET_ROWS),
                self._store.options.value(DYNAMIC_BUCKET_MAX),
                self._assigner,
            )
        return self._rooms[partition]

    def _write(self, rows: pa.Table, decided: Decided, places: Numbers) -> None:
        given = rows.column(PLACE).to_numpy()
        rows = rows.drop_columns([PLACE])
        step = max(1, min(_SLICE_ROWS, _SLICE_BYTES * rows.num_rows // max(1, rows.nbytes)))
        for start in range(0, len(decided.rows), step):
            part = slice(start, start + step)
            chosen = decided.rows[part]
            some = take_rows(rows, chosen)
            kinds = pa.array(decided.kinds[part], pa.int8())
            some = some.set_column(some.column_names.index(KIND), KIND, kinds)
            if (given[chosen] != decided.partitions[part]).any():
                some = self._in_partitions(some, decided.partitions[part])
            self._writer.write_groups(some, list(group_rows(self._places.known, places[part])))

    def _in_partitions(self, rows: pa.Table, partitions: Numbers) -> pa.Table:
        """The rows with the values of these partitions."""
        for column, values in zip(
            self._store.schema.partition_fields, self._places.partition_values(), strict=True
        ):
            array = to_arrow_array(column.type, values).take(pa.array(partitions))
            index = rows.column_names.index(column.name)
            rows = rows.set_column(index, rows.schema.field(index), array)
        return rows

    # --- the end ----------------------------------------------------------------------------------

    def abort(self) -> None:
        """Delete every file that was not handed over, and close the writer."""
        self._closed_because = self._closed_because or "it was closed or aborted"
        self._spans = None
        self._parts.close()
        self._writer.abort()

    def close(self) -> None:
        """Release everything; files that were not handed over are deleted."""
        if self._closed_because is None:
            self.abort()

    def _fail(self, error: BaseException) -> None:
        self._closed_because = f"a write failed ({error})"
        with suppress(StorageError):  # the caller must see why the write failed
            self.abort()

    def _check_open(self) -> None:
        if self._closed_because is not None:
            raise InvalidState(
                f"this writer is closed because {self._closed_because}; "
                "open a new one with new_write()"
            )


def _distinct(keys: I64) -> tuple[I64, I64]:
    """The distinct numbers, and where each is among them."""
    if (keys[1:] > keys[:-1]).all():
        return keys, np.arange(len(keys))
    distinct, inverse = np.unique(keys, return_inverse=True)
    return distinct, inverse.reshape(-1)


class _Places:
    """Numbers for partitions, and for places in them."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self.known: list[BucketKey] = []
        self._numbers: dict[BucketKey, int] = {}
        self._partitions: list[bytes] = []
        self._partition_numbers: dict[bytes, int] = {}
        self._partition_of: list[int] = []  # of each place

    def partition_numbers(self, partitions: Iterable[bytes]) -> Numbers:
        """The numbers of partitions."""
        return np.array([self._partition_number(p) for p in partitions], np.int32)

    def partition(self, number: int) -> bytes:
        return self._partitions[number]

    def numbers(self, places: Iterable[BucketKey]) -> Numbers:
        """The numbers of places."""
        return np.array([self._number(place) for place in places], np.int32)

    def numbers_in(self, partition: bytes, buckets: npt.NDArray[np.int32]) -> Numbers:
        """The numbers of buckets of a partition."""
        distinct, inverse = np.unique(buckets, return_inverse=True)
        numbers = self.numbers((partition, bucket) for bucket in distinct.tolist())
        return numbers[inverse.reshape(-1)]

    def partitions_of(self, places: Numbers) -> Numbers:
        """The number of the partition of each place; ``NOWHERE`` stays."""
        found = np.array([*self._partition_of, NOWHERE], np.int32)
        return found[places]

    def partition_values(self) -> Iterator[list[Value]]:
        """For each partition column its values, by the number of the partition."""
        rows = [self._store.partition_values(partition) for partition in self._partitions]
        return (list(column) for column in zip(*rows, strict=True))

    def _number(self, place: BucketKey) -> int:
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self.known)
            self.known.append(place)
            self._partition_of.append(self._partition_number(place[0]))
        return number

    def _partition_number(self, partition: bytes) -> int:
        number = self._partition_numbers.setdefault(partition, len(self._partitions))
        if number == len(self._partitions):
            self._partitions.append(partition)
        return number


def kept_partitions(replaces: Replacement | None) -> Callable[[bytes], bool] | None:
    """Tells which partitions are not certainly replaced; None: all."""
    if replaces is None or replaces.only_touched:
        return None
    match = replaces.match
    return lambda partition: not match(partition)


@dataclass
class _Overwrite:
    """Finds keys of an overwrite that are also in partitions that it keeps.

    A row of such a key would be in the table twice, and to move it would change a partition that
    the overwrite is to leave alone.
    """

    store: TableStore
    replaces: Replacement | None
    touched: set[bytes] = field(default_factory=set)
    _keys: dict[bytes, str] = field(default_factory=dict)  # one for each partition with some

    def found(
        self,
        known: pa.Table,
        fields: Sequence[DataField],
        partitions: Numbers,
        found: I64,
        places: _Places,
    ) -> None:
        """Rows with keys of the new data are in these partitions."""
        distinct, first = np.unique(partitions[found], return_index=True)
        for number, at in zip(distinct.tolist(), first.tolist(), strict=True):
            values = key_at(known, fields, int(found[at]))
            pairs = zip((f.name for f in fields), values, strict=True)
            text = ", ".join(f"{name} = {value!r}" for name, value in pairs)
            self._keys.setdefault(places.partition(number), text)

    def check(self) -> None:
        """Refuse the overwrite if a partition that stays has one of its keys.

        Raises:
            DataMismatch: names a key and its partition.
        """
        is_dynamic = self.replaces is not None and self.replaces.only_touched
        for partition, key in self._keys.items():
            if not (is_dynamic and partition in self.touched):
                where = dict(self.store.partition_spec(partition))
                raise DataMismatch(
                    f"the row with {key} is in partition {where}"
                    ", which this overwrite keeps, so the key would be in the table twice. "
                    "Overwrite both partitions, or delete the row first, or append: that moves it"
                )
