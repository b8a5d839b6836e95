"""What becomes of records whose keys are in the table: decided for all records at once.

A key has one place, a partition and bucket. The records of a key are looked at in their order, each
with the place that the key has then:

- ``deduplicate``: a record of another partition moves the row. The row is deleted in its old place,
  and the record goes to its own partition. A record that deletes goes to where the row is, if there
  is one.
- ``partial-update`` and ``aggregation``: the record goes to the place of the row, whatever its
  partition.
- ``first-row``: a record of a key that is there is left out.

Sorting by key brings the records of a key together, so each rule compares a row of an array with
the one before it. No step looks at a single record. Spec: "Modes", key dynamic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.merge.order import order_rows
from emberlake.options import MergeEngine
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind
from emberlake.types import DataField

Numbers: TypeAlias = npt.NDArray[np.int32]

NOWHERE: Final = -1  # the place of a key that has no row, or of a record that needs a bucket
_RETRACTS: Final = (int(RowKind.UPDATE_BEFORE), int(RowKind.DELETE))


@dataclass(frozen=True)
class Records:
    """Records in the order of their arrival.

    Args:
        keys: The key columns.
        kinds: What each record does.
        partitions: The number of the partition that each record says.
    """

    keys: pa.Table
    kinds: npt.NDArray[np.int8]
    partitions: Numbers


@dataclass(frozen=True)
class Known:
    """Keys that are known, from the oldest knowledge to the newest.

    Args:
        keys: The key columns; other keys than those of the records do no harm.
        places: The number of the place of each; ``NOWHERE``: it was deleted.
        partitions: The number of the partition of each.
    """

    keys: pa.Table
    places: Numbers
    partitions: Numbers


@dataclass(frozen=True)
class Decided:
    """The records to write, in order.

    Args:
        rows: The record that each is made from: a position among the records.
        kinds: What it does.
        partitions: The number of the partition that it goes to.
        places: The number of its place; ``NOWHERE``: it is in no bucket yet.
        keys: A number for its key; records of one key have one bucket in a partition.
        found: The known rows whose keys records have: positions in what is known.
    """

    rows: I64
    kinds: npt.NDArray[np.int8]
    partitions: Numbers
    places: Numbers
    keys: I64
    found: I64


def decide(
    engine: MergeEngine, fields: Sequence[DataField], records: Records, known: Known
) -> Decided:
    """Decide what is written, and where.

    Args:
        engine: How the table merges the records of a key.
        fields: The key columns.
        records: What is to be written.
        known: Where keys are.
    """
    new, view = _divided(fields, records, known)
    match engine:
        case MergeEngine.FIRST_ROW:
            decided = _first_rows(view, records)
        case MergeEngine.DEDUPLICATE:
            decided = _moved(view, records)
        case _:
            decided = _merged(view, records)
    return _with_new(decided, records, new, view.key_count)


def _with_new(decided: Decided, records: Records, new: I64, key_count: int) -> Decided:
    """The same, with records whose keys nobody else has: they go where they say."""
    order = np.argsort(np.concatenate([decided.rows, new]), kind="stable")  # two sorted runs
    nowhere = np.full(len(new), NOWHERE, np.int32)
    own_keys = key_count + np.arange(len(new))
    return Decided(
        rows=np.concatenate([decided.rows, new])[order],
        kinds=np.concatenate([decided.kinds, records.kinds[new]])[order],
        partitions=np.concatenate([decided.partitions, records.partitions[new]])[order],
        places=np.concatenate([decided.places, nowhere])[order],
        keys=np.concatenate([decided.keys, own_keys])[order],
        found=decided.found,
    )


@dataclass(frozen=True)
class _View:
    """Known keys and records together, by key; within a key in order, what is known first.

    Args:
        rows: The position of each among the records; negative for what is known.
        known: The position of each in what is known; -1 for records.
        keys: The number of its key.
        starts: Where its key begins.
        places, partitions: As given; ``NOWHERE`` for the places of records.
        retracts: Whether it takes the row away.
    """

    rows: I64
    known: I64
    keys: I64
    starts: I64
    places: Numbers
    partitions: Numbers
    retracts: Mask

    @property
    def is_record(self) -> Mask:
        return self.rows >= 0

    @property
    def key_count(self) -> int:
        return int(self.keys[-1]) + 1 if len(self.keys) else 0


def _divided(fields: Sequence[DataField], records: Records, known: Known) -> tuple[I64, _View]:
    """The records whose keys nobody else has, in order, and a view of all other keys."""
    names = [f.name for f in fields]
    both = pa.concat_tables([known.keys.select(names), records.keys.select(names)])
    count, before = both.num_rows, known.keys.num_rows
    both = both.append_column(SEQUENCE, pa.array(np.arange(count)))
    both = both.append_column(KIND, pa.array(np.zeros(count, np.int8)))
    order = order_rows(both, fields, ())
    is_start = np.zeros(count + 1, bool)
    is_start[order.starts] = True
    is_start[count:] = True
    is_alone = is_start[:-1] & is_start[1:]
    is_new = np.zeros(count, bool)
    is_new[order.rows[is_alone]] = True
    shared = np.flatnonzero(~is_alone)
    rows, starts = order.rows[shared], np.flatnonzero(is_start[:-1][shared])
    keys = np.cumsum(is_start[:-1][shared]) - 1
    kinds = np.concatenate([np.zeros(before, np.int8), records.kinds])
    retracts = np.isin(kinds, _RETRACTS)
    retracts[:before] = known.places == NOWHERE
    places = np.concatenate([known.places, np.full(count - before, NOWHERE, np.int32)])
    partitions = np.concatenate([known.partitions, records.partitions])
    view = _View(
        rows=rows - before,
        known=np.where(rows < before, rows, -1),
        keys=keys,
        starts=starts[keys],
        places=places[rows],
        partitions=partitions[rows],
        retracts=retracts[rows],
    )
    return np.flatnonzero(is_new[before:]), view


def _found(view: _View) -> I64:
    """The known rows whose keys records have."""
    has_records = np.zeros(view.key_count, bool)
    has_records[view.keys[view.is_record]] = True
    is_found = ~view.is_record & has_records[view.keys] & ~view.retracts
    return view.known[is_found]


def _first_rows(view: _View, records: Records) -> Decided:
    """Only the first record of a key that is not there."""
    last = _last_alive(view)
    before = np.concatenate([np.full(1, -1, np.int64), last[:-1]]) if len(last) else last
    chosen = np.flatnonzero(view.is_record & (before < view.starts))
    return _in_order(view, records, chosen, view.partitions[chosen], view.places[chosen])


def _first_of(view: _View, chosen: I64) -> I64:
    """For each of some positions, the first of them that has its key."""
    keys = view.keys[chosen]
    is_first = np.ones(len(chosen), bool)
    is_first[1:] = keys[1:] != keys[:-1]
    firsts: I64 = chosen[is_first][np.cumsum(is_first) - 1]
    return firsts


def _merged(view: _View, records: Records) -> Decided:
    """All records, each in the place that its key had first."""
    chosen = np.flatnonzero(view.is_record)
    last_known = _last_known(view)[chosen]
    is_known = last_known >= 0
    first = _first_of(view, chosen)
    source = np.where(is_known, last_known, first)
    return _in_order(view, records, chosen, view.partitions[source], view.places[source])


def _last_known(view: _View) -> I64:
    """The position of what is known last about the key of each; -1 if it has no row there."""
    position = np.arange(len(view.rows))
    known = np.maximum.accumulate(np.where(view.is_record, -1, position))
    is_there = (known >= view.starts) & ~view.retracts[np.maximum(known, 0)]
    return np.where(is_there, known, -1)


def _last_alive(view: _View) -> I64:
    """The position of the last add of the key up to each; below the start of its key: none."""
    position = np.arange(len(view.rows))
    last: I64 = np.maximum.accumulate(np.where(view.retracts, -1, position))
    return last


def _moved(view: _View, records: Records) -> Decided:
    """All records in their own partition, and a delete where a row was before."""
    count = len(view.rows)
    last = _last_alive(view)
    # A delete of what is not there stays in its partition: others may be writing that key now.
    last = np.where(last >= view.starts, last, np.arange(count))
    written = np.flatnonzero(view.is_record)

    # A row leaves if the next one of its key is an add of another partition. If a key is known
    # twice, which other engines may have caused, only the last place counts.
    follows = np.zeros(count, bool)
    follows[:-1] = view.keys[1:] == view.keys[:-1]
    next_partition = np.append(view.partitions[1:], NOWHERE)
    next_adds = np.append(~view.retracts[1:], False)
    next_place = np.append(view.places[1:], NOWHERE)
    is_elsewhere = (next_place != NOWHERE) & (view.places != NOWHERE) & (view.places != next_place)
    leaves = follows & ~view.retracts & next_adds
    leaves &= (view.partitions != next_partition) | is_elsewhere
    # The delete is made from the next record of the key, and is written right before it.
    causes = _next_record(view)
    left = np.flatnonzero(leaves & (causes >= 0))

    chosen = np.concatenate([causes[left], written])
    sources = np.concatenate([left, last[written]])
    kinds = np.concatenate(
        [np.full(len(left), RowKind.DELETE, np.int8), records.kinds[view.rows[written]]]
    )
    places = _places_of(view, sources)
    return _in_order(view, records, chosen, view.partitions[sources], places, kinds)


def _next_record(view: _View) -> I64:
    """The position of the next record of the same key after each; -1 if there is none."""
    count = len(view.rows)
    if not count:
        return np.zeros(0, np.int64)
    position = np.where(view.is_record, np.arange(count), count)
    after = np.minimum.accumulate(position[::-1])[::-1]
    following = np.append(after[1:], count)
    is_same = following < count
    is_same &= view.keys[np.minimum(following, count - 1)] == view.keys
    return np.where(is_same, following, -1)


def _places_of(view: _View, sources: I64) -> Numbers:
    """The known place of the key in the partition of each source, if there is one.

    A row that comes back to a partition goes to the bucket where it was.
    """
    known = np.flatnonzero(~view.is_record & (view.places != NOWHERE))
    places = view.places[sources]
    if not len(known):
        return places
    wanted = _pairs(view, sources)
    pairs = _pairs(view, known)
    order = np.argsort(pairs, kind="stable")
    at = np.searchsorted(pairs[order], wanted, side="right") - 1  # the newest of equal ones
    hit = (at >= 0) & (pairs[order[np.maximum(at, 0)]] == wanted) & (places == NOWHERE)
    return np.where(hit, view.places[known[order[np.maximum(at, 0)]]], places).astype(np.int32)


def _pairs(view: _View, positions: I64) -> I64:
    """A number for the key and partition of each."""
    most = np.int64(view.partitions.max(initial=0)) + 1
    pairs: I64 = view.keys[positions] * most + view.partitions[positions]
    return pairs


def _in_order(
    view: _View,
    records: Records,
    chosen: I64,
    partitions: Numbers,
    places: Numbers,
    kinds: npt.NDArray[np.int8] | None = None,
) -> Decided:
    """Put what is written in the order of arrival; what comes first stays before its equals."""
    rows = view.rows[chosen]
    if kinds is None:
        kinds = records.kinds[rows]
    order = np.argsort(rows, kind="stable")
    return Decided(
        rows=rows[order],
        kinds=kinds[order],
        partitions=partitions[order],
        places=places[order],
        keys=view.keys[chosen][order],
        found=_found(view),
    )
