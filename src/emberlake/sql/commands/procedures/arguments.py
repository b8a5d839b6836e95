"""Procedures as values: their parameters, and the arguments of a call bound to them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa

from emberlake.base.names import choices
from emberlake.errors import InvalidInput
from emberlake.sql.commands.answers import rows_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.values import Call, Literal
from emberlake.sql.cursor import Cursor
from emberlake.sql.names import TableName
from emberlake.table import Table

Arguments: TypeAlias = Mapping[str, Any]
_KINDS: Final = {str: "a string", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure; names are case-insensitive."""

    name: str
    kind: type = str
    is_required: bool = False


@dataclass(frozen=True)
class Procedure:
    """A procedure: its parameters in order, and the function that runs it."""

    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Session, Arguments], pa.Table]

    @property
    def signature(self) -> str:
        """Name and parameters; those in brackets may be left out."""
        shown = (p.name if p.is_required else f"[{p.name}]" for p in self.parameters)
        return f"sys.{self.name}({', '.join(shown)})"


def required(name: str, kind: type = str) -> Parameter:
    """A parameter that must be given."""
    return Parameter(name, kind, is_required=True)


def optional(name: str, kind: type = str) -> Parameter:
    """A parameter that may be left out."""
    return Parameter(name, kind)


TABLE: Final = required("table")


def bind(procedure: Procedure, call: Call) -> Arguments:
    """The argument of every parameter, by its name; None where none is given.

    Raises:
        InvalidInput: an argument is unknown, missing, or of the wrong kind.
    """
    by_name = {p.name.lower(): p for p in procedure.parameters}
    given = dict(call.named)
    if len(call.positional) > len(procedure.parameters):
        raise InvalidInput(f"too many arguments: {procedure.signature}")
    for parameter, value in zip(procedure.parameters, call.positional, strict=False):
        given[parameter.name.lower()] = value
    unknown = [name for name in given if name not in by_name]
    if unknown:
        there_are = choices(unknown, [p.name for p in procedure.parameters], "it has")
        raise InvalidInput(
            f"sys.{procedure.name} has no argument {', '.join(unknown)}; {there_are}"
        )
    missing = [p.name for p in procedure.parameters if p.is_required and _lacks(given, p)]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} must be given: {procedure.signature}")
    return {p.name: _checked(procedure, p, given.get(p.name.lower())) for p in by_name.values()}


def _lacks(given: Mapping[str, Literal], parameter: Parameter) -> bool:
    return given.get(parameter.name.lower()) is None


def _checked(procedure: Procedure, parameter: Parameter, value: Literal) -> Literal:
    if value is None:
        return None
    if parameter.kind is str:  # numbers are converted to strings, as in Spark
        return str(value).lower() if isinstance(value, bool) else str(value)
    if type(value) is not parameter.kind:
        raise InvalidInput(
            f"sys.{procedure.name}: {parameter.name} is {_KINDS[parameter.kind]}, not {value!r}"
        )
    return value


def table_of(session: Session, arguments: Arguments, name: str = "table") -> Table:
    """The table that an argument names: ``db.t``, or ``paimon.db.t``."""
    return session.table(table_name(arguments[name]))


def table_name(text: str) -> TableName:
    """A name in an argument."""
    cursor = Cursor(text)
    name = cursor.table()
    cursor.expect_end()
    return name


def options_of(text: str | None) -> dict[str, str]:
    """Options in an argument: ``key=value,key=value``.

    Raises:
        InvalidInput: the text has another form.
    """
    found: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        key, has_value, value = part.partition("=")
        if not has_value:
            raise InvalidInput(f"options are 'key=value,key=value', not {text!r}")
        found[key.strip()] = value.strip()
    return found


def words_of(text: str | None) -> list[str]:
    """Names in an argument, separated by commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def moment_of(text: str | None) -> datetime | None:
    """A timestamp in an argument: ``2024-01-01 10:00:00``, in local time as in Java.

    Raises:
        InvalidInput: the text is not a timestamp.
    """
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not a timestamp such as '2024-01-01 10:00:00'") from error


def chosen_names(including: str | None, excluding: str | None) -> Callable[[str], bool]:
    """Whether a name matches one regular expression and not the other."""
    try:
        wanted = re.compile(including or ".*")
        unwanted = re.compile(excluding) if excluding else None
    except re.error as error:
        raise InvalidInput(f"not a regular expression: {error}") from error
    return lambda name: bool(wanted.fullmatch(name)) and not (unwanted and unwanted.fullmatch(name))


def done() -> pa.Table:
    """The answer of procedures that return nothing else."""
    return rows_of((("result", pa.bool_()),), [(True,)])
