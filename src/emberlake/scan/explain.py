"""Say what a read would do: which files it opens, which it skips, and which step skips them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from emberlake.base.html import html_facts, html_table, html_title
from emberlake.predicates import Predicate
from emberlake.scan.files import (
    Mask,
    partition_part,
    test_buckets,
    test_partitions,
    test_statistics,
)
from emberlake.scan.plan import ScanPlan, plan_scan
from emberlake.spec.manifest import DataFile
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_SHOWN_FILES: Final = 20


class Reason(StrEnum):
    """Why a file is read or not."""

    READ = "read"
    ALL_ROWS_MATCH = "read, all rows match"
    PARTITION = "skipped: its partition does not match"
    BUCKET = "skipped: its bucket cannot hold a match"
    STATISTICS = "skipped: its statistics exclude a match"
    LIMIT = "skipped: the limit is reached before it"


@dataclass(frozen=True)
class ExplainedFile:
    """One live file of the snapshot and what becomes of it."""

    path: str
    row_count: int
    file_size: int
    reason: Reason


@dataclass(frozen=True)
class Explanation:
    """What a read would do; its text is made to be read."""

    table_path: str
    snapshot_id: int | None
    predicate: str | None
    columns: tuple[str, ...]
    limit: int | None
    manifests: int
    manifests_read: int
    files: tuple[ExplainedFile, ...]
    splits: int
    verbose: bool = False

    @property
    def files_read(self) -> tuple[ExplainedFile, ...]:
        return tuple(f for f in self.files if f.reason in (Reason.READ, Reason.ALL_ROWS_MATCH))

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
            "splits": self.splits,
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
            f"  columns    {', '.join(self.columns)}",
            f"  filter     {self.predicate or 'none'}",
            f"  limit      {'none' if self.limit is None else self.limit}",
            f"  manifests  {self.manifests_read} of {self.manifests} read",
            f"  files      {len(read)} of {len(self.files)} read: {rows:,} rows, {size:,} bytes",
            f"  splits     {self.splits}",
        ]
        counts = Counter(f.reason for f in self.files)
        lines += [f"    {counts[reason]:>6}  {reason}" for reason in Reason if counts[reason]]
        shown = self.files if self.verbose else self.files[:_SHOWN_FILES]
        lines += [f"  {f.path}  {f.row_count:,} rows  {f.reason}" for f in shown]
        if len(shown) < len(self.files):
            lines.append(
                f"  and {len(self.files) - len(shown)} more; explain(verbose=True) has all"
            )
        return "\n".join(lines)


def explain_scan(
    store: TableStore,
    predicate: Predicate | None,
    limit: int | None,
    *,
    columns: Sequence[str],
    verbose: bool,
) -> Explanation:
    """Plan a read and account for every live file."""
    plan = plan_scan(store, predicate, limit)
    return Explanation(
        table_path=store.layout.root,
        snapshot_id=plan.snapshot.id if plan.snapshot else None,
        predicate=None if predicate is None else str(predicate),
        columns=tuple(columns),
        limit=limit,
        manifests=plan.funnel.manifests,
        manifests_read=plan.funnel.manifests_read,
        files=tuple(_explain_files(store, plan, predicate)),
        splits=len(plan.splits),
        verbose=verbose,
    )


def _test_rows(
    store: TableStore, entries: ManifestEntries, predicate: Predicate | None
) -> tuple[Mask, Mask]:
    """For every file: can it hold a matching row, and do all its rows match."""
    if not store.schema.primary_keys:
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
    planned = {file.file_name for split in plan.splits for file in split.files}
    out = []
    for entry, reason in zip(entries.entries(), reasons.tolist(), strict=True):
        file: DataFile = entry.file
        kept = reason in (Reason.READ, Reason.ALL_ROWS_MATCH)
        final = Reason.LIMIT if kept and file.file_name not in planned else Reason(reason)
        path = store.data_file_path(entry.partition, entry.bucket, file)
        out.append(ExplainedFile(path, file.row_count, file.file_size, final))
    return out
