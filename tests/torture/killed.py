"""Processes that are killed at one storage call, any of them, before its effect or after it.

Afterwards the table has its old rows or its new ones, what the process has left can be cleaned up,
and the operation can be done again. Uploads of large files are killed on object stores.
"""

import itertools
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random

from builders import NAME, FakeEnv, open_catalog, open_table
from emberlake.io import Storage
from places import RootedStorage, disk, here, living_at
from table_reads import left_over
from torture.core import Step, Steps, chance_of, one_core
from torture.faults import Judge, count_calls, dealt
from torture.forks import Forks
from torture.processes import PATIENCE_S, disk_site
from torture.subjects import SUBJECTS, Subject, in_memory

KILLED = -signal.SIGKILL
LATER_MS = 4_000_000_000_000  # all files are older than that
UPLOADS_EACH = 8  # operations for one that is killed in the middle of an upload, which takes longer


@dataclass(frozen=True)
class Death:
    """The call of an operation at which its process is killed."""

    subject: Subject
    operation: str
    call: int
    calls: int
    after_effect: bool

    def __str__(self) -> str:
        moment = "after" if self.after_effect else "before"
        return f"{self.operation} of {self.subject.name} is killed {moment} call {self.call}"


def killed_calls(seed: int) -> Steps:
    """All of them, in an order that the seed decides, again and again; does not end."""
    if not here().is_shared:
        with disk_site() as site, living_at(disk(site.folder)):
            yield from killed_calls(seed)
    with Forks() as forks, one_core():
        chance = chance_of(seed, "uploads")
        rounds = (dealt(seed + turn, _deaths_of) for turn in itertools.count())
        for number, deaths in enumerate(itertools.chain.from_iterable(rounds), 1):
            if here().name == "s3" and number % UPLOADS_EACH == 0:
                yield kill_upload(forks, chance)
            yield from die(forks, deaths)


def _deaths_of(subject: Subject, operation: str) -> list[Death]:
    calls = count_calls(subject, operation)
    ways = itertools.product(range(1, calls + 1), (False, True))
    return [Death(subject, operation, call, calls, after_effect) for call, after_effect in ways]


def die(forks: Forks, deaths: Sequence[Death]) -> Steps:
    """Let one process after the other be killed, clean up after them, and do it in peace."""
    judge = Judge(deaths[0].subject, deaths[0].operation)
    for death in deaths:
        storage = judge.storage
        assert isinstance(storage, RootedStorage)
        pid = forks.start(
            "die_at",
            place=asdict(here()),
            root=storage.root,
            operation=death.operation,
            call=death.call,
            after_effect=death.after_effect,
        )
        status = forks.wait(pid)
        problem = None if status in (0, KILLED) else f"the process ended with {status}"
        problem = problem or judge.judge(is_done=status == 0, is_open=True)
        counts = {"kills": int(status == KILLED), "rows compared": judge.compared()}
        yield Step(str(death), counts, problem)
    problem = clean(judge.storage)
    yield Step(f"cleaning after {deaths[-1]}", {"cleanings after kills": 1}, problem)
    yield judge.finish()


def clean(storage: Storage) -> str | None:
    """Remove what nothing refers to; what stays nevertheless."""
    left: set[str] = set()
    # A request may have been under way when its process died, and come after the first search.
    for _ in range(2):
        table = open_catalog(storage, FakeEnv(time_ms=LATER_MS).env()).get_table(NAME)
        table.remove_orphan_files(older_than=LATER_MS)
        left = left_over(open_table(in_memory(storage)))
        if not left:
            return None
    return f"orphans stay: {sorted(left)}"


def kill_upload(forks: Forks, chance: Random) -> Step:
    """Let a process be killed that uploads a large file; its parts can be given up."""
    judge = Judge(SUBJECTS["append"], "append")
    storage = judge.storage
    assert isinstance(storage, RootedStorage)
    pid = forks.start("upload_much", place=asdict(here()), root=storage.root)
    root = open_table(storage).table_path
    deadline = time.monotonic() + PATIENCE_S
    while not [*storage.unfinished_uploads(root)] and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(chance.random() * 0.1)
    status = forks.kill(pid)
    begun = len([*storage.unfinished_uploads(root)])
    problem = judge.judge(is_done=False, is_open=False) or clean(storage)
    if problem is None and [*storage.unfinished_uploads(root)]:
        problem = "uploads stay"
    counts = {"kills": int(status == KILLED), "uploads of killed processes": begun}
    return Step("an upload is killed", counts, problem)
