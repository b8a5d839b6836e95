"""Makes waiting commits together, so that a busy server needs few trips for each.

A commit that comes alone begins at once. Those that come while others are made wait for the next
batch, which has at most one commit for each table; further commits to a table come one by one. A
batch costs a good part of what it costs for one commit, so commits gather for a moment before a
batch begins next to another.
"""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from emberlake.server.commits import (
    Commit,
    Outcome,
    commit_snapshot,
    commit_together,
)
from emberlake.server.heads import Heads, NamedTable
from emberlake.server.warehouses import Warehouse

_AT_ONCE: Final = 2  # batches: while one waits for the disk, the other one computes
_APART_S: Final = 0.005  # between the beginnings of batches that run side by side
_MOST: Final = 32  # commits of a batch
_PUTTING: Final = 4  # threads that put files
_KNOWN: Final = 10_000  # names of tables


@dataclass(frozen=True, eq=False, slots=True)
class _Waiting:
    warehouse: Warehouse
    table: NamedTable
    body: Any
    outcome: "asyncio.Future[bool]"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.warehouse.name, self.table.database, self.table.name


class CommitQueue:
    """Makes commits in threads, for requests on one event loop."""

    def __init__(self, heads: Heads, threads: ThreadPoolExecutor) -> None:
        self._heads = heads
        self._threads = threads
        self._putting = ThreadPoolExecutor(_PUTTING, thread_name_prefix="put")
        self._waiting: deque[_Waiting] = deque()
        self._busy: set[str] = set()  # tables of commits that are being made
        self._running = 0
        self._gathering: asyncio.TimerHandle | None = None  # since the last batch began
        self._known: dict[tuple[str, str, str], NamedTable] = {}

    def known(self, warehouse: Warehouse, database: str, name: str) -> NamedTable | None:
        """The table of an earlier commit to this name: most come to tables that had some."""
        return self._known.get((warehouse.name, database, name))

    def add(self, warehouse: Warehouse, table: NamedTable, body: Any) -> "asyncio.Future[bool]":
        """Make the commit of a request body; the result is whether it became the next snapshot."""
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(warehouse, table, body, outcome))
        self._begin()
        return outcome

    def stop(self) -> None:
        """End the threads; call it when nothing is waiting."""
        self._putting.shutdown()

    def _begin(self) -> None:
        """Start batches as long as there is something to do."""
        loop = asyncio.get_running_loop()
        while self._may_begin() and (batch := self._take()):
            self._running += 1
            self._gather(loop)
            work = loop.run_in_executor(self._threads, self._commit, batch)
            work.add_done_callback(lambda work, batch=batch: self._end(batch, work))  # type: ignore[misc]

    def _may_begin(self) -> bool:
        return not self._running or (self._running < _AT_ONCE and self._gathering is None)

    def _gather(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
        self._gathering = loop.call_later(_APART_S, self._end_gathering)

    def _end_gathering(self) -> None:
        self._gathering = None
        self._begin()

    def _take(self) -> list[_Waiting]:
        """The next batch: commits to one warehouse, to tables that nobody commits to now."""
        batch: list[_Waiting] = []
        later: list[_Waiting] = []
        while self._waiting and len(batch) < _MOST:
            each = self._waiting.popleft()
            is_first = not batch or each.warehouse is batch[0].warehouse
            if is_first and each.table.id not in self._busy:
                self._busy.add(each.table.id)
                batch.append(each)
            else:
                later.append(each)
        self._waiting.extendleft(reversed(later))
        return batch

    def _end(self, batch: list[_Waiting], work: "asyncio.Future[list[Outcome | None]]") -> None:
        self._running -= 1
        failure = work.exception()
        outcomes = [failure] * len(batch) if failure is not None else work.result()
        for each, outcome in zip(batch, outcomes, strict=True):
            if outcome is None:
                self._known.pop(each.key, None)
                self._commit_alone(each)
            else:
                self._remember(each)
                self._answer(each, outcome)
        self._begin()

    def _remember(self, waiting: _Waiting) -> None:
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[waiting.key] = waiting.table

    def _commit_alone(self, waiting: _Waiting) -> None:
        """Commit to a table that others have locked, or that has another name by now."""
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._commit_one, waiting)

        def end(work: "asyncio.Future[bool]") -> None:
            failure = work.exception()
            self._answer(waiting, work.result() if failure is None else failure)
            self._begin()

        work.add_done_callback(end)

    def _answer(self, waiting: _Waiting, outcome: bool | BaseException) -> None:  # noqa: FBT001
        self._busy.discard(waiting.table.id)
        if waiting.outcome.done():
            return
        if isinstance(outcome, BaseException):
            waiting.outcome.set_exception(outcome)
        else:
            waiting.outcome.set_result(outcome)

    # --- in threads -------------------------------------------------------------------------------

    def _commit(self, batch: list[_Waiting]) -> "list[Outcome | None]":
        outcomes: list[Outcome | None] = []
        asked: list[tuple[NamedTable, Commit]] = []
        for each in batch:
            try:
                asked.append((each.table, Commit.from_json(each.body)))
                outcomes.append(None)
            except Exception as error:  # noqa: BLE001 - it must not be that of the others
                outcomes.append(error)
        made = iter(
            commit_together(self._heads, batch[0].warehouse, asked, self._putting.map)
            if asked
            else ()
        )
        return [next(made) if outcome is None else outcome for outcome in outcomes]

    def _commit_one(self, waiting: _Waiting) -> bool:
        heads, warehouse = self._heads, waiting.warehouse
        table = heads.find(warehouse, waiting.table.database, waiting.table.name)
        return commit_snapshot(heads, warehouse, table, Commit.from_json(waiting.body))
