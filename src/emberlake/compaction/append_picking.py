"""Decide which small files of an append table are merged together. Pure decisions.

Spec: "Append-table compaction". Candidates are files well below the target size, and files with
many deleted rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emberlake.options import (
    DELETE_RATIO,
    MIN_FILE_COUNT,
    SMALL_FILE_RATIO,
    SPLIT_OPEN_FILE_COST,
    TableOptions,
)
from emberlake.spec.file_groups import FileGroup
from emberlake.spec.manifest import DataFile


@dataclass(frozen=True, kw_only=True)
class AppendRules:
    """When files of an append table are merged."""

    target_bytes: int
    small_bytes: int
    open_cost: int
    min_files: int
    delete_ratio: float

    @staticmethod
    def of(options: TableOptions, target_bytes: int) -> "AppendRules":
        """The rules that a table's options ask for."""
        return AppendRules(
            target_bytes=target_bytes,
            small_bytes=int(target_bytes * options.value(SMALL_FILE_RATIO)),
            open_cost=options.value(SPLIT_OPEN_FILE_COST),
            min_files=max(2, options.value(MIN_FILE_COUNT)),
            delete_ratio=options.value(DELETE_RATIO),
        )


Bin = tuple[DataFile, ...]
GroupBin = tuple[FileGroup, ...]
# The number of deleted rows of a file; 0 without a deletion vector.
DeletedRows = Callable[[DataFile], int]


def pick_unordered(
    files: Sequence[DataFile], rules: AppendRules, deleted_rows: DeletedRows, *, full: bool
) -> list[Bin]:
    """Files to merge in a table without buckets, whose rows have no order.

    Files are packed from the smallest up. A pack is merged if it is as large as two files of the
    target size, or has enough files. With ``full`` two files are enough, and files with deleted
    rows are always rewritten.
    """
    candidates = [f for f in files if _is_candidate(f, rules, deleted_rows, full=full)]
    candidates.sort(key=lambda file: (file.file_size, file.min_sequence_number, file.file_name))
    stale = [file for file in candidates if deleted_rows(file)]
    rest = [file for file in candidates if not deleted_rows(file)]
    return [
        *_pack(stale, rules, least=1),
        *_pack(rest, rules, least=2 if full else rules.min_files),
    ]


def pick_ordered(
    files: Sequence[DataFile], rules: AppendRules, deleted_rows: DeletedRows, *, full: bool
) -> list[Bin]:
    """Files to merge in a bucket, whose rows keep the order in which they were written.

    Only neighbours are merged, as many as fit the target size.
    """
    bins: list[Bin] = []
    waiting: list[DataFile] = []

    def end() -> None:
        least = 2 if full else rules.min_files
        if len(waiting) >= least or any(deleted_rows(file) for file in waiting):
            bins.append(tuple(waiting))
        waiting.clear()

    for file in sorted(files, key=lambda f: (f.min_sequence_number, f.max_sequence_number)):
        if not _is_candidate(file, rules, deleted_rows, full=full):
            end()
            continue
        waiting.append(file)
        if sum(f.file_size for f in waiting) >= 2 * rules.target_bytes:
            end()
    end()
    return bins


def pick_groups(groups: Sequence[FileGroup], rules: AppendRules, *, full: bool) -> list[GroupBin]:
    """Groups of files side by side to merge; each bin becomes one file, which keeps the row ids.

    Groups are merged with those that follow them without a gap, up to the target size. A bin is
    merged if it has enough files, with ``full`` at least two.
    """
    least = 2 if full else rules.min_files
    bins: list[list[FileGroup]] = []
    end, size = -1, 0
    for group in sorted(groups, key=lambda group: group.first_row_id):
        weight = sum(file.file_size for file in group.files)
        if group.first_row_id != end or size + weight > rules.target_bytes:
            bins.append([])
            size = 0
        bins[-1].append(group)
        end, size = group.first_row_id + group.row_count, size + weight
    return [tuple(one) for one in bins if sum(len(group.files) for group in one) >= least]


def _is_candidate(
    file: DataFile, rules: AppendRules, deleted_rows: DeletedRows, *, full: bool
) -> bool:
    deleted = deleted_rows(file)
    too_many = deleted > rules.delete_ratio * file.row_count
    return file.file_size < rules.small_bytes or too_many or (full and deleted > 0)


def _pack(files: Sequence[DataFile], rules: AppendRules, *, least: int) -> list[Bin]:
    bins: list[Bin] = []
    waiting: list[DataFile] = []
    size = 0
    for file in files:
        waiting.append(file)
        size += file.file_size + rules.open_cost
        if len(waiting) > 1 and size >= 2 * rules.target_bytes:
            bins.append(tuple(waiting))
            waiting, size = [], 0
    if len(waiting) >= least:
        bins.append(tuple(waiting))
    return bins
