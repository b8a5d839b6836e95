"""Write the rows that fit in one commit; the others are left out, or kept in another table.

Quarantine is committed first: whatever fails in between, a row is in one of the two tables, or the
write has failed as a whole.
"""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from emberlake.base.arrow_arrays import without_views
from emberlake.commit.change import CommitResult
from emberlake.rowops.quarantine import Origin, quarantined
from emberlake.rowops.text_values import read_texts
from emberlake.session.write_session import WriteSession
from emberlake.store.table_store import TableStore
from emberlake.write.align import as_tables
from emberlake.write.bad_rows import BadRows, drop_bad_rows, find_bad_cells, take_bad_rows
from emberlake.write.rows_writer import RowsWriter
from emberlake.write.sifting import SiftingWriter


class Rejects:
    """Rows that do not fit: counted, and written to a table if there is one for them.

    Args:
        kept: The table that keeps them; None: they are only counted.
        origin: Where they come from.
        commit_user: Who commits.
    """

    def __init__(self, kept: TableStore | None, origin: Origin, commit_user: str) -> None:
        self._origin = origin
        self._session = None if kept is None else WriteSession(kept, commit_user)
        self._writer: RowsWriter | None = None
        self.count = 0

    def take(
        self,
        given: pa.Table,
        bad: BadRows,
        file: str | None = None,
        lines: pa.Array | None = None,
        texts: pa.ChunkedArray | None = None,
    ) -> None:
        """Take bad rows.

        Args:
            given: The rows, as they were given.
            bad: What is wrong with each of them.
            file: Where they are from.
            lines: The line of each row in the file.
            texts: The rows as JSON, if that is what they were given as.
        """
        self.count += bad.count
        if self._session is None or not bad.count:
            return
        if self._writer is None:
            self._writer = self._session.new_writer()
        rows = quarantined(given, bad, replace(self._origin, file=file), lines)
        if texts is not None:
            rows = rows.set_column(0, "row", texts.combine_chunks())
        self._writer.write(rows)

    def commit(self) -> None:
        """Make them visible; this comes before the rows that fit become visible."""
        if self._session is not None and self._writer is not None:
            self._session.commit_or_abort(self._writer.prepare())

    def close(self) -> None:
        """Release everything; files that were not committed are deleted."""
        if self._writer is not None:
            self._writer.close()


def new_rejects(session: WriteSession, kept: TableStore | None) -> Rejects:
    """Takes the bad rows of a write."""
    store = session.store
    origin = Origin(str(store.identity.identifier), session.commit_user, store.env.now_ms())
    return Rejects(kept, origin, session.commit_user)


def write_sifted(session: WriteSession, data: object, rejects: Rejects) -> CommitResult:
    """Write rows and commit them, as the session appends or overwrites; bad ones go elsewhere.

    Raises:
        DataMismatch: no row could fit, because of the columns of the data.
    """
    schema = session.store.schema
    with (
        closing(rejects),
        closing(SiftingWriter(session.new_writer(), schema, rejects.take)) as writer,
    ):
        for table in map(without_views, as_tables(data)):
            writer.write_known(table, *read_texts(table, schema))
        return commit_both(session, writer, rejects)


def commit_both(session: WriteSession, writer: RowsWriter, rejects: Rejects) -> CommitResult:
    """Commit the bad rows, and then the others."""
    messages = writer.prepare()
    try:
        rejects.commit()
    except BaseException:
        session.abort(messages)
        raise
    return session.commit_or_abort(messages)


def sifted_rows(session: WriteSession, data: Any, rejects: Rejects) -> pa.Table:
    """The rows that fit, all of them in memory; the others are visible in quarantine."""
    schema, good = session.store.schema, []
    with closing(rejects):
        for table in map(without_views, as_tables(data)):
            rows, known = read_texts(table, schema)
            bad = BadRows.of([*known, *find_bad_cells(rows, schema)])
            rejects.take(take_bad_rows(table, bad), bad)
            good.append(drop_bad_rows(rows, bad) if bad.count else rows)
        rejects.commit()
    return pa.concat_tables(good)
