"""What each row does to its key: insert, update or delete.

The kind comes from one of three places: the caller's argument, a column ``_row_kind`` of the data,
or the column of the table that ``rowkind.field`` names. Spec: "What a writer does".
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import DataMismatch, InvalidInput
from emberlake.merge.order import key_at
from emberlake.merge.plan import MergePlan
from emberlake.options import IGNORE_UPDATE_BEFORE, ROWKIND_FIELD
from emberlake.spec.key_value import KIND, RowKind
from emberlake.spec.schema import TableSchema

ROW_KIND_COLUMN: Final = "_row_kind"

Kinds = npt.NDArray[np.int8]

_ADDS: Final = [int(kind) for kind in RowKind if not kind.is_retract]
_SYMBOLS: Final = tuple(kind.symbol for kind in RowKind)


def take_row_kinds(
    data: pa.Table, schema: TableSchema, row_kind: str | None
) -> tuple[pa.Table, Kinds | None]:
    """The data without the column ``_row_kind``, and the kind of every row.

    The kinds are None if none are given: then every row is an insert.

    Raises:
        InvalidInput: an unknown kind, kinds from two places, or kinds for a table without a primary
            key.
    """
    kind_field = schema.options.value(ROWKIND_FIELD)
    column = _kind_column(data, schema)
    sources = [
        text
        for text, is_given in (
            (f"the argument row_kind={row_kind}", row_kind is not None),
            (f"the column {ROW_KIND_COLUMN} of the data", column is not None),
            (f"the column {kind_field} of the table (rowkind.field)", kind_field is not None),
        )
        if is_given
    ]
    if not sources:
        return data, None
    if not schema.profile.has_keys:
        raise InvalidInput(
            f"{sources[0]} tells row kinds, but the table has no primary key: its rows are all "
            "inserts"
        )
    if len(sources) > 1:
        raise InvalidInput(f"row kinds come from {' and '.join(sources)}: give them only once")
    if row_kind is not None:
        if not isinstance(row_kind, str):
            raise InvalidInput(
                f"row kind {row_kind!r:.40} is not text: expected one of {', '.join(_SYMBOLS)}; "
                f"rows of different kinds have a column {ROW_KIND_COLUMN}"
            )
        return data, np.full(data.num_rows, int(RowKind.parse(row_kind)), np.int8)
    if column is not None:
        return data.drop_columns([ROW_KIND_COLUMN]), _parse(column, ROW_KIND_COLUMN)
    assert kind_field is not None
    if kind_field not in data.column_names:
        raise DataMismatch(f"the data lacks the column {kind_field}, which tells row kinds")
    return data, _parse(data.column(kind_field), kind_field)


def has_adds(kinds: Kinds | None) -> bool:
    """Whether some rows are inserts or new versions of rows; without kinds, all are inserts."""
    return kinds is None or bool(np.isin(kinds, _ADDS).any())


def add_row_kinds(rows: pa.Table, kinds: Kinds | None) -> pa.Table:
    """The rows with their kinds as ``_VALUE_KIND``."""
    if kinds is None:
        kinds = np.zeros(rows.num_rows, np.int8)
    return rows.append_column(KIND, pa.array(kinds))


def drop_ignored(rows: pa.Table, schema: TableSchema, *, ignore_delete: bool) -> pa.Table:
    """Drop rows of kinds that the table's options ignore."""
    kinds = rows.column(KIND).to_numpy()
    if not kinds.any():
        return rows
    ignored = np.zeros(len(kinds), bool)
    if ignore_delete or schema.options.value(IGNORE_UPDATE_BEFORE):
        ignored |= kinds == RowKind.UPDATE_BEFORE
    if ignore_delete:
        ignored |= kinds == RowKind.DELETE
    return rows.filter(pa.array(~ignored)) if ignored.any() else rows


def check_kinds(rows: pa.Table, plan: MergePlan) -> None:
    """Refuse rows of kinds that the table does not accept.

    Merging refuses them too, but only when two records of a key meet. That may be after the commit,
    when the table could not be read any more.
    """
    kinds = rows.column(KIND).to_numpy()
    if not kinds.any():
        return
    for kind in RowKind:
        lacking = plan.refusal_of(kind)
        if lacking is not None and (kinds == kind).any():
            key = key_at(rows, plan.keys, int(np.flatnonzero(kinds == kind)[0]))
            raise DataMismatch(
                f"merge engine {plan.engine} accepts no {kind.symbol} records in this table, but "
                f"key {key} has one: delete nothing, or give the table one of: {lacking}"
            )


def kind_column_of(data: pa.Table, schema: TableSchema) -> tuple[str, pa.ChunkedArray] | None:
    """The column of the data that holds row kinds, and its name; None if there is none."""
    column = _kind_column(data, schema)
    if column is not None:
        return ROW_KIND_COLUMN, column
    name = schema.options.value(ROWKIND_FIELD)
    return (name, data.column(name)) if name and name in data.column_names else None


def row_kind_codes(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The number of every row kind; null where the text is not a row kind.

    Raises:
        DataMismatch: the column is not text.
    """
    try:
        symbols = column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataMismatch(f"column {name}: row kinds are text, not {column.type}") from error
    return pc.index_in(symbols, value_set=pa.array(_SYMBOLS))


def _kind_column(data: pa.Table, schema: TableSchema) -> pa.ChunkedArray | None:
    # If the table has a column of that name, it is an ordinary column.
    if ROW_KIND_COLUMN in schema.field_by_name or ROW_KIND_COLUMN not in data.column_names:
        return None
    if data.column_names.count(ROW_KIND_COLUMN) > 1:
        raise DataMismatch(f"the column {ROW_KIND_COLUMN} is given more than once")
    return data.column(ROW_KIND_COLUMN)


def _parse(column: pa.ChunkedArray, name: str) -> Kinds:
    codes = row_kind_codes(column, name)
    if codes.null_count:
        wrong = column.cast(pa.string()).filter(pc.is_null(codes))[0].as_py()
        raise DataMismatch(
            f"column {name} holds {wrong!r}, which is not a row kind: "
            f"expected one of {', '.join(_SYMBOLS)}"
        )
    kinds: Kinds = codes.to_numpy().astype(np.int8)
    return kinds
