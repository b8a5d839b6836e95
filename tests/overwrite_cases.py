"""What every way to overwrite replaces, as data: the cases, and a plain-Python model of them.

A table has one row in each of three partitions. A case says how the builder and the commit are
called, what the table option says and which partitions get new rows; ``expected`` says which rows
are there afterwards, or that the case is refused.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple


class Row(NamedTuple):
    """A row; the key of key tables is ``id`` and, where the table has partitions, ``day``."""

    id: int
    day: str
    v: str


Partition = Mapping[str, str] | None

BEFORE: Final = (Row(1, "mon", "old"), Row(2, "tue", "old"), Row(3, "wed", "old"))
MONDAY: Final = {"day": "mon"}
APPEND: Final = "append"

# How a builder and a commit are called: the argument of overwrite(), or APPEND.
BUILDER_CALLS: Final[Mapping[str, Partition | str]] = {
    "append": APPEND,
    "overwrite()": None,
    "overwrite(mon)": MONDAY,
    "overwrite({})": {},
}
COMMIT_CALLS: Final[Mapping[str, Partition | str]] = {
    "commit()": APPEND,
    "commit.overwrite()": None,
    "commit.overwrite(mon)": MONDAY,
    "commit.overwrite({})": {},
}
DATA: Final[Mapping[str, tuple[Row, ...]]] = {
    "one partition": (Row(1, "mon", "new"),),
    "several partitions": (Row(1, "mon", "new"), Row(3, "wed", "new"), Row(4, "sun", "new")),
    "no data": (),
}


@dataclass(frozen=True)
class Case:
    """One way to write; all but ``is_dynamic`` are keys of the mappings above."""

    builder_call: str
    commit_call: str
    is_dynamic: bool  # the option dynamic-partition-overwrite
    data: str

    def __str__(self) -> str:
        option = "dynamic" if self.is_dynamic else "static"
        return f"{self.builder_call}, {self.commit_call}, {option}, {self.data}"

    @property
    def rows(self) -> tuple[Row, ...]:
        return DATA[self.data]


CASES: Final = [
    Case(*parts) for parts in itertools.product(BUILDER_CALLS, COMMIT_CALLS, (True, False), DATA)
]
# Those that the builder decides alone, which is all that other ways to write have.
BUILDER_CASES: Final = [case for case in CASES if case.commit_call == "commit()"]


class Refused(Exception):
    """The case is refused, and changes nothing."""


def expected(case: Case, *, has_partitions: bool, has_key: bool) -> list[Row]:
    """The rows that are there afterwards.

    Raises:
        Refused: it must be refused.
    """
    builder_call, commit_call = BUILDER_CALLS[case.builder_call], COMMIT_CALLS[case.commit_call]
    _check(builder_call, case.rows, has_partitions=has_partitions)
    if commit_call == APPEND:
        if builder_call == APPEND:
            return _sorted(BEFORE, case.rows, has_key=has_key, has_partitions=has_partitions)
        only_touched = case.is_dynamic and has_partitions and builder_call != {}
        what = builder_call
    else:
        _check(commit_call, case.rows, has_partitions=has_partitions)
        only_touched = commit_call is None
        what = commit_call
    touched = {row.day if has_partitions else "" for row in case.rows}
    kept = [
        row
        for row in BEFORE
        if not _is_replaced(row.day if has_partitions else "", what, touched, only_touched)
    ]
    return _sorted(kept, case.rows, has_key=has_key, has_partitions=has_partitions)


def _check(what: Partition | str, rows, *, has_partitions: bool) -> None:
    if not isinstance(what, Mapping) or not what:
        return
    if not has_partitions or any(row.day != what["day"] for row in rows):
        raise Refused


def _is_replaced(day: str, what: Partition | str, touched: set[str], only_touched: bool) -> bool:
    if only_touched:
        return day in touched
    return not what or day == what["day"]


def _sorted(kept, new, *, has_key: bool, has_partitions: bool) -> list[Row]:
    if not has_key:
        return sorted((*kept, *new))
    by_key = {(row.id, row.day if has_partitions else ""): row for row in (*kept, *new)}
    return sorted(by_key.values())
