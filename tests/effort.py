"""How hard properties are tried: in full by default, a tenth of it in ``make quick``."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import settings

FULL = 100  # examples of a property that says nothing else

# Machines are shared and slow at times; a property that holds late still holds.
settings.register_profile("emberlake", deadline=None, max_examples=FULL)
settings.register_profile("quick", deadline=None, max_examples=FULL // 10)


def examples(count: int) -> settings:
    """So many examples of a full run, and fewer in the same proportion in others."""
    return settings(max_examples=max(3, count * settings.default.max_examples // FULL))


@contextmanager
def made_to_stay() -> Iterator[None]:
    """What is made inside lives to the end of the run.

    The garbage collector does not go through it: with all tests collected, that would take half a
    second each time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
