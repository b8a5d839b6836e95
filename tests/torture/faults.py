"""Every storage call of every operation fails, before or after its effect, once or for good."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from builders import FakeEnv, open_catalog
from emberlake.errors import CommitUnknown, EmberlakeError
from emberlake.io import MemoryStorage
from torture.core import Step, Steps, chance_of, one_core
from torture.subjects import (
    OPERATIONS,
    SUBJECTS,
    State,
    Subject,
    check_sound,
    fresh,
    seen,
    settled,
)
from watched_storage import FaultyStorage, WatchedStorage

WHO = "me"


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
    """All of them, in an order that the seed decides."""
    with one_core():
        cases = list(_cases())
        chance_of(seed, "faults").shuffle(cases)
        for fault in cases:
            yield inject(fault)


def _cases() -> Iterator[Fault]:
    for subject in SUBJECTS.values():
        for operation in subject.operations:
            calls = _count_calls(subject, operation)
            ways = itertools.product(range(1, calls + 1), (False, True), (False, True))
            for call, after_effect, for_good in ways:
                yield Fault(subject, operation, call, calls, after_effect, for_good)


def inject(fault: Fault) -> Step:
    """Let an operation fail, look at the table, and do it again."""
    faulty = FaultyStorage(
        fresh(fault.subject), fault.call, after_effect=fault.after_effect, for_good=fault.for_good
    )
    problem = _fail(fault, faulty)
    return Step(str(fault), {"faults": 1}, problem and f"{problem} ({faulty.failed})")


@cache
def _states(subject: Subject, operation: str) -> tuple[State, State]:
    storage = fresh(subject)
    old = _state(subject, storage)
    _do(operation, storage)
    return old, _state(subject, storage)


def _state(subject: Subject, storage: MemoryStorage) -> State:
    return settled(storage) if subject.hides_what_is_new else seen(storage)


@cache
def _count_calls(subject: Subject, operation: str) -> int:
    watched = WatchedStorage(fresh(subject))
    _do(operation, watched)
    return len(watched.calls)


def _do(operation: str, storage: object) -> None:
    OPERATIONS[operation](open_catalog(storage, FakeEnv().env()), WHO)  # type: ignore[arg-type]


def _fail(fault: Fault, faulty: FaultyStorage) -> str | None:
    """What is wrong after a fault, and after the next try."""
    subject, operation, storage = fault.subject, fault.operation, faulty.inner
    assert isinstance(storage, MemoryStorage)
    old, new = _states(subject, operation)
    error: Exception | None = None
    try:
        _do(operation, faulty)
    except EmberlakeError as raised:
        error = raised
    except Exception as raised:  # noqa: BLE001 - whatever it is, it should have been typed
        return f"{type(raised).__name__} is not typed: {raised}"
    try:
        check_sound(storage)
        now = _state(subject, storage)
    except Exception as raised:  # noqa: BLE001 - whatever it is, the table is broken
        return f"the table cannot be read: {type(raised).__name__}: {raised}"
    if now not in (old, new):
        return f"neither the old rows nor the new ones: {now}"
    if error is None and now != new:
        return "no error was raised, and the change is not there"
    if error is not None and now != old and not _may_have_landed(fault, error):
        return f"an error was raised, and the change is there: {error}"
    return _try_again(subject, operation, storage, new) if now == old else None


def _may_have_landed(fault: Fault, error: Exception) -> bool:
    """Whether an error leaves it open whether its operation took effect."""
    if isinstance(error, CommitUnknown) or "stands" in str(error):
        return True
    # A schema that cannot be looked for any more may be there.
    return fault.operation in ("add column", "rename column") and fault.for_good


def _try_again(subject: Subject, operation: str, storage: MemoryStorage, new: State) -> str | None:
    try:
        _do(operation, storage)
        check_sound(storage)
        now = _state(subject, storage)
    except Exception as raised:  # noqa: BLE001 - whatever it is, the table is in the way
        return f"the next try failed: {type(raised).__name__}: {raised}"
    return None if now == new else f"the next try left {now}"
