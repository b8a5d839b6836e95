"""Clauses that several statements share: columns, properties, partitions."""

from emberlake.errors import InvalidSql, Unsupported
from emberlake.sql.commands.types import read_type
from emberlake.sql.commands.values import Column, Literal, PartitionSpec, Path, Properties
from emberlake.sql.commands.words import is_text, read_number, take_one_of
from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import text_value

_AFTER_DEFAULT = (",", ")", "COMMENT", "NOT", "FIRST", "AFTER", "GENERATED")


def accept_if_exists(cursor: Cursor) -> bool:
    """Move over IF EXISTS, if it comes next."""
    return cursor.take("IF", "EXISTS")


def accept_if_not_exists(cursor: Cursor) -> bool:
    """Move over IF NOT EXISTS, if it comes next."""
    return cursor.take("IF", "NOT", "EXISTS")


def refuse_purge(cursor: Cursor) -> None:
    """Refuse PURGE, as Paimon's connector: there is no trash that it could pass by."""
    if cursor.is_at("PURGE"):
        raise Unsupported("PURGE is not supported; leave it out, nothing is kept in a trash")


def read_columns(cursor: Cursor) -> tuple[Column, ...]:
    """Columns in parentheses: (id INT NOT NULL COMMENT 'the id', ...)."""
    return cursor.in_parentheses(lambda: read_column(cursor))


def read_column(cursor: Cursor) -> Column:
    """A column: its name and type, then its other clauses in any order."""
    if cursor.is_at("CONSTRAINT") or cursor.is_at("PRIMARY", "KEY"):
        raise Unsupported(
            "constraints are not supported; give the key as a property: "
            "TBLPROPERTIES ('primary-key' = 'id')"
        )
    path = cursor.path()
    data_type = read_type(cursor)
    comment = default = after = None
    is_first = False
    while True:
        if cursor.take("NOT", "NULL"):
            data_type = data_type.with_nullable(False)
        elif cursor.take("COMMENT"):
            comment = cursor.string()
        elif cursor.take("DEFAULT"):
            default = cursor.expression(*_AFTER_DEFAULT)
        elif cursor.take("FIRST"):
            is_first = True
        elif cursor.take("AFTER"):
            after = cursor.name()
        elif cursor.is_at("GENERATED"):
            raise Unsupported(f"column {'.'.join(path)}: generated columns are not supported")
        else:
            return Column(path, data_type, comment, default, is_first, after)


def read_properties(cursor: Cursor) -> Properties:
    """Properties in parentheses: ('a' = 'b', c.d = 1)."""
    found = cursor.in_parentheses(lambda: _property(cursor))
    keys = [key for key, _ in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InvalidSql(f"[DUPLICATE_KEY] the property {twice} is given twice")
    return found


def _property(cursor: Cursor) -> tuple[str, str]:
    key = read_key(cursor)
    cursor.take("=")
    return key, _property_value(cursor)


def read_keys(cursor: Cursor) -> tuple[str, ...]:
    """Keys of properties in parentheses."""
    return cursor.in_parentheses(lambda: read_key(cursor))


def read_key(cursor: Cursor) -> str:
    """A key: one text, or a name with dots."""
    return text_value(cursor.next()) if is_text(cursor) else ".".join(cursor.path())


def _property_value(cursor: Cursor) -> str:
    if is_text(cursor):
        return cursor.string()
    word = take_one_of(cursor, "TRUE", "FALSE")
    return word.lower() if word else read_number(cursor)


def read_literal(cursor: Cursor) -> Literal:
    """A literal: string, number, boolean, NULL, or a date or time such as DATE '2024-01-01'."""
    if is_text(cursor):
        return cursor.string()
    if cursor.take("NULL"):
        return None
    if word := take_one_of(cursor, "TRUE", "FALSE"):
        return word == "TRUE"
    if take_one_of(cursor, "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        return cursor.string()
    text = read_number(cursor)
    return int(text) if text.lstrip("-").isdigit() else float(text)


def read_partition(cursor: Cursor) -> PartitionSpec:
    """Values of partition columns in parentheses: (day = '2024-01-01', hour = 1)."""
    found = cursor.in_parentheses(lambda: _partition_value(cursor))
    names = [name.lower() for name, _ in found]
    if len(set(names)) < len(names):
        raise InvalidSql("a partition column is given twice")
    return found


def _partition_value(cursor: Cursor) -> tuple[str, str | None]:
    name = cursor.name()
    cursor.expect("=")
    value = read_literal(cursor)
    if isinstance(value, bool):
        return name, str(value).lower()
    return name, None if value is None else str(value)


def read_partitions(cursor: Cursor) -> tuple[PartitionSpec, ...]:
    """One or more: PARTITION (...), PARTITION (...)."""
    cursor.expect("PARTITION")
    found = [read_partition(cursor)]
    while cursor.take(","):
        cursor.expect("PARTITION")
        found.append(read_partition(cursor))
    return tuple(found)


def read_new_partitions(cursor: Cursor) -> tuple[PartitionSpec, ...]:
    """One or more of ADD, which Spark writes without commas: PARTITION (...) PARTITION (...)."""
    found = []
    while cursor.take("PARTITION"):
        found.append(read_partition(cursor))
        if cursor.take("LOCATION"):
            cursor.string()  # nothing is added, so nothing is put there
    return tuple(found)


def read_names(cursor: Cursor) -> tuple[Path, ...]:
    """Names with dots, separated by commas, in parentheses or not."""
    if cursor.is_at("("):
        return cursor.in_parentheses(cursor.path)
    names = [cursor.path()]
    while cursor.take(","):
        names.append(cursor.path())
    return tuple(names)
