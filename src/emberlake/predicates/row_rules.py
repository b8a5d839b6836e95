"""Rules about what a reader may see: which rows, and what stands for the values of some columns.

The order is part of the rules. Rows are chosen by the values that are stored, then values are
masked, and only then does a condition of the reader see them: otherwise it could find out what a
mask hides, from the rows that it keeps, from the files that it skips, or from how it fails.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from emberlake.predicates.expressions import (
    Predicate,
    and_all,
    columns_of,
    computed_of,
    split_conjuncts,
)
from emberlake.types import DataField


class MaskValue(Protocol):
    """What stands for a value; it pickles."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose stored values it is made of."""

    def values(self, rows: pa.Table) -> pa.ChunkedArray:
        """A value for every row."""


@dataclass(frozen=True)
class Mask:
    """A column, and what is shown instead of its values."""

    field: DataField
    value: MaskValue


@dataclass(frozen=True)
class RowRules:
    """The rules for one reader; without any, everything is shown.

    Args:
        filter: The rows that are shown, by their stored values.
        masks: The columns whose values are not.
    """

    filter: Predicate | None = None
    masks: tuple[Mask, ...] = ()

    @property
    def hides(self) -> bool:
        """Whether there is anything that the reader does not see."""
        return self.filter is not None or bool(self.masks)

    def on_stored(self, predicate: Predicate | None) -> Predicate | None:
        """What stored rows must match; files that cannot match it may be skipped."""
        if not self.hides:
            return predicate
        parts = split_conjuncts(predicate)
        return and_all([self.filter, *(part for part in parts if not self._waits(part))])

    def on_shown(self, predicate: Predicate | None) -> Predicate | None:
        """The rest of a condition: what rows must match as they are shown."""
        if not self.hides:
            return None
        return and_all(part for part in split_conjuncts(predicate) if self._waits(part))

    def _waits(self, part: Predicate) -> bool:
        # A computation may fail, and so tell of rows that are hidden.
        masked = {mask.field.name for mask in self.masks}
        return bool(computed_of(part)) or not masked.isdisjoint(columns_of(part))


ALL_SHOWN: Final = RowRules()
