"""Read splits of primary-key tables: files as they are if no keys overlap, merged otherwise.

A section of files that share keys is merged in bounded memory, run by run. Filters on the key are
applied to the files before the merge, all others to the merged rows. Changes between snapshots are
not merged: they come with their row kinds. Spec: "Reading".
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, Protocol

import pyarrow as pa

from emberlake.merge.fold import fold
from emberlake.merge.levels import without_covered
from emberlake.merge.plan import MergePlan, plan_merge
from emberlake.merge.runs import merge_runs
from emberlake.predicates import (
    Predicate,
    and_all,
    columns_of,
    split_conjuncts,
)
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.column_plan import ColumnPlan, Constants, plan_columns
from emberlake.read.diff import compare_states
from emberlake.read.evolve import check_current
from emberlake.read.file_read import FileRead, stream_rows
from emberlake.read.projection import OutputShape
from emberlake.scan.files import conjuncts_on
from emberlake.scan.runs import KeyRange, find_sections, key_ranges
from emberlake.scan.splits import DataSplit
from emberlake.spec.key_value import (
    KIND_FIELD,
    LEVEL,
    LEVEL_FIELD,
    SEQUENCE,
    SEQUENCE_FIELD,
    key_value_fields,
)
from emberlake.spec.key_value import key_fields as key_fields_of
from emberlake.spec.manifest import DataFile
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

# Up to this many rows, a section is merged in one step if all of its rows are wanted at once.
_ROWS_AT_ONCE: Final = 8_000_000


class UnitRead(Protocol):
    """A part of a read that can be done independently."""

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows in bounded memory; closing the generator releases files."""

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""


