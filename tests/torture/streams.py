"""A writer of a stream that is killed at any storage call, and started again: every batch once.

It writes with the two-phase API. Before a commit it keeps the messages in a checkpoint of its own;
when it starts it commits what is there unless that was done. ``spark_streams`` has Spark's streams.
"""

import itertools
from pathlib import Path

from places import here
from table_reads import check_whole
from torture.core import Step, Steps, chance_of
from torture.forks import Forks
from torture.jobs import ROWS, create, open_table, read, read_checkpoint
from torture.killed import KILLED
from torture.processes import Site, new_site

KINDS = ("append", "sums", "keys", "vectors", "dynamic")
LIVES = 25  # of one writer
BATCHES = 5  # that it would write in a life
CALLS = 80  # of a life, at most, after which it is killed


def streams(seed: int) -> Steps:
    """One writer after the other, with many lives each; does not end."""
    with Forks() as forks:
        for number in itertools.count():
            with new_site() as site:
                yield from _live(forks, site, KINDS[number % len(KINDS)], seed + number)


def _live(forks: Forks, site: Site, kind: str, seed: int) -> Steps:
    chance = chance_of(seed, "stream", kind)
    create(site.options, kind)
    checkpoint = site.folder / "checkpoint"
    for life in range(LIVES + 1):
        # The last one ends by itself.
        kill_at = chance.randint(1, CALLS) if life < LIVES else 0
        pid = forks.start(
            "stream",
            options=site.options,
            checkpoint=str(checkpoint),
            kill_at=kill_at,
            after_effect=chance.random() < 0.5,
            batches=BATCHES,
        )
        status = forks.wait(pid)
        counts = {"kills": int(status == KILLED), "restarts of our own stream": int(life > 0)}
        problem = None if status in (0, KILLED) else f"the writer ended with {status}"
        if problem is None:
            problem, counts["rows compared"] = _judge(site, kind, checkpoint, is_whole=status == 0)
        yield Step(f"life {life} of a stream to {kind}, seed {seed}", counts, problem)
        if problem is not None:
            return
        if chance.random() < 0.1:
            open_table(site.options).compact()


def _judge(site: Site, kind: str, checkpoint: Path, *, is_whole: bool) -> tuple[str | None, int]:
    """What is wrong, and how many rows were looked at."""
    last, _ = read_checkpoint(checkpoint)
    try:
        table = open_table(site.options)
        rows = read(table)
        if is_whole:  # the others are looked at again then
            check_whole(table)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table is broken
        return f"the table cannot be read: {type(error).__name__}: {error}", 0
    # The commit of the last batch may be what was killed.
    possible = [last] if is_whole else [last, last - 1]
    if kind == "vectors" and not is_whole:  # what is not compacted is not seen yet
        possible = [*range(-1, last + 1)]
    found = sorted(rows)
    if any(found == _expected(kind, batch) for batch in possible):
        return None, len(rows)
    return f"after the checkpoint of batch {last} of {here().name} there is {found}", len(rows)


def _expected(kind: str, last: int) -> list[tuple[int, int]]:
    """The rows of all batches up to one."""
    if last < 0:
        return []
    if kind == "append":
        return sorted(itertools.product(range(ROWS), range(last + 1)))
    value = sum(range(last + 1)) if kind == "sums" else last
    return [(number, value) for number in range(ROWS)]
