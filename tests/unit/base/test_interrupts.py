"""Ctrl-C reaches work that does not look at signals."""

import os
import signal
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from emberlake.base.interrupts import stopped_by_interrupt


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """The handler of a program in a terminal; a test runner may have been started without it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_work_is_stopped_from_another_thread_and_its_error_is_an_interrupt() -> None:
    stopped = Event()
    signal.signal(signal.SIGINT, lambda *_: None)  # as if the main thread were in a library

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert stopped.wait(10)
        raise RuntimeError("the query was interrupted")

    with pytest.raises(KeyboardInterrupt), stopped_by_interrupt(stopped.set):
        work()


def test_an_error_without_ctrl_c_stays_what_it_is() -> None:
    with pytest.raises(ValueError, match="mine"), stopped_by_interrupt(lambda: None):
        raise ValueError("mine")


def test_what_watched_signals_before_does_so_afterwards() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing)
    try:
        with stopped_by_interrupt(lambda: None):
            pass
        assert signal.set_wakeup_fd(writing) == writing
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


def test_on_other_threads_nothing_is_watched() -> None:
    done: list[int] = []

    def work() -> None:
        with stopped_by_interrupt(lambda: None):
            done.append(1)

    thread = Thread(target=work)
    thread.start()
    thread.join()

    assert done == [1]
