"""Turns Spark's failures to read a source into one emberlake error.

Spark reports a chain of Java exceptions: the outermost names the file, the innermost the value.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from emberlake.errors import DataMismatch, EmberlakeError, InvalidState

_FILE: Final = re.compile(r"while reading file (\S+?)\.?\s")
_CAUSE: Final = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)
_CLASS: Final = re.compile(r"^\[[A-Z_.0-9]+\] ")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+")
_UNREADABLE: Final = ("FAILED_READ_FILE", "MALFORMED_", "CANNOT_", "CAST_INVALID_INPUT")


@contextmanager
def source_errors() -> Iterator[None]:
    """Raise Spark's failures as emberlake errors, in one line, with the file and the value."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as failure:
        raise source_error(str(failure)) from failure


def source_error(text: str) -> EmberlakeError:
    """The error that the text of Spark's exceptions describes."""
    causes = [_tidy(cause) for cause in _CAUSE.findall(text)] or [_tidy(text)]
    if not any(word in text for word in _UNREADABLE):
        return InvalidState(f"Spark failed: {causes[-1]}")
    file = _FILE.search(text)
    where = file.group(1).removeprefix("file://") if file else "the source"
    return DataMismatch(f"{where} cannot be read as the table's columns: {causes[-1]}")


def _tidy(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else "no reason given"
    return _STATE.sub("", _CLASS.sub("", first)).strip().rstrip(".")
