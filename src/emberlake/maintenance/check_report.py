"""What a check of a table found."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from emberlake.base.html import html_box, html_note, html_table, html_title
from emberlake.base.names import listed
from emberlake.base.texts import size_text
from emberlake.errors import (
    CorruptFile,
    EmberlakeError,
    FileNotFound,
    NotFound,
    StorageError,
)

# The errors that reading a missing or damaged file raises; all of them are reported.
DAMAGE = (NotFound, CorruptFile, StorageError)

_SHOWN: Final = 50  # problems in a notebook


class ProblemKind(StrEnum):
    """What is wrong with a file."""

    MISSING = "missing"  # something refers to the file, but it is not there
    CORRUPT = "corrupt"  # it cannot be read, or its size is not the one that was written
    OVERLAPPING = "overlapping"  # files of a level share keys, or a file is in a snapshot twice
    UNREFERENCED = "unreferenced"  # nothing refers to the file
    INCONSISTENT = "inconsistent"  # it can be read but is not what its metadata says
    OVERWRITTEN = "overwritten"  # a snapshot is not the one that the next one was built on


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: its kind, where it is, and the details."""

    kind: ProblemKind
    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """All problems of a table, and how much was checked."""

    problems: tuple[Problem, ...] = ()
    snapshots: int = 0
    files: int = 0  # metadata, index and data files
    rows: int = 0  # of data files, whether they were read or only counted
    bytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __repr__(self) -> str:
        found = f"{len(self.problems)} ({listed(self.problems, 1)})" if self.problems else "0"
        return (
            f"CheckReport(problems={found}, snapshots={self.snapshots}, "
            f"files={self.files}, rows={self.rows}, bytes={self.bytes})"
        )

    def _repr_html_(self) -> str:
        count = len(self.problems)
        title = html_title(
            "Nothing is wrong" if self.ok else f"{count:,} problem{'s' if count > 1 else ''}",
            f"in {self.snapshots:,} snapshots, {self.files:,} files, {self.rows:,} rows, "
            + size_text(self.bytes),
        )
        if self.ok:
            return html_box(title)
        rows = [(p.kind, p.path, p.detail) for p in self.problems[:_SHOWN]]
        left = count - len(rows)
        note = html_note(f"and {left:,} more; they are in problems") if left else ""
        return html_box(title, html_table(("kind", "path", "detail"), rows), note)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking some files."""

    problems: tuple[Problem, ...] = ()
    files: int = 0
    rows: int = 0
    bytes: int = 0


def total_of(findings: Iterable[Finding], *, snapshots: int) -> CheckReport:
    """The report of all findings, each problem once."""
    found = list(findings)
    problems = dict.fromkeys(problem for finding in found for problem in finding.problems)
    return CheckReport(
        problems=tuple(sorted(problems, key=lambda p: (p.kind, p.path, p.detail))),
        snapshots=snapshots,
        files=sum(finding.files for finding in found),
        rows=sum(finding.rows for finding in found),
        bytes=sum(finding.bytes for finding in found),
    )


def damage(path: str, error: EmberlakeError) -> Problem:
    """An error as a problem; ``path`` is the file that was being read."""
    if isinstance(error, FileNotFound):
        return Problem(ProblemKind.MISSING, error.path, error.detail or "a snapshot refers to it")
    if isinstance(error, NotFound):
        return Problem(ProblemKind.MISSING, path, str(error))
    if isinstance(error, CorruptFile):
        return Problem(ProblemKind.CORRUPT, error.path, error.problem)
    return Problem(ProblemKind.CORRUPT, path, f"it cannot be read: {error}")
