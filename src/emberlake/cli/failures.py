"""How the command line shows errors: one line with the remedy, and an exit code."""

import re
from enum import IntEnum
from typing import Final

from emberlake.errors import (
    BranchNotFound,
    CommitConflict,
    CommitUnknown,
    DatabaseNotFound,
    EmberlakeError,
    InvalidIdentifier,
    InvalidInput,
    InvalidOption,
    InvalidPredicate,
    InvalidSql,
    SnapshotNotFound,
    TableNotFound,
    TagNotFound,
)


class ExitCode(IntEnum):
    """The exit code of a command. Scripts rely on these numbers: never change them."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    CONFLICT = 3
    INTERRUPTED = 130


class UsageError(InvalidInput):
    """The command line is wrong; the message says what to type instead."""


class PipeClosed(Exception):
    """The reader of the output closed the pipe; Typer would treat an OSError as a failure."""


class Declined(EmberlakeError):
    """The user was asked and said no."""


# Mistakes that only a person at the command line can have made.
_USAGE: Final = (UsageError, InvalidIdentifier, InvalidPredicate, InvalidOption, InvalidSql)
# Messages of the engine address programs; these say what a person can type.
_HINTS: Final[tuple[tuple[type[EmberlakeError], str], ...]] = (
    (TableNotFound, "list tables with: emberlake table list"),
    (DatabaseNotFound, "list databases with: emberlake db list"),
    (SnapshotNotFound, "list snapshots with: emberlake snapshots <table>"),
    (TagNotFound, "list tags with: emberlake tags <table>"),
    (BranchNotFound, "list branches with: emberlake branches <table>"),
    (CommitUnknown, "check emberlake snapshots <table> before you try again"),
)
_PYTHON_WORDS: Final = (
    (re.compile(r"create_database\('([^']*)'\) creates it"), r"emberlake db create \1 creates it"),
    (re.compile(r"drop it with cascade=True"), "drop it with --cascade"),
    (re.compile(r"\bthe DataFrame\b"), "the source"),
    (re.compile(r'text is given as lit\("([^"]*)"\)'), r"text goes in single quotes: '\1'"),
    (re.compile(r"\bmerge_schema=True\b"), "--merge-schema"),
    (re.compile(r", or name the columns that are meant with with_write_type\b"), ""),
    (re.compile(r"\bremove_orphan_files\b"), "emberlake orphans"),
    (re.compile(r"; use with_filter for them$"), "; here --where takes partition columns only"),
)

# Errors of Spark about the text of a statement.
_NOT_SQL: Final = ("AnalysisException", "ParseException")
_PLACE: Final = re.compile(r"line \d+")  # of a script


def exit_code_of(error: BaseException) -> ExitCode:
    """The exit code of a command that fails with this error."""
    if isinstance(error, CommitConflict):
        return ExitCode.CONFLICT
    if isinstance(error, _USAGE) or (_is_of_spark(error) and type(error).__name__ in _NOT_SQL):
        return ExitCode.USAGE
    return ExitCode.INTERRUPTED if isinstance(error, KeyboardInterrupt) else ExitCode.FAILED


def message_of(error: BaseException) -> str:
    """What went wrong and what to do, in one line; a note of the error may say in which line."""
    places = filter(_PLACE.fullmatch, getattr(error, "__notes__", []))
    return ": ".join((*places, _what_went_wrong(error)))


def _what_went_wrong(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if not isinstance(error, EmberlakeError | OSError):
        first, *_ = str(error).strip().splitlines() or ["no message"]
        if _is_of_spark(error):  # its first line says what is wrong with a statement
            return first
        kind = type(error).__name__
        return f"unexpected {kind}: {first}; run it again with --debug for the traceback"
    text = in_typed_words(_one_line(str(error))) or type(error).__name__
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)
    return f"{text}; {hint}" if hint and not text.endswith("?") else text


def _is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.startswith("pyspark.errors")  # which need not be installed


def in_typed_words(text: str) -> str:
    """A message of the engine, with Python calls replaced by what a person types."""
    for python, typed in _PYTHON_WORDS:
        text = python.sub(typed, text)
    return text


def document_of(error: BaseException) -> dict[str, dict[str, str]]:
    """The error for programs."""
    return {"error": {"type": type(error).__name__, "message": message_of(error)}}


def _one_line(text: str) -> str:
    """Lists of problems become ``problem; problem``."""
    lines = [line.strip().removeprefix("- ") for line in text.splitlines() if line.strip()]
    head, rest = (lines[0], lines[1:]) if lines else ("", [])
    joined = "; ".join(rest)
    return f"{head} {joined}" if head.endswith(":") else "; ".join(lines)
