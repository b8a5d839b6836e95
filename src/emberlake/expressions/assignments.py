"""New values of columns, and of fields of ROW columns: which are set, and to what.

To set a field is to build its row again: the other fields keep their values. A row that was null
becomes one whose other fields are null, as SQL says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from emberlake.base.names import choices
from emberlake.errors import ColumnNotFound, EmberlakeError, InvalidExpression, InvalidInput
from emberlake.expressions.binding import Expression, bind_assignment
from emberlake.expressions.scope import Scope
from emberlake.expressions.typed import Apply, Column, Typed
from emberlake.predicates.builder import find_path
from emberlake.types import DataField, DataType, RowType

T = TypeVar("T")
Path = tuple[str, ...]

_TABLE: Final = 0  # the number of the source whose columns are set


@dataclass(frozen=True)
class Target:
    """A column that is set, or a field inside of it."""

    name: str
    column: DataField
    path: Path
    type: DataType

    @property
    def place(self) -> Path:
        """The column, then the path inside of it."""
        return (self.column.name, *self.path)

    @property
    def field(self) -> DataField:
        """What is set, under the name that it was given."""
        return self.column if not self.path else DataField(self.column.id, self.name, self.type)


def find_target(name: str, fields: Sequence[DataField]) -> Target:
    """The column with this name, or the field that it leads to: ``address.city``.

    Raises:
        ColumnNotFound: there is none; suggests others.
    """
    parts = tuple(name.split("."))
    found = find_path(fields, parts)
    if found is not None:
        column, *inner = found
        return Target(name, column, tuple(f.name for f in inner), found[-1].type)
    for length in range(len(parts) - 1, 0, -1):
        if outer := find_path(fields, parts[:length]):
            rest, around = ".".join(parts[length:]), ".".join(parts[:length])
            kind = outer[-1].type
            if not isinstance(kind, RowType):
                raise ColumnNotFound(
                    f"there is no {name!r} to set: {around} is {kind}, which has no fields",
                    column=name,
                )
            there_are = choices(rest, [f.name for f in kind.fields], f"{around} has")
            raise ColumnNotFound(f"there is no {name!r} to set; {there_are}", column=name)
    known = [f.name for f in fields]
    if len(parts) > 1:
        known += [
            f"{column.name}.{inner.name}"
            for column in fields
            if isinstance(column.type, RowType)
            for inner in column.type.fields
        ]
    there_are = choices(name, known, "the table has")
    raise ColumnNotFound(f"there is no column {name!r} to set; {there_are}", column=name)


def check_once(targets: Sequence[Target]) -> None:
    """Refuse two values for one field, and values for a field and for the row that it is in.

    Raises:
        InvalidExpression: names both.
    """
    for number, target in enumerate(targets):
        for other in targets[:number]:
            length = min(len(target.place), len(other.place))
            if target.place[:length] == other.place[:length]:
                raise InvalidExpression(f"{other.name} and {target.name} are set at the same time")


def check_whole(names: Iterable[str], fields: Sequence[DataField]) -> None:
    """Refuse fields of ROW columns: a new row has no old values for the other fields.

    Raises:
        ColumnNotFound: there is no such column.
        InvalidExpression: names a field.
    """
    for name in names:
        target = find_target(name, fields)
        if target.path:
            column = target.column.name
            raise InvalidExpression(
                f"{name}: a new row has no {column} whose field could be set; give a value for "
                f"all of {column}"
            )


def combined(
    targets: Sequence[tuple[Target, T]],
    old: Callable[[DataField, Path, DataType], T],
    row: Callable[[RowType, Sequence[T]], T],
) -> dict[str, T]:
    """The new values of columns, by name: rows are built again around the fields that are set.

    Args:
        targets: What is set, with the values.
        old: Makes the value that a field of a column has; null if the row around it is null.
        row: Makes a row of the values of its fields.
    """
    found: dict[str, T] = {}
    inner: dict[str, dict[Path, T]] = {}
    columns = {target.column.name: target.column for target, _ in targets}
    for target, value in targets:
        if target.path:
            inner.setdefault(target.column.name, {})[target.path] = value
        else:
            found[target.column.name] = value
    for name, values in inner.items():
        kind = columns[name].type
        assert isinstance(kind, RowType)
        found[name] = with_fields(kind, values, partial(old, columns[name]), row)
    return {name: found[name] for name in columns}


def with_fields(
    kind: RowType,
    values: Mapping[Path, T],
    old: Callable[[Path, DataType], T],
    row: Callable[[RowType, Sequence[T]], T],
) -> T:
    """A row with new values of some fields; the others keep theirs.

    Args:
        kind: The type of the row.
        values: The new values, by the paths of their fields.
        old: Makes the value that a field has; null if the row around it is null.
        row: Makes a row of the values of its fields.
    """

    def built(at: Path, inner: DataType) -> T:
        if at in values:
            return values[at]
        if not any(path[: len(at)] == at for path in values):
            return old(at, inner)
        assert isinstance(inner, RowType)
        return row(inner, [built((*at, f.name), f.type) for f in inner.fields])

    return built((), kind)


def field_at(kind: DataType, path: Sequence[str]) -> DataField:
    """The field of a ROW that a path leads to."""
    assert isinstance(kind, RowType)
    first, *rest = path
    found = next(f for f in kind.fields if f.name == first)
    return field_at(found.type, rest) if rest else found


def bind_each(
    given: Sequence[tuple[str, object]], fields: Sequence[DataField], scope: Scope
) -> dict[str, Expression]:
    """The new values of columns, by name; one error lists everything that does not fit.

    Raises:
        InvalidExpression: some do not fit.
        ColumnNotFound: there is no such column.
    """
    bound: list[tuple[Target, Expression]] = []
    problems: list[EmberlakeError] = []
    for name, value in given:
        try:
            target = find_target(name, fields)
            if _TABLE not in scope.visible:
                check_whole([name], fields)
            bound.append((target, bind_assignment(value, target.field, scope)))
        except (ColumnNotFound, InvalidInput) as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise InvalidExpression(f"some values do not fit the table:{lines}")
    check_once([target for target, _ in bound])
    return combined(bound, _old, _row)


def _old(column: DataField, path: Path, kind: DataType) -> Expression:
    return Expression(Column(_TABLE, column, path, kind), ".".join((column.name, *path)))


def _row(kind: RowType, parts: Sequence[Expression]) -> Expression:
    args: tuple[Typed, ...] = tuple(part.typed for part in parts)
    text = ", ".join(part.text for part in parts)
    return Expression(Apply("ROW", args, kind), f"ROW({text})")
