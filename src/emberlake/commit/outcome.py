"""Commit what was written, or delete it, or leave what may be needed: the one rule for all writers.

A commit that was refused has changed nothing, so its files are garbage. After any other failure it
is open whether a snapshot refers to them: they stay, and orphan cleaning finds them.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from emberlake.errors import AlreadyCommitted, CommitConflict, InvalidInput

_T = TypeVar("_T")


def commit_or_abort(commit: Callable[[], _T], abort: Callable[[], None]) -> _T:
    """The outcome of the commit; when it is refused, ``abort`` deletes what was written for it."""
    try:
        return commit()
    except (CommitConflict, InvalidInput):
        # Files of messages that are in the table are not deleted: abort itself finds out.
        with suppress(AlreadyCommitted):
            abort()
        raise
