"""Explain what a read would do: which files it opens and skips, and which step skips them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow.compute as pc

from emberlake.base.html import html_facts, html_table, html_title
from emberlake.base.names import listed
from emberlake.predicates import Predicate, columns_of
from emberlake.scan.files import (
    Mask,
    file_paths,
    partition_part,
    test_buckets,
    test_partitions,
    test_statistics,
)
from emberlake.scan.plan import ScanPlan, plan_scan
from emberlake.scan.splits import DataSplit
from emberlake.spec.manifest import DataFile
from emberlake.spec.profile import BucketMode
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_SHOWN_FILES: Final = 20  # of those that are read, and of those that are not
_SHOWN_COLUMNS: Final = 20


class Reason(StrEnum):
    """Why a file is read or not."""

    READ = "read"
    ALL_ROWS_MATCH = "read, all rows match"
    PARTITION = "skipped: its partition does not match"
    BUCKET = "skipped: its bucket cannot hold a match"
    STATISTICS = "skipped: its statistics exclude a match"
    LIMIT = "skipped: the limit is reached before it"

    @property
    def is_read(self) -> bool:
        return self in (Reason.READ, Reason.ALL_ROWS_MATCH)


_RANKS: Final = {reason: rank for rank, reason in enumerate(Reason)}


@dataclass(frozen=True)
class ExplainedFile:
    """One live file of the snapshot, and why it is read or skipped."""

    path: str
    row_count: int
    file_size: int
    reason: Reason


@dataclass(frozen=True)
class PruningStat:
    """How many files reached one step of pruning, and how many it left."""

    before: int
    after: int

    @property
    def pruned(self) -> int:
        return self.before - self.after


@dataclass(frozen=True)
class ExplainedSplit:
    """One split of the plan."""

    partition: Mapping[str, object]
    bucket: int
    row_count: int
    merged_row_count: int | None
    file_size: int
    raw_convertible: bool
    deletion_file_count: int
    entries: ManifestEntries = field(repr=False)
    store: TableStore = field(repr=False, compare=False)

    # A plan may have very many files, and few readers want to see each of them.
    @cached_property
    def file_paths(self) -> tuple[str, ...]:
        return tuple(file_paths(self.store, self.entries).to_pylist())

    @cached_property
    def data_files(self) -> tuple[DataFile, ...]:
        return tuple(self.entries.files())

    @property
    def file_count(self) -> int:
        return len(self.entries)

    @property
    def has_deletion_vectors(self) -> bool:
        return self.deletion_file_count > 0

    @property
    def level_histogram(self) -> dict[int, int]:
        """The number of files per level."""
        return dict(Counter(self.entries.level.tolist()))


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a read would do; ``str()`` gives a report.

    The files that are read come first, then those that are skipped, by reason.
    """

    table_path: str
    table_identifier: str
    is_primary_key_table: bool
    bucket_mode: str
    deletion_vectors_enabled: bool
    snapshot_id: int | None
    schema_id: int | None
    predicate: str | None
    columns: tuple[str, ...]
    projection: list[str] | None  # the columns, if not all of them were requested
    limit: int | None
    manifests: int
    manifests_read: int
    files: tuple[ExplainedFile, ...]  # those that are read come first
    planned: tuple[ExplainedSplit, ...]
    # Files before and after a step; None if it has nothing to decide on.
    partition_pruning: PruningStat | None = None
    bucket_pruning: PruningStat | None = None
    file_skipping: PruningStat | None = None
    verbose: bool = False
    spark: str | None = None  # how a session would read the files, if it was given
    data_evolution_enabled: bool = False
    # Features of tables that emberlake refuses, and of other planners: always false.
    has_auth: bool = False
    native_planned: bool = False

    @property
    def files_read(self) -> tuple[ExplainedFile, ...]:
        return tuple(f for f in self.files if f.reason.is_read)

    @property
    def files_skipped(self) -> tuple[ExplainedFile, ...]:
        return tuple(f for f in self.files if not f.reason.is_read)

    @property
    def splits(self) -> list[ExplainedSplit] | None:
        """The splits of the plan, if the explanation is verbose."""
        return list(self.planned) if self.verbose else None

    @property
    def split_count(self) -> int:
        return len(self.planned)

    @property
    def file_count(self) -> int:
        """The number of files that are read."""
        return sum(split.file_count for split in self.planned)

    @property
    def total_file_size(self) -> int:
        """The number of bytes in these files."""
        return sum(split.file_size for split in self.planned)

    @property
    def estimated_row_count(self) -> int:
        """The number of rows stored in these files."""
        return sum(split.row_count for split in self.planned)

    @property
    def estimated_merged_row_count(self) -> int | None:
        """The number of rows that a read without a filter returns, if that is known."""
        counts = [split.merged_row_count for split in self.planned]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    @property
    def deletion_file_count(self) -> int:
        """The number of files that have deleted rows."""
        return sum(split.deletion_file_count for split in self.planned)

    @property
    def level_histogram(self) -> dict[int, int]:
        """The number of these files per level."""
        total: Counter[int] = Counter()
        for split in self.planned:
            total.update(split.level_histogram)
        return dict(total)

    @property
    def splits_raw_convertible(self) -> int:
        """The number of splits that are read without merging."""
        return sum(split.raw_convertible for split in self.planned)

    @property
    def splits_with_deletion_vectors(self) -> int:
        return sum(split.has_deletion_vectors for split in self.planned)

    @property
    def splits_all_above_l0(self) -> int:
        """The number of splits with only compacted files."""
        return sum(bool((split.entries.level > 0).all()) for split in self.planned)

    @property
    def files_per_split_min(self) -> int:
        return min(self._files_per_split, default=0)

    @property
    def files_per_split_max(self) -> int:
        return max(self._files_per_split, default=0)

    @property
    def files_per_split_avg(self) -> float:
        return sum(self._files_per_split) / len(self._files_per_split) if self.planned else 0.0

    @property
    def split_size_min(self) -> int:
        return min(self._split_sizes, default=0)

    @property
    def split_size_max(self) -> int:
        return max(self._split_sizes, default=0)

    @property
    def split_size_avg(self) -> float:
        return sum(self._split_sizes) / len(self._split_sizes) if self.planned else 0.0

    @property
    def split_size_p50(self) -> int:
        return self._split_size_at(0.5)

    @property
    def split_size_p95(self) -> int:
        return self._split_size_at(0.95)

    @property
    def _files_per_split(self) -> list[int]:
        return [split.file_count for split in self.planned]

    @property
    def _split_sizes(self) -> list[int]:
        return [split.file_size for split in self.planned]

    def _split_size_at(self, share: float) -> int:
        sizes = sorted(self._split_sizes)
        return sizes[round(share * (len(sizes) - 1))] if sizes else 0

    def _repr_html_(self) -> str:
        read = self.files_read
        facts = {
            "snapshot": self.snapshot_id,
            "columns": ", ".join(self.columns),
            "filter": self.predicate,
            "limit": self.limit,
            "manifests": f"{self.manifests_read:,} of {self.manifests:,} read",
            "files": f"{len(read):,} of {len(self.files):,} read",
            "rows": sum(f.row_count for f in read),
            "bytes": sum(f.file_size for f in read),
            "splits": self.split_count,
            **({"spark": self.spark} if self.spark else {}),
        }
        shown = sorted(self.files, key=lambda f: list(Reason).index(f.reason))
        if not self.verbose:
            shown = shown[:_SHOWN_FILES]
        rows = [(f.path, f.row_count, f.file_size, f.reason) for f in shown]
        files = html_table(("file", "rows", "bytes", ""), rows)
        return html_title("Read of", self.table_path) + html_facts(facts) + files

    def __str__(self) -> str:
        read = self.files_read
        rows, size = sum(f.row_count for f in read), sum(f.file_size for f in read)
        lines = [
            f"Read of {self.table_path}",
            f"  snapshot   {self.snapshot_id if self.snapshot_id is not None else 'none yet'}",
            f"  columns    {listed(self.columns, _SHOWN_COLUMNS)}",
            f"  filter     {self.predicate or 'none'}",
            f"  limit      {'none' if self.limit is None else self.limit}",
            f"  manifests  {self.manifests_read} of {self.manifests} read",
            f"  files      {len(read)} of {len(self.files)} read: {rows:,} rows, {size:,} bytes",
            f"  splits     {self.split_count}",
            *([f"  spark      {self.spark}"] if self.spark else []),
        ]
        counts = Counter(f.reason for f in self.files)
        lines += [f"    {counts[reason]:>6}  {reason}" for reason in Reason if counts[reason]]
        for files in (read, self.files_skipped):
            shown = files if self.verbose else files[:_SHOWN_FILES]
            lines += [f"  {f.path}  {f.row_count:,} rows  {f.reason}" for f in shown]
            if left := len(files) - len(shown):
                what = "read" if files is read else "skipped"
                lines.append(f"  ... and {left:,} more {what}; explain(verbose=True) has all")
        return "\n".join(lines)


