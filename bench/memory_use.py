"""How much memory and CPU time something takes, from what Linux tells of processes."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 0.1
STATUS = Path("/proc/self/status")
RESETS_PEAK = Path("/proc/self/clear_refs")


@dataclass
class Peak:
    """The peak, once what is measured has ended."""

    bytes: int | None = None


@contextmanager
def own_peak() -> Iterator[Peak]:
    """The most that this process has held inside the context, on top of what it held before."""
    peak = Peak()
    if not RESETS_PEAK.exists():
        yield peak
        return
    RESETS_PEAK.write_text("5")
    before = _field(STATUS, "VmRSS")
    yield peak
    peak.bytes = max(_field(STATUS, "VmHWM") - before, 0)


@contextmanager
def tree_peak(root: int) -> Iterator[Peak]:
    """The same for a process with all that it started, looked at ten times a second."""
    peak = Peak()
    before = _tree_bytes(root)
    highest = [before]
    with _repeated(lambda: highest.append(max(highest.pop(), _tree_bytes(root)))):
        yield peak
    peak.bytes = max(highest[0] - before, 0)


@contextmanager
def _repeated(action: Callable[[], None]) -> Iterator[None]:
    over = threading.Event()

    def run() -> None:
        while not over.wait(SAMPLE_SECONDS):
            action()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def tree_cpu_seconds(root: int) -> float:
    """The CPU time of a process with all that it started, and with what has ended of it."""
    total = 0
    for pid in _tree(root):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        total += sum(map(int, fields[11:15]))  # its own, and that of children it has waited for
    return total / os.sysconf("SC_CLK_TCK")


@contextmanager
def measured_tree() -> Iterator[dict[str, Any]]:
    """An answer that has the seconds, and the CPU time and memory of Spark and its workers."""
    answer: dict[str, Any] = {}
    with tree_peak(os.getpid()) as peak:
        used, start = tree_cpu_seconds(os.getpid()), time.perf_counter()
        yield answer
        answer["seconds"] = time.perf_counter() - start
        answer["cpu_seconds"] = tree_cpu_seconds(os.getpid()) - used
    answer["peak_bytes"] = peak.bytes


def _tree_bytes(root: int) -> int:
    return sum(_pages(pid) for pid in _tree(root))


def _tree(root: int) -> set[int]:
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        parents[int(status.parent.name)] = int(fields[1])
    inside = {root}
    while more := {pid for pid, parent in parents.items() if parent in inside} - inside:
        inside |= more
    return inside


def _pages(pid: int) -> int:
    try:
        return _field(Path(f"/proc/{pid}/status"), "VmRSS")
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return 0  # it has ended meanwhile


def _field(status: Path, name: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024
