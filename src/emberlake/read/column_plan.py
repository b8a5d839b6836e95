"""One plan from the files that hold rows to the rows that are asked for.

A plan is made once for all files of a schema version. It says what to read of a file and, for every
column that comes out, where it is from and what is made of it: a column of a file is cast to the
type that it has by now, what the read knows by itself is filled in (the values of a partition), and
what nobody has is null. It is applied to a batch in one step or, where rows are chosen, in two: the
columns that tell which, then what comes out, of those rows alone. Rows may be spread over several
files that stand side by side, each with some of the columns. Spec: "Schema evolution".
"""

from collections.abc import Collection, Mapping, Sequence
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
from emberlake.spec.key_value import KIND, KIND_FIELD
from emberlake.types import DataField, DataType, arrow_schema, arrow_type

Rows: TypeAlias = pa.RecordBatch | pa.Table
Array: TypeAlias = pa.Array | pa.ChunkedArray
Constants: TypeAlias = Mapping[str, pa.Scalar]
NO_CONSTANTS: Final[Constants] = {}


@dataclass(frozen=True)
class FileColumns:
    """One of the files that hold the rows: its columns, and what to read of them."""

    fields: tuple[DataField, ...]
    read: tuple[DataField, ...]  # as the file has them


@dataclass(frozen=True)
class Stored:
    """A column of a file: which file, and the place in what is taken of it."""

    file: int
    place: int
    type: DataType  # as the file has it


@dataclass(frozen=True)
class Constant:
    """One value for all rows, which the read knows by this name."""

    name: str


@dataclass(frozen=True)
class Input:
    """A column of the table, and where it comes from; without a source it is null."""

    field: DataField
    source: Stored | Constant | None

    @cached_property
    def is_cast(self) -> bool:
        """Whether the file has it in another form."""
        source = self.source
        return isinstance(source, Stored) and not is_unchanged(source.type, self.field.type)

    def make(self, parts: Sequence[Rows], constants: Constants, row_count: int) -> Array:
        """The values of all rows."""
        match self.source:
            case Stored(file, place, old):
                column = parts[file].column(place)
                return evolved(column, old, self.field) if self.is_cast else column
            case Constant(name):
                return pa.repeat(constants[name], row_count)
            case None:
                return pa.nulls(row_count, arrow_type(self.field.type))


@dataclass(frozen=True)
class Step:
    """Some columns of the table, made at once."""

    inputs: tuple[Input, ...]
    shape: OutputShape | None = None  # what is handed out of them; None: just these

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what comes out."""
        if self.shape is not None:
            return self.shape.arrow_schema
        return arrow_schema(tuple(i.field for i in self.inputs))

    @cached_property
    def is_plain(self) -> bool:
        """Whether what comes out are columns of the first file, in the order of their places."""
        fields = [i.field for i in self.inputs]
        if not fields or not (self.shape is None or self.shape.hands_out(fields)):
            return False
        return all(
            isinstance(i.source, Stored)
            and (i.source.file, i.source.place) == (0, place)
            and not i.is_cast
            for place, i in enumerate(self.inputs)
        )

    def apply(self, parts: Sequence[Rows], constants: Constants, row_count: int) -> pa.Table:
        """The columns of rows, each part of which holds what is taken of one file."""
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
    """Which rows come out, and the columns that tell."""

    step: Step
    predicate: Predicate | None
    drops_retracts: bool
    # For each file the places of what comes out: nothing else is carried on.
    kept: tuple[tuple[int, ...], ...]

    def mask(
        self, parts: Sequence[Rows], constants: Constants, row_count: int
    ) -> pa.ChunkedArray | None:
        """True for the rows that come out; None when all do."""
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
    """How rows of files of one kind become the rows that are asked for."""

    files: tuple[FileColumns, ...]
    output: Step
    test: RowTest | None = None  # None: all rows come out
    skipping: Predicate | None = None  # what parts of the file may be skipped by

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what comes out."""
        return self.output.arrow_schema

    def apply(self, parts: Sequence[Rows], constants: Constants = NO_CONSTANTS) -> pa.Table:
        """What comes out of rows; a part for every file, with what is read of it."""
        return self._finish(parts, constants, self._mask(parts, constants))

    def locate(
        self, parts: Sequence[Rows], constants: Constants = NO_CONSTANTS
    ) -> tuple[I64, pa.Table]:
        """The same, and which of the rows they are, counted from the first."""
        mask = self._mask(parts, constants)
        if mask is None:
            places = np.arange(parts[0].num_rows)
        else:
            places = np.flatnonzero(mask.fill_null(False).to_numpy())
        return places, self._finish(parts, constants, mask)

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


