"""Compact one bucket of a primary-key table.

Picked files that share keys are merged into new files on the output level. Large files that share
none only change their level. In tables that look up, rows that leave level 0 meet the older rows of
their keys on the levels above. What changes is recorded, if the table asks for it. Spec: "Levels
and compaction".
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.compaction.bucket import Bucket, Compacted
from emberlake.compaction.changes import ChangeRules, ChangeWriter
from emberlake.compaction.lookup import OlderRows
from emberlake.compaction.picking import (
    Pick,
    PickingRules,
    Rewrite,
    Upgrade,
    pick_full,
    pick_universal,
    plan_steps,
    top_level,
)
from emberlake.compaction.vectors import BucketVectors
from emberlake.errors import StorageError
from emberlake.merge.order import key_at, key_bound
from emberlake.merge.plan import plan_merge
from emberlake.merge.rows import retracts_of
from emberlake.merge.runs import merge_runs
from emberlake.options import SMALL_FILE_RATIO, MergeEngine
from emberlake.read.file_read import FileRead, stream_rows
from emberlake.scan.runs import KeyRange, find_sections, key_ranges
from emberlake.spec.key_value import KIND_FIELD, LEVEL, key_fields
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.types import DataField
from emberlake.write.key_files import (
    open_changelog_files,
    open_key_files,
    physical_rows,
    target_bytes,
)

# Merged rows are collected into row groups of a reasonable size.
_GROUP_ROWS: Final = 1_000_000
_GROUP_BYTES: Final = 64 * MEBIBYTE


def compact_key_bucket(
    bucket: Bucket, *, full: bool, with_changelog: bool = True
) -> Compacted | None:
    """Compact all of a bucket, or the files that are due; None if there is nothing to do.

    What it changes is recorded if the table asks for it, unless ``with_changelog`` is false.
    """
    pick = pick_files(bucket, full=full)
    if pick is None:
        return None
    rules = PickingRules.of(bucket.store.schema)
    top = top_level(bucket.files, rules)
    return _KeyCompaction(bucket, pick, top, with_changelog=with_changelog).run()


def pick_files(bucket: Bucket, *, full: bool) -> Pick | None:
    """The files of a bucket to compact: all of them, or those that are due; None if none is."""
    rules = PickingRules.of(bucket.store.schema)
    if full:
        return pick_full(bucket.files, rules, has_deletions=bucket.deletion_files.keys())
    return pick_universal(bucket.files, rules)


@dataclass
class _KeyCompaction:
    """Carries out one pick of one bucket."""

    bucket: Bucket
    pick: Pick
    top_level: int
    with_changelog: bool = True
    _before: list[DataFile] = field(default_factory=list, init=False)
    _after: list[DataFile] = field(default_factory=list, init=False)
    _written: list[DataFile] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        store = self.bucket.store
        self._plan = plan_merge(store.schema, store.schema.fields)
        self._profile = store.schema.profile
        self._has_vectors = self._profile.has_deletion_vectors
        self._vectors = BucketVectors(self.bucket)
        self._ranges = _ranges_of(self.bucket)
        self._changes = self._new_changes() if self.with_changelog else None

    def _new_changes(self) -> ChangeWriter | None:
        bucket, level = self.bucket, self.pick.output_level
        schema = bucket.store.schema
        rules = ChangeRules.of(
            schema, self._plan, bucket.files, output_level=level, top_level=self.top_level
        )
        if rules is None:
            return None
        place = bucket.store, bucket.partition, bucket.number
        return ChangeWriter(rules, schema, open_changelog_files(*place, level=level))

    def run(self) -> Compacted | None:
        """Carry out the pick; if it fails, the files it has written are deleted."""
        try:
            for step in self._steps():
                if isinstance(step, Upgrade):
                    self._take_up(step.file)
                else:
                    self._rewrite(step)
            self._vectors.drop(_gone(self._before, self._after))
            changelog = self._changes.finish() if self._changes is not None else ()
            self._written += changelog
            change = self._vectors.write()
        except BaseException:
            self._abort()
            raise
        if not self._before:
            return None
        return Compacted(tuple(self._before), tuple(self._after), change, changelog=changelog)

    def _abort(self) -> None:
        self.bucket.discard(self._written)
        if self._changes is not None:
            with suppress(StorageError):  # a leftover file is garbage; the failure is what matters
                self._changes.abort()

    # --- what is done -----------------------------------------------------------------------------

    def _steps(self) -> list[Upgrade | Rewrite]:
        store, files = self.bucket.store, self.pick.files
        if self.pick.rewrites_all:
            # One by one: files that stay may have keys in between.
            return [Rewrite((((file,),),)) for file in files]
        sections = find_sections([self._ranges[file.file_name] for file in files])
        return plan_steps(
            [[[files[place] for place in run] for run in section] for section in sections],
            self.pick.output_level,
            small_bytes=int(target_bytes(store.options) * store.options.value(SMALL_FILE_RATIO)),
            must_rewrite=self._must_rewrite,
        )

    def _must_rewrite(self, file: DataFile) -> bool:
        if self._has_uncounted_deletes(file):
            return True
        has_deletes = file.delete_row_count != 0  # unknown counts as some
        if has_deletes and self.pick.output_level == self.top_level:
            return True
        if not self._profile.looks_up or file.level > 0:
            return False
        if has_deletes and self._profile.keeps_levels_apart:
            return True
        # Rows that depend on those above, or give way to them, must be rewritten.
        above = self._levels_above([file])
        if self._plan.needs_older_rows or self._plan.engine is MergeEngine.FIRST_ROW:
            return bool(above)
        # Another writer may have given higher numbers to older rows, which hides them from reads.
        newest = max((f.max_sequence_number for level in above for f in level), default=-1)
        return not self._has_vectors and newest >= file.min_sequence_number

    def _has_uncounted_deletes(self, file: DataFile) -> bool:
        """Whether a file holds deletes that are not counted; from level 1 on all are counted."""
        if file.level > 0 or file.delete_row_count != 0:
            return False
        kinds = stream_rows([self.bucket.read_keys(file, (KIND_FIELD,))])
        with closing(kinds):
            return any(retracts_of(rows).any() for rows in kinds)

    def _take_up(self, file: DataFile) -> None:
        if self._changes is not None and self._changes.rules.is_unseen(file.level):
            self._record(file, self._changes)
        elif self._profile.keeps_levels_apart and file.level == 0:
            self._mark_older_rows(file)
        self._before.append(file)
        self._after.append(replace(file, level=self.pick.output_level))

    def _mark_older_rows(self, file: DataFile) -> None:
        """Mark the rows on higher levels that the rows of a file replace."""
        keys = self._plan.keys
        with closing(self._older_rows([[file]])) as older:
            if older.has_files:
                for rows in filter(len, stream_rows([self.bucket.read_keys(file, keys)])):
                    older.complete(rows, key_bound(key_at(rows, keys, rows.num_rows - 1)))

    def _record(self, file: DataFile, changes: ChangeWriter) -> None:
        """Record what a file changes that is not rewritten, and mark the rows that it replaces."""
        plan = self._plan
        records = stream_rows([self.bucket.read_leveled(file, plan.read_fields)])
        with closing(self._older_rows([[file]])) as older, closing(records):
            for rows in filter(len, records):
                bound = key_bound(key_at(rows, plan.keys, rows.num_rows - 1))
                changes.observe(older.complete(rows, bound), rows.drop_columns([LEVEL]))

    def _rewrite(self, step: Rewrite) -> None:
        bucket = self.bucket
        files = open_key_files(
            bucket.store,
            bucket.partition,
            bucket.number,
            level=self.pick.output_level,
            source=FileSource.COMPACT,
        )
        try:
            for rows in _gathered(self._merged(step)):
                files.write(physical_rows(bucket.store.schema, rows))
            files.close_file()
        except BaseException:
            files.abort()
            raise
        written = files.take()
        self._written += written
        self._after += written
        self._before += step.files

    def _merged(self, step: Rewrite) -> Iterator[pa.Table]:
        for section in step.sections:
            # Rows with equal numbers count in the order of their runs, as in reads.
            runs = sorted(section, key=lambda run: max(f.max_sequence_number for f in run))
            streams = [
                stream_rows([self._read(f, self._plan.read_fields) for f in run]) for run in runs
            ]
            with closing(self._older_rows(section)) as older:
                yield from merge_runs(
                    self._plan,
                    streams,
                    keep_deletes=not self._drops_deletes,
                    complete=older.complete if older.has_files else None,
                    observe=self._changes.observe if self._changes is not None else None,
                )

    @cached_property
    def _read(self) -> Callable[[DataFile, tuple[DataField, ...]], FileRead]:
        has_levels = self._plan.knows_levels or self._changes is not None
        return self.bucket.read_leveled if has_levels else self.bucket.read_records

    @cached_property
    def _drops_deletes(self) -> bool:
        """Whether no older row is left that a delete would have to hide."""
        level = self.pick.output_level
        highest = max(file.level for file in self.bucket.files)
        return level > 0 and (level >= highest or self._has_vectors)

    # --- what is above ----------------------------------------------------------------------------

    def _older_rows(self, section: Sequence[Sequence[DataFile]]) -> OlderRows:
        files = [file for run in section for file in run]
        levels: list[list[DataFile]] = []
        is_first = self._plan.engine is MergeEngine.FIRST_ROW
        has_changes = self._changes is not None
        hands_out = not is_first and (has_changes or self._plan.needs_older_rows)
        is_needed = hands_out or self._profile.keeps_levels_apart
        if self._profile.looks_up and is_needed and any(file.level == 0 for file in files):
            levels = self._levels_above(files)
        read = (self._read, self._plan.read_fields)
        if not hands_out:
            read = self.bucket.read_keys, self._plan.keys
        read_file, fields = read
        return OlderRows(
            self._plan,
            [[read_file(file, fields) for file in level] for level in levels],
            self._vectors if self._has_vectors else None,
            hands_out=hands_out,
        )

    def _levels_above(self, files: Sequence[DataFile]) -> list[list[DataFile]]:
        """The files above the output level that may share keys with some files, by level."""
        least = min(self._ranges[file.file_name][0] for file in files)
        greatest = max(self._ranges[file.file_name][1] for file in files)
        levels: dict[int, list[DataFile]] = {}
        for file in self.bucket.files:
            low, high = self._ranges[file.file_name]
            if file.level > self.pick.output_level and low <= greatest and high >= least:
                levels.setdefault(file.level, []).append(file)
        return [
            sorted(level, key=lambda file: self._ranges[file.file_name])
            for level in levels.values()
        ]


def _ranges_of(bucket: Bucket) -> dict[str, KeyRange]:
    types = [f.type for f in key_fields(bucket.store.schema)]
    least = pa.array([file.min_key for file in bucket.files], pa.large_binary())
    greatest = pa.array([file.max_key for file in bucket.files], pa.large_binary())
    names = (file.file_name for file in bucket.files)
    return dict(zip(names, key_ranges(types, least, greatest), strict=True))


def _gone(before: Sequence[DataFile], after: Sequence[DataFile]) -> set[str]:
    return {file.file_name for file in before} - {file.file_name for file in after}


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in larger tables."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        waiting.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.concat_tables(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)
