"""What every part of the torture has in common: steps with counts, and what went wrong.

A part is a function of a seed that yields one ``Step`` for everything it did. The same seed does
the same again, so that a step that found something can be repeated by its name.
"""

import itertools
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from random import Random
from time import monotonic

import pyarrow as pa


@dataclass(frozen=True)
class Step:
    """One thing that was done to a table: what it counts for, and what was wrong afterwards."""

    name: str  # enough to find it again under the same seed
    counts: Mapping[str, int]
    problem: str | None = None


Steps = Iterator[Step]
Part = Callable[[int], Steps]


@dataclass
class Report:
    """What a part did."""

    counts: Counter[str] = field(default_factory=Counter)
    violations: list[Step] = field(default_factory=list)
    seconds: float = 0.0
    is_complete: bool = False  # whether there was time for all of it

    def add(self, step: Step) -> None:
        self.counts.update(step.counts)
        if step.problem is not None:
            self.violations.append(step)


def run(steps: Iterable[Step], seconds: float | None = None, most: int | None = None) -> Report:
    """Do steps until they end, the time is over or enough was done."""
    report, started = Report(), monotonic()
    steps = iter(steps)
    # Closed when it is left: it has processes of its own.
    with closing(steps) if isinstance(steps, Generator) else nullcontext():
        for done in itertools.count(1):
            try:
                step = next(steps, None)
            except Exception:  # noqa: BLE001 - it ends this part, and not all of the torture
                step = Step("the part itself", {}, traceback.format_exc())
            if step is None:
                break
            report.add(step)
            report.seconds = monotonic() - started
            if seconds is not None and report.seconds >= seconds:
                return report
            if most is not None and done >= most:
                return report
    report.is_complete = True
    return report


def check_clean(report: Report, *counted: str) -> None:
    """For tests: something of every kind was done, and nothing was wrong."""
    assert not report.violations, "\n".join(f"{s.name}: {s.problem}" for s in report.violations)
    assert all(report.counts[name] > 0 for name in counted), report.counts


def chance_of(seed: int, *names: object) -> Random:
    """A random generator of its own, so that steps do not depend on what was done before them."""
    return Random(" ".join(map(str, (seed, *names))))


@contextmanager
def one_core() -> Iterator[None]:
    """Operations make their calls one after the other, so that a step is always the same."""
    before = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        yield
    finally:
        pa.set_cpu_count(before)
