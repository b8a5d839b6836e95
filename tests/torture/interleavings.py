"""Committers that take turns at storage calls: some serial order explains what comes of it.

Every actor runs on a thread of its own, but only the one whose turn it is gets past its next
storage call, so that a schedule of turns always gives the same. A schedule says how many calls
each actor makes before the next one has its turn; at the end all finish, one after the other.
"""

import itertools
import threading
from collections.abc import Iterator, Sequence
from functools import cache

from builders import FakeEnv, open_catalog, open_table
from emberlake.errors import CommitConflict, EmberlakeError
from emberlake.io import Storage
from places import Place, living_at
from torture.core import Step, Steps, chance_of, one_core
from torture.faults import count_calls
from torture.subjects import (
    OPERATIONS,
    SUBJECTS,
    State,
    Subject,
    check_sound,
    fresh,
    in_memory,
    left_behind,
    seen,
    settled,
    write,
)
from watched_storage import Call, WatchedStorage

WAIT_SECONDS = 30
NAMES = ("a", "b", "c")
# Where requests take long one thread makes them for all: nobody may have to wait for its turn.
ASIDE = ("put_hint", "delete")
Turn = tuple[int, int]  # which actor, and how many calls it makes


class Schedule:
    """Lets actors make their calls in turns."""

    def __init__(self, turns: Sequence[Turn], actors: int) -> None:
        self._turns = [list(turn) for turn in turns]
        self._finished: set[int] = set()
        self._actors = actors
        self._changed = threading.Condition()

    def wait_for_turn(self, actor: int) -> None:
        """Come back when the actor may make one more call."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._may_go(actor), WAIT_SECONDS):
                raise TimeoutError("the actors wait for each other")
            if self._turns and actor not in self._finished:
                self._turns[0][1] -= 1
                self._changed.notify_all()

    def finish(self, actor: int) -> None:
        with self._changed:
            self._finished.add(actor)
            self._changed.notify_all()

    def _may_go(self, actor: int) -> bool:
        """Whether it is the actor's turn; what one that has finished still does needs none."""
        return actor in self._finished or self._is_next(actor)

    def _is_next(self, actor: int) -> bool:
        while self._turns and (self._turns[0][1] <= 0 or self._turns[0][0] in self._finished):
            self._turns.pop(0)
        if self._turns:
            return self._turns[0][0] == actor
        return actor == min(set(range(self._actors)) - self._finished)


def interleave(subject: Subject, operations: Sequence[str], turns: Sequence[Turn]) -> Step:
    """Let actors do their operations in turns, and look for a serial order that explains it."""
    name = f"{' | '.join(operations)} of {subject.name}, turns {list(turns)}"
    storage = fresh(subject)
    errors = _act(storage, operations, turns)
    problem, rows = _judge(subject, operations, storage, errors)
    refused = sum(error is not None for error in errors)
    counts = {
        "interleavings": 1,
        "of them of three committers": int(len(operations) == 3),
        "of them with a typed conflict": int(refused > 0),
        "rows compared": rows,
    }
    return Step(name, counts, problem)


