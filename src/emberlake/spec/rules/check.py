"""The type of a rule, and the messages about names that rules share."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from emberlake.base.names import choices
from emberlake.spec.schema import TableSchema

Check: TypeAlias = Callable[[TableSchema], Iterable[str]]


def repeated(names: Sequence[str]) -> list[str]:
    """The names that appear more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def empty_names(what: str, names: Sequence[str]) -> Iterator[str]:
    """The problem of a list of names with an extra comma."""
    if not any(names):
        yield f"{what} names nothing: remove the option"
    elif not all(names):
        yield f"{what}={','.join(names)} has an empty name: remove the extra comma"


def no_column(schema: TableSchema, what: str, name: str) -> str:
    """The problem of a name that is not a column of the table."""
    there_are = f" ({choices(name, schema.field_names, 'columns:')})" if schema.fields else ""
    return f"{what} {name} is not a column of the table{there_are}"
