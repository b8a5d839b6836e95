"""Tries to break emberlake for some minutes: ``python -m torture --minutes 60``.

Rounds of all parts follow one another, each with a new seed; in a round every part has its share of
the time on every place where it can be. What was done is added up in a file, whose totals are
printed at the end. A failure is printed with the seed that repeats it, is kept in the file,
and makes the exit code 1.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from places import Place, disk, living_at, s3
from servers import program, s3_server
from torture.core import Part, run
from torture.corruption import corruption
from torture.faults import faults
from torture.histories import histories
from torture.interleavings import interleavings
from torture.killed import killed_calls
from torture.names import names
from torture.nesting import nesting
from torture.processes import crowds, full_disks, kills, locked, vanished
from torture.report import HOME, Total, add_to_file
from torture.spark_streams import spark_streams
from torture.streams import streams
from torture.wire import lost_answers

ROUND_MINUTES = 20  # or less, when there are fewer
EVERYWHERE = ("memory", "disk", "s3")
SHARED = ("disk", "s3")


@dataclass(frozen=True)
class Share:
    """A part, how much of the time it gets at each place, and where."""

    part: Part
    weight: float
    places: tuple[str, ...]
    says: str
    alternates: bool = False  # it takes long to begin: one round here, the next one there

    def places_of(self, seed: int, chosen: Sequence[str]) -> list[str]:
        """Where it runs in the round of a seed."""
        places = [place for place in self.places if place in chosen]
        return [places[seed % len(places)]] if self.alternates and places else places


PARTS: Mapping[str, Share] = {
    "faults": Share(faults, 3, EVERYWHERE, "storage calls fail, before or after their effect"),
    "lost-answers": Share(lost_answers, 4, ("s3",), "a proxy breaks requests"),
    "interleavings": Share(interleavings, 2, EVERYWHERE, "committers take turns at every call"),
    "killed-calls": Share(killed_calls, 2, SHARED, "SIGKILL before and after any storage call"),
    "kills": Share(kills, 1, SHARED, "SIGKILL at random moments"),
    "streams": Share(streams, 2, SHARED, "a stream writer is killed and started again"),
    "spark-streams": Share(
        spark_streams, 10, SHARED, "Spark's queries die and are started again", alternates=True
    ),
    "crowds": Share(crowds, 0.7, SHARED, "eight processes commit at once, some on slow storage"),
    "corruption": Share(corruption, 1, SHARED, "files cut off, emptied, flipped, swapped"),
    "histories": Share(histories, 1, SHARED, "random histories; pypaimon and -rust read the disk"),
    "full-disks": Share(full_disks, 0.5, ("disk",), "no space left, at any byte"),
    "locked": Share(locked, 0.4, ("disk",), "read-only and unreadable folders"),
    "vanished": Share(vanished, 0.2, ("disk",), "folders that go away in the middle"),
    "nesting": Share(nesting, 0.2, ("memory",), "deep and huge Avro and JSON"),
    "names": Share(names, 0.3, ("memory",), "names, values and options from users"),
}


def main() -> int:
    """Run the parts that were asked for; the exit code."""
    arguments = _arguments()
    end = time.monotonic() + arguments.minutes * 60
    rounds = max(1, round(arguments.minutes / ROUND_MINUTES))
    total = Total()
    for number in range(rounds):
        until = time.monotonic() + (end - time.monotonic()) / (rounds - number)
        _round(arguments, arguments.seed + number, until, total)
    _print_counts(f"this run, seeds from {arguments.seed}", total)
    _print_counts(f"all runs, {HOME}", add_to_file(Total()))
    for violation in total.violations:
        sys.stdout.write(f"{violation}\n")
    return int(bool(total.violations))


def _round(arguments: argparse.Namespace, seed: int, until: float, total: Total) -> None:
    """All parts on all places with one seed; what they did is added to the total and the file."""
    todo = [
        (place, name)
        for place in EVERYWHERE
        for name in arguments.parts or PARTS
        if place in PARTS[name].places_of(seed, arguments.place or EVERYWHERE)
    ]
    weight = sum(PARTS[name].weight for _, name in todo)
    with tempfile.TemporaryDirectory(prefix="emberlake-torture-") as folder:
        for place in dict.fromkeys(place for place, _ in todo):
            home = Path(folder) / place
            home.mkdir()
            with _at(place, home):
                for name in (name for where, name in todo if where == place):
                    share = PARTS[name]
                    # Time that a part did not need goes to those after it.
                    seconds = max(0.0, until - time.monotonic()) * share.weight / weight
                    weight -= share.weight
                    _part(place, name, seed, seconds, total)


def _part(place: str, name: str, seed: int, seconds: float, total: Total) -> None:
    if seconds < 1:
        sys.stdout.write(f"{place}, {name}: there is no time left\n")
        return
    sys.stdout.write(f"{place}, {name}: {PARTS[name].says}, seed {seed}, for {seconds:.0f} s\n")
    sys.stdout.flush()
    if name == "spark-streams":
        if shutil.which("java") is None:
            sys.stdout.write("  left out: there is no Java\n")
            return
        steps = spark_streams(seed, seconds)
    else:
        steps = PARTS[name].part(seed)
    done, new = run(steps, seconds=seconds), Total()
    for violation in new.add(place, name, seed, done)[:10]:
        sys.stdout.write(f"  {violation}\n")
    counts = ", ".join(f"{count:,} {what}" for what, count in done.counts.items())
    sys.stdout.write(f"  {counts or 'nothing'} in {done.seconds:.0f} s\n")
    sys.stdout.flush()
    total.merge(new)
    add_to_file(new)


@contextmanager
def _at(place: str, folder: Path) -> Iterator[None]:
    if place == "s3":
        with s3_server(folder) as server, living_at(s3(server)):
            yield
    else:
        with living_at(disk(folder) if place == "disk" else Place()):
            yield


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--place", action="append", choices=EVERYWHERE, help="only this place")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="only these parts")
    arguments = parser.parse_args()
    if "s3" in (arguments.place or EVERYWHERE) and not (program("versitygw") or program("weed")):
        parser.error("no S3 server is installed: run .ci/object-stores, or choose another --place")
    return arguments


def _print_counts(title: str, total: Total) -> None:
    """One line for everything that was counted, a column for each place."""
    everywhere = total.everywhere()
    places = [place for place in EVERYWHERE if place in total.counts]
    rows = [
        (what, *(f"{total.counts[place][what]:,}" for place in places), f"{count:,}")
        for what, count in everywhere.items()
    ]
    rows.append(("violations", *[""] * len(places), str(len(total.violations))))
    heads = (f"{title}, {total.seconds / 60:.0f} minutes", *places, "all")
    _printer()(heads, rows)


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
