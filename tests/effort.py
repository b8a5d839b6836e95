"""How hard the tests try: in full by default, with fewer examples and cases in ``make quick``."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final, TypeVar

from hypothesis import settings

T = TypeVar("T")

# Tests run most code of a JVM a few times only, on few cores: to optimise it and to collect garbage
# beside them takes more CPU time than it saves. Code that is not optimised gets little room by
# default; what Spark generates would have to be thrown out all the time.
JVM_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:ReservedCodeCacheSize=240m",
)

FULL = 100  # examples of a property that says nothing else
CASES = 4  # of a test with many, in a quick run

# Machines are shared and slow at times; a property that holds late still holds.
settings.register_profile("emberlake", deadline=None, max_examples=FULL)
settings.register_profile("quick", deadline=None, max_examples=FULL // 10)


def examples(count: int) -> settings:
    """Settings for `count` examples in a full run, and proportionally fewer in a quick one."""
    return settings(max_examples=max(3, count * settings.default.max_examples // FULL))


def is_quick() -> bool:
    return settings.default.max_examples < FULL


def spread(cases: Sequence[T], most: int) -> list[T]:
    """At most `most` of the cases, evenly spread from the first to the last."""
    if len(cases) <= most:
        return list(cases)
    last = len(cases) - 1
    return [cases[place * last // (most - 1)] for place in range(most)]


def sample(tests: Sequence[T], name: Callable[[T], str]) -> list[T]:
    """Keep a few cases of each test. The cases of a test share its name and lie side by side."""
    return [test for _, cases in groupby(tests, name) for test in spread(list(cases), CASES)]


@contextmanager
def made_to_stay() -> Iterator[None]:
    """What is made inside lives to the end of the run, so the garbage collector never looks at it.

    Thousands of collected tests would otherwise slow down every full collection.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