def _act(
    storage: Storage, operations: Sequence[str], turns: Sequence[Turn]
) -> list[BaseException | None]:
    schedule = Schedule(turns, len(operations))
    errors: list[BaseException | None] = [None] * len(operations)

    def act(actor: int) -> None:
        def watch(call: Call) -> None:
            is_aside = storage.traits.is_remote and call.method in ASIDE
            if not call.is_done and not is_aside:
                schedule.wait_for_turn(actor)

        catalog = open_catalog(WatchedStorage(storage, watch), FakeEnv().env())  # type: ignore[arg-type]
        try:
            OPERATIONS[operations[actor]](catalog, NAMES[actor])
        except BaseException as error:  # noqa: BLE001 - judged below
            errors[actor] = error
        finally:
            schedule.finish(actor)

    threads = [threading.Thread(target=act, args=[actor]) for actor in range(len(operations))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


# --- the judge ------------------------------------------------------------------------------------


def _judge(
    subject: Subject,
    operations: Sequence[str],
    storage: Storage,
    errors: Sequence[BaseException | None],
) -> tuple[str | None, int]:
    """What is wrong, and how many rows were looked at."""
    for operation, error in zip(operations, errors, strict=True):
        if error is not None and not _is_refusal(operation, error):
            return f"{operation} raised {type(error).__name__}: {error}", 0
    try:
        copy = in_memory(storage)
        check_sound(copy)
        found = _state(subject, copy)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table is broken
        return f"the table cannot be read: {type(error).__name__}: {error}", 0
    rows = len(found[1])
    if found not in _explanations(subject, operations, errors):
        refusals = [f"{o}: {e}" for o, e in zip(operations, errors, strict=True) if e]
        return f"no serial order explains {found}; refused: {refusals}", rows
    if left_behind(copy):
        return f"manifests were left behind: {left_behind(copy)}", rows
    return _go_on(storage), rows


def _is_refusal(operation: str, error: BaseException) -> bool:
    """Whether an operation may say no: to a conflict, or because of what it finds."""
    is_alter = operation in ("add column", "rename column")
    return isinstance(error, EmberlakeError if is_alter else CommitConflict)


def _explanations(
    subject: Subject, operations: Sequence[str], errors: Sequence[BaseException | None]
) -> set[State]:
    """What the operations give in every order of those that were not refused."""
    done = [actor for actor, error in enumerate(errors) if error is None]
    # What was written stands although its compaction was refused: the error says so.
    half = [actor for actor, error in enumerate(errors) if error and "stands" in str(error)]
    return {
        _serial(subject, tuple((operations[actor], NAMES[actor]) for actor in order))
        for order in itertools.permutations((*done, *half))
    }


@cache
def _serial(subject: Subject, steps: tuple[tuple[str, str], ...]) -> State:
    with living_at(Place()):
        storage = fresh(subject)
    for operation, who in steps:
        try:
            OPERATIONS[operation](open_catalog(storage), who)
        except EmberlakeError as error:
            return (f"{operation} fails: {error}",), ()
    return _state(subject, storage)


def _state(subject: Subject, storage: Storage) -> State:
    columns, rows = settled(storage) if subject.hides_what_is_new else seen(storage)
    # The order of added columns is that of their authors; which one it is does not matter here.
    order = sorted(range(len(columns)), key=lambda place: columns[place])
    return (
        tuple(columns[place] for place in order),
        tuple(sorted((tuple(row[place] for place in order) for row in rows), key=repr)),
    )


def _go_on(storage: Storage) -> str | None:
    """The table takes another commit."""
    try:
        write(open_table(storage), [(77, "mon", 99, "next")])
    except Exception as error:  # noqa: BLE001 - whatever it is, the table is in the way
        return f"the next commit failed: {type(error).__name__}: {error}"
    return None


# --- which schedules ------------------------------------------------------------------------------


def one_interruption(subject: Subject, pair: Sequence[str]) -> Iterator[list[Turn]]:
    """All of the second operation at every call of the first one."""
    for at in range(1, count_calls(subject, pair[0])):
        yield [(0, at), (1, 1_000_000)]


def two_interruptions(subject: Subject, pair: Sequence[str]) -> Iterator[list[Turn]]:
    """The second operation stops as well, at every call of its own, until the first has ended."""
    for at in range(1, count_calls(subject, pair[0])):
        for other in range(1, count_calls(subject, pair[1])):
            yield [(0, at), (1, other), (0, 1_000_000)]


def interleavings(seed: int) -> Steps:
    """Every pair at every call, and in between pairs and triples whose turns are left to chance."""
    chance = chance_of(seed, "interleavings")
    pairs = [
        (subject, pair)
        for subject in SUBJECTS.values()
        for pair in itertools.product(subject.operations, repeat=2)
    ]
    chance.shuffle(pairs)
    # How many calls there are has to be tried out: only when it is their turn.
    piles: dict[tuple[Subject, tuple[str, str]], list[list[Turn]]] = {}
    with one_core():
        any_turns = chances(seed)
        while pairs:
            for subject, pair in pairs:
                if (subject, pair) not in piles:
                    piles[subject, pair] = list(one_interruption(subject, pair))
                    chance.shuffle(piles[subject, pair])
                if piles[subject, pair]:
                    yield interleave(subject, pair, piles[subject, pair].pop())
                    yield next(any_turns)
            pairs = [case for case in pairs if piles[case]]


def chances(seed: int) -> Steps:
    """Two or three actors whose turns are left to chance; does not end."""
    with one_core():
        for number in itertools.count():
            chance = chance_of(seed, "turns", number)
            subject = chance.choice(list(SUBJECTS.values()))
            operations = [
                chance.choice(subject.operations) for _ in range(chance.choice([2, 3, 3]))
            ]
            longest = max(count_calls(subject, operation) for operation in operations)
            turns = [
                (chance.randrange(len(operations)), chance.randint(1, longest))
                for _ in range(chance.randint(2, 8))
            ]
            yield interleave(subject, operations, turns)
