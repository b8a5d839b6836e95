"""A plan that turns stored rows into the requested rows.

A plan is made once for all files of a schema version. It says what to read of a file and, for every
output column, where it comes from and how it is converted: a column of a file is cast to its
current type, values that the read itself knows are filled in (those of the partition), and columns
without a source are null. Row ids that no file stores come from the positions of the rows, which
the read adds as one more part. A plan is applied to a batch in one step or, if rows are filtered,
in two: first the columns that the filter needs, then the output, only for the rows that pass. Rows
may be spread over several files side by side, each with some of the columns.
Spec: "Schema evolution".
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.formats.file_format import batch_of_rows
from emberlake.merge.rows import retracts_of
from emberlake.predicates import Predicate, columns_of, evaluate
from emberlake.read.evolve import evolved, is_unchanged, part_of_file, translate_predicate
from emberlake.read.projection import OutputShape
from emberlake.spec.column_buffers import I64
from emberlake.spec.key_value import KIND, KIND_FIELD, SEQUENCE, SEQUENCE_FIELD
from emberlake.spec.row_tracking import ROW_ID_FIELD, is_hidden
from emberlake.types import DataField, DataType, arrow_schema, arrow_type

Rows: TypeAlias = pa.RecordBatch | pa.Table
Array: TypeAlias = pa.Array | pa.ChunkedArray
Constants: TypeAlias = Mapping[str, pa.Scalar]
NO_CONSTANTS: Final[Constants] = {}


@dataclass(frozen=True)
class FileColumns:
    """One of the files that hold the rows: its columns, and what to read of them."""

    fields: tuple[DataField, ...]
    read: tuple[DataField, ...]  # with the names and types of the file


@dataclass(frozen=True)
class Stored:
    """A column of a file: which file, and its position among the columns read from it."""

    file: int
    position: int
    type: DataType  # the type in the file


@dataclass(frozen=True)
class Constant:
    """One value for all rows, which the read knows by this name."""

    name: str


@dataclass(frozen=True)
class RowIds:
    """The ids of rows by their positions: the only column of the last part."""


@dataclass(frozen=True)
class FirstOf:
    """The stored value or, where that is null, what the metadata says."""

    stored: Stored
    otherwise: Constant | RowIds


Source: TypeAlias = Stored | Constant | RowIds | FirstOf | None


@dataclass(frozen=True)
class Input:
    """A column of the table, and where it comes from; without a source it is null."""

    field: DataField
    source: Source

    @cached_property
    def is_cast(self) -> bool:
        """Whether the file stores it with another type."""
        source = self.source
        return isinstance(source, Stored) and not is_unchanged(source.type, self.field.type)

    def make(self, parts: Sequence[Rows], constants: Constants, row_count: int) -> Array:
        """The values of all rows."""
        return self._values(self.source, parts, constants, row_count)

    def _values(
        self, source: Source, parts: Sequence[Rows], constants: Constants, row_count: int
    ) -> Array:
        match source:
            case Stored(file, position, old):
                column = parts[file].column(position)
                return evolved(column, old, self.field) if self.is_cast else column
            case Constant(name):
                return pa.repeat(constants[name], row_count)
            case RowIds():
                return parts[-1].column(0)
            case FirstOf(stored, otherwise):
                found = self._values(stored, parts, constants, row_count)
                if not found.null_count:
                    return found
                return pc.coalesce(found, self._values(otherwise, parts, constants, row_count))
            case None:
                return pa.nulls(row_count, arrow_type(self.field.type))


@dataclass(frozen=True)
class Step:
    """Some columns of the table, made at once."""

    inputs: tuple[Input, ...]
    shape: OutputShape | None = None  # the output made of them; None: the columns themselves

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the output."""
        if self.shape is not None:
            return self.shape.arrow_schema
        return arrow_schema(tuple(i.field for i in self.inputs))

    @cached_property
    def is_plain(self) -> bool:
        """Whether the output is the columns of the first file, unchanged and in order."""
        fields = [i.field for i in self.inputs]
        if not fields or not (self.shape is None or self.shape.is_exactly(fields)):
            return False
        return all(
            isinstance(i.source, Stored)
            and (i.source.file, i.source.position) == (0, position)
            and not i.is_cast
            for position, i in enumerate(self.inputs)
        )

    def apply(self, parts: Sequence[Rows], constants: Constants, row_count: int) -> pa.Table:
        """The columns of rows; each part holds what was read from one file."""
        if self.is_plain and parts[0].schema.equals(self.arrow_schema):
            return _as_table(parts[0])
        columns = [i.make(parts, constants, row_count) for i in self.inputs]
        if self.shape is not None:
            names = (i.field.name for i in self.inputs)
            columns = self.shape.columns(dict(zip(names, columns, strict=True)), row_count)
        if not columns:
            return _as_table(batch_of_rows(row_count))
        return pa.Table.from_arrays(columns, schema=self.arrow_schema)


