"""A bucket of a key table as an LSM tree of sorted runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from emberlake.scan.runs import KeyRange, find_sections

MAX_RUNS: Final = 40  # rows of the picture; level 0 has one for each file
MAX_FILES: Final = 300  # of one run; neighbours are drawn as one


@dataclass(frozen=True)
class KeyFile:
    """A data file of a bucket, as its manifest entry describes it."""

    name: str
    level: int
    rows: int
    size: int
    deletes: int | None  # delete records in the file; None if the writer did not count them
    vector: int  # rows that its deletion vector hides
    sequence: int  # the largest sequence number
    low: str
    high: str
    range: KeyRange


@dataclass(frozen=True)
class Block:
    """One file in the picture, or several neighbours; its place is a share of the width."""

    start: float
    end: float
    files: int
    rows: int
    size: int
    gone: float  # the share of rows that are deletes, or hidden by deletion vectors
    text: str


@dataclass(frozen=True)
class Run:
    """A sorted run: files that share no keys."""

    level: int
    label: str
    files: int
    rows: int
    size: int
    deletes: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class LsmTree:
    """The sorted runs of a bucket: level 0 first, its newest file on top."""

    runs: tuple[Run, ...]
    left_out: int  # runs of level 0 that are not drawn
    run_count: int
    levels: int
    overlap: int  # how many runs a read of one key has to merge, at most
    low: str
    high: str
    is_linear: bool  # whether distances between keys are drawn to scale


def lsm_of(files: Sequence[KeyFile]) -> LsmTree:
    """The tree that the files of a bucket form."""
    if not files:
        return LsmTree((), 0, 0, 0, 0, "", "", is_linear=False)
    place, is_linear = _places(files)
    by_level = sorted(files, key=lambda f: (f.level, -f.sequence, f.range))
    groups: list[tuple[int, str, list[KeyFile]]] = []
    for level, members in groupby(by_level, key=lambda f: f.level):
        if level == 0:
            groups += [(0, "L0", [file]) for file in members]
        else:
            groups.append((level, f"L{level}", sorted(members, key=lambda f: f.range)))
    young = sum(level == 0 for level, _, _ in groups)
    left_out = max(0, min(young - 1, len(groups) - MAX_RUNS))
    shown = [*groups[: young - left_out], *groups[young:]] if left_out else groups
    least = min(files, key=lambda f: f.range[0])
    greatest = max(files, key=lambda f: f.range[1])
    return LsmTree(
        tuple(_run(level, label, members, place) for level, label, members in shown),
        left_out,
        len(groups),
        len({file.level for file in files}),
        max(len(section) for section in find_sections([file.range for file in files])),
        least.low,
        greatest.high,
        is_linear=is_linear,
    )


def _run(
    level: int,
    label: str,
    files: Sequence[KeyFile],
    place: Callable[[KeyFile], tuple[float, float]],
) -> Run:
    step = -(-len(files) // MAX_FILES)
    blocks = [_block(files[i : i + step], place) for i in range(0, len(files), step)]
    return Run(
        level,
        label,
        len(files),
        sum(f.rows for f in files),
        sum(f.size for f in files),
        sum((f.deletes or 0) + f.vector for f in files),
        tuple(blocks),
    )


def _block(files: Sequence[KeyFile], place: Callable[[KeyFile], tuple[float, float]]) -> Block:
    spans = [place(file) for file in files]
    rows = sum(f.rows for f in files)
    gone = sum((f.deletes or 0) + f.vector for f in files)
    name = files[0].name if len(files) == 1 else f"{len(files):,} files"
    text = f"{name}\nkeys {files[0].low} to {files[-1].high}"
    return Block(
        min(start for start, _ in spans),
        max(end for _, end in spans),
        len(files),
        rows,
        sum(f.size for f in files),
        min(1.0, gone / rows) if rows else 0.0,
        text,
    )


def _places(
    files: Sequence[KeyFile],
) -> tuple[Callable[[KeyFile], tuple[float, float]], bool]:
    """Where files are drawn: to scale if keys are single integers, in order otherwise."""
    bounds = [bound for file in files for bound in file.range]
    if all(len(b) == 1 and len(b[0]) == 2 and type(b[0][1]) is int for b in bounds):
        least = min(b[0][1] for b in bounds)
        width = max(b[0][1] for b in bounds) - least + 1

        def to_scale(file: KeyFile) -> tuple[float, float]:
            low, high = file.range
            return (low[0][1] - least) / width, (high[0][1] - least + 1) / width

        return to_scale, True
    ranks = {bound: rank for rank, bound in enumerate(sorted(set(bounds)))}

    def in_order(file: KeyFile) -> tuple[float, float]:
        low, high = file.range
        return ranks[low] / len(ranks), (ranks[high] + 1) / len(ranks)

    return in_order, False
