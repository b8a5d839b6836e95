"""Decide which files of a bucket are compacted, and onto which level: universal compaction.

Spec: "Levels and compaction". Pure decisions from manifest entries. Every file of level 0 is a
sorted run of its own, newest first; after them, every higher level is one run. Runs are always
taken from the newest on, so the runs that are left are older than the result.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from emberlake.options import (
    FORCE_UP_LEVEL_0,
    MAX_AMPLIFICATION,
    RUN_TRIGGER,
    SIZE_RATIO,
)
from emberlake.spec.manifest import DataFile
from emberlake.spec.schema import TableSchema


@dataclass(frozen=True)
class SortedRun:
    """Files of one level, no two of which share keys."""

    level: int
    files: tuple[DataFile, ...]

    @property
    def size(self) -> int:
        return sum(file.file_size for file in self.files)


@dataclass(frozen=True, kw_only=True)
class PickingRules:
    """When runs are compacted."""

    trigger: int  # this many runs start a compaction
    size_ratio: int  # percent by which the next run may be larger than all before it
    max_amplification: int  # all other runs may have at most this many percent of the oldest
    num_levels: int
    takes_level_0: bool  # no file may stay on level 0

    @staticmethod
    def of(schema: TableSchema) -> "PickingRules":
        """The rules that a table's options ask for."""
        options = schema.options
        return PickingRules(
            trigger=options.value(RUN_TRIGGER),
            size_ratio=options.value(SIZE_RATIO),
            max_amplification=options.value(MAX_AMPLIFICATION),
            num_levels=schema.profile.num_levels,
            takes_level_0=schema.profile.looks_up or options.value(FORCE_UP_LEVEL_0),
        )


@dataclass(frozen=True)
class Pick:
    """Files to compact, and their new level."""

    files: tuple[DataFile, ...]
    output_level: int
    rewrites_all: bool = False  # every file must be rewritten


def sorted_runs(files: Sequence[DataFile]) -> list[SortedRun]:
    """The runs of a bucket, newest first."""
    newest = sorted((file for file in files if file.level == 0), key=_age)
    runs = [SortedRun(0, (file,)) for file in newest]
    levels = sorted({file.level for file in files} - {0})
    return runs + [
        SortedRun(level, tuple(file for file in files if file.level == level)) for level in levels
    ]


def _age(file: DataFile) -> tuple[int, int, int, str]:
    # Two writers of a bucket may have used the same numbers: any fixed order is fine.
    return (
        -file.max_sequence_number,
        file.min_sequence_number,
        file.creation_time or 0,
        file.file_name,
    )


def top_level(files: Sequence[DataFile], rules: PickingRules) -> int:
    """The highest level of a bucket; files may be higher than the options say."""
    return max(rules.num_levels - 1, max((file.level for file in files), default=0))


def pick_full(
    files: Sequence[DataFile], rules: PickingRules, *, has_deletions: Collection[str] = ()
) -> Pick | None:
    """All files, to the highest level; if all are on it already, those with deleted rows.

    Args:
        files: The live files of a bucket.
        rules: The table's rules.
        has_deletions: The names of files with a deletion vector.
    """
    top = top_level(files, rules)
    if any(file.level != top for file in files):
        return Pick(tuple(files), top)
    stale = tuple(file for file in files if file.file_name in has_deletions)
    return Pick(stale, top, rewrites_all=True) if stale else None


def pick_universal(files: Sequence[DataFile], rules: PickingRules) -> Pick | None:
    """The newest runs, if there are many of them or they are large; None to compact nothing."""
    runs = sorted_runs(files)
    top = top_level(files, rules)
    count = _count_runs(runs, rules)
    if count is None:
        return None
    count, level = _with_level(runs, count, top)
    picked = tuple(file for run in runs[:count] for file in run.files)
    if len(picked) == 1 and picked[0].level == level:
        return None
    return Pick(picked, level)