def explain_scan(
    store: TableStore,
    predicate: Predicate | None,
    limit: int | None,
    *,
    columns: Sequence[str],
    is_projected: bool = False,
    name: str | None = None,
    verbose: bool,
) -> Explanation:
    """Plan a read and account for every live file."""
    plan = plan_scan(store, predicate, limit)
    files = _explain_files(store, plan, predicate)
    by_partition, by_bucket, by_statistics = _pruning(store, predicate, files)
    return Explanation(
        table_path=store.layout.root,
        table_identifier=name or store.layout.root,
        is_primary_key_table=store.schema.profile.has_keys,
        bucket_mode=_bucket_mode(store),
        deletion_vectors_enabled=store.schema.profile.has_deletion_vectors,
        data_evolution_enabled=store.schema.profile.evolves_data,
        snapshot_id=plan.snapshot.id if plan.snapshot else None,
        schema_id=store.schema.id if plan.snapshot else None,
        predicate=None if predicate is None else str(predicate),
        columns=tuple(columns),
        projection=list(columns) if is_projected else None,
        limit=limit,
        manifests=plan.funnel.manifests,
        manifests_read=plan.funnel.manifests_read,
        files=tuple(sorted(files, key=lambda f: 0 if f.reason.is_read else _RANKS[f.reason])),
        planned=tuple(_explain_split(store, split) for split in plan.splits),
        partition_pruning=by_partition,
        bucket_pruning=by_bucket,
        file_skipping=by_statistics,
        verbose=verbose,
    )


