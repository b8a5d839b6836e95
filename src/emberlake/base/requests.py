"""Requests to storages that take their time: made side by side, by threads that mostly wait.

They are apart from the threads that decode (``emberlake.base.parallel``), of which there are as
many as cores. A process that ends does not wait for them.
"""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_Task = tuple[Callable[[], Any], "Future[Any]"]

MOST_AT_ONCE: Final = 64
_LAST_CHANCE_S: Final = 2.0
_FEW: Final = 8
_AT_ONCE_S: Final = 0.004  # of a store nearby; the time is spent once for many requests
_MOST_DATA_AT_ONCE: Final = 16  # they are large, and must not keep small ones waiting


class _Threads:
    """Threads that are started as they are needed, up to a number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._open = 0  # tasks that were given and are not done

    def submit(self, work: Callable[[], _T]) -> "Future[_T]":
        future: Future[_T] = Future()
        with self._lock:
            if self._count < min(self._open + 1, self._most):
                name = f"emberlake-request-{self._count + 1}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
                self._count += 1
            self._open += 1
        self._tasks.put((work, future))
        return future

    def _serve(self) -> None:
        _here.is_request = True
        while True:
            work, future = self._tasks.get()
            is_wanted = future.set_running_or_notify_cancel()
            result, error = _attempt(work) if is_wanted else (None, None)
            with self._lock:
                self._open -= 1
            # Whoever waits for it may give the next task at once, which needs no other thread.
            if error is not None:
                future.set_exception(error)
            elif is_wanted:
                future.set_result(result)
            del work, future, result, error  # what a request has brought is not kept until the next


def _attempt(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 - it is raised where the work was given
        return None, error


_here = threading.local()
_pools: dict[str, _Threads] = {}
_left: list[Future[Any]] = []  # none, or the last one


def _pool(name: str, most: int) -> _Threads:
    return _pools.setdefault(name, _Threads(most))


def ask_each(works: Iterable[Callable[[], _T]], at_once: int) -> Iterator[_T]:
    """What some requests bring, in their order; so many of them are under way at once.

    Where answers come at once, a few threads get more done than many, so there are few until an
    answer is waited for. After a failure the ones that have begun are waited for, the others are
    not made.
    """
    at_once = min(at_once, MOST_AT_ONCE)
    # A request that makes others could wait for a thread that waits for it.
    if at_once <= 1 or getattr(_here, "is_request", False):
        for work in works:
            yield work()
        return
    pool = _pool("requests", MOST_AT_ONCE)
    waiting: deque[Future[_T]] = deque()
    most = min(at_once, _FEW)
    try:
        for work in works:
            waiting.append(pool.submit(work))
            if len(waiting) >= most < at_once and not wait([waiting[0]], _AT_ONCE_S).done:
                most = at_once
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except Exception:
        wait([future for future in waiting if not future.cancel()])
        raise
    finally:
        for future in waiting:
            future.cancel()


def ask_all(works: Iterable[Callable[[], _T]], at_once: int) -> list[_T]:
    """What some requests bring, in their order."""
    return list(ask_each(works, at_once))


def begin(work: Callable[[], _T], at_once: int) -> Callable[[], _T]:
    """Begin with a request that is needed later; call the result for what it brings.

    Where one request is made at a time, it is made when its result is asked for.
    """
    if at_once <= 1 or getattr(_here, "is_request", False):
        return work
    return _pool("requests", MOST_AT_ONCE).submit(work).result


def begin_data(work: Callable[[], _T]) -> Callable[[], _T]:
    """Begin to fetch a large piece of data; call the result for it."""
    return _pool("data", _MOST_DATA_AT_ONCE).submit(work).result


def leave(work: Callable[[], object], at_once: int) -> None:
    """Make a request that nobody waits for, after those left before. What becomes of it is lost.

    Where one request is made at a time, it is made now.
    """
    if at_once <= 1:
        work()
    else:
        _left[:] = [_pool("left", 1).submit(work)]


def settle() -> None:
    """Wait for what was left, before something is done that it must not come after."""
    if not getattr(_here, "is_request", False):
        wait(_left)


@atexit.register
def _end() -> None:
    """Give what was left its chance when the process ends, and no more than that."""
    wait(_left, _LAST_CHANCE_S)


def _after_fork() -> None:
    # Threads stay behind in the parent.
    _pools.clear()
    _left.clear()


os.register_at_fork(after_in_child=_after_fork)
