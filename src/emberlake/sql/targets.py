"""Columns that UPDATE and MERGE set, and the texts of their values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emberlake.errors import ColumnNotFound, InvalidSql
from emberlake.sql.lexer import tokenize
from emberlake.sql.names import TableName
from emberlake.sql.statements import Assignment, Update
from emberlake.table import Table
from emberlake.types import DataField, DataType, RowType


@dataclass(frozen=True)
class Target:
    """A column of the table, or a field inside it, and the text of its new value."""

    field: DataField
    path: tuple[str, ...]  # inside of the column
    value: str

    @property
    def is_default(self) -> bool:
        tokens = tokenize(self.value)
        return len(tokens) == 2 and tokens[0].is_word("DEFAULT")


def targets_of(
    assignments: Sequence[Assignment], table: Table, qualifiers: Sequence[tuple[str, ...]]
) -> list[Target]:
    """The columns that assignments set."""
    return [target_of(item, table, qualifiers) for item in assignments]


def target_of(
    assignment: Assignment, table: Table, qualifiers: Sequence[tuple[str, ...]]
) -> Target:
    """The column that an assignment sets.

    Args:
        assignment: As it was written.
        table: Whose column it is.
        qualifiers: What may qualify the column, in lower case.

    Raises:
        ColumnNotFound: the table has no such column, or the column no such field.
    """
    known = by_lower_name(table.fields)
    lower = tuple(part.lower() for part in assignment.column)
    paths = [
        assignment.column[len(qualifier) :]
        for qualifier in qualifiers
        if len(lower) > len(qualifier) and lower[: len(qualifier)] == qualifier
    ]
    # As in Spark: a name that can be the table's, and a column's, is the table's.
    for first, *inner in (*paths, assignment.column):
        field = known.get(first.lower())
        if field is not None:
            return Target(field, _field_path(field, inner), assignment.value)
    raise ColumnNotFound(
        f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] {table.identifier} has no column "
        f"{'.'.join(assignment.column)}; it has {', '.join(table.field_names)}",
        column=assignment.column[-1],
    )


def _field_path(field: DataField, inner: Sequence[str]) -> tuple[str, ...]:
    path: list[str] = []
    current = field
    for part in inner:
        fields = current.type.fields if isinstance(current.type, RowType) else ()
        found = by_lower_name(fields).get(part.lower())
        if found is None:
            raise ColumnNotFound(
                f"[FIELD_NOT_FOUND] {'.'.join((field.name, *path))} has no field {part}",
                column=part,
            )
        path.append(found.name)
        current = found
    return tuple(path)


def qualifiers_of(name: TableName, alias: str | None) -> list[tuple[str, ...]]:
    """The names that may qualify columns of a table, in lower case."""
    if alias is not None:
        return [(alias.lower(),)]
    parts = tuple(part.lower() for part in name.parts)
    return [parts[at:] for at in range(len(parts))]


def changed_by(update: Update, table: Table) -> list[Target]:
    """The columns that UPDATE sets, except those of the key that it sets to themselves.

    Raises:
        ColumnNotFound: the table has no such column, or the column no such field.
        InvalidSql: a column is set twice.
    """
    qualifiers = qualifiers_of(update.table, update.alias)
    targets = targets_of(update.assignments, table, qualifiers)
    refuse_twice(targets)
    fixed = {*table.primary_keys, *table.partition_keys} if table.primary_keys else set()
    return [
        target
        for target in targets
        if target.field.name not in fixed or not _is_itself(target, table, qualifiers)
    ]


def _is_itself(target: Target, table: Table, qualifiers: Sequence[tuple[str, ...]]) -> bool:
    *tokens, _ = tokenize(target.value)
    if any(not (t.is_symbol(".") if at % 2 else t.is_name) for at, t in enumerate(tokens)):
        return False
    own = Assignment(tuple(token.name for token in tokens[::2]), target.value)
    try:
        return target_of(own, table, qualifiers) == target
    except ColumnNotFound:
        return False


def refuse_twice(targets: Sequence[Target]) -> None:
    """Refuse two values for one column, or for a column and a field of it."""
    places = [(target.field.name, *target.path) for target in targets]
    for number, place in enumerate(places):
        for other in places[:number]:
            length = min(len(place), len(other))
            if place[:length] == other[:length]:
                raise InvalidSql(f"{'.'.join(place)} is set twice")


def has_other_names(given: Iterable[str], column: DataType) -> bool:
    """Whether a struct has no field that the struct of a column has, as that of ``struct(1, 2)``.

    MERGE takes its fields by place, as Paimon's connector does.
    """
    known = by_lower_name(column.fields) if isinstance(column, RowType) else {}
    return bool(known) and not any(name.lower() in known for name in given)


def value_text(target: Target) -> str:
    """The value as part of a query; a comment at its end cannot swallow what follows."""
    return "NULL" if target.is_default else f"({target.value}\n)"


def by_lower_name(fields: Sequence[DataField]) -> dict[str, DataField]:
    """Columns by their names in lower case: statements may use any case."""
    return {field.name.lower(): field for field in fields}
