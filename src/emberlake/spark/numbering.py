"""Columns of a table on their way through Spark: numbered, if their values survive it."""

from collections.abc import Sequence
from typing import Final

from emberlake.base.names import listed
from emberlake.errors import Unsupported
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)

_MICROSECONDS: Final = 6  # the precision of Spark's timestamps


def check_exact(fields: Sequence[DataField]) -> None:
    """Refuse columns whose values would not survive the trip through Spark.

    Raises:
        Unsupported: names them.
    """
    lossy = [f.name for f in fields if not _is_exact(f.type)]
    if lossy:
        raise Unsupported(
            f"{listed(lossy)}: Spark counts microseconds, so digits of these timestamps would be "
            "lost. Use delete, update or merge of the table itself, without Spark"
        )


def _is_exact(data_type: DataType) -> bool:
    match data_type:
        case AtomicType():
            return not data_type.root.is_timestamp or data_type.precision <= _MICROSECONDS
        case ArrayType(element=element) | MultisetType(element=element):
            return _is_exact(element)
        case MapType(key=key, value=value):
            return _is_exact(key) and _is_exact(value)
        case RowType(fields=fields):
            return all(_is_exact(f.type) for f in fields)
        case _:
            return True


def numbered(fields: Sequence[DataField], prefix: str) -> tuple[DataField, ...]:
    """The columns, numbered: Spark treats names that differ only in case as one."""
    return tuple(
        DataField(number, f"{prefix}{number}", f.type.with_nullable(True))
        for number, f in enumerate(fields)
    )
