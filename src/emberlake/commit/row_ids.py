"""Give new rows their ids, and check changes of rows that have ids. Pure decisions.

Spec: "Row tracking", "Data evolution". Ids are given at the commit, from the number that the latest
snapshot has reached, and again in every attempt: an attempt that lost its race has given none.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from emberlake.errors import CommitConflict, ConflictReason, CorruptFile, InvalidInput
from emberlake.spec.file_groups import group_files, is_dedicated, row_range
from emberlake.spec.manifest import DataFile, FileKind, FileSource, ManifestEntry
from emberlake.spec.row_tracking import ROW_ID
from emberlake.spec.snapshot import CommitKind


def assign_row_ids(
    entries: Sequence[ManifestEntry],
    *,
    snapshot_id: int,
    next_row_id: int,
    by_partition: bool = True,
) -> tuple[tuple[ManifestEntry, ...], int]:
    """The entries with row ids and sequence numbers, and the next row id.

    Args:
        entries: The delta of a commit.
        snapshot_id: The snapshot that it makes. That is the number of its new and changed rows.
        next_row_id: The first id that no row has had.
        by_partition: Whether ids of one partition are contiguous.
    """
    order = list(range(len(entries)))
    if by_partition:
        first_seen = {entry.partition: at for at, entry in reversed(list(enumerate(entries)))}
        order.sort(key=lambda at: (first_seen[entries[at].partition], at))
    assigned = list(entries)
    beside = _Beside()
    for at in order:
        entry = entries[at]
        if entry.kind is FileKind.DELETE:
            continue  # it repeats what the file was added with
        file = _numbered(entry.file, snapshot_id)
        if is_dedicated(file.file_name):
            file = beside.placed(file)
        elif _is_counted(file):
            file = replace(file, first_row_id=next_row_id)
            next_row_id += file.row_count
        beside.follow(file)
        assigned[at] = replace(entry, file=file)
    return tuple(assigned), next_row_id


def _is_counted(file: DataFile) -> bool:
    """Whether the rows of a file are new, so that the commit gives them ids."""
    if file.file_source is None:
        raise InvalidInput(f"{file.file_name} does not say whether its rows are new")
    is_new = file.file_source is FileSource.APPEND and file.first_row_id is None
    return is_new and ROW_ID not in (file.write_cols or ())


def _numbered(file: DataFile, snapshot_id: int) -> DataFile:
    """Writers do not know the snapshot that they write for: they leave 0 in its place."""
    if file.min_sequence_number == 0:
        return replace(file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id)
    if file.max_sequence_number == 0:
        return replace(file, max_sequence_number=snapshot_id)
    return file


class _Beside:
    """Files of one column take the ids of the file before them, one part after the other."""

    def __init__(self) -> None:
        self._first = 0
        self._used: dict[tuple[str, ...] | None, int] = {}

    def follow(self, file: DataFile) -> None:
        if not is_dedicated(file.file_name):
            self._first, self._used = file.first_row_id or 0, {}

    def placed(self, file: DataFile) -> DataFile:
        if file.first_row_id is not None:
            return file
        used = self._used.get(file.write_cols, 0)
        self._used[file.write_cols] = used + file.row_count
        return replace(file, first_row_id=self._first + used)


# --- rows that have ids ---------------------------------------------------------------------------


def has_given_ids(entries: Iterable[ManifestEntry]) -> bool:
    """Whether a change adds files for rows that have ids."""
    return any(entry.file.first_row_id is not None for entry in entries)


FieldsOf = Callable[[DataFile], frozenset[int]]  # the ids of the columns of a file


def check_row_ranges(
    added: Sequence[ManifestEntry],
    kept: Sequence[ManifestEntry],
    kind: CommitKind,
    *,
    since: int,
    fields_of: FieldsOf,
) -> CommitConflict | None:
    """Files for existing rows must fit the files that hold these rows now.

    Args:
        added: The files to add.
        kept: The live files of the same partitions that stay.
        kind: The kind of commit.
        since: The snapshot that the writers saw. Files with a greater number came after it.
        fields_of: Gives the columns of a file.
    """
    by_partition: dict[bytes, list[DataFile]] = defaultdict(list)
    for entry in added:
        if entry.file.first_row_id is not None:
            by_partition[entry.partition].append(entry.file)
    beside: dict[bytes, list[DataFile]] = defaultdict(list)
    for entry in kept:
        if entry.partition in by_partition and entry.file.first_row_id is not None:
            beside[entry.partition].append(entry.file)
    for partition, ours in by_partition.items():
        touched = _Ranges(ours)
        theirs = [file for file in beside[partition] if touched.find(file) is not None]
        if kind is not CommitKind.COMPACT:
            conflict = _check_update(ours, touched, theirs, since, fields_of)
            if conflict is not None:
                return conflict
        try:
            group_files([*theirs, *ours])
        except CorruptFile as error:
            return _range_conflict(str(error))
    return None


def check_leave_together(
    deleted: Sequence[ManifestEntry], added: Sequence[ManifestEntry], kept: Sequence[ManifestEntry]
) -> CommitConflict | None:
    """Files that hold the same rows leave the table together, or others take their place.

    Otherwise a column that was written meanwhile would be left as rows without their other columns.

    Args:
        deleted: The files to delete.
        added: The files to add.
        kept: The live files of the same partitions that stay.
    """

    def of(partition: bytes, entries: Sequence[ManifestEntry]) -> list[DataFile]:
        here = (entry.file for entry in entries if entry.partition == partition)
        return [file for file in here if file.first_row_id is not None]

    for partition in {entry.partition for entry in deleted}:
        gone, new = _Ranges(of(partition, deleted)), _Ranges(of(partition, added))
        for file in of(partition, kept):
            if gone.find(file) is not None and new.find(file) is None:
                return _range_conflict(
                    f"{file.file_name} has columns of rows that are to be deleted with their files"
                )
    return None


class _Ranges:
    """The ranges of row ids of some files, to find those that another file overlaps."""

    def __init__(self, files: Iterable[DataFile]) -> None:
        # A column of its own may have a part of the range: the whole one comes first.
        self._ranges: list[tuple[int, int]] = []
        for first, stop in sorted(set(map(row_range, files)), key=lambda r: (r[0], -r[1])):
            if not self._ranges or first >= self._ranges[-1][1]:
                self._ranges.append((first, stop))
        self._firsts = [first for first, _ in self._ranges]

    def find(self, file: DataFile) -> tuple[int, int] | None:
        """The first range that shares a row with a file."""
        first, stop = row_range(file)
        place = bisect_right(self._firsts, first) - 1
        for found in self._ranges[max(place, 0) : place + 2]:
            if first < found[1] and found[0] < stop:
                return found
        return None


def _check_update(
    ours: Sequence[DataFile],
    touched: _Ranges,
    theirs: Sequence[DataFile],
    since: int,
    fields_of: FieldsOf,
) -> CommitConflict | None:
    by_range: dict[tuple[int, int] | None, list[DataFile]] = defaultdict(list)
    for other in theirs:
        by_range[touched.find(other)].append(other)
    twice = _written_twice(ours, fields_of)
    if twice is not None:
        return twice
    for file in ours:
        first, stop = row_range(file)
        others = by_range[touched.find(file)]
        is_held = any(row_range(f) == (first, stop) and not _is_apart(f) for f in others)
        if not (is_held or _is_apart(file)):
            return _range_conflict(f"no files hold exactly the rows {first} to {stop - 1}")
        newer = [other for other in others if other.max_sequence_number > since]
        fields = fields_of(file) if newer else frozenset()
        for other in newer:
            if fields & fields_of(other):
                return CommitConflict(
                    ConflictReason.COLUMN_CHANGED,
                    f"{other.file_name} of snapshot {other.max_sequence_number} has columns of the "
                    f"rows {first} to {stop - 1} that this writer read before",
                    "read the table again and redo the operation",
                )
    return None


def _written_twice(ours: Sequence[DataFile], fields_of: FieldsOf) -> CommitConflict | None:
    """Two files of one commit must not have the same column of the same rows: one would be lost."""
    by_range: dict[tuple[int, int], list[DataFile]] = defaultdict(list)
    for file in ours:
        by_range[row_range(file)].append(file)
    for (first, stop), files in by_range.items():
        seen: frozenset[int] = frozenset()
        for file in files if len(files) > 1 else ():
            if seen & fields_of(file):
                return CommitConflict(
                    ConflictReason.COLUMN_CHANGED,
                    f"several messages have new values of the same column for the rows {first} to "
                    f"{stop - 1}, which are in one file",
                    "give all new values of a file in one call, or cut the table into shards",
                )
            seen |= fields_of(file)
    return None


def _is_apart(file: DataFile) -> bool:
    return is_dedicated(file.file_name)


def _range_conflict(detail: str) -> CommitConflict:
    return CommitConflict(
        ConflictReason.ROW_RANGE_CHANGED,
        detail,
        "another writer compacted or replaced these rows; read the table again and redo the "
        "operation",
    )
