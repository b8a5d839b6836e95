"""The columns that data files of primary-key tables have in addition to those of the table.

Spec: "Physical columns and order". A record is a row of the table with a number that orders it
among the records of its key, and the kind of change that it makes.
"""

from dataclasses import replace
from enum import IntEnum
from typing import Final

from emberlake.errors import InvalidInput
from emberlake.options import THIN_MODE
from emberlake.spec.schema import TableSchema
from emberlake.spec.system_columns import SYSTEM_FIELD_ID_START
from emberlake.types import AtomicType, DataField

SEQUENCE: Final = "_SEQUENCE_NUMBER"
KIND: Final = "_VALUE_KIND"
LEVEL: Final = "_LEVEL"  # of the file of a record; in no file
KEY_PREFIX: Final = "_KEY_"

SEQUENCE_FIELD: Final = DataField(2_147_483_646, SEQUENCE, AtomicType("BIGINT", nullable=False))
KIND_FIELD: Final = DataField(2_147_483_645, KIND, AtomicType("TINYINT", nullable=False))
LEVEL_FIELD: Final = DataField(2_147_483_644, LEVEL, AtomicType("INT", nullable=False))

_SYMBOLS: Final = ("+I", "-U", "+U", "-D")


class RowKind(IntEnum):
    """What a record does to its key. Stored in data files; never renumber."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def symbol(self) -> str:
        """The kind as people write it: ``+I``, ``-U``, ``+U``, ``-D``."""
        return _SYMBOLS[self]

    @property
    def is_retract(self) -> bool:
        """Whether the record retracts a row rather than adding one."""
        return self in (RowKind.UPDATE_BEFORE, RowKind.DELETE)

    def is_add(self) -> bool:
        """Whether the record adds a row."""
        return not self.is_retract

    def to_string(self) -> str:
        """The symbol, as in pypaimon."""
        return self.symbol

    @classmethod
    def from_string(cls, kind_str: str) -> "RowKind":
        """The same as ``parse``, as in pypaimon."""
        return cls.parse(kind_str)

    @classmethod
    def parse(cls, symbol: str) -> "RowKind":
        """The kind of a symbol.

        Raises:
            InvalidInput: it is not one of ``+I``, ``-U``, ``+U``, ``-D``.
        """
        if symbol not in _SYMBOLS:
            raise InvalidInput(f"row kind {symbol!r}: expected one of {', '.join(_SYMBOLS)}")
        return cls(_SYMBOLS.index(symbol))


def key_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """The columns that identify a row inside its partition, in the order of the primary key."""
    return tuple(schema.field_by_name[name] for name in schema.trimmed_primary_keys)


def key_value_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """The columns of a data file, in order; keys are not repeated in thin mode."""
    keys = () if schema.options.value(THIN_MODE) else key_fields(schema)
    copies = tuple(
        replace(f, id=f.id + SYSTEM_FIELD_ID_START, name=f"{KEY_PREFIX}{f.name}") for f in keys
    )
    return (*copies, SEQUENCE_FIELD, KIND_FIELD, *schema.fields)
