"""A row for programs that write rows one at a time."""

from collections.abc import Sequence
from typing import Any, Protocol

from emberlake.spec.key_value import RowKind
from emberlake.types import DataField


class _HasValue(Protocol):
    value: int


class GenericRow:
    """One row with its columns and its row kind."""

    __slots__ = ("fields", "row_kind", "values")

    def __init__(
        self,
        values: Sequence[Any],
        fields: Sequence[DataField],
        row_kind: int | _HasValue = RowKind.INSERT,
    ) -> None:
        self.values = values
        self.fields = fields
        self.row_kind = RowKind(row_kind if isinstance(row_kind, int) else row_kind.value)

    def get_field(self, pos: int) -> Any:
        """The value of a column by its position."""
        return self.values[pos]

    def get_row_kind(self) -> RowKind:
        """The kind of change that the row makes."""
        return self.row_kind

    def to_dict(self) -> dict[str, Any]:
        """The values by column name."""
        return {f.name: value for f, value in zip(self.fields, self.values, strict=True)}

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GenericRow):
            return NotImplemented
        return (self.to_dict(), self.row_kind) == (other.to_dict(), other.row_kind)

    __hash__ = None  # type: ignore[assignment]  # values may be lists

    def __repr__(self) -> str:
        return f"GenericRow({self.to_dict()!r}, {self.row_kind.symbol})"