def plan_columns(
    files: Sequence[tuple[DataField, ...]],
    fields: Sequence[DataField],
    shape: OutputShape | None = None,
    *,
    predicate: Predicate | None = None,
    constants: Collection[str] = (),
    drops_retracts: bool = False,
    keeps_kind: bool = False,
) -> ColumnPlan:
    """How to read columns of the table out of files with the given columns.

    Args:
        files: The columns of each file that holds some of the rows' columns; one file in most
            tables. A column is taken from the first that has it.
        fields: The columns of the table that are needed, for what comes out and for the filter.
        shape: What is handed out of them; None for the fields themselves.
        predicate: Rows that do not match are left out.
        constants: Columns that are read from no file: the read has one value for all rows.
        drops_retracts: Records that take a row back are left out.
        keeps_kind: The kind that is stored is the one that is handed out.

    Raises:
        Unsupported: a column has changed to a type that its old values cannot be cast to.
    """
    wanted = {f.name for f in fields} if shape is None else shape.projection.columns
    wanted |= {KIND} if keeps_kind else set()
    tested = columns_of(predicate) if predicate is not None else frozenset()
    tested |= {KIND} if drops_retracts else set()
    needed = [*fields, KIND_FIELD] if drops_retracts or keeps_kind else fields
    reads: list[list[DataField]] = [[] for _ in files]
    inputs = [_plan_input(files, f, constants, reads) for f in needed]
    output = Step(tuple(i for i in inputs if i.field.name in wanted), shape)
    columns = tuple(map(FileColumns, files, map(tuple, reads)))
    if predicate is None and not drops_retracts:
        return ColumnPlan(columns, output)
    kept = [sorted(_places(output, number)) for number in range(len(files))]
    test = RowTest(
        Step(tuple(i for i in inputs if i.field.name in tested)),
        predicate,
        drops_retracts,
        tuple(map(tuple, kept)),
    )
    # Files side by side are read row by row, so no row of one of them may be skipped.
    can_skip = predicate is not None and len(files) == 1
    skipping = translate_predicate(predicate, files[0]) if can_skip and predicate else None
    return ColumnPlan(columns, _moved(output, kept), test, skipping)


def _plan_input(
    files: Sequence[tuple[DataField, ...]],
    field: DataField,
    constants: Collection[str],
    reads: list[list[DataField]],
) -> Input:
    """Where a column comes from; what is to be read for it is added to the reads of its file."""
    if field.name in constants:
        return Input(field, Constant(field.name))
    for number, columns in enumerate(files):
        old = next((f for f in columns if f.id == field.id), None)
        if old is None:
            continue
        part = part_of_file(old, field)
        if part is None:
            return Input(field, None)
        if part not in reads[number]:
            reads[number].append(part)
        return Input(field, Stored(number, reads[number].index(part), part.type))
    return Input(field, None)


def _places(step: Step, file: int) -> set[int]:
    """What the step takes of a file."""
    sources = [i.source for i in step.inputs if isinstance(i.source, Stored)]
    return {source.place for source in sources if source.file == file}


def _moved(step: Step, kept: Sequence[Sequence[int]]) -> Step:
    """The step on rows that have no other columns than those that are kept."""
    inputs = [
        replace(i, source=replace(s, place=kept[s.file].index(s.place)))
        if isinstance(s := i.source, Stored)
        else i
        for i in step.inputs
    ]
    return replace(step, inputs=tuple(inputs))


def _as_table(rows: Rows) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
