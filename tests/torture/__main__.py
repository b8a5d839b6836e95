"""Tries to break emberlake for some minutes: ``python -m torture --seed 1 --minutes 10``.

Every part gets its share of the time. What was done is printed as a table; what was wrong is told
with the seed and the step that does it again, and makes the exit code 1.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torture.core import Part, Report, run
from torture.corruption import corruption
from torture.faults import faults
from torture.histories import histories
from torture.interleavings import interleavings
from torture.names import names
from torture.nesting import nesting
from torture.processes import crowds, full_disks, kills, locked, vanished


@dataclass(frozen=True)
class Share:
    """A part and how much of the time it gets."""

    part: Part
    weight: float
    says: str


PARTS: Mapping[str, Share] = {
    "faults": Share(faults, 3, "every storage call fails, before or after its effect"),
    "interleavings": Share(interleavings, 4, "two and three committers take turns at every call"),
    "kills": Share(kills, 2, "SIGKILL at random moments"),
    "crowds": Share(crowds, 2, "eight processes commit at once, some on slow storage"),
    "full disks": Share(full_disks, 1.5, "no space left, at any byte"),
    "locked": Share(locked, 1, "read-only and unreadable folders"),
    "vanished": Share(vanished, 0.5, "folders that go away in the middle"),
    "corruption": Share(corruption, 4, "files cut off, emptied, flipped, swapped"),
    "nesting": Share(nesting, 0.6, "deep and huge Avro and JSON"),
    "names": Share(names, 2, "names, values and options from users"),
    "histories": Share(histories, 4, "random histories, read by pypaimon and pypaimon-rust too"),
}


def main() -> int:
    """Run the parts that were asked for; the exit code."""
    arguments = _arguments()
    chosen = {name: PARTS[name] for name in arguments.parts or PARTS}
    total = sum(share.weight for share in chosen.values())
    started, reports = time.monotonic(), dict[str, Report]()
    left, weight_left = arguments.minutes * 60, total
    for name, share in chosen.items():
        # Time that a part did not need goes to those after it.
        seconds = left * share.weight / weight_left
        sys.stdout.write(f"{name}: {share.says}, for {seconds:.0f} s ...\n")
        sys.stdout.flush()
        reports[name] = run(share.part(arguments.seed), seconds=seconds)
        left = max(0.0, arguments.minutes * 60 - (time.monotonic() - started))
        weight_left -= share.weight
        _tell_violations(name, reports[name], arguments.seed)
    _print_table(reports, arguments.seed)
    return int(any(report.violations for report in reports.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="only these parts")
    return parser.parse_args()


def _tell_violations(name: str, report: Report, seed: int) -> None:
    for step in report.violations[:10]:
        sys.stdout.write(f"  VIOLATION in {name}, seed {seed}: {step.name}\n    {step.problem}\n")
    if len(report.violations) > 10:
        sys.stdout.write(f"  and {len(report.violations) - 10} more\n")
    sys.stdout.flush()


def _print_table(reports: Mapping[str, Report], seed: int) -> None:
    """One line for everything that was counted; time and violations once for each part."""
    rows: list[tuple[str, ...]] = []
    for name, report in reports.items():
        took = f"{report.seconds:.0f} s" + ", all of it" * report.is_complete
        last = (took, str(len(report.violations)))
        for number, (what, count) in enumerate(report.counts.items()):
            rows.append((name * (number == 0), what, f"{count:,}", *last))
            last = ("", "")
    _printer()(("part", f"seed {seed}", "count", "time", "violations"), rows)


def _printer() -> Callable[[tuple[str, ...], list[tuple[str, ...]]], None]:
    try:
        from rich.console import Console  # noqa: PLC0415 - nicer where it is installed
        from rich.table import Table  # noqa: PLC0415
    except ImportError:
        return _print_plain

    def print_rich(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        table = Table(*heads)
        for row in rows:
            table.add_row(*row)
        Console().print(table)

    return print_rich


def _print_plain(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    for row in (heads, *rows):
        sys.stdout.write("  ".join(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
