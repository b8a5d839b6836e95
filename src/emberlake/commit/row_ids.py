"""Give new rows their ids, and check changes of rows that have some. Pure decisions.

Spec: "Row tracking", "Data evolution". Ids are given at the commit, from the number that the latest
snapshot has reached, and again in every attempt: an attempt that lost its race has given none.
"""

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
    """Files for rows that are there must fit those that hold the rows now.

    Args:
        added: The files to add.
        kept: The live files of the same partitions that stay.
        kind: The kind of commit.
        since: The snapshot that the writers saw. Files with a greater number came after it.
        fields_of: Gives the columns of a file.
    """
    for partition in dict.fromkeys(e.partition for e in added if e.file.first_row_id is not None):
        ours = [
            e.file for e in added if e.partition == partition and e.file.first_row_id is not None
        ]
        theirs = [e.file for e in kept if e.partition == partition and _overlaps(e.file, ours)]
        if kind is not CommitKind.COMPACT:
            conflict = _check_update(ours, theirs, since, fields_of)
            if conflict is not None:
                return conflict
        try:
            group_files([*theirs, *ours])
        except CorruptFile as error:
            return _range_conflict(str(error))
    return None


def _check_update(
    ours: Sequence[DataFile], theirs: Sequence[DataFile], since: int, fields_of: FieldsOf
) -> CommitConflict | None:
    ranges = {row_range(file) for file in theirs if not is_dedicated(file.file_name)}
    for file in ours:
        first, stop = row_range(file)
        if not is_dedicated(file.file_name) and (first, stop) not in ranges:
            return _range_conflict(f"no files hold exactly the rows {first} to {stop - 1}")
        fields = fields_of(file)
        for other in theirs:
            is_newer = other.max_sequence_number > since
            if is_newer and _overlaps(other, [file]) and fields & fields_of(other):
                return CommitConflict(
                    ConflictReason.COLUMN_CHANGED,
                    f"{other.file_name} of snapshot {other.max_sequence_number} has columns of the "
                    f"rows {first} to {stop - 1} that this writer read before",
                    "read the table again and redo the operation",
                )
    return None


def _overlaps(file: DataFile, others: Iterable[DataFile]) -> bool:
    if file.first_row_id is None:
        return False
    first, stop = row_range(file)
    return any(first < end and start < stop for start, end in map(row_range, others))


def _range_conflict(detail: str) -> CommitConflict:
    return CommitConflict(
        ConflictReason.ROW_RANGE_CHANGED,
        detail,
        "another writer compacted or replaced these rows; read the table again and redo the "
        "operation",
    )
