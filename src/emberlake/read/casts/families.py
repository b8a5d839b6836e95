"""Families of types: what one kernel can cast from or to."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, TypeAlias

import pyarrow as pa

from emberlake.types import ArrayType, AtomicType, DataType, MapType, RowType, TypeRoot


class Family(Enum):
    """Types whose values have the same form."""

    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    DECIMAL = auto()
    TEXT = auto()
    BYTES = auto()
    DATE = auto()
    TIME = auto()
    TIMESTAMP = auto()
    ARRAY = auto()
    MAP = auto()
    ROW = auto()
    OTHER = auto()


def family_of(data_type: DataType) -> Family:
    """The family that a type belongs to."""
    match data_type:
        case AtomicType(root=root):
            return _FAMILIES.get(root, Family.OTHER)
        case ArrayType():
            return Family.ARRAY
        case MapType():
            return Family.MAP
        case RowType():
            return Family.ROW
        case _:
            return Family.OTHER


_FAMILIES: Final = {
    TypeRoot.BOOLEAN: Family.BOOLEAN,
    TypeRoot.TINYINT: Family.INTEGER,
    TypeRoot.SMALLINT: Family.INTEGER,
    TypeRoot.INT: Family.INTEGER,
    TypeRoot.BIGINT: Family.INTEGER,
    TypeRoot.FLOAT: Family.FLOAT,
    TypeRoot.DOUBLE: Family.FLOAT,
    TypeRoot.DECIMAL: Family.DECIMAL,
    TypeRoot.CHAR: Family.TEXT,
    TypeRoot.VARCHAR: Family.TEXT,
    TypeRoot.BINARY: Family.BYTES,
    TypeRoot.VARBINARY: Family.BYTES,
    TypeRoot.DATE: Family.DATE,
    TypeRoot.TIME: Family.TIME,
    TypeRoot.TIMESTAMP: Family.TIMESTAMP,
    TypeRoot.TIMESTAMP_LTZ: Family.TIMESTAMP,
}

# Takes the array, its type, and the type to convert it to.
Kernel: TypeAlias = Callable[[pa.Array, DataType, DataType], pa.Array]
KernelTable: TypeAlias = dict[tuple[Family, Family], Kernel]
