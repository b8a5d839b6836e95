"""What a read would do: which files it opens, which it skips, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from emberlake.scan.explanation import ExplainedFile, Explanation, Reason

MAX_CELLS: Final = 800
SHOWN_FILES: Final = 40  # of each reason

Why = Callable[[Sequence[ExplainedFile]], Sequence[str]]


@dataclass(frozen=True)
class ReasonTotal:
    """All files that are read or skipped for one reason."""

    reason: Reason
    files: int
    rows: int
    bytes: int
    files_share: float
    bytes_share: float


@dataclass(frozen=True)
class FileCell:
    """One file in the map, or several with the same reason."""

    reason: Reason
    files: int
    rows: int
    bytes: int
    text: str


@dataclass(frozen=True)
class FileLine:
    """A file in the list; ``why`` is what its metadata says about the columns of the filter."""

    reason: Reason
    path: str
    rows: int
    bytes: int
    why: str


@dataclass(frozen=True)
class PlanView:
    """A plan, file by file."""

    text: str
    filter: str | None
    snapshot_id: int | None
    manifests: int
    manifests_read: int
    splits: int
    files: int
    files_read: int
    rows_read: int
    bytes_read: int
    bytes: int
    totals: tuple[ReasonTotal, ...]
    cells: tuple[FileCell, ...]
    together: int
    lines: tuple[FileLine, ...]
    left_out: int


def plan_view_of(text: str, plan: Explanation, why: Why) -> PlanView:
    """The view of an explanation.

    Args:
        text: The filter as it was typed.
        plan: The explanation.
        why: Tells what the metadata of files says; called with those that are listed.
    """
    files = sorted(plan.files, key=lambda f: list(Reason).index(f.reason))
    everything = sum(f.file_size for f in files)
    by_reason = {
        reason: list(members) for reason, members in groupby(files, key=lambda f: f.reason)
    }
    read = plan.files_read
    together = max(1, -(-len(files) // MAX_CELLS))
    listed = [file for members in by_reason.values() for file in members[:SHOWN_FILES]]
    root = plan.table_path.rstrip("/") + "/"
    return PlanView(
        text=text,
        filter=plan.predicate,
        snapshot_id=plan.snapshot_id,
        manifests=plan.manifests,
        manifests_read=plan.manifests_read,
        splits=plan.split_count,
        files=len(files),
        files_read=len(read),
        rows_read=sum(f.row_count for f in read),
        bytes_read=sum(f.file_size for f in read),
        bytes=everything,
        totals=tuple(
            _total(reason, members, len(files), everything) for reason, members in by_reason.items()
        ),
        cells=tuple(
            _file_cell(members[i : i + together], root)
            for members in by_reason.values()
            for i in range(0, len(members), together)
        ),
        together=together,
        lines=tuple(
            FileLine(f.reason, f.path.removeprefix(root), f.row_count, f.file_size, said)
            for f, said in zip(listed, why(listed), strict=True)
        ),
        left_out=len(files) - len(listed),
    )


def _total(
    reason: Reason, files: Sequence[ExplainedFile], count: int, everything: int
) -> ReasonTotal:
    size = sum(f.file_size for f in files)
    return ReasonTotal(
        reason,
        len(files),
        sum(f.row_count for f in files),
        size,
        len(files) / count,
        size / everything if everything else 0.0,
    )


def _file_cell(files: Sequence[ExplainedFile], root: str) -> FileCell:
    first = files[0]
    text = first.path.removeprefix(root) if len(files) == 1 else f"{len(files):,} files"
    return FileCell(
        first.reason,
        len(files),
        sum(f.row_count for f in files),
        sum(f.file_size for f in files),
        text,
    )
