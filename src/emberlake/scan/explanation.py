"""What a read would do, as values: files that are read or skipped, splits, counts, a report."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final

from emberlake.base.html import (
    Part,
    html_bar,
    html_box,
    html_details,
    html_facts,
    html_legend,
    html_note,
    html_table,
    html_title,
)
from emberlake.base.names import listed
from emberlake.base.texts import count_text, size_text
from emberlake.scan.files import file_paths
from emberlake.spec.manifest import DataFile
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


# They are easy to tell apart on light and on dark backgrounds.
_COLOURS: Final = {
    Reason.READ: "#d9622b",
    Reason.ALL_ROWS_MATCH: "#e9a23b",
    Reason.PARTITION: "#5b93ad",
    Reason.BUCKET: "#9a78b8",
    Reason.STATISTICS: "#6f9a5f",
    Reason.LIMIT: "#8d8d8d",
}


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
        facts: dict[str, object] = {
            "snapshot": self.snapshot_id,
            "columns": listed(self.columns, _SHOWN_COLUMNS),
            "filter": self.predicate,
            "limit": self.limit,
            "manifests": f"{self.manifests_read:,} of {self.manifests:,} read",
            "files": f"{len(read):,} of {len(self.files):,} read",
            "rows": sum(f.row_count for f in read),
            "size": size_text(sum(f.file_size for f in read)),
            "splits": self.split_count,
            "spark": self.spark,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return html_box(
            html_title(f"Read of {self.table_identifier}", self.table_path),
            self._bars(),
            html_facts(known),
            self._listing(),
        )

    def _bars(self) -> str:
        """What is read and what is skipped, as shares of all files and of all their bytes."""
        counts = Counter(f.reason for f in self.files)
        sizes: Counter[Reason] = Counter()
        for f in self.files:
            sizes[f.reason] += f.file_size
        found = [reason for reason in Reason if counts[reason]]
        by_count = [
            Part(_COLOURS[r], counts[r], f"{r}: {count_text(counts[r], 'file')}") for r in found
        ]
        by_size = [Part(_COLOURS[r], sizes[r], f"{r}: {size_text(sizes[r])}") for r in found]
        return html_bar("files", by_count) + html_bar("bytes", by_size) + html_legend(by_count)

    def _listing(self) -> str:
        """Some of the files, folded away; a root that all paths share is left out."""
        shown = self.files if self.verbose else self.files[:_SHOWN_FILES]
        root = self.table_path.rstrip("/") + "/"
        rows = [
            (f.path.removeprefix(root), f.row_count, f.file_size, f.reason)
            for f in sorted(shown, key=lambda f: list(Reason).index(f.reason))
        ]
        if not rows:
            return ""
        left = len(self.files) - len(shown)
        note = html_note(f"and {left:,} more; explain(verbose=True) has all") if left else ""
        table = html_table(("file", "rows", "bytes", ""), rows)
        return html_details("files", table, note)

    def __repr__(self) -> str:
        filtered = f", filter {self.predicate!r}" if self.predicate else ""
        return (
            f"Explanation({self.table_identifier}, snapshot {self.snapshot_id}{filtered}: "
            f"{self.file_count:,} of {len(self.files):,} files read, "
            f"{size_text(self.total_file_size)})"
        )

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
