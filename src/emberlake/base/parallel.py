"""A map over threads that keeps order, bounds what is in flight and surfaces the first error."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import pyarrow as pa

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_SIGNALS_EVERY_S: Final = 0.5


def default_workers() -> int:
    """As many threads as Arrow uses: one per core, unless ``pyarrow.set_cpu_count`` was called.

    Arrow and zstd release the interpreter lock, so threads do help.
    """
    return int(pa.cpu_count())


def limit_threads() -> None:
    """Use one thread from now on, in processes that already run one per core."""
    pa.set_cpu_count(1)


def parallel_map(
    function: Callable[[_In], _Out],
    items: Iterable[_In],
    *,
    workers: int | None = None,
    ahead: int | None = None,
) -> Iterator[_Out]:
    """Yield ``function(item)`` in order, with at most ``ahead`` results waiting to be taken."""
    workers = workers or default_workers()
    if workers == 1:
        yield from map(function, items)
        return
    in_flight = ahead or 2 * workers
    pool = ThreadPoolExecutor(workers, thread_name_prefix="emberlake")
    waiting: deque[Future[_Out]] = deque()
    is_awaited = True
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= in_flight:
                yield result_of(waiting.popleft())
        while waiting:
            yield result_of(waiting.popleft())
    except KeyboardInterrupt:
        is_awaited = False  # a user who presses Ctrl-C does not want to wait for a request
        raise
    finally:
        pool.shutdown(wait=is_awaited, cancel_futures=True)


def result_of(future: "Future[_Out]") -> _Out:
    """The result of a future, awaited in a way that Ctrl-C can interrupt.

    Some libraries (Lance is one) handle signals in a way that does not end a long wait.
    """
    while True:
        try:
            return future.result(_SIGNALS_EVERY_S)
        except TimeoutError:
            if future.done():
                return future.result()  # the work itself may have timed out