@dataclass(frozen=True)
class KeyReader:
    """Cuts splits of a primary-key table into parts that can be read independently."""

    store: TableStore
    shape: OutputShape
    predicate: Predicate | None
    _plans: dict[object, ColumnPlan] = field(default_factory=dict, compare=False, repr=False)

    def for_plan(self, planned: Predicate | None) -> "KeyReader":
        """The reader for splits that were planned with a predicate, perhaps another one.

        A plan leaves out files without a matching key, so rows of other keys may be outdated.
        """
        keys = conjuncts_on(self.store.schema.trimmed_primary_keys, planned)
        if keys is None or planned == self.predicate:
            return self
        return replace(self, predicate=and_all([self.predicate, keys]), _plans={})

    def units(self, split: DataSplit) -> Iterator[UnitRead]:
        """The parts of a split, in order."""
        reads = BucketReads.of_split(self.store, split)
        if split.before is not None:
            before = BucketReads.of_split(self.store, split.before)
            yield DiffRead(
                self._state(before, split.before),
                self._state(reads, split),
                MergeOutput(self._diff_output, reads.constants),
                self.shape.with_kind,
            )
        elif split.is_changes or split.raw_convertible:
            for file, is_exact in zip(split.files, split.is_exact, strict=True):
                yield reads.read(file, self._file_plan(split, file, is_exact=is_exact))
        else:
            yield from self._section_reads(reads, split)

    # --- without a merge --------------------------------------------------------------------------

    def _file_plan(self, split: DataSplit, file: DataFile, *, is_exact: bool) -> ColumnPlan:
        """How to read a file whose rows need no merge."""
        # What the plan knows about whole files is true for its own predicate only.
        is_plain = is_exact and split.predicate == self.predicate
        predicate = None if is_plain else self.predicate
        # A reader of changes without kinds could not tell a delete from a row.
        shows_all = split.is_changes or self.shape.with_deletes
        drops_retracts = not (shows_all and self.shape.with_kind) and may_retract(file)
        keeps_kind = self.shape.with_kind and (shows_all or not split.raw_convertible)
        key = (file.schema_id, is_plain, drops_retracts, keeps_kind)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = plan_columns(
                [self._file_fields(file.schema_id)],
                self.shape.projection.read_fields(self.store.schema.fields, predicate),
                self.shape,
                predicate=predicate,
                constants=self.store.schema.partition_keys,
                drops_retracts=drops_retracts,
                keeps_kind=keeps_kind,
            )
        return plan

    def _file_fields(self, schema_id: int) -> tuple[DataField, ...]:
        written = self.store.schemas.load(schema_id)
        return key_value_fields(check_current(written, self.store.schema))

    # --- with a merge -----------------------------------------------------------------------------

    def _section_reads(self, reads: BucketReads, split: DataSplit) -> Iterator[UnitRead]:
        output = MergeOutput(self._merge_output, reads.constants)
        is_exact = dict(zip((file.file_name for file in split.files), split.is_exact, strict=True))
        for section in sections_of(self.store, split):
            if len(section) == 1:
                for file in section[0]:
                    plan = self._file_plan(split, file, is_exact=is_exact[file.file_name])
                    yield reads.read(file, plan)
            else:
                runs = self._runs(reads, section, self._plan)
                yield SectionRead(self._plan, runs, output, self.shape.with_deletes)

    def _runs(
        self, reads: BucketReads, section: Sequence[Sequence[DataFile]], plan: MergePlan
    ) -> tuple[tuple[FileRead, ...], ...]:
        """The reads of the runs of a section, the oldest first."""
        runs = sorted(section, key=lambda run: max(f.max_sequence_number for f in run))
        # If each run is newer than the one before, its rank can replace its sequence numbers.
        has_ages = all(_is_older(old, new) for old, new in pairwise(runs))
        return tuple(
            tuple(
                reads.read(
                    file,
                    self._run_plan(file, plan, has_ages=has_ages),
                    sequence=age if has_ages else None,
                )
                for file in run
            )
            for age, run in enumerate(runs)
        )

    def _run_plan(self, file: DataFile, plan: MergePlan, *, has_ages: bool) -> ColumnPlan:
        key = (file.schema_id, id(plan), has_ages)
        columns = self._plans.get(key)
        if columns is None:
            # Where the newest record is the row, ages say all that levels would.
            has_levels = plan.knows_levels and (plan.engine.builds_rows or not has_ages)
            fields = (*plan.read_fields, SEQUENCE_FIELD, KIND_FIELD)
            columns = self._plans[key] = plan_columns(
                [self._file_fields(file.schema_id)],
                (*fields, LEVEL_FIELD) if has_levels else fields,
                predicate=self._before_merge,
                constants=(
                    *self.store.schema.partition_keys,
                    *((SEQUENCE,) if has_ages else ()),
                    *((LEVEL,) if has_levels else ()),
                ),
            )
        return columns

    def _output_plan(self, merged: MergePlan, fields: tuple[DataField, ...]) -> ColumnPlan:
        """The plan of merged rows, which are read as if they were a file."""
        return plan_columns(
            [(*merged.read_fields, KIND_FIELD)],
            fields,
            self.shape,
            predicate=self._after_merge,
            constants=self.store.schema.partition_keys,
            keeps_kind=self.shape.with_kind,
        )

    @cached_property
    def _merge_output(self) -> ColumnPlan:
        # Merged nested columns may have more fields than wanted.
        merged = {f.name: f for f in self._plan.read_fields}
        fields = tuple(merged.get(f.name, f) for f in self._read_fields)
        return self._output_plan(self._plan, fields)

    @cached_property
    def _read_fields(self) -> tuple[DataField, ...]:
        return self.shape.projection.read_fields(self.store.schema.fields, self.predicate)

    @cached_property
    def _plan(self) -> MergePlan:
        keys = self.store.schema.partition_keys
        wanted = tuple(f for f in self._read_fields if f.name not in keys)
        return plan_merge(self.store.schema, wanted)

    @cached_property
    def _before_merge(self) -> Predicate | None:
        return conjuncts_on(self.store.schema.trimmed_primary_keys, self.predicate)

    @cached_property
    def _after_merge(self) -> Predicate | None:
        keys = frozenset(self.store.schema.trimmed_primary_keys)
        return and_all(p for p in split_conjuncts(self.predicate) if not columns_of(p) <= keys)

    # --- two states -------------------------------------------------------------------------------

    def _state(self, reads: BucketReads, split: DataSplit) -> "StateRead":
        """All rows of a bucket, with all columns."""
        sections = tuple(
            self._runs(reads, section, self._whole_plan)
            for section in sections_of(self.store, split)
        )
        return StateRead(self._whole_plan, sections)

    @cached_property
    def _diff_output(self) -> ColumnPlan:
        return self._output_plan(self._whole_plan, self.store.schema.fields)

    @cached_property
    def _whole_plan(self) -> MergePlan:
        schema = self.store.schema
        wanted = tuple(f for f in schema.fields if f.name not in schema.partition_keys)
        return plan_merge(schema, wanted)


