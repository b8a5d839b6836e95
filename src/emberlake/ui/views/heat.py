"""Partitions as a heat map: one cell for each, as warm as it is large."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

STEPS: Final = 8
MAX_CELLS: Final = 1200  # more partitions than this share cells with their neighbours
MAX_ROWS: Final = 60
MAX_COLUMNS: Final = 62


@dataclass(frozen=True)
class PartitionSize:
    """A partition, by its name and the values of its columns."""

    name: str
    values: tuple[str, ...]
    rows: int
    size: int
    files: int


@dataclass(frozen=True)
class Cell:
    """One partition, or several neighbours."""

    label: str
    partition: str | None  # None if it stands for several
    partitions: int
    rows: int
    size: int
    files: int
    size_heat: int  # 0 to STEPS
    files_heat: int


@dataclass(frozen=True)
class HeatRow:
    """The partitions that share the values of all columns but the last one."""

    label: str
    cells: tuple[Cell | None, ...]  # None where there is no such partition


@dataclass(frozen=True)
class HeatMap:
    """The partitions of a snapshot: a grid if they form one, otherwise a single row."""

    columns: tuple[str, ...]  # values of the last partition column; none if there are no rows
    rows: tuple[HeatRow, ...]
    cells: tuple[Cell, ...]
    partitions: int
    together: int  # how many partitions share a cell; 1 if each has its own
    most_bytes: int
    most_files: int

    def steps(self, kind: str) -> list[int]:
        """The heats that values can have, for a legend: few, if there are few values."""
        most = self.most_bytes if kind == "size" else self.most_files
        return sorted(
            {heat_of(value, most) for value in range(1, most + 1)}
            if most < STEPS
            else range(1, STEPS + 1)
        )


def heat_map_of(partitions: Sequence[PartitionSize]) -> HeatMap:
    """The map of partitions, in the order of their values."""
    ordered = in_order(partitions)
    together = max(1, -(-len(ordered) // MAX_CELLS))
    chunks = [ordered[i : i + together] for i in range(0, len(ordered), together)]
    most_bytes = max((sum(p.size for p in members) for members in chunks), default=0)
    most_files = max((sum(p.files for p in members) for members in chunks), default=0)
    cells = tuple(_cell(members, most_bytes, most_files) for members in chunks)
    columns, rows = _grid(ordered, cells) if together == 1 else ((), ())
    return HeatMap(columns, rows, cells, len(ordered), together, most_bytes, most_files)


def in_order(partitions: Sequence[PartitionSize]) -> list[PartitionSize]:
    """Partitions by their values; a column of whole numbers is in the order of numbers."""
    width = max((len(p.values) for p in partitions), default=0)
    is_number = [all(p.values[i].lstrip("-").isdecimal() for p in partitions) for i in range(width)]

    def place(partition: PartitionSize) -> tuple[tuple[int, str], ...]:
        return tuple(
            (int(value), "") if is_number[i] else (0, value)
            for i, value in enumerate(partition.values)
        )

    return sorted(partitions, key=place)


def _grid(
    ordered: Sequence[PartitionSize], cells: Sequence[Cell]
) -> tuple[tuple[str, ...], tuple[HeatRow, ...]]:
    """Rows and columns, if partitions have several columns and form a grid worth the name."""
    if not ordered or len(ordered[0].values) < 2:
        return (), ()
    by_last = in_order([PartitionSize("", p.values[-1:], 0, 0, 0) for p in ordered])
    columns = tuple(dict.fromkeys(p.values[0] for p in by_last))
    labels = tuple(dict.fromkeys(" / ".join(p.values[:-1]) for p in ordered))
    if (
        len(columns) > MAX_COLUMNS
        or len(labels) > MAX_ROWS
        or len(labels) * len(columns) > MAX_CELLS
    ):
        return (), ()
    found = {
        (" / ".join(p.values[:-1]), p.values[-1]): cell
        for p, cell in zip(ordered, cells, strict=True)
    }
    rows = (
        HeatRow(label, tuple(found.get((label, column)) for column in columns)) for label in labels
    )
    return columns, tuple(rows)


def _cell(members: Sequence[PartitionSize], most_bytes: int, most_files: int) -> Cell:
    size, files = sum(p.size for p in members), sum(p.files for p in members)
    first, last = members[0], members[-1]
    return Cell(
        first.name if len(members) == 1 else f"{first.name} to {last.name}",
        first.name if len(members) == 1 else None,
        len(members),
        sum(p.rows for p in members),
        size,
        files,
        heat_of(size, most_bytes),
        heat_of(files, most_files),
    )


def heat_of(value: int, most: int) -> int:
    """How warm a value is, from 1 to STEPS; nothing is 0."""
    return 0 if value <= 0 or most <= 0 else max(1, min(STEPS, -(-value * STEPS // most)))
