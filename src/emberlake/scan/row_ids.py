"""What filters on row ids mean for files, and which changes give no whole rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from emberlake.errors import Unsupported
from emberlake.predicates import Leaf, Op, Predicate, split_conjuncts
from emberlake.scan.splits import DataSplit
from emberlake.spec.column_buffers import I64
from emberlake.spec.row_tracking import ROW_ID_FIELD
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class IdChoice:
    """The row ids that can match a filter: a range, and inside it all ids or only some."""

    least: int = _LEAST
    most: int = _MOST
    ids: I64 | None = None  # ascending; None: all of the range

    def within(self, first: int, count: int) -> tuple[int, int]:
        """The range of positions that can match, of rows that are numbered from an id on."""
        low, high = max(self.least, first), min(self.most, first + count - 1)
        if self.ids is not None:
            place, end = np.searchsorted(self.ids, [low, high + 1]).tolist()
            if place >= end:
                return 0, 0
            low, high = int(self.ids[place]), int(self.ids[end - 1])
        return low - first, high - first + 1


def narrow_to_ids(splits: Sequence[DataSplit], predicate: Predicate | None) -> list[DataSplit]:
    """The same splits; files of which a filter on row ids excludes the ends are not read whole."""
    choice = chosen_ids(predicate)
    return list(splits) if choice is None else [_narrowed(split, choice) for split in splits]


def chosen_ids(predicate: Predicate | None) -> IdChoice | None:
    """The row ids that can match; None if the filter does not say."""
    choices = [
        choice
        for part in split_conjuncts(predicate)
        if isinstance(part, Leaf) and part.column.id == ROW_ID_FIELD.id
        if (choice := _choice(part)) is not None
    ]
    if not choices:
        return None
    listed = [choice.ids for choice in choices if choice.ids is not None]
    return IdChoice(
        max(choice.least for choice in choices),
        min(choice.most for choice in choices),
        reduce(np.intersect1d, listed) if listed else None,
    )


def _choice(leaf: Leaf) -> IdChoice | None:
    numbers = [value for value in leaf.literals if isinstance(value, int)]
    match leaf.op, numbers:
        case Op.EQUAL | Op.IN, _:
            return IdChoice(ids=np.unique(np.array(numbers, np.int64)))
        case Op.BETWEEN, [low, high]:
            return IdChoice(low, high)
        case Op.GREATER_THAN | Op.GREATER_OR_EQUAL, [low]:
            return IdChoice(least=low)
        case Op.LESS_THAN | Op.LESS_OR_EQUAL, [high]:
            return IdChoice(most=high)
        case _:
            return None


def _narrowed(split: DataSplit, choice: IdChoice) -> DataSplit:
    """Only positions that can match are read; files that store ids are read whole."""
    first_ids = dict(zip(split.names, split.entries.first_row_id.to_pylist(), strict=True))
    ranges = dict(split.ranges)
    for (name, *_), count in split.units:
        first = first_ids[name]
        if first is None:
            continue
        start, stop = choice.within(first, count)
        if start < stop and (start, stop) != (0, count):
            ranges[name] = start, stop
    return replace(split, ranges=ranges)


def refuse_partial_rows(store: TableStore, added: ManifestEntries, before: Snapshot | None) -> None:
    """Refuse changes that only rewrote some columns of rows that were there before.

    Their files have no values for the other columns, so a read of the changes would return rows
    that never existed.

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