def _count_runs(runs: Sequence[SortedRun], rules: PickingRules) -> int | None:
    """How many of the newest runs to compact."""
    if runs and len(runs) >= rules.trigger:
        others = sum(run.size for run in runs[:-1])
        if others * 100 > rules.max_amplification * runs[-1].size:
            return len(runs)
        count = _extend(runs, 1, rules)
        if count > 1:
            return count
    if len(runs) > rules.trigger:
        count = _extend(runs, min(len(runs), len(runs) - rules.trigger + 1), rules)
        if count > 1:
            return count
    level_0 = sum(run.level == 0 for run in runs)
    if rules.takes_level_0 and level_0:
        return _extend(runs, level_0, rules, has_begun=True)
    return None


def _extend(
    runs: Sequence[SortedRun], count: int, rules: PickingRules, *, has_begun: bool = False
) -> int:
    """The first runs, and more as long as the next is not much larger than all before it."""
    size = sum(run.size for run in runs[:count])
    has_begun = has_begun or count > 1
    for run in runs[count:]:
        is_larger = size * (100 + rules.size_ratio) < run.size * 100
        if is_larger and (not has_begun or run.level > 1):
            break
        size += run.size
        count += 1
        has_begun = True
    return count


def _with_level(runs: Sequence[SortedRun], count: int, top: int) -> tuple[int, int]:
    """How many runs are taken, and their new level: right below the rest, but never 0."""
    level = 0
    if count < len(runs):
        level = max(0, runs[count].level - 1)
    while level == 0 and count < len(runs):
        level = runs[count].level
        count += 1
    return (count, top) if count == len(runs) else (count, level)


# --- what is done with the files ------------------------------------------------------------------


@dataclass(frozen=True)
class Upgrade:
    """A file that only changes its level."""

    file: DataFile


@dataclass(frozen=True)
class Rewrite:
    """Sections of runs that are merged into new files, in key order."""

    sections: tuple[tuple[tuple[DataFile, ...], ...], ...]

    @property
    def files(self) -> tuple[DataFile, ...]:
        return tuple(file for section in self.sections for run in section for file in run)


def plan_steps(
    sections: Sequence[Sequence[Sequence[DataFile]]],
    output_level: int,
    *,
    small_bytes: int,
    must_rewrite: Callable[[DataFile], bool],
) -> list[Upgrade | Rewrite]:
    """Decide how to compact picked files: those that share keys, and small ones, are rewritten.

    Args:
        sections: The files by section and run, in key order.
        output_level: Their new level.
        small_bytes: Files below this size are rewritten together with their neighbours.
        must_rewrite: Tells whether changing the level of a file is not enough.
    """
    steps = _Steps(output_level, must_rewrite)
    for section in sections:
        if len(section) > 1:
            steps.waiting.append(tuple(tuple(run) for run in section))
            continue
        for file in section[0]:
            if file.file_size < small_bytes:
                steps.waiting.append(((file,),))
            else:
                steps.rewrite_waiting()
                steps.take_up(file)
    steps.rewrite_waiting()
    return steps.done


@dataclass
class _Steps:
    """The steps decided so far, and sections that wait for their neighbours."""

    output_level: int
    must_rewrite: Callable[[DataFile], bool]
    done: list[Upgrade | Rewrite] = field(default_factory=list)
    waiting: list[tuple[tuple[DataFile, ...], ...]] = field(default_factory=list)

    def rewrite_waiting(self) -> None:
        if len(self.waiting) == 1 and len(self.waiting[0]) == 1:
            for file in self.waiting[0][0]:
                self.take_up(file)
        elif self.waiting:
            self.done.append(Rewrite(tuple(self.waiting)))
        self.waiting.clear()

    def take_up(self, file: DataFile) -> None:
        if self.must_rewrite(file):
            self.done.append(Rewrite((((file,),),)))
        elif file.level != self.output_level:
            self.done.append(Upgrade(file))