def _explain_split(store: TableStore, split: DataSplit) -> ExplainedSplit:
    names, values = store.schema.partition_keys, store.partition_values(split.partition)
    return ExplainedSplit(
        partition=dict(zip(names, values, strict=True)),
        bucket=split.bucket,
        row_count=split.row_count,
        merged_row_count=split.merged_row_count(),
        file_size=split.file_size,
        raw_convertible=split.raw_convertible,
        deletion_file_count=len(split.deletion_files),
        entries=split.entries,
        store=store,
    )


def _bucket_mode(store: TableStore) -> str:
    """How rows get their bucket, in the words of the specification."""
    schema = store.schema
    match schema.profile.bucket_mode:
        case BucketMode.POSTPONED:
            return "POSTPONE_MODE"
        case BucketMode.FIXED:
            return "HASH_FIXED"
        case BucketMode.UNAWARE:
            return "BUCKET_UNAWARE"
        case BucketMode.DYNAMIC:
            is_whole = set(schema.partition_keys) <= set(schema.primary_keys)
            return "HASH_DYNAMIC" if is_whole else "CROSS_PARTITION"


def _pruning(
    store: TableStore, predicate: Predicate | None, files: Sequence[ExplainedFile]
) -> tuple[PruningStat | None, PruningStat | None, PruningStat | None]:
    """What partitions, buckets and statistics left out, one after another."""
    if predicate is None:
        return None, None, None
    counts = Counter(file.reason for file in files)
    inside = len(files) - counts[Reason.PARTITION]
    in_bucket = inside - counts[Reason.BUCKET]
    filtered, keys = columns_of(predicate), store.schema.bucket_keys
    has_hash = store.schema.profile.bucket_mode is BucketMode.FIXED
    names_bucket = has_hash and bool(keys) and filtered.issuperset(keys)
    return (
        PruningStat(len(files), inside) if store.schema.partition_keys else None,
        PruningStat(inside, in_bucket) if names_bucket else None,
        PruningStat(in_bucket, in_bucket - counts[Reason.STATISTICS]),
    )


def _test_rows(
    store: TableStore, entries: ManifestEntries, predicate: Predicate | None
) -> tuple[Mask, Mask]:
    """For every file: can it hold a matching row, and do all its rows match."""
    if not store.schema.profile.has_keys:
        return test_statistics(store, entries, predicate)
    # Whether a file of a primary-key table is read depends on those that share its keys.
    splits = plan_scan(store, predicate, None).splits
    exact = {
        file.file_name: is_exact and split.raw_convertible
        for split in splits
        for file, is_exact in zip(split.files, split.is_exact, strict=True)
    }
    names = entries.file_name.to_pylist()
    may = np.array([name in exact for name in names], bool)
    return may, np.array([exact.get(name, False) for name in names], bool)


def _explain_files(
    store: TableStore, plan: ScanPlan, predicate: Predicate | None
) -> list[ExplainedFile]:
    everything = plan_scan(store, None, None)
    entries = ManifestEntries.concat(split.entries for split in everything.splits)
    in_partition = test_partitions(store, entries, partition_part(store, predicate))
    in_bucket = test_buckets(store, entries, predicate)
    may, exact = _test_rows(store, entries, predicate)
    reasons = np.select(
        [~in_partition, ~in_bucket, ~may, exact & (predicate is not None)],
        [Reason.PARTITION, Reason.BUCKET, Reason.STATISTICS, Reason.ALL_ROWS_MATCH],
        Reason.READ,
    )
    planned = ManifestEntries.concat(split.entries for split in plan.splits).file_name
    names = entries.file_name
    is_planned = pc.is_in(names, planned.cast(names.type)).to_numpy(zero_copy_only=False)
    out = []
    for path, rows, size, reason, is_left in zip(
        file_paths(store, entries).to_pylist(),
        entries.row_count.tolist(),
        entries.file_size.tolist(),
        reasons.tolist(),
        is_planned.tolist(),
        strict=True,
    ):
        found = Reason(reason)
        final = found if is_left or not found.is_read else Reason.LIMIT
        out.append(ExplainedFile(path, rows, size, final))
    return sorted(out, key=lambda explained: not explained.reason.is_read)
