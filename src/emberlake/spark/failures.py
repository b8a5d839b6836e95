"""Brings emberlake's errors from Spark's workers to the driver with their types and fields.

Spark passes the text of a worker's traceback to the driver, and writes it to its logs. It ends with
what Python prints for the error, and a note that it comes from a task:

    emberlake.errors.DataMismatch: id: holds 1 nulls, and the column is NOT NULL
    (in a task of emberlake)

If the message alone is not enough to rebuild the error, the note has its arguments:

    emberlake.errors.CorruptFile: /w/f.parquet is corrupt: it is empty
    (in a task of emberlake: CorruptFile("/w/f.parquet", "it is empty"))
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from traceback import format_exception_only
from typing import Final

from emberlake.errors import CommitConflict, ConflictReason, EmberlakeError

_NOTE: Final = "in a task of emberlake"
_HEAD: Final = EmberlakeError.__module__
_ERROR: Final = re.compile(
    # Errors that caused this one come before it, each on its own line.
    rf"^(?:{re.escape(_HEAD)}\.(?P<plain>\w+): (?P<message>(?:(?!{re.escape(_HEAD)}\.).*\n)+?)"
    rf"\({_NOTE}\)|\({_NOTE}: (?P<full>\w+)\((?P<arguments>.*)\)\))$",
    re.MULTILINE,
)


@contextmanager
def reported_errors() -> Iterator[None]:
    """In a task: add a note to emberlake's errors by which the driver recognises them."""
    try:
        yield
    except EmberlakeError as error:
        error.add_note(_note(error))
        raise


@contextmanager
def typed_errors() -> Iterator[None]:
    """On the driver: if an emberlake error failed a job, raise it alone, with its own type.

    Spark's exception has dozens of lines of Java, and the same message at their end. It is not
    printed; ``__context__`` has it.
    """
    try:
        yield
    except Exception as failure:
        error = error_in(str(failure))
        if error is None:
            raise
        raise error from None


def error_in(text: str) -> EmberlakeError | None:
    """The emberlake error in the text of a failure; None if text only looks like one."""
    # Take the last match: a message may have lines that look like an error, but its note follows.
    for found in reversed(list(_ERROR.finditer(text))):
        if found["plain"]:
            error = _made(found["plain"], [found["message"][:-1]])
        else:
            error = _made(found["full"], _parsed(found["arguments"]))
        if error is not None:
            return error
    return None


def _note(error: EmberlakeError) -> str:
    reduced = error.__reduce__()  # the arguments of the error, as for pickling it
    assert isinstance(reduced, tuple)
    arguments = [str(value) for value in reduced[1]]
    name, plain = type(error).__name__, f"({_NOTE})"
    fields = _fields_beyond(error, _made(name, arguments))
    rebuilt = error_in("".join((*format_exception_only(error), plain)))
    if type(rebuilt) is type(error) and arguments == [str(rebuilt)] and not fields:
        return plain
    parts = [*arguments, fields] if fields else arguments
    return f"({_NOTE}: {name}({json.dumps(parts, ensure_ascii=False)[1:-1]}))"


def _fields_beyond(error: EmberlakeError, made: EmberlakeError | None) -> dict[str, object]:
    """The fields of an error that its arguments do not set; only plain values."""
    known = {"__notes__": None, **({} if made is None else vars(made))}
    return {
        key: value
        for key, value in vars(error).items()
        if isinstance(value, str | int) and known.get(key) != value
    }


def _parsed(arguments: str) -> list[object]:
    try:
        values: list[object] = json.loads(f"[{arguments}]")
    except ValueError:  # not our text
        return []
    return values


def _made(name: str, parts: Sequence[object]) -> EmberlakeError | None:
    """The error with that name and these arguments; None if there is no such error."""
    kind = next((kind for kind in _kinds(EmberlakeError) if kind.__name__ == name), None)
    fields = parts[-1] if parts and isinstance(parts[-1], dict) else {}
    arguments = parts[:-1] if fields else parts
    if kind is None or not arguments:
        return None
    try:
        if issubclass(kind, CommitConflict):
            reason, *rest = map(str, arguments)
            error: EmberlakeError = kind(ConflictReason(reason), *rest)
        else:
            error = kind(*arguments)
    except (ValueError, TypeError):  # not our text
        return None
    vars(error).update(fields)
    return error


def _kinds(root: type[EmberlakeError]) -> Iterator[type[EmberlakeError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
