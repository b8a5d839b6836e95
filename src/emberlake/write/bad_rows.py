"""Which rows of some data a table cannot take, and why; found one column at a time.

A row is bad if ``align`` refuses it alone: a value that cannot be cast without a loss or is too
long, a null in a key or a NOT NULL column, a row kind that does not exist or that the table does
not accept. A problem of all rows alike (an unknown column, a type that is never cast) is not about
rows: it stays a ``DataMismatch``.

- ``BadCells``: values of one column that do not fit, with a reason for each.
- ``BadRows``: the rows with at least one of them; ``BadRows.of(cells)`` combines columns.
- ``find_bad_cells(data, schema)``: what is wrong with rows in the types that they have.
- ``take_bad_rows``, ``drop_bad_rows``: the two parts of the data.

``emberlake.write.sifting`` writes the good rows; ``emberlake.rowops.quarantine`` keeps the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.arrow_arrays import decoded
from emberlake.merge.plan import plan_merge
from emberlake.options import IGNORE_UPDATE_BEFORE, PRIMARY_KEY_NULLABLE
from emberlake.spec.key_value import RowKind
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, DataType, arrow_type
from emberlake.types.data_types import INTEGER_BITS
from emberlake.write.align import align, length_limit, misfit, unknown_column
from emberlake.write.row_kinds import ROW_KIND_COLUMN, kind_column_of, row_kind_codes

Positions = npt.NDArray[np.int64]

_SHOWN: Final = 40  # characters of a value in a reason


@dataclass(frozen=True, slots=True, eq=False)
class BadCells:
    """Values of one column that do not fit."""

    column: str
    positions: Positions  # of their rows in the data, ascending
    reasons: pa.Array  # text, one for each position

    @staticmethod
    def where(column: str, mask: pa.Array | pa.ChunkedArray, reasons: pa.Array | str) -> "BadCells":
        """Those for which a mask is true; null is not. A text is the reason of all of them."""
        positions = _true_positions(mask)
        if isinstance(reasons, str):
            reasons = pa.repeat(pa.scalar(reasons), len(positions))
        return BadCells(column, positions, reasons)


@dataclass(frozen=True, slots=True, eq=False)
class BadRows:
    """Rows that a table cannot take: each row once, in the order of the data."""

    positions: Positions
    columns: pa.Array  # text: the first column at fault
    reasons: pa.Array  # text: every column at fault, and what is wrong with it

    @property
    def count(self) -> int:
        return len(self.positions)

    @staticmethod
    def of(cells: Iterable[BadCells]) -> "BadRows":
        """The rows of bad cells; cells of an earlier column are named first."""
        found = [cell for cell in cells if len(cell.positions)]
        if not found:
            return BadRows(np.empty(0, np.int64), _texts([]), _texts([]))
        at = np.concatenate([cell.positions for cell in found])
        order = _each_once(at, found)
        names = pa.concat_arrays(
            [pa.repeat(pa.scalar(cell.column), len(cell.positions)) for cell in found]
        ).take(pa.array(order))
        reasons = pa.concat_arrays([cell.reasons for cell in found]).take(pa.array(order))
        described = pc.binary_join_element_wise(names, reasons, ": ")
        positions, first, counts = np.unique(at[order], return_index=True, return_counts=True)
        ends = np.append(first, len(order)).astype(np.int32)
        joined = described.take(pa.array(first))
        if (counts > 1).any():
            lists = pa.ListArray.from_arrays(pa.array(ends), described)
            joined = pc.binary_join(lists, "; ")
        return BadRows(positions, names.take(pa.array(first)), joined)


def _each_once(at: Positions, cells: Sequence[BadCells]) -> Positions:
    """The cells by row; of two that are about one column of a row, the first."""
    numbers = {name: number for number, name in enumerate({cell.column for cell in cells})}
    column = np.repeat([numbers[c.column] for c in cells], [len(c.positions) for c in cells])
    _, first = np.unique(at * len(numbers) + column, return_index=True)
    kept = np.sort(first)
    return kept[np.argsort(at[kept], kind="stable")].astype(np.int64)


def take_bad_rows(data: pa.Table, bad: BadRows) -> pa.Table:
    """The bad rows, as they are in the data."""
    return data.take(pa.array(bad.positions))


def drop_bad_rows(data: pa.Table, bad: BadRows) -> pa.Table:
    """The rows that are not bad, in their order."""
    is_good = np.ones(data.num_rows, bool)
    is_good[bad.positions] = False
    return data.filter(pa.array(is_good))


def find_bad_cells(data: pa.Table, schema: TableSchema) -> list[BadCells]:
    """The values that do not fit their columns, and row kinds that the table does not accept.

    Args:
        data: Rows, with or without a column ``_row_kind``; their columns are found by name.
        schema: The table.

    Raises:
        DataMismatch: the data does not fit, no matter what its rows are.
    """
    kinds = kind_column_of(data, schema)
    is_beside = kinds is not None and kinds[0] not in schema.field_by_name
    plain = data.drop_columns([ROW_KIND_COLUMN]) if is_beside else data
    given = tuple(f for f in schema.fields if f.name in set(plain.column_names))
    names = list(enumerate(plain.column_names))
    unknown = {
        name: unknown_column(name, schema.fields)
        for _, name in names
        if name not in schema.field_by_name
    }
    known = [at for at, name in names if name not in unknown]
    # Refuse what is wrong with all rows alike.
    align(plain.slice(0, 0).select(known), given, lacking=unknown)
    found = [cells for f in given for cells in _column_cells(plain.column(f.name), f, schema)]
    if kinds is not None and schema.profile.has_keys:
        found += _kind_cells(*kinds, schema)
    return found


# --- one column -----------------------------------------------------------------------------------


def _column_cells(
    column: pa.ChunkedArray, field: DataField, schema: TableSchema
) -> Iterator[BadCells]:
    is_key = field.name in schema.primary_keys and not schema.options.value(PRIMARY_KEY_NULLABLE)
    if column.null_count and (is_key or not field.type.nullable):
        why = "is null, and is in the primary key" if is_key else "is null, and is NOT NULL"
        yield BadCells.where(field.name, column.is_null(), why)
    wanted = field.type.with_nullable(True)
    start = 0
    for chunk in column.chunks:
        if misfit(chunk, wanted) is not None:
            positions, reasons = _value_cells(chunk, wanted)
            yield BadCells(field.name, positions + start, reasons)
        start += len(chunk)


def _value_cells(array: pa.Array, data_type: DataType) -> tuple[Positions, pa.Array]:
    """The values of an array that do not fit a type, and why."""
    if pa.types.is_dictionary(array.type):
        array = decoded(array)
    mask = _outside(array, data_type)
    if mask is None:
        found = list(_halved(array, data_type, 0))
        return np.array([at for at, _ in found], np.int64), _texts([why for _, why in found])
    positions = _true_positions(mask)
    shown = pc.utf8_slice_codeunits(array.take(pa.array(positions)).cast(pa.string()), 0, _SHOWN)
    reasons = pc.binary_join_element_wise(shown, f"does not fit {data_type}", " ")
    return positions, reasons


def _outside(array: pa.Array, data_type: DataType) -> pa.Array | None:
    """Which values do not fit, if one comparison says so; None if only a cast can tell."""
    if not isinstance(data_type, AtomicType):
        return None
    if pa.types.is_signed_integer(array.type) and data_type.root in INTEGER_BITS:
        most = (1 << (INTEGER_BITS[data_type.root] - 1)) - 1
        return pc.or_(pc.greater(array, most), pc.less(array, -most - 1))
    limit = length_limit(data_type)
    if limit is not None and array.type == pa.string() == arrow_type(data_type):
        return pc.greater(pc.utf8_length(array), limit)
    return None


def _halved(array: pa.Array, data_type: DataType, start: int) -> Iterator[tuple[int, str]]:
    """Find values that do not fit by casting halves: few bad values take few calls."""
    problem = misfit(array, data_type)
    if problem is None:
        return
    if len(array) == 1:
        yield start, problem
        return
    middle = len(array) // 2
    yield from _halved(array.slice(0, middle), data_type, start)
    yield from _halved(array.slice(middle), data_type, start + middle)


# --- row kinds ------------------------------------------------------------------------------------


def _kind_cells(name: str, kinds: pa.ChunkedArray, schema: TableSchema) -> Iterator[BadCells]:
    codes = row_kind_codes(kinds, name)
    if codes.null_count:
        lost = kinds.cast(pa.string()).filter(codes.is_null()).combine_chunks()
        known = ", ".join(kind.symbol for kind in RowKind)
        shown = pc.utf8_slice_codeunits(lost.fill_null("null"), 0, _SHOWN)
        why = pc.binary_join_element_wise(shown, f"is not a row kind ({known})", " ")
        yield BadCells.where(name, codes.is_null(), why)
    plan = plan_merge(schema, schema.fields)
    for kind in RowKind:
        is_ignored = kind is RowKind.UPDATE_BEFORE and schema.options.value(IGNORE_UPDATE_BEFORE)
        if plan.refusal_of(kind) is not None and not is_ignored:
            why = f"merge engine {plan.engine} accepts no {kind.symbol} records in this table"
            yield BadCells.where(name, pc.equal(codes, int(kind)), why)


def _true_positions(mask: pa.Array | pa.ChunkedArray) -> Positions:
    return np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)


def _texts(values: Sequence[str]) -> pa.Array:
    return pa.array(values, pa.string())
