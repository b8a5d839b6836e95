"""Results added up over all runs, in a file that stays on the machine."""

import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from torture.core import Report

HOME = Path(os.environ.get("EMBERLAKE_TORTURE", "~/.cache/emberlake/torture.json")).expanduser()


@dataclass(frozen=True)
class Violation:
    """Something that was wrong, and how to see it again."""

    place: str
    part: str
    seed: int
    step: str
    problem: str
    when: str

    @property
    def repeat(self) -> str:
        return f"make torture SEED={self.seed} PLACE={self.place} PARTS={self.part}"

    def __str__(self) -> str:
        return (
            f"VIOLATION in {self.part} on {self.place}: {self.step}\n"
            f"    {self.problem}\n    again: {self.repeat}"
        )


@dataclass
class Total:
    """Counts by place, and violations."""

    seconds: float = 0.0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def add(self, place: str, part: str, seed: int, done: Report) -> list[Violation]:
        """Add what a part has done; its violations."""
        self.seconds += done.seconds
        self.counts.setdefault(place, Counter()).update(done.counts)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        found = [
            Violation(place, part, seed, step.name, str(step.problem), when)
            for step in done.violations
        ]
        self.violations += found
        return found

    def merge(self, other: "Total") -> None:
        self.seconds += other.seconds
        for place, counts in other.counts.items():
            self.counts.setdefault(place, Counter()).update(counts)
        self.violations += other.violations

    def everywhere(self) -> Counter[str]:
        return sum(self.counts.values(), Counter())

    def to_json(self) -> dict[str, Any]:
        violations = [{**asdict(one), "again": one.repeat} for one in self.violations]
        return {
            "seconds": round(self.seconds, 1),
            "counts": {place: dict(sorted(n.items())) for place, n in self.counts.items()},
            "violations": violations,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        violations = [
            Violation(**{name: value for name, value in one.items() if name != "again"})
            for one in raw["violations"]
        ]
        counts = {place: Counter(found) for place, found in raw["counts"].items()}
        return cls(raw["seconds"], counts, violations)


def add_to_file(new: Total, path: Path = HOME) -> Total:
    """Add to what the file has, together with others who do; what it has then."""
    with _locked(path):
        total = Total.from_json(json.loads(path.read_text())) if path.exists() else Total()
        total.merge(new)
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(total.to_json(), indent=2) + "\n")
        unfinished.replace(path)
    return total


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
