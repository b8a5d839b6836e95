"""What filters on row ids mean for files, and which changes give no whole rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from emberlake.errors import Unsupported
from emberlake.predicates import Leaf, Op, Predicate, split_conjuncts
from emberlake.scan.splits import DataSplit
from emberlake.spec.row_tracking import ROW_ID_FIELD
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


def narrow_to_ids(splits: Sequence[DataSplit], predicate: Predicate | None) -> list[DataSplit]:
    """The same splits; files of which a filter on row ids excludes the ends are not read whole."""
    bounds = id_bounds(predicate)
    return list(splits) if bounds is None else [_narrowed(split, *bounds) for split in splits]


def id_bounds(predicate: Predicate | None) -> tuple[int, int] | None:
    """The least and the greatest row id that can match; None if the filter does not say."""
    low, high = _LEAST, _MOST
    for least, most in _bounds(predicate):
        low, high = max(low, least), min(high, most)
    return None if (low, high) == (_LEAST, _MOST) else (low, high)


def _bounds(predicate: Predicate | None) -> Iterator[tuple[int, int]]:
    for part in split_conjuncts(predicate):
        if not (isinstance(part, Leaf) and part.column.id == ROW_ID_FIELD.id):
            continue
        numbers = [value for value in part.literals if isinstance(value, int)]
        match part.op, numbers:
            case Op.EQUAL | Op.IN, [_, *_]:
                yield min(numbers), max(numbers)
            case Op.BETWEEN, [low, high]:
                yield low, high
            case Op.GREATER_THAN | Op.GREATER_OR_EQUAL, [low]:
                yield low, _MOST
            case Op.LESS_THAN | Op.LESS_OR_EQUAL, [high]:
                yield _LEAST, high
            case _:
                pass


def _narrowed(split: DataSplit, low: int, high: int) -> DataSplit:
    """Only positions between the bounds are read; files that store ids are read whole."""
    first_ids = dict(zip(split.names, split.entries.first_row_id.to_pylist(), strict=True))
    ranges = dict(split.ranges)
    for (name, *_), count in split.units:
        first = first_ids[name]
        if first is None:
            continue
        start, stop = max(0, low - first), min(count, high - first + 1)
        if start < stop and (start, stop) != (0, count):
            ranges[name] = start, stop
    return replace(split, ranges=ranges)


def refuse_partial_rows(store: TableStore, added: ManifestEntries, before: Snapshot | None) -> None:
    """Refuse changes that only rewrote some columns of rows that were there before.

    Their files have no values for the other columns, so a read of the changes would return rows
    that never were.

    Args:
        store: The table.
        added: The files that were added.
        before: The last snapshot before the changes; None: there is none.

    Raises:
        Unsupported: columns of earlier rows were rewritten.
    """
    if not (store.schema.profile.evolves_data and before is not None):
        return
    first = added.first_row_id.fill_null(_MOST).to_numpy()
    older = np.flatnonzero(first < (before.next_row_id or 0))
    if len(older):
        name = added.file_name[int(older[0])].as_py()
        raise Unsupported(
            f"{name} rewrites columns of rows that were in the table before: the changes since "
            f"snapshot {before.id} cannot be read as rows. Read the two states and compare them by "
            "_ROW_ID and _SEQUENCE_NUMBER"
        )
