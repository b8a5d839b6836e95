"""What a rule is, and how rules speak of names."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from emberlake.spec.schema import TableSchema

Check: TypeAlias = Callable[[TableSchema], Iterable[str]]


def repeated(names: Sequence[str]) -> list[str]:
    """The names that appear more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def no_column(schema: TableSchema, what: str, name: str) -> str:
    """The problem that something names a column which the table does not have."""
    choices = f" (columns: {', '.join(schema.field_names)})" if schema.fields else ""
    return f"{what} {name} is not a column of the table{choices}"
