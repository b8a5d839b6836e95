"""Every storage call of every operation fails, before or after its effect, once or for good.

In between come storms, in which any call may fail, and more than one.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from builders import FakeEnv, open_catalog
from emberlake.base.requests import settle
from emberlake.errors import CommitUnknown, EmberlakeError
from emberlake.io import Storage
from places import Place, here, living_at
from torture.core import Step, Steps, chance_of, one_core
from torture.subjects import (
    OPERATIONS,
    SUBJECTS,
    State,
    Subject,
    check_sound,
    fresh,
    in_memory,
    seen,
    settled,
)
from watched_storage import FaultyStorage, StormyStorage, WatchedStorage

WHO = "me"
ALTERS = ("add column", "rename column")
TOGETHER = 8  # faults on top of one another
PUBLISHED = re.compile(r"/(snapshot/snapshot|schema/schema)-\d+$")
HINT = re.compile(r"/snapshot/(LATEST|EARLIEST)$")


@dataclass(frozen=True)
class Fault:
    """One call of one operation that fails."""

    subject: Subject
    operation: str
    call: int
    calls: int
    after_effect: bool
    for_good: bool

    def __str__(self) -> str:
        return (
            f"{self.operation} of {self.subject.name}: call {self.call} of {self.calls} fails "
            f"{'after' if self.after_effect else 'before'} its effect"
            f"{', for good' * self.for_good}"
        )


def faults(seed: int) -> Steps:
    """All of them, in an order that the seed decides, and storms in between; does not end."""
    with one_core():
        cases = dealt(seed, _cases_of)
        for number in itertools.count():
            some = next(cases, None)
            if some is not None:
                yield from inject(some)
            yield from storms(seed, number)


T = TypeVar("T")


def dealt(seed: int, cases_of: Callable[[Subject, str], list[T]]) -> Iterator[list[T]]:
    """The cases of all operations of all subjects: some of each, in any order, then others.

    They are made when it is their turn, since they have to be tried out for it.
    """
    chance = chance_of(seed, "cases")
    pairs = [(subject, name) for subject in SUBJECTS.values() for name in subject.operations]
    chance.shuffle(pairs)
    piles: dict[tuple[Subject, str], list[T]] = {}
    while pairs:
        for pair in pairs:
            if pair not in piles:
                piles[pair] = cases_of(*pair)
                chance.shuffle(piles[pair])
            yield piles[pair][:TOGETHER]
            del piles[pair][:TOGETHER]
        pairs = [pair for pair in pairs if piles[pair]]


def _cases_of(subject: Subject, operation: str) -> list[Fault]:
    calls = count_calls(subject, operation)
    ways = itertools.product(range(1, calls + 1), (False, True), (False, True))
    return [Fault(subject, operation, call, calls, *way) for call, *way in ways]


def inject(cases: Sequence[Fault]) -> Steps:
    """Let an operation fail at one call after the other, until it is done; then without a fault."""
    judge = Judge(cases[0].subject, cases[0].operation)
    for fault in cases:
        faulty = FaultyStorage(
            judge.storage, fault.call, after_effect=fault.after_effect, for_good=fault.for_good
        )
        problem = judge.attempt(faulty, sees_nothing_more=fault.for_good)
        # Calls that are made side by side are not always the same ones.
        counts = {"faults": int(faulty.failed is not None), "rows compared": judge.compared()}
        yield Step(str(fault), counts, problem and f"{problem} ({faulty.failed})")
    yield judge.finish()


def storms(seed: int, number: int) -> Steps:
    """Let any calls of an operation fail, until it is done; then without a fault."""
    chance = chance_of(seed, "storm", number)
    subject = chance.choice(list(SUBJECTS.values()))
    judge = Judge(subject, chance.choice(subject.operations))
    for turn in range(TOGETHER):
        stormy = StormyStorage(judge.storage, chance, chance.choice([0.02, 0.1, 0.3]))
        problem = judge.attempt(stormy, sees_nothing_more=True)
        counts = {"faults": len(stormy.failed), "rows compared": judge.compared()}
        name = f"storm {number}.{turn}, {judge.operation} of {subject.name}"
        yield Step(name, counts, problem and f"{problem} ({[*map(str, stormy.failed)]})")
    yield judge.finish()


@cache
def states(subject: Subject, operation: str) -> tuple[State, State]:
    """What is seen before an operation and after it."""
    with living_at(Place()):
        storage = fresh(subject)
    old = state_of(subject, storage)
    do(operation, storage)
    return old, state_of(subject, storage)


def state_of(subject: Subject, storage: Storage) -> State:
    return settled(storage) if subject.hides_what_is_new else seen(storage)


def count_calls(subject: Subject, operation: str) -> int:
    """How many calls an operation makes here."""
    return _count_calls_at(here().name, subject, operation)


@cache
def _count_calls_at(place: str, subject: Subject, operation: str) -> int:
    del place  # of which there is one at a time, and where it lies does not matter
    watched = WatchedStorage(fresh(subject))
    do(operation, watched)
    return len(watched.calls)


def do(operation: str, storage: object) -> None:
    OPERATIONS[operation](open_catalog(storage, FakeEnv().env()), WHO)  # type: ignore[arg-type]


class Judge:
    """Lets an operation be tried on a table, and looks what has become of it each time.

    A try that has left the table as it was is followed by others on top of what it left behind;
    one that was done is followed by others on a new table.
    """

    def __init__(self, subject: Subject, operation: str) -> None:
        self.subject, self.operation = subject, operation
        self._begin()

    def _begin(self) -> None:
        self.storage = fresh(self.subject)
        self._before = _marks(self.storage)
        self._rows = 0

    def compared(self) -> int:
        """The rows that were compared since the last time."""
        rows, self._rows = self._rows, 0
        return rows

    def attempt(self, faulty: WatchedStorage, *, sees_nothing_more: bool) -> str | None:
        """What is wrong after a try on a storage that fails."""
        error: Exception | None = None
        try:
            do(self.operation, faulty)
        except EmberlakeError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - whatever it is, it should have been typed
            return f"{type(raised).__name__} is not typed: {raised}"
        # Where who did it cannot look what became of a schema, that may be there.
        may_stand = self.operation in ALTERS and sees_nothing_more
        may_stand = may_stand or isinstance(error, CommitUnknown) or "stands" in str(error)
        return self.judge(is_done=error is None, is_open=error is not None and may_stand)

    def judge(self, *, is_done: bool, is_open: bool) -> str | None:
        """What is wrong after a try that was done or not, or of which that is not known."""
        if not is_done and self._is_untouched():
            return None
        old, new = states(self.subject, self.operation)
        now, problem = self._look()
        if problem is not None:
            return problem
        if is_done and now != new:
            return "no error was raised, and the change is not there"
        if now == old and not is_done:
            return None
        if not is_done and not is_open:
            return "an error was raised, and the change is there"
        self._begin()
        return None

    def finish(self) -> Step:
        """Do it without a fault, on top of all that the faults have left behind."""
        name = f"{self.operation} of {self.subject.name} after faults"
        try:
            do(self.operation, self.storage)
        except Exception as raised:  # noqa: BLE001 - whatever it is, the table is in the way
            return Step(name, {}, f"the next try failed: {type(raised).__name__}: {raised}")
        now, problem = self._look()
        if problem is None and now != states(self.subject, self.operation)[1]:
            problem = f"the next try left {now}"
        return Step(name, {"rows compared": self.compared()}, problem)

    def _is_untouched(self) -> bool:
        """Whether all files are as they were, and none is new that anybody would look for."""
        now = _marks(self.storage)
        is_kept = all(now.get(path) == mark for path, mark in self._before.items())
        return is_kept and not any(PUBLISHED.search(path) for path in now.keys() - self._before)

    def _look(self) -> tuple[State | None, str | None]:
        """What is seen, and what is wrong with it: it is neither the old rows nor the new ones."""
        try:
            copy = in_memory(self.storage)
            check_sound(copy)
            now = state_of(self.subject, copy)
        except Exception as raised:  # noqa: BLE001 - whatever it is, the table is broken
            return None, f"the table cannot be read: {type(raised).__name__}: {raised}"
        self._rows += len(now[1])
        if now not in states(self.subject, self.operation):
            return now, f"neither the old rows nor the new ones: {now}"
        return now, None


def _marks(storage: Storage) -> dict[str, object]:
    """All files but the hints, each with a mark of its bytes."""
    settle()
    found = [info for info in storage.list_all("") if not HINT.search(info.path)]
    return {info.path: info.etag or storage.read(info.path) for info in found}
