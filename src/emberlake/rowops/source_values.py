"""Values of a merge that its source alone decides: do they fit the table? Asked before any write.

Values that also depend on rows of the table are computed file by file, while others are written
already. Those of the source are in memory. A merge that must fail because of them, by a null for a
NOT NULL column or a text that is no number, fails before it has written a file.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from emberlake.expressions import Expression, Frame, columns_used, evaluate, sources_used
from emberlake.expressions.evaluate import can_fail
from emberlake.expressions.typed import Column
from emberlake.rowops.clauses import SOURCE, Editor
from emberlake.rowops.edits import FileEdit
from emberlake.spec.column_buffers import I64
from emberlake.types import DataField, arrow_type
from emberlake.write.align import align


def check_source_values(
    editor: Editor, edits: Sequence[FileEdit], fields: Sequence[DataField]
) -> None:
    """Compute what updates set to values of the source alone, for the rows that match.

    Args:
        editor: The clauses, and the source.
        edits: Which rows match.
        fields: The columns of the table.

    Raises:
        DataMismatch: a value cannot be computed, or does not fit its column.
    """
    source = editor.source
    if source is None:
        return
    for number, clause in enumerate(editor.clauses):
        doubtful = [f for f in fields if _is_doubtful(clause.values.get(f.name), f, source)]
        if not doubtful:
            continue
        rows = _matches(edits, number)
        if len(rows):
            _check({f: clause.values[f.name] for f in doubtful}, source, rows, editor.now_ms)


def check_new_rows(inserts: Sequence[pa.Table], fields: Sequence[DataField]) -> None:
    """Check that new rows fit the table.

    Raises:
        DataMismatch: listing the columns that do not fit.
    """
    for rows in inserts:
        types = {column.name: column.type for column in rows.schema}
        doubtful = tuple(
            f
            for f in fields
            if f.name in types and not (f.type.nullable and types[f.name] == arrow_type(f.type))
        )
        align(rows.select([f.name for f in doubtful]), doubtful)


def _is_doubtful(value: Expression | None, field: DataField, source: pa.Table) -> bool:
    """Whether a value is one of the source alone, and may fail or not fit."""
    if value is None or not sources_used(value.typed) <= {SOURCE}:
        return False
    given = value.type
    is_same = given is not None and given.with_nullable(True) == field.type.with_nullable(True)
    if not is_same or can_fail(value.typed):
        return True
    if field.type.nullable:
        return False
    column = value.typed
    if not isinstance(column, Column) or column.path:
        return True
    return bool(source.column(column.field.name).null_count)


def _matches(edits: Sequence[FileEdit], clause: int) -> I64:
    """The rows of the source whose values a clause writes."""
    found = [
        edit.matches[edit.chosen == clause]
        for edit in edits
        if edit.matches is not None and edit.chosen is not None
    ]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _check(
    values: Mapping[DataField, Expression], source: pa.Table, rows: I64, now_ms: int
) -> None:
    names = frozenset().union(*(columns_used(value.typed, SOURCE) for value in values.values()))
    if names:
        frame = Frame(
            len(rows), {SOURCE: source.select(sorted(names)).take(pa.array(rows))}, now_ms
        )
    else:  # the same for all rows, even for those that match nothing
        frame = Frame(1, {}, now_ms)
    made = {field.name: evaluate(value, frame) for field, value in values.items()}
    align(pa.table(made), tuple(values))
