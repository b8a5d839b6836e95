"""Files that lie side by side: the same rows, each file with some of their columns.

Spec: "Data evolution". All files of one range of row ids form a group. A column comes from the
newest file that has it. Deleted rows are marked on the oldest file, the anchor, which stays when
columns are added or rewritten. BLOB and vector columns are in files of their own, which may hold
only a part of the range.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emberlake.errors import CorruptFile
from emberlake.spec.manifest import DataFile


def is_dedicated(file_name: str) -> bool:
    """Whether a file holds one column of a type that is kept apart: a BLOB, or a vector."""
    return file_name.endswith(".blob") or ".vector." in file_name


def row_range(file: DataFile) -> tuple[int, int]:
    """The first row id of a file, and the one after its last.

    Raises:
        CorruptFile: it has no row ids, which files of a table with data evolution must have.
    """
    first = file.first_row_id
    if first is None:
        raise CorruptFile(
            file.file_name, "it has no first row id, which data-evolution.enabled requires"
        )
    return first, first + file.row_count


@dataclass(frozen=True)
class FileGroup:
    """The files of one range of rows."""

    files: tuple[DataFile, ...]  # newest first; all have the same rows
    dedicated: tuple[DataFile, ...] = ()  # each has one column of some of the rows

    @property
    def first_row_id(self) -> int:
        return row_range(self.files[0])[0]

    @property
    def row_count(self) -> int:
        return self.files[0].row_count

    @property
    def anchor(self) -> DataFile:
        """The file that deletion vectors of the group refer to."""
        return min(self.files, key=lambda file: (file.max_sequence_number, file.file_name))

    @property
    def all_files(self) -> tuple[DataFile, ...]:
        return (*self.files, *self.dedicated)


def group_files(files: Iterable[DataFile]) -> list[FileGroup]:
    """The groups of some files of one partition, in the order of their row ids.

    Raises:
        CorruptFile: files share some rows but not all.
    """
    ordered = sorted(files, key=lambda file: (row_range(file), is_dedicated(file.file_name)))
    groups: list[list[DataFile]] = []
    end = -1
    for file in ordered:
        start, stop = row_range(file)
        if start >= end:
            groups.append([])
        groups[-1].append(file)
        end = max(end, stop)
    return [_checked(group) for group in groups]


def _checked(files: Sequence[DataFile]) -> FileGroup:
    normal = [file for file in files if not is_dedicated(file.file_name)]
    if not normal:
        raise CorruptFile(
            files[0].file_name, "no file has the other columns of its rows: they are incomplete"
        )
    first, stop = row_range(normal[0])
    other = next((file for file in normal if row_range(file) != (first, stop)), None)
    if other is not None:
        start, end = row_range(other)
        raise CorruptFile(
            other.file_name,
            f"its row ids {start} to {end - 1} overlap {first} to {stop - 1} of "
            f"{normal[0].file_name}, but are not the same",
        )
    dedicated = [file for file in files if is_dedicated(file.file_name)]
    outside = next((f for f in dedicated if not _is_within(row_range(f), (first, stop))), None)
    if outside is not None:
        raise CorruptFile(
            outside.file_name,
            f"its row ids are not inside those of {normal[0].file_name}, {first} to {stop - 1}",
        )
    # Sorting is stable: of two files of one commit, the first in the manifest comes first.
    normal.sort(key=lambda file: -file.max_sequence_number)
    return FileGroup(tuple(normal), tuple(dedicated))


def _is_within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
