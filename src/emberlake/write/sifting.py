"""A writer that writes the rows that fit and passes the others on.

Data that fits costs nothing more: bad rows are looked for only after a write was refused.
"""

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from emberlake.base.arrow_arrays import without_views
from emberlake.errors import DataMismatch
from emberlake.spec.schema import TableSchema
from emberlake.wire import CommitMessage
from emberlake.write.align import as_tables
from emberlake.write.bad_rows import (
    BadCells,
    BadRows,
    drop_bad_rows,
    find_bad_cells,
    take_bad_rows,
)
from emberlake.write.rows_writer import RowsWriter

# Takes the bad rows, as they were given, and what is wrong with each.
Reject = Callable[[pa.Table, BadRows], None]


class SiftingWriter:
    """Wraps a writer; ``rows_rejected`` counts the rows that the table could not take."""

    def __init__(self, writer: RowsWriter, schema: TableSchema, reject: Reject) -> None:
        self._writer = writer
        self._schema = schema
        self._reject = reject
        self.rows_rejected = 0

    def write(self, data: object, row_kind: str | None = None) -> None:
        """Write the rows that fit.

        Raises:
            DataMismatch: the data does not fit, no matter what its rows are.
        """
        for table in map(without_views, as_tables(data)):
            self.write_known(table, table, (), row_kind)

    def write_known(
        self,
        given: pa.Table,
        rows: pa.Table,
        known: Sequence[BadCells],
        row_kind: str | None = None,
    ) -> None:
        """Write rows of which some are known to be bad.

        Args:
            given: The rows as they were given.
            rows: The same rows, in types that are closer to those of the table.
            known: What is already known to be wrong with them.
            row_kind: What all of the rows do.
        """
        if not any(len(cells.positions) for cells in known):
            try:
                self._writer.write(rows, row_kind)
            except DataMismatch as refusal:
                bad = BadRows.of(find_bad_cells(rows, self._schema))
                if not bad.count:  # the rows are not to blame
                    raise refusal from None
            else:
                return
        else:
            bad = BadRows.of([*known, *find_bad_cells(rows, self._schema)])
        self._writer.write(drop_bad_rows(rows, bad), row_kind)
        self._reject(take_bad_rows(given, bad), bad)
        self.rows_rejected += bad.count

    # --- everything else is left to the writer ----------------------------------------------------

    @property
    def write_columns(self) -> tuple[str, ...] | None:
        return self._writer.write_columns

    @property
    def has_rows(self) -> bool:
        return self._writer.has_rows

    def set_write_columns(self, columns: Iterable[str]) -> None:
        self._writer.set_write_columns(columns)

    def prepare(self) -> list[CommitMessage]:
        return self._writer.prepare()

    def abort(self) -> None:
        self._writer.abort()

    def close(self) -> None:
        self._writer.close()
