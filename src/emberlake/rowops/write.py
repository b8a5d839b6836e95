"""Write rows in one commit: append and overwrite do only this, other operations end with it."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from emberlake.commit.change import CommitResult
from emberlake.errors import EmberlakeError
from emberlake.session.write_session import WriteSession
from emberlake.wire import CommitMessage
from emberlake.write.pandas_data import from_pandas, is_pandas


@dataclass(frozen=True)
class Written:
    """Files that are ready to be committed, as their session appends or overwrites."""

    session: WriteSession
    messages: Sequence[CommitMessage]

    def commit(self) -> CommitResult:
        """Make their rows visible; if the commit is refused, they are deleted."""
        return self.session.commit_or_abort(self.messages)

    def discard(self) -> None:
        """Delete them, because something else has failed, which the caller reports."""
        with suppress(EmberlakeError):  # what is left is garbage
            self.session.abort(self.messages)


def write_rows(session: WriteSession, data: Any, row_kind: str | None = None) -> CommitResult:
    """Write rows and commit them, as the session appends or overwrites.

    Args:
        session: The write.
        data: An Arrow table or batch, a pandas or Polars DataFrame, or anything with
            ``__arrow_c_stream__``; its columns are found by name.
        row_kind: What all of the rows do, in a table with a primary key.
    """
    return write_files(session, data, row_kind).commit()


def write_files(session: WriteSession, data: Any, row_kind: str | None = None) -> Written:
    """Write rows, as ``write_rows`` does, without a commit."""
    if is_pandas(data):
        data = from_pandas(data, session.store.schema.fields)
    with closing(session.new_writer()) as writer:
        writer.write(data, row_kind)
        return Written(session, writer.prepare())
