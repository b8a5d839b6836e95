"""Rules for columns and their names."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from emberlake.spec.rules.check import Check
from emberlake.spec.schema import TableSchema
from emberlake.spec.system_columns import is_system_column
from emberlake.types import RowType, nested_types


def _check_columns(schema: TableSchema) -> Iterator[str]:
    if not schema.fields:
        yield "it has no columns"
    yield from _check_names("column", schema.field_names)
    for field in schema.fields:
        if is_system_column(field.name):
            yield f"column {field.name} has a name that the format reserves"
        for inner in nested_types(field.type):
            if isinstance(inner, RowType):
                if not inner.fields:
                    yield f"column {field.name} holds a ROW without fields"
                names = [f.name for f in inner.fields]
                yield from (f"column {field.name}: {p}" for p in _check_names("field", names))


def _check_names(what: str, names: Sequence[str]) -> Iterator[str]:
    if not all(name.strip() for name in names):
        yield f"a {what} has no name"
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{what} {name} appears {count} times"


CHECKS: Final[tuple[Check, ...]] = (_check_columns,)
