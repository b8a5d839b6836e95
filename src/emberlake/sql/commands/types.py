"""Column types as Spark's SQL writes them, both ways."""

import re
from typing import Final

from emberlake.errors import InvalidSchema, Unsupported
from emberlake.sql.commands.words import read_integer
from emberlake.sql.cursor import Cursor
from emberlake.sql.names import quoted
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)
from emberlake.types.data_types import MAX_LENGTH

_NAMES: Final = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "BYTE": "TINYINT",
    "SMALLINT": "SMALLINT",
    "SHORT": "SMALLINT",
    "INT": "INT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "LONG": "BIGINT",
    "FLOAT": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "STRING": "STRING",
    "BINARY": "BYTES",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP_LTZ(6)",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ(6)",
    "TIMESTAMP_NTZ": "TIMESTAMP(6)",
}
_LIMITED: Final = {"CHAR": "CHAR", "CHARACTER": "CHAR", "VARCHAR": "VARCHAR"}
_DECIMALS: Final = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_WORD: Final = re.compile(r"(?=.*[A-Za-z_])\w+", re.ASCII)
_NOT_YET: Final = frozenset({"VARIANT", "GEOMETRY", "GEOGRAPHY"})


# --- from text ------------------------------------------------------------------------------------


def read_type(cursor: Cursor) -> DataType:
    """The type that comes next, nullable.

    Raises:
        InvalidSchema: there is no such type.
        Unsupported: the type exists, but emberlake has no columns of it.
    """
    word = cursor.name().upper()
    match word:
        case "ARRAY":
            cursor.expect("<")
            element = read_type(cursor)
            cursor.expect(">")
            return ArrayType(True, element)
        case "MAP":
            cursor.expect("<")
            key = read_type(cursor)
            cursor.expect(",")
            value = read_type(cursor)
            cursor.expect(">")
            return MapType(True, key.with_nullable(False), value)
        case "STRUCT":
            return _read_struct(cursor)
        case _:
            return _read_atomic(cursor, word)


def _read_atomic(cursor: Cursor, word: str) -> DataType:
    if word in _DECIMALS:
        numbers = _parameters(cursor) or [10, 0]
        precision, scale = (*numbers, 0)[:2]
        return AtomicType(f"DECIMAL({precision}, {scale})")
    if word in _LIMITED:
        (length,) = _parameters(cursor) or cursor.fail("expected a length: CHAR(n), VARCHAR(n)")
        return AtomicType(f"{_LIMITED[word]}({length})")
    if word == "TIME":
        (precision,) = _parameters(cursor) or [6]
        return AtomicType(f"TIME({precision})")
    if word in _NOT_YET:
        raise Unsupported(f"columns of type {word} cannot be written yet")
    if word not in _NAMES:
        raise InvalidSchema(f"[UNSUPPORTED_DATATYPE] there is no column type {word}")
    return AtomicType(_NAMES[word])


def _parameters(cursor: Cursor) -> list[int]:
    if not cursor.is_at("("):
        return []
    return list(cursor.in_parentheses(lambda: read_integer(cursor)))


def _read_struct(cursor: Cursor) -> RowType:
    cursor.expect("<")
    fields = []
    while True:
        name = cursor.name()
        cursor.take(":")
        data_type = read_type(cursor)
        if cursor.take("NOT", "NULL"):
            data_type = data_type.with_nullable(False)
        comment = cursor.string() if cursor.take("COMMENT") else None
        fields.append(DataField(0, name, data_type, comment))
        if not cursor.take(","):
            break
    cursor.expect(">")
    return RowType(True, tuple(fields))


# --- to text --------------------------------------------------------------------------------------


def spark_type(data_type: DataType) -> str:
    """A type as DESCRIBE shows it: ``struct<x:int>``."""
    match data_type:
        case AtomicType():
            return _atomic_text(data_type)
        case ArrayType(element=element):
            return f"array<{spark_type(element)}>"
        case MapType(key=key, value=value):
            return f"map<{spark_type(key)},{spark_type(value)}>"
        case MultisetType(element=element):
            return f"map<{spark_type(element)},int>"
        case RowType(fields=fields):
            return f"struct<{','.join(f'{f.name}:{spark_type(f.type)}' for f in fields)}>"
        case _:
            return str(data_type).lower()


def spark_declaration(data_type: DataType) -> str:
    """A type as CREATE TABLE takes it: ``STRUCT<x: INT>``."""
    match data_type:
        case ArrayType(element=element):
            return f"ARRAY<{spark_declaration(element)}>"
        case MapType(key=key, value=value):
            return f"MAP<{spark_declaration(key)}, {spark_declaration(value)}>"
        case RowType(fields=fields):
            return f"STRUCT<{', '.join(map(_field_declaration, fields))}>"
        case _:
            return spark_type(data_type).upper()


def _field_declaration(field: DataField) -> str:
    text = f"{quoted_if_needed(field.name)}: {spark_declaration(field.type)}"
    if not field.type.nullable:
        text += " NOT NULL"
    if field.description is not None:
        text += f" COMMENT {text_literal(field.description)}"
    return text


def quoted_if_needed(name: str) -> str:
    """A name as Spark shows it: in quotes only if it is not a plain word."""
    return name if _WORD.fullmatch(name) else quoted(name)


def text_literal(value: str) -> str:
    """A text as Spark shows it in declarations."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _atomic_text(data_type: AtomicType) -> str:
    match data_type.root:
        case TypeRoot.DECIMAL:
            return f"decimal({data_type.precision},{data_type.scale})"
        case TypeRoot.VARCHAR if data_type.length == MAX_LENGTH:
            return "string"
        case TypeRoot.CHAR | TypeRoot.VARCHAR:
            return f"{data_type.root.value.lower()}({data_type.length})"
        case TypeRoot.BINARY | TypeRoot.VARBINARY:
            return "binary"
        case TypeRoot.TIMESTAMP:
            return "timestamp_ntz"
        case TypeRoot.TIMESTAMP_LTZ:
            return "timestamp"
        case TypeRoot.TIME:
            return f"time({min(data_type.precision, 6)})"
        case root:
            return root.value.lower()
