"""Requests to an S3 server that get lost, are refused or break off: the client finds out.

A proxy breaks requests by chance. Every operation on every kind of table must leave the old rows or
the new ones, and committers that all commit at once must commit each row once.
"""

import itertools
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from emberlake.errors import CommitUnknown, EmberlakeError
from object_stores.test_committers import check_each_once, commit_all, create
from places import Place, RootedStorage, here
from servers import Proxy, Server, proxy_of
from torture.core import Step, Steps, chance_of
from torture.faults import ALTERS, Judge, do
from torture.subjects import SUBJECTS

AT_ONCE = 8  # operations, each on a table of its own
COMMITS = 48  # of sixteen committers together
WAYS = [(how, when) for how in ("drop", "500", "503", "429") for when in ("before", "after")]
# So many requests are broken that six tries of one may all be: more of them, and shorter waits.
HASTE = {"s3.connection.timeout": "5 s", "s3.attempts.maximum": "16"}


def lost_answers(seed: int) -> Steps:
    """Operations of all kinds, then many committers, again and again; does not end."""
    with _proxy() as (proxy, broken):
        for number in itertools.count():
            chance = chance_of(seed, "wire", number)
            proxy.seed(chance.randrange(10**6))
            if number % 4 == 3:
                yield _crowd(proxy, broken, chance, number)
            else:
                yield from _operate(proxy, broken, chance, number)


@contextmanager
def _proxy() -> Iterator[tuple[Proxy, Place]]:
    """A proxy, and this place as it is behind it."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(here().options["s3.endpoint"])
        with proxy_of(server, Path(folder)) as proxy:
            options = {**here().options, **HASTE, "s3.endpoint": proxy.endpoint}
            yield proxy, replace(here(), options=options)


def _break(proxy: Proxy, chance: Random, most: float) -> None:
    """Ask for failures of every kind, so that up to such a part of all requests is broken."""
    for how, when in WAYS:
        rate = chance.random() * most / len(WAYS)
        proxy.fail(how=how, when=when, chance=rate, times=10**9)
    proxy.fail(how="half", when="after", method="GET", chance=most / 10, times=10**9)


def _operate(proxy: Proxy, broken: Place, chance: Random, number: int) -> Steps:
    subjects = [chance.choice(list(SUBJECTS.values())) for _ in range(AT_ONCE)]
    judges = [Judge(subject, chance.choice(subject.operations)) for subject in subjects]
    _break(proxy, chance, chance.choice([0.2, 0.5]))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        errors = [*pool.map(lambda judge: _try(judge, broken), judges)]
    faults = proxy.broken()
    proxy.clear()
    for judge, error in zip(judges, errors, strict=True):
        name = f"turn {number}, {judge.operation} of {judge.subject.name}: {error}"
        problem = None
        if error is not None and not isinstance(error, EmberlakeError):
            problem = f"{type(error).__name__} is not typed"
        is_open = isinstance(error, CommitUnknown) or "stands" in str(error)
        is_open = is_open or judge.operation in ALTERS
        problem = problem or judge.judge(is_done=error is None, is_open=is_open)
        counts = {"faults": faults, "of them on the wire": faults}
        yield Step(name, {**counts, "rows compared": judge.compared()}, problem)
        faults = 0  # they were counted
        yield judge.finish()


def _try(judge: Judge, broken: Place) -> BaseException | None:
    assert isinstance(judge.storage, RootedStorage)
    try:
        do(judge.operation, broken.storage_at(judge.storage.root))
    except BaseException as error:  # noqa: BLE001 - judged by who asked for it
        return error
    return None


def _crowd(proxy: Proxy, broken: Place, chance: Random, number: int) -> Step:
    warehouse = {"warehouse": f"{broken.root}/{uuid.uuid4()}/wh"}
    table = create({**here().options, **warehouse})
    _break(proxy, chance, 0.3)
    problem = None
    try:
        committed = commit_all({**broken.options, **warehouse}, COMMITS)
        check_each_once(table, committed)
    except Exception as error:  # noqa: BLE001 - it is reported
        problem = f"{type(error).__name__}: {error}"
    faults = proxy.broken()
    proxy.clear()
    counts = {
        "faults": faults,
        "of them on the wire": faults,
        "commits of writers at once": COMMITS,
        "rows compared": COMMITS,
    }
    return Step(f"turn {number}, {COMMITS} commits at once", counts, problem)
