"""Compact one bucket of a primary-key table.

Picked files that share keys are merged into new files on the output level. Large files that share
none only change their level. If compaction keeps the levels apart, rows that leave level 0 meet
the older rows of their keys on the levels above. Spec: "Levels and compaction".
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.compaction.bucket import Bucket, Compacted
from emberlake.compaction.lookup import OlderRows, needs_older_rows
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
from emberlake.merge.order import key_at, key_bound
from emberlake.merge.plan import plan_merge
from emberlake.merge.rows import retracts_of
from emberlake.merge.runs import merge_runs
from emberlake.options import SMALL_FILE_RATIO
from emberlake.read.file_read import stream_rows
from emberlake.scan.runs import KeyRange, find_sections, key_ranges
from emberlake.spec.key_value import KIND_FIELD, key_fields
from emberlake.spec.manifest import DataFile, FileSource
from emberlake.write.key_files import open_key_files, physical_rows, target_bytes

# Merged rows are collected into row groups of a reasonable size.
_GROUP_ROWS: Final = 1_000_000
_GROUP_BYTES: Final = 64 * MEBIBYTE


def compact_key_bucket(bucket: Bucket, *, full: bool) -> Compacted | None:
    """Compact all of a bucket, or the files that are due; None if there is nothing to do."""
    pick = pick_files(bucket, full=full)
    if pick is None:
        return None
    rules = PickingRules.of(bucket.store.schema)
    return _KeyCompaction(bucket, pick, top_level(bucket.files, rules)).run()


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
    _before: list[DataFile] = field(default_factory=list, init=False)
    _after: list[DataFile] = field(default_factory=list, init=False)
    _written: list[DataFile] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        store = self.bucket.store
        self._plan = plan_merge(store.schema, store.schema.fields)
        self._has_vectors = store.schema.profile.has_deletion_vectors
        self._keeps_apart = store.schema.profile.keeps_levels_apart
        self._vectors = BucketVectors(self.bucket)
        self._ranges = _ranges_of(self.bucket)

    def run(self) -> Compacted | None:
        """Carry out the pick; if it fails, the files it has written are deleted."""
        try:
            for step in self._steps():
                if isinstance(step, Upgrade):
                    self._take_up(step.file)
                else:
                    self._rewrite(step)
            self._vectors.drop(_gone(self._before, self._after))
            change = self._vectors.write()
        except BaseException:
            self.bucket.discard(self._written)
            raise
        if not self._before:
            return None
        return Compacted(tuple(self._before), tuple(self._after), change)

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
        if not self._keeps_apart or file.level > 0:
            return False
        if has_deletes:
            return True
        # Rows that depend on those above, or give way to them, must be rewritten.
        is_free = self._has_vectors and not needs_older_rows(self._plan)
        return not is_free and bool(self._levels_above([file]))

    def _has_uncounted_deletes(self, file: DataFile) -> bool:
        """Whether a file holds deletes that are not counted; from level 1 on all are counted."""
        if file.level > 0 or file.delete_row_count != 0:
            return False
        kinds = stream_rows([self.bucket.read_keys(file, (KIND_FIELD,))])
        with closing(kinds):
            return any(retracts_of(rows).any() for rows in kinds)

    def _take_up(self, file: DataFile) -> None:
        if self._keeps_apart and file.level == 0:
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
                stream_rows([self.bucket.read_records(f, self._plan.read_fields) for f in run])
                for run in runs
            ]
            with closing(self._older_rows(section)) as older:
                yield from merge_runs(
                    self._plan,
                    streams,
                    keep_deletes=not self._drops_deletes,
                    complete=older.complete if older.has_files else None,
                )

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
        if self._keeps_apart and any(file.level == 0 for file in files):
            levels = self._levels_above(files)
        read = self.bucket.read_keys, self._plan.keys
        if needs_older_rows(self._plan):
            read = self.bucket.read_records, self._plan.read_fields
        read_file, fields = read
        return OlderRows(
            self._plan,
            [[read_file(file, fields) for file in level] for level in levels],
            self._vectors if self._has_vectors else None,
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