def may_retract(file: DataFile) -> bool:
    """Whether a file can have records that retract a row."""
    # Not every writer counts the deletes of files that it flushes; reading their kinds is cheap.
    return file.level == 0 or file.delete_row_count != 0


def _is_older(old: Sequence[DataFile], new: Sequence[DataFile]) -> bool:
    latest = max(file.max_sequence_number for file in old)
    return latest < min(file.min_sequence_number for file in new)


def sections_of(store: TableStore, split: DataSplit) -> list[list[list[DataFile]]]:
    """The files of a split by section and run."""
    types = [f.type for f in key_fields_of(store.schema)]
    files = split.files
    ranges: list[KeyRange] = []
    if files:
        ranges = key_ranges(types, split.entries.min_key, split.entries.max_key)
    return [
        [[files[index] for index in run] for run in section] for section in find_sections(ranges)
    ]


@dataclass(frozen=True)
class MergeOutput:
    """Turns merged rows into output: partition columns, remaining filters, projection."""

    plan: ColumnPlan
    constants: Constants

    def apply(self, rows: pa.Table) -> pa.Table:
        """The output for merged rows."""
        (merged,) = self.plan.files
        return self.plan.apply([rows.select([f.name for f in merged.read])], self.constants)


@dataclass(frozen=True)
class SectionRead:
    """Runs that share keys, to be merged."""

    plan: MergePlan
    runs: tuple[tuple[FileRead, ...], ...]
    output: MergeOutput
    keep_deletes: bool = False

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Merged rows, with one batch per run in memory; closing it releases the files."""
        streams = [stream_rows(run) for run in self.runs]
        with closing(merge_runs(self.plan, streams, keep_deletes=self.keep_deletes)) as tables:
            for rows in tables:
                yield from self.output.apply(rows).to_batches()

    def table(self, *, use_threads: bool) -> pa.Table:
        """All merged rows."""
        rows = merge_section(
            self.plan, self.runs, use_threads=use_threads, keep_deletes=self.keep_deletes
        )
        return self.output.apply(rows)


@dataclass(frozen=True)
class StateRead:
    """All rows of a bucket, section by section."""

    plan: MergePlan
    sections: tuple[tuple[tuple[FileRead, ...], ...], ...]

    def table(self, *, use_threads: bool) -> pa.Table | None:
        """The rows in key order; None where there are no files."""
        tables = [merge_section(self.plan, runs, use_threads=use_threads) for runs in self.sections]
        return pa.concat_tables(tables) if tables else None


@dataclass(frozen=True)
class DiffRead:
    """Two states of a bucket, to be compared."""

    before: StateRead
    after: StateRead
    output: MergeOutput
    with_deletes: bool  # also return rows that are gone

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The differences; both states are in memory."""
        yield from self.table(use_threads=True).to_batches()

    def table(self, *, use_threads: bool) -> pa.Table:
        """The differences."""
        rows = compare_states(
            self.after.plan,
            self.before.table(use_threads=use_threads),
            self.after.table(use_threads=use_threads),
            with_deletes=self.with_deletes,
        )
        return self.output.apply(rows)


def merge_section(
    plan: MergePlan,
    runs: Sequence[Sequence[FileRead]],
    *,
    use_threads: bool,
    keep_deletes: bool = False,
) -> pa.Table:
    """The rows of runs, merged; all of them in memory."""
    files = [file for run in runs for file in run]
    if sum(file.row_count for file in files) <= _ROWS_AT_ONCE:
        tables = [file.table(use_threads=use_threads) for file in files]
        records = without_covered(plan, pa.concat_tables(tables))
        return fold(plan, records, keep_deletes=keep_deletes)
    streams = [stream_rows(run) for run in runs]
    merged = list(merge_runs(plan, streams, keep_deletes=keep_deletes))
    if merged:
        return pa.concat_tables(merged)
    return files[0].arrow_schema.empty_table()
