"""Requests to slow storages: made side by side, by threads that mostly wait.

These threads are not the ones that decode (``emberlake.base.parallel``), of which there is one per
core. A process that ends does not wait for them.

Ctrl-C may come between any two steps of Python. In the middle of ``Condition.__enter__`` it would
leave a lock that nobody gives back, and threads of the whole process waiting for it. Hence plain
locks, which ``with`` takes in one step, and queues of C.
"""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

_T = TypeVar("_T")
_Task = tuple[Callable[[], Any], "_Answer[Any]"]

MOST_AT_ONCE: Final = 64
_LAST_CHANCE_S: Final = 2.0
_FEW: Final = 8
_AT_ONCE_S: Final = 0.004  # for a store nearby; many requests spend this time only once
_MOST_DATA_AT_ONCE: Final = 16  # data requests are large, and must not keep small ones waiting


class _Answer(Generic[_T]):
    """What a request will give."""

    def __init__(self) -> None:
        self._is_pending = threading.Lock()
        self._is_pending.acquire()
        self._given: tuple[Any, BaseException | None] = (None, None)

    def give(self, answer: Any, error: BaseException | None) -> None:
        """Hand over what came."""
        self._given = answer, error
        self._is_pending.release()

    def wait(self, seconds: float = -1) -> None:
        """Wait until it has come, or at most this long."""
        if self._is_pending.acquire(timeout=seconds):
            self._is_pending.release()

    def result(self) -> _T:
        """The answer, once it has come."""
        with self._is_pending:
            answer, error = self._given
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]


