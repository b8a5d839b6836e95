"""Calls that leave the main thread free to be interrupted.

The client library does not check for signals while it waits, so Ctrl-C would take effect only after
an answer. So another thread makes the calls of the main thread, while the main thread waits in
Python.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from emberlake.base.parallel import result_of

_T = TypeVar("_T")
_Task = tuple[Callable[[], Any], "Future[Any]"]


class _Helper:
    """A thread that makes one call after another. A process that ends does not wait for it."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        threading.Thread(target=self._serve, name="emberlake-store", daemon=True).start()

    def run(self, work: Callable[[], _T]) -> _T:
        done: Future[_T] = Future()
        self._tasks.put((work, done))
        return result_of(done)

    def dismiss(self) -> None:
        """End once the call that is under way has returned."""
        self._tasks.put(None)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            work, done = task
            try:
                done.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it is raised where the work was given
                done.set_exception(error)
            del task, work, done  # do not hold a result while waiting for the next call


_helpers: list[_Helper] = []  # none, or the one of the main thread
_BRIEFLY_S: Final = 3.0
_lock = threading.Lock()
_hanging: set["Future[None]"] = set()  # brief calls that took too long


def run_aside(work: Callable[[], _T]) -> _T:
    """What ``work`` returns. Ctrl-C ends the wait immediately; the result of the call is lost."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    if not _helpers:
        _helpers.append(_Helper())
    helper = _helpers[0]
    try:
        return helper.run(work)
    except KeyboardInterrupt:
        _helpers.clear()
        helper.dismiss()
        raise


def run_briefly(work: Callable[[], object]) -> None:
    """Do something that is nice to have, such as cleaning up, and wait a few seconds for it.

    After that it continues in the background, and its error is ignored. While one such call hangs,
    this process waits for no other: if many files are given up, only the first one is awaited.
    """
    done: Future[None] = Future()

    def serve() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised below, if anybody still waits
            done.set_exception(error)
        else:
            done.set_result(None)
        with _lock:
            _hanging.discard(done)

    with _lock:
        patience = 0.0 if _hanging else _BRIEFLY_S
    threading.Thread(target=serve, name="emberlake-store", daemon=True).start()
    try:
        done.result(patience)
    except TimeoutError:
        with _lock:
            if not done.done():
                _hanging.add(done)


def forget_helpers() -> None:
    """Call this in the child of a fork: threads stay behind in the parent."""
    global _lock  # noqa: PLW0603 - it may be held by one of them
    _lock = threading.Lock()
    _hanging.clear()
    _helpers.clear()