@dataclass(frozen=True)
class RowTest:
    """Which rows to return, and the columns that decide."""

    step: Step
    predicate: Predicate | None
    drops_retracts: bool
    # For each file the positions of its output columns; the others are dropped after the test.
    kept: tuple[tuple[int, ...], ...]

    def mask(
        self, parts: Sequence[Rows], constants: Constants, row_count: int
    ) -> pa.ChunkedArray | None:
        """True for the rows to return; None if all are."""
        rows = self.step.apply(parts, constants, row_count)
        mask: pa.ChunkedArray | None = None
        if self.drops_retracts:
            retracts = retracts_of(rows)
            mask = pa.chunked_array([pa.array(~retracts)]) if retracts.any() else None
        if self.predicate is not None:
            matches = evaluate(self.predicate, rows)
            if matches.null_count or not pc.all(matches, min_count=0).as_py():
                mask = matches if mask is None else pc.and_(mask, matches)
        return mask


@dataclass(frozen=True)
class ColumnPlan:
    """How rows of files of one kind become the requested rows."""

    files: tuple[FileColumns, ...]
    output: Step
    test: RowTest | None = None  # None: all rows are returned
    skipping: Predicate | None = None  # parts of the file that cannot match it may be skipped
    # Of the files that were planned for, those that are read; the others have nothing to add.
    chosen: tuple[int, ...] = (0,)
    numbers_rows: bool = False  # whether one more part holds the ids of the rows by position

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the output."""
        return self.output.arrow_schema

    def apply(self, parts: Sequence[Rows], constants: Constants = NO_CONSTANTS) -> pa.Table:
        """The output for stored rows; each part holds what was read from one file."""
        return self._finish(parts, constants, self._mask(parts, constants))

    def locate(
        self, parts: Sequence[Rows], constants: Constants = NO_CONSTANTS
    ) -> tuple[I64, pa.Table]:
        """The same, with the positions of the rows, counted from the first."""
        mask = self._mask(parts, constants)
        if mask is None:
            positions = np.arange(parts[0].num_rows)
        else:
            positions = np.flatnonzero(mask.fill_null(False).to_numpy())
        return positions, self._finish(parts, constants, mask)

    def _mask(self, parts: Sequence[Rows], constants: Constants) -> pa.ChunkedArray | None:
        if self.test is None:
            return None
        return self.test.mask(parts, constants, parts[0].num_rows)

    def _finish(
        self, parts: Sequence[Rows], constants: Constants, mask: pa.ChunkedArray | None
    ) -> pa.Table:
        row_count = parts[0].num_rows
        if self.test is not None:
            parts = [
                part if len(kept) == part.num_columns else part.select(list(kept))
                for part, kept in zip(parts, self.test.kept, strict=True)
            ]
        if mask is not None:
            row_count = pc.sum(mask, min_count=0).as_py()
            parts = [_as_table(part).filter(mask) for part in parts]
        return self.output.apply(parts, constants, row_count)


def plan_columns(  # noqa: PLR0913
    files: Sequence[tuple[DataField, ...]],
    fields: Sequence[DataField],
    shape: OutputShape | None = None,
    *,
    predicate: Predicate | None = None,
    constants: Collection[str] = (),
    drops_retracts: bool = False,
    keeps_kind: bool = False,
    is_tracked: bool = False,
) -> ColumnPlan:
    """Plan how to read columns of the table from files with the given columns.

    Args:
        files: The columns of each file that holds some of the rows' columns; one file in most
            tables. A column is taken from the first file that has it.
        fields: The columns of the table that are needed, for the output and for the filter.
        shape: The output made of them; None for the fields themselves.
        predicate: Rows that do not match are left out.
        constants: Columns that are read from no file: the read has one value for all rows.
        drops_retracts: Records that retract a row are left out.
        keeps_kind: The stored row kind is returned.
        is_tracked: Rows have ids. Where the files do not store them, they are made from positions;
            the number of the row's last change is then a constant.

    Raises:
        Unsupported: a column has changed to a type that its old values cannot be cast to.
    """
    wanted = {f.name for f in fields} if shape is None else shape.projection.columns
    wanted |= {KIND} if keeps_kind else set()
    tested = columns_of(predicate) if predicate is not None else frozenset()
    tested |= {KIND} if drops_retracts else set()
    needed = [*fields, KIND_FIELD] if drops_retracts or keeps_kind else fields
    reads: list[list[DataField]] = [[] for _ in files]
    inputs = [_plan_input(files, f, constants, reads, is_tracked=is_tracked) for f in needed]
    chosen = tuple(n for n, read in enumerate(reads) if read) or (0,)
    inputs = [replace(i, source=_renumbered(i.source, chosen)) for i in inputs]
    columns = tuple(FileColumns(files[n], tuple(reads[n])) for n in chosen)
    numbers_rows = any(_needs_positions(i.source) for i in inputs)
    output = Step(tuple(i for i in inputs if i.field.name in wanted), shape)
    plan = ColumnPlan(columns, output, chosen=chosen, numbers_rows=numbers_rows)
    if predicate is None and not drops_retracts:
        return plan
    kept = [sorted(_positions(output, number)) for number in range(len(columns))]
    test = RowTest(
        Step(tuple(i for i in inputs if i.field.name in tested)),
        predicate,
        drops_retracts,
        tuple(map(tuple, (*kept, [0]) if numbers_rows else kept)),
    )
    # Files side by side are read row by row, so no row of one of them may be skipped.
    can_skip = predicate is not None and len(columns) == 1
    own = tuple(f for f in columns[0].fields if not (is_tracked and is_hidden(f)))
    skipping = translate_predicate(predicate, own) if can_skip and predicate else None
    return replace(plan, output=_moved(output, kept), test=test, skipping=skipping)


def _plan_input(
    files: Sequence[tuple[DataField, ...]],
    field: DataField,
    constants: Collection[str],
    reads: list[list[DataField]],
    *,
    is_tracked: bool,
) -> Input:
    """Where a column comes from; what must be read for it is added to the reads of its file."""
    if is_tracked and is_hidden(field):
        known = RowIds() if field.id == ROW_ID_FIELD.id else Constant(SEQUENCE)
        # Only the newest file knows when its rows changed.
        holders = files[:1] if field.id == SEQUENCE_FIELD.id else files
        found = _plan_stored(holders, field, reads)
        return Input(field, FirstOf(found, known) if isinstance(found, Stored) else known)
    if field.name in constants:
        return Input(field, Constant(field.name))
    return Input(field, _plan_stored(files, field, reads))


def _plan_stored(
    files: Sequence[tuple[DataField, ...]], field: DataField, reads: list[list[DataField]]
) -> Stored | None:
    for number, columns in enumerate(files):
        old = next((f for f in columns if f.id == field.id), None)
        if old is None:
            continue
        part = part_of_file(old, field)
        if part is None:
            return None
        if part not in reads[number]:
            reads[number].append(part)
        return Stored(number, reads[number].index(part), part.type)
    return None


def _stored_in(source: Source) -> Stored | None:
    """The stored column of a source, if it has one."""
    if isinstance(source, FirstOf):
        return source.stored
    return source if isinstance(source, Stored) else None


def _needs_positions(source: Source) -> bool:
    return isinstance(source.otherwise if isinstance(source, FirstOf) else source, RowIds)


def _with_stored(source: Source, change: Callable[[Stored], Stored]) -> Source:
    """The same source with its stored column in another place."""
    if isinstance(source, FirstOf):
        return replace(source, stored=change(source.stored))
    return change(source) if isinstance(source, Stored) else source


def _renumbered(source: Source, chosen: Sequence[int]) -> Source:
    """The source for a read of the chosen files alone."""
    return _with_stored(source, lambda stored: replace(stored, file=chosen.index(stored.file)))


def _positions(step: Step, file: int) -> set[int]:
    """The columns that the step takes from a file."""
    sources = [stored for i in step.inputs if (stored := _stored_in(i.source)) is not None]
    return {source.position for source in sources if source.file == file}


def _moved(step: Step, kept: Sequence[Sequence[int]]) -> Step:
    """The step for rows that have only the columns that are kept."""

    def moved(stored: Stored) -> Stored:
        return replace(stored, position=kept[stored.file].index(stored.position))

    inputs = [replace(i, source=_with_stored(i.source, moved)) for i in step.inputs]
    return replace(step, inputs=tuple(inputs))


def _as_table(rows: Rows) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