class _Threads:
    """Threads that are started as they are needed, up to a number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._open = 0  # tasks that were submitted and are not done

    @property
    def is_asked_for(self) -> bool:
        """Whether tasks wait for a thread."""
        return not self._tasks.empty()

    def submit(self, work: Callable[[], _T]) -> "_Answer[_T]":
        """Queue a task.

        Raises:
            RuntimeError: the system has no thread for it.
        """
        answer: _Answer[_T] = _Answer()
        with self._lock:
            if self._count < min(self._open + 1, self._most):
                self._start()
            self._open += 1
        self._tasks.put((work, answer))
        return answer

    def _start(self) -> None:
        name = f"emberlake-request-{self._count + 1}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError:  # containers have a limit; the threads that there are do the work
            if not self._count:
                raise
            return
        self._count += 1

    def go_on(self, work: Callable[[], object]) -> None:
        """Queue the rest of a task. It frees its own thread, so no new thread is started."""
        with self._lock:
            self._open += 1
        self._tasks.put((work, _Answer()))

    def _serve(self) -> None:
        _here.is_request = True
        while True:
            work, answer = self._tasks.get()
            result, error = _attempt(work)
            with self._lock:
                self._open -= 1
            # Only now: the waiting thread may submit the next task, which this thread can take.
            answer.give(result, error)
            del work, answer, result, error  # do not hold a result while waiting for a task


def _attempt(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 - it is raised where the work was given
        return None, error


_here = threading.local()
_pools: dict[str, _Threads] = {}
_left: list[_Answer[Any]] = []  # none, or the last one


def _pool(name: str, most: int) -> _Threads:
    return _pools.setdefault(name, _Threads(most))


def ask_each(works: Iterable[Callable[[], _T]], at_once: int) -> Iterator[_T]:
    """The results of requests, in order; ``at_once`` of them are under way at the same time.

    If answers come immediately, a few threads get more done than many, so threads are added only if
    no answer comes for a while. After a failure, no more requests are made, and those that have
    begun are awaited.
    """
    at_once = min(at_once, MOST_AT_ONCE)
    # If a request makes other requests, these could wait for a thread that waits for them.
    if at_once <= 1 or getattr(_here, "is_request", False):
        for work in works:
            yield work()
        return
    series = _Series[_T](_pool("requests", MOST_AT_ONCE), at_once)
    try:
        for work in works:
            series.add(work)
            if series.length >= 2 * at_once:
                yield series.take()
        while series.length:
            yield series.take()
    except Exception:
        series.stop()
        series.wait()
        raise
    finally:
        series.stop()


class _Series(Generic[_T]):
    """Requests whose answers are taken in order.

    A thread that has an answer goes on with the next request by itself. The consumer is woken only
    for the answer that is next: with many small answers, waking takes most of the time. For the
    same reason nobody locks to take a request or an answer that is there, which are single steps
    of a deque and a dictionary.
    """

    def __init__(self, pool: _Threads, at_once: int) -> None:
        self.length = 0  # requests that were added and not taken
        self._pool = pool
        self._at_once = at_once
        self._most = min(at_once, _FEW)  # threads
        self._threads = 0
        self._lock = threading.Lock()
        self._woken: SimpleQueue[None] = SimpleQueue()  # perhaps for nothing: it looks again
        self._waiting: deque[tuple[int, Callable[[], _T]]] = deque()
        self._answers: dict[int, tuple[_T | None, BaseException | None]] = {}
        self._added = 0
        self._awaited = 0  # the number of the next answer to take
        self._is_over = False  # a request has failed, or the answers are no longer needed

    def add(self, work: Callable[[], _T]) -> None:
        """Make a request after those added before."""
        with self._lock:
            if not self._is_over:
                self._waiting.append((self._added, work))
            is_staffed = self._threads >= self._most
        self._added += 1
        self.length += 1
        if not is_staffed:
            self._staff()

    def take(self) -> _T:
        """The next answer."""
        if self._awaited not in self._answers:
            self._await_next()
        answer, error = self._answers.pop(self._awaited)
        self._awaited += 1
        self.length -= 1
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]

    def _await_next(self) -> None:
        known = self._answered
        while self._most < self._at_once and not self._is_there_in(_AT_ONCE_S):
            # If others came meanwhile, the store is near, and more threads would only compete.
            if self._answered == known:
                self._most = min(2 * self._most, self._at_once)
                self._staff()
            known = self._answered
        self._is_there_in(None)

    def stop(self) -> None:
        """Make no more requests."""
        with self._lock:
            self._is_over = True
            self._waiting.clear()

    def wait(self) -> None:
        """Wait for the requests that are under way."""
        while self._threads:
            self._woken.get()

    @property
    def _answered(self) -> int:
        """How many answers have come."""
        return self._awaited + len(self._answers)

    def _is_there_in(self, seconds: float | None) -> bool:
        """Wait at most about this long for the next answer; returns whether it has come."""
        while self._awaited not in self._answers:
            try:
                self._woken.get(timeout=seconds)
            except Empty:
                return self._awaited in self._answers
        return True

    def _staff(self) -> None:
        """Start as many threads as there is work for."""
        # Threads that are about to end are not counted.
        for _ in range(min(self._most - self._threads, len(self._waiting))):
            self._pool.submit(self._serve)
            with self._lock:
                self._threads += 1

    def _serve(self) -> None:
        while True:
            try:
                number, work = self._waiting.popleft()
            except IndexError:
                if self._is_dismissed():
                    return
                continue
            answer = _attempt(work)
            if answer[1] is not None:
                self.stop()
            self._answers[number] = answer
            if number == self._awaited:  # otherwise the consumer finds it before it waits for it
                self._woken.put(None)
            del work, answer  # do not hold an answer during the next request
            if self._pool.is_asked_for:  # others must not wait until this series ends
                self._pool.go_on(self._serve)
                return

    def _is_dismissed(self) -> bool:
        """Let a thread end, unless a request was added meanwhile."""
        with self._lock:
            if self._waiting:
                return False
            self._threads -= 1
        self._woken.put(None)
        return True


def ask_all(works: Iterable[Callable[[], _T]], at_once: int) -> list[_T]:
    """The results of requests, in order."""
    return list(ask_each(works, at_once))


def begin(work: Callable[[], _T], at_once: int) -> Callable[[], _T]:
    """Begin a request whose answer is needed later; call what this returns to get the answer.

    If requests are made one at a time, this one is made when its answer is asked for.
    """
    if at_once <= 1 or getattr(_here, "is_request", False):
        return work
    return _pool("requests", MOST_AT_ONCE).submit(work).result


def begin_data(work: Callable[[], _T]) -> Callable[[], _T]:
    """Begin to fetch a large piece of data; call what this returns to get it."""
    return _pool("data", _MOST_DATA_AT_ONCE).submit(work).result


def leave(work: Callable[[], object], at_once: int) -> None:
    """Make a request without waiting for it, after earlier ones; its result is ignored.

    If requests are made one at a time, this one is made now.
    """
    if at_once <= 1:
        work()
    else:
        _left[:] = [_pool("left", 1).submit(work)]


def settle() -> None:
    """Wait for the requests that were left, before something that must come after them."""
    if not getattr(_here, "is_request", False):
        for one in _left:
            one.wait()


@atexit.register
def _end() -> None:
    """Give the requests that were left a short time when the process ends."""
    for one in _left:
        one.wait(_LAST_CHANCE_S)


def _after_fork() -> None:
    # Threads stay behind in the parent.
    _pools.clear()
    _left.clear()


os.register_at_fork(after_in_child=_after_fork)
