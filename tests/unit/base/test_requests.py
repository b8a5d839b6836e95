import gc
import linecache
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from emberlake.base import requests
from emberlake.base.requests import MOST_AT_ONCE, ask_all, ask_each, begin, leave, settle


class Counter:
    """Requests that wait until so many of them are under way."""

    def __init__(self, until: int) -> None:
        self.most = 0
        self._until = until
        self._now = 0
        self._changed = threading.Condition()

    def __call__(self) -> str:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._until, timeout=5)
            self._now -= 1
        return threading.current_thread().name


def test_requests_are_made_side_by_side_and_answered_in_order() -> None:
    counter = Counter(until=10)

    answers = ask_all([lambda n=n: (n, counter()) for n in range(30)], 10)

    assert [n for n, _ in answers] == list(range(30))
    assert counter.most == 10


def test_there_are_never_more_than_the_process_makes_at_once() -> None:
    counter = Counter(until=MOST_AT_ONCE)

    ask_all([counter] * 200, 1000)

    assert counter.most == MOST_AT_ONCE


def test_few_are_made_at_once_while_answers_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_AT_ONCE_S", 60.0)
    counter = Counter(until=8)

    ask_all([counter] * 300, 1000)

    assert counter.most == 8


def test_more_are_made_at_once_while_an_answer_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "_AT_ONCE_S", 0.0)
    counter = Counter(until=9)

    ask_all([counter] * 300, 1000)

    assert counter.most >= 9


def test_one_slow_answer_brings_no_more_at_once_while_others_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "_AT_ONCE_S", 0.2)
    is_over = threading.Event()
    under_way: set[int] = set()
    counts: list[int] = []

    def quick(number: int) -> None:
        under_way.add(number)
        counts.append(len(under_way))
        time.sleep(0.03)
        under_way.remove(number)

    ask_all([is_over.wait, *[partial(quick, n) for n in range(100)], is_over.set], 1000)

    assert max(counts) == 7  # the eighth waits


def test_one_at_a_time_is_made_where_it_is_asked_for() -> None:
    here = threading.current_thread().name

    assert ask_all([Counter(1)] * 3, 1) == [here] * 3
    assert begin(Counter(1), 1)() == here


def test_a_request_that_makes_others_waits_for_no_thread() -> None:
    def outer() -> list[int]:
        return ask_all([lambda n=n: n for n in range(5)], 64)

    assert ask_all([outer] * 100, 64) == [[0, 1, 2, 3, 4]] * 100


def test_the_first_failure_in_order_is_raised_after_those_that_have_begun() -> None:
    ended = []
    have_begun = threading.Barrier(3)

    def slow() -> None:
        have_begun.wait(5)
        time.sleep(0.1)
        ended.append(1)

    def fail() -> None:
        have_begun.wait(5)
        raise KeyError("no")

    with pytest.raises(KeyError):
        ask_all([fail, slow, slow], 3)
    assert len(ended) == 2


def test_after_a_failure_no_other_request_is_made() -> None:
    made = []

    def fail() -> None:
        made.append("it")
        raise KeyError("no")

    def works() -> Iterator[Callable[[], None]]:
        yield fail
        while not made:
            time.sleep(0.001)
        time.sleep(0.02)  # until it has failed
        yield from [lambda: made.append("another")] * 5

    with pytest.raises(KeyError):
        ask_all(works(), 4)
    assert made == ["it"]


def test_a_long_series_does_not_keep_others_waiting() -> None:
    is_asked, is_answered = threading.Event(), threading.Event()
    begun = threading.Semaphore(0)

    def first() -> None:
        begun.release()
        is_asked.wait(5)

    def later() -> bool:
        return is_answered.wait(5)

    answers: list[object] = []
    works = [first] * MOST_AT_ONCE + [later] * MOST_AT_ONCE
    series = threading.Thread(target=lambda: answers.extend(ask_each(works, MOST_AT_ONCE)))
    series.start()
    for _ in range(MOST_AT_ONCE):
        begun.acquire()
    begin(is_answered.set, MOST_AT_ONCE)
    is_asked.set()
    series.join()

    assert answers == [None] * MOST_AT_ONCE + [True] * MOST_AT_ONCE


def test_requests_that_nobody_takes_are_not_made() -> None:
    made = []
    answers = ask_each((lambda n=n: made.append(n) for n in range(100)), 4)

    next(answers)
    answers.close()

    assert len(made) < 100


def test_what_is_begun_is_under_way_before_it_is_asked_for() -> None:
    done = threading.Event()

    answer = begin(done.set, 2)

    assert done.wait(5)
    assert answer() is None


def test_what_is_left_is_made_in_order_and_its_failures_are_lost() -> None:
    made: list[int] = []
    done = threading.Event()

    def fail() -> None:
        raise KeyError("no")

    for work in (lambda: made.append(1), fail, lambda: made.append(2), done.set):
        leave(work, 64)

    assert done.wait(5)
    assert made == [1, 2]


def test_who_must_not_be_overtaken_waits_for_what_was_left() -> None:
    made: list[int] = []

    leave(lambda: time.sleep(0.1) or made.append(1), 64)
    settle()

    assert made == [1]


def test_what_is_left_may_itself_wait_for_what_was_left() -> None:
    done = threading.Event()

    leave(settle, 64)
    leave(done.set, 64)

    assert done.wait(5)


def interrupted_at(step: int, ask: Callable[[], object]) -> bool:
    """Make requests, and interrupt at a step of Python; returns whether there were so many."""
    steps = 0

    def is_ours(frame: FrameType | None) -> bool:
        return frame is not None and frame.f_code.co_filename == requests.__file__

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        # What the module calls, too: condition variables are Python.
        if not (is_ours(frame) or is_ours(frame.f_back)) or frame.f_code.co_name == "start":
            return None
        # Python looks for signals after calls, but not between the end of a ``with`` and its exit,
        # which is a step on the line where it begins.
        code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if not (event == "line" and code.startswith("with ")):
            steps += 1
            if steps == step:
                raise KeyboardInterrupt
        return trace

    def run() -> None:
        sys.settrace(trace)
        try:
            ask()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    gc.disable()  # it calls functions of other libraries, at any step
    try:
        thread.start()
        thread.join(5)
    finally:
        gc.enable()
    assert not thread.is_alive(), f"it waits after an interruption at step {step}"
    return steps >= step


def test_ctrl_c_at_any_step_leaves_nobody_waiting() -> None:
    pauses = [0.0, 0.01, 0.0, 0.02]

    def ask() -> None:
        ask_all([partial(time.sleep, pause) for pause in pauses], 4)
        begin(partial(time.sleep, 0.01), 4)()

    step = 1
    while interrupted_at(step, ask):
        others = threading.Thread(target=partial(ask_all, [Counter(1)] * 8, 8), daemon=True)
        others.start()
        others.join(5)
        assert not others.is_alive(), f"others wait after an interruption at step {step}"
        step += 1
    assert step > 50


def test_a_limit_on_threads_slows_requests_down(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def start_few(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(requests, "_pools", {})
    monkeypatch.setattr(threading.Thread, "start", start_few)

    assert ask_all([partial(int, n) for n in range(100)], 64) == list(range(100))
    assert begin(partial(int, 7), 64)() == 7
    assert len(started) == 2


def test_a_system_without_threads_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(requests, "_pools", {})
    monkeypatch.setattr(threading.Thread, "start", refuse)

    with pytest.raises(RuntimeError, match="new thread"):
        ask_all([partial(int, n) for n in range(100)], 64)
