"""Write rows in one commit: append and overwrite do only this, other operations end with it."""

from contextlib import closing
from typing import Any

from emberlake.commit.change import CommitResult
from emberlake.session.write_session import WriteSession
from emberlake.write.pandas_data import from_pandas, is_pandas


def write_rows(session: WriteSession, data: Any, row_kind: str | None = None) -> CommitResult:
    """Write rows and commit them, as the session appends or overwrites.

    Args:
        session: The write.
        data: An Arrow table or batch, a pandas or Polars DataFrame, or anything with
            ``__arrow_c_stream__``; its columns are found by name.
        row_kind: What all of the rows do, in a table with a primary key.
    """
    if is_pandas(data):
        data = from_pandas(data, session.store.schema.fields)
    with closing(session.new_writer()) as writer:
        writer.write(data, row_kind)
        return session.commit_or_abort(writer.prepare())
