"""A write in one call: its new columns, its rows that do not fit, and one commit.

``ShortWrite(session, merge_schema, bad_rows)`` says what happens to both; ``run`` appends or
overwrites, ``upsert_by`` replaces rows that have the same values in some columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from emberlake.base.lazy import LazyModule
from emberlake.rowops.quarantine import BadRowRule, check_quarantine, quarantine_of
from emberlake.rowops.result import WriteResult
from emberlake.rowops.schema_growth import columns_to_grow, grown, write_growing
from emberlake.rowops.sifted_write import new_rejects, sifted_rows, write_sifted
from emberlake.rowops.write import write_rows
from emberlake.session.write_session import WriteSession
from emberlake.store.table_store import TableStore
from emberlake.types import DataField
from emberlake.write.pandas_data import from_pandas, is_pandas

if TYPE_CHECKING:
    from emberlake.rowops import merge_builder
else:
    merge_builder = LazyModule("emberlake.rowops.merge_builder")  # many programs only append

_ARROW_STREAM: Final = "__arrow_c_stream__"


@dataclass(frozen=True)
class BadRowTarget:
    """What happens to rows that do not fit: they fail the write, are left out, or are kept."""

    fails: bool
    kept: TableStore | None = None

    @staticmethod
    def of(store: TableStore, on_bad_rows: object) -> "BadRowTarget":
        """The meaning of ``on_bad_rows`` for a table: a word, a name or path, or a table.

        Raises:
            InvalidInput: it is none of these.
            DataMismatch: the table that is named cannot keep bad rows.
        """
        if isinstance(on_bad_rows, TableStore):
            check_quarantine(str(on_bad_rows.identity.identifier), on_bad_rows.schema)
            return BadRowTarget(fails=False, kept=on_bad_rows)
        rule = BadRowRule.parse(on_bad_rows)
        kept = None if rule.quarantine is None else quarantine_of(store, rule.quarantine)
        return BadRowTarget(rule.fails, kept)


@dataclass(frozen=True)
class ShortWrite:
    """A write of rows to a table."""

    session: WriteSession
    merge_schema: bool
    bad_rows: BadRowTarget

    def run(self, data: Any) -> tuple[WriteResult, TableStore]:
        """Write rows, as the session appends or overwrites.

        Returns:
            What was done, and the table with the columns that it has now.
        """
        store = self.session.store
        if not self.merge_schema:
            return self._write(store, data), store
        rows = _arrow_rows(data, store.schema.fields)
        seen = [store]

        def write(new: TableStore) -> WriteResult:
            seen.append(new)
            return self._write(new, rows)

        done = write_growing(
            store,
            columns_to_grow(rows.schema, store.schema),
            write,
            is_repeatable=not isinstance(rows, pa.RecordBatchReader),
        )
        # Without a row there was no commit, and so there are no new columns.
        return done, store if done.snapshot_id is None else grown(seen[-1])

    def upsert_by(self, data: Any, on: Sequence[str]) -> tuple[WriteResult, TableStore]:
        """Replace the rows that have the same values in some columns, and add the others."""
        session, rejected = self.session, 0
        if not self.bad_rows.fails:
            rejects = new_rejects(session, self.bad_rows.kept)
            data = sifted_rows(session, _arrow_rows(data, session.store.schema.fields), rejects)
            rejected = rejects.count
        done = merge_builder.upsert_by(session, data, on, merge_schema=self.merge_schema)
        store = session.store
        latest = store.schemas.latest() if self.merge_schema else None
        if latest is not None and latest.id != store.schema.id:
            store = store.with_schema(latest.with_options(store.own_options()))
        return replace(done, rows_rejected=rejected), store

    def _write(self, store: TableStore, rows: Any) -> WriteResult:
        session = replace(self.session, store=store)
        if self.bad_rows.fails:
            return WriteResult.of(write_rows(session, rows))
        rejects = new_rejects(session, self.bad_rows.kept)
        done = write_sifted(session, _arrow_rows(rows, store.schema.fields), rejects)
        return WriteResult.of(done, rejects.count)


def _arrow_rows(data: Any, fields: Sequence[DataField]) -> Any:
    """Data whose columns are known; of a stream no row is read yet."""
    if is_pandas(data):
        return from_pandas(data, fields)
    if isinstance(data, pa.Table | pa.RecordBatch) or not hasattr(data, _ARROW_STREAM):
        return data
    return pa.RecordBatchReader.from_stream(data)
