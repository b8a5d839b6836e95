"""Errors of ours cross from Spark's workers to the driver as what they are.

Spark hands the driver the text of a worker's traceback. What is raised in a task therefore carries
its class and arguments in the text, as JSON in base64 that nothing on the way breaks.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from emberlake.errors import CommitConflict, ConflictReason, EmberlakeError

_MARK: Final = re.compile(r"\[emberlake:([A-Za-z0-9+/=]+)\]")


class TaskFailed(Exception):
    """A task's error in the form that reaches the driver."""

    def __init__(self, error: EmberlakeError) -> None:
        reduced = error.__reduce__()  # what the error is made of, as for pickling it
        assert isinstance(reduced, tuple)
        form = json.dumps([type(error).__name__, [str(value) for value in reduced[1]]])
        mark = b64encode(form.encode()).decode()
        super().__init__(f"{type(error).__name__}: {error} [emberlake:{mark}]")


@contextmanager
def reported_errors() -> Iterator[None]:
    """In a task: errors of ours leave it in the form that reaches the driver."""
    try:
        yield
    except EmberlakeError as error:
        raise TaskFailed(error) from error


@contextmanager
def typed_errors() -> Iterator[None]:
    """On the driver: an error of ours that ended a job is raised as what it was."""
    try:
        yield
    except Exception as failure:
        error = error_in(str(failure))
        if error is None:
            raise
        raise error from failure


def error_in(text: str) -> EmberlakeError | None:
    """The error of ours that a failure's text carries; None also for what only looks like one."""
    for mark in _MARK.finditer(text):
        try:
            return _decoded(mark[1])
        except (ValueError, TypeError, StopIteration):  # somebody else's text
            continue
    return None


def _decoded(mark: str) -> EmberlakeError:
    name, arguments = json.loads(b64decode(mark))
    kind = next(kind for kind in _kinds(EmberlakeError) if kind.__name__ == name)
    if issubclass(kind, CommitConflict):
        reason, *rest = arguments
        return kind(ConflictReason(reason), *rest)
    return kind(*arguments)


def _kinds(root: type[EmberlakeError]) -> Iterator[type[EmberlakeError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
