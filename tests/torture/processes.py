"""Real processes: killed at any moment, crowded, starved of space, locked out."""

import itertools
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from emberlake.errors import EmberlakeError
from emberlake.io import LocalStorage
from emberlake.table import Table
from places import here
from table_reads import check_whole
from torture.core import Step, Steps, chance_of
from torture.forks import FAILED, Forks
from torture.jobs import KINDS, ROWS, Diary, Options, create, open_table, operate, read, write_batch
from watched_storage import Call, WatchedStorage

OPERATIONS = ("write", "overwrite", "compact", "truncate")
PATIENCE_S = 30  # with a process that is to begin


@dataclass(frozen=True)
class Site:
    """An empty warehouse, and a folder on the disk for what is noted about it."""

    options: Options
    folder: Path

    @property
    def diary(self) -> Path:
        return self.folder / "diary"


@contextmanager
def new_site() -> Iterator[Site]:
    """A site of this place; of the disk, where other processes would not reach it."""
    with disk_site() as site:
        yield Site(here().new_warehouse(), site.folder) if here().name == "s3" else site


@contextmanager
def disk_site() -> Iterator[Site]:
    with _folder() as folder:
        yield Site({"warehouse": str(folder)}, folder)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="emberlake-torture-"))
    folder.chmod(0o755)  # other users look into it
    try:
        yield folder
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
        shutil.rmtree(folder)


def lines_of(diary: Path) -> list[list[str]]:
    text = diary.read_text() if diary.exists() else ""
    return [line.split(" ", 2) for line in text.splitlines()]


# --- killed ---------------------------------------------------------------------------------------


def kills(seed: int, kinds: tuple[str, ...] = tuple(KINDS), each: int = 25) -> Steps:
    """Writers that are killed at random moments, some of them in each table; does not end."""
    with Forks() as forks:
        for number in itertools.count():
            kind = kinds[number % len(kinds)]
            # What sums may be doubles with every kill.
            times = min(each, 10) if kind == "sums" else each
            with new_site() as site:
                yield from _kill_in(forks, site, kind, seed + number, times)


def _kill_in(forks: Forks, site: Site, kind: str, seed: int, each: int) -> Steps:
    chance = chance_of(seed, kind)
    create(site.options, kind)
    diary = site.diary
    for number in range(each):
        pid = forks.start(
            "write_until_killed",
            options=site.options,
            diary=str(diary),
            first=number * 1_000,
            seed=seed,
        )
        # Until it has begun with something, so that no kill is wasted on the start.
        deadline = time.monotonic() + PATIENCE_S
        while not any(int(batch) >= number * 1_000 for _, batch, _ in lines_of(diary)):
            if time.monotonic() > deadline:
                break
            time.sleep(0.001)
        time.sleep(chance.random() ** 2 * 0.15)
        status = forks.kill(pid)
        problem = "the writer failed by itself" if status == FAILED else None
        name = f"kill {number} of {kind}, seed {seed}"
        found, rows = _judge_kill(site, kind)
        yield Step(name, {"kills": 1, "rows compared": rows}, problem or found)
        problem = problem or found
        if problem:
            return


def _judge_kill(site: Site, kind: str) -> tuple[str | None, int]:
    """What is wrong, and how many rows were looked at."""
    try:
        table = open_table(site.options)
        rows = read(table)
        check_whole(table)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table is broken
        return f"the table cannot be read: {type(error).__name__}: {error}", 0
    return _judge_rows(kind, rows, lines_of(site.diary)), len(rows)


def _judge_rows(kind: str, rows: list[tuple[int, int]], lines: list[list[str]]) -> str | None:
    writes = [(word, int(batch)) for word, batch, what in lines if what in ("write", "overwrite")]
    begun = [batch for word, batch in writes if word == "begin"]
    done = {batch for word, batch in writes if word == "done"}
    found = Counter(batch for _, batch in rows)
    if kind == "sums":
        return _judge_sums(rows, begun, done)
    if set(found.values()) - {ROWS}:
        return f"a batch is there in part: {found}"
    unknown = found.keys() - set(begun)
    if unknown:
        return f"batches that nobody wrote: {unknown}"
    if kind.startswith("append"):
        lost = done - found.keys()
        return f"batches were lost: {lost}" if lost else None
    # Of a table with keys the last batch stays: the last one that is done, or one begun after it.
    last = max(done, default=-1)
    if done and not (len(found) == 1 and min(found) >= last):
        return f"batch {last} is done, and the rows are of {sorted(found)}"
    return None


def _judge_sums(rows: list[tuple[int, int]], begun: list[int], done: set[int]) -> str | None:
    """The sum of all batches that are done, and of any of those that a kill may have left out."""
    found = {batch for _, batch in rows} or {0}
    if len(found) > 1:
        return f"a batch is there in part: {rows}"
    possible = {sum(done)}
    for batch in set(begun) - done:
        possible |= {total + batch for total in possible}
    return None if found <= possible else f"{found} is no sum of {done} and some of {begun}"


# --- crowded --------------------------------------------------------------------------------------


def crowds(seed: int, processes: int = 8, commits: int = 6) -> Steps:
    """Processes that all commit at once, some of them slowly, while others read; does not end."""
    with Forks() as forks:
        for number in itertools.count():
            kind = ("append", "sums", "keys", "vectors", "dynamic")[(seed + number) % 5]
            with new_site() as site:
                create(site.options, kind)
                problem = _crowd(forks, site, kind, processes, commits)
            name = f"{processes} processes commit to {kind}, {commits} times each"
            yield Step(name, {"commits of processes at once": processes * commits}, problem)


def _crowd(forks: Forks, site: Site, kind: str, processes: int, commits: int) -> str | None:
    diary, seen = site.diary, site.folder / "seen"
    reader = forks.start("read_until_killed", options=site.options, diary=str(seen))
    pids = [
        forks.start(
            "commit_many",
            options=site.options,
            diary=str(diary),
            number=number,
            commits=commits,
            slow=number % 2 == 1,
        )
        for number in range(processes)
    ]
    statuses = [forks.wait(pid) for pid in pids]
    if forks.kill(reader) == FAILED:
        return "a reader failed"
    if any(statuses):
        return f"processes ended with {statuses}"
    table = open_table(site.options)
    check_whole(table)
    return _judge_crowd(kind, read(table), lines_of(diary), processes * commits) or _judge_reader(
        kind, lines_of(seen)
    )


def _judge_crowd(
    kind: str, rows: list[tuple[int, int]], lines: list[list[str]], batches: int
) -> str | None:
    done = {int(batch): int(snapshot) for word, batch, snapshot in lines if word == "done"}
    if done.keys() != set(range(batches)):
        return f"only {len(done)} of {batches} batches say that they are done"
    if kind == "append":
        found = Counter(batch for _, batch in rows)
        expected = Counter(dict.fromkeys(range(batches), ROWS))
        return (
            None
            if found == expected
            else f"lost or repeated: {found - expected}, {expected - found}"
        )
    if kind == "sums":
        expected_sum = sum(range(batches))
        return None if {n for _, n in rows} == {expected_sum} else f"{rows}, not {expected_sum}"
    last = max(done, key=lambda batch: done[batch])
    return None if {n for _, n in rows} == {last} else f"{rows}, and {last} was last"


def _judge_reader(kind: str, lines: list[list[str]]) -> str | None:
    """Every read saw whole batches, and never less than a read before it."""
    before: set[str] = set()
    for _, count, batches in lines:
        now = {batch for batch in batches.split(",") if batch}
        if int(count) % ROWS or (kind != "append" and len(now) > 1):
            return f"a reader saw part of a batch: {count} rows of {now}"
        if kind == "append" and not before <= now:
            return f"a reader saw batches go: {before - now}"
        before = now
    return None


# --- no space -------------------------------------------------------------------------------------


def full_disks(
    seed: int, kinds: tuple[str, ...] = ("append", "keys", "vectors"), sizes: int = 12
) -> Steps:
    """Files that cannot grow beyond a size, whatever it is; then a disk that is full."""
    with Forks() as forks:
        for kind, operation in itertools.product(kinds, ("write much", *OPERATIONS)):
            most = 200_000 if operation == "write much" else 4_000
            chosen = chance_of(seed, kind, operation).sample(range(most), sizes)
            for size in (0, *chosen):
                with disk_site() as site:
                    problem = _starve(forks, site, kind, operation, size)
                name = f"{operation} of {kind} with files of at most {size} bytes"
                yield Step(name, {"full disks": 1}, problem)
        for kind in kinds:
            with disk_site() as site:
                if _mount(site.folder, 1_000_000):
                    try:
                        problem = _fill(forks, site, kind)
                    finally:
                        subprocess.run(["umount", str(site.folder)], check=True)
                    yield Step(f"a full disk under {kind}", {"full disks": 1}, problem)


def _starve(forks: Forks, site: Site, kind: str, operation: str, size: int) -> str | None:
    table = create(site.options, kind)
    for batch in (1, 2):
        write_batch(table, batch)
    old = sorted(read(table))
    arguments = {"options": site.options, "diary": str(site.diary), "operation": operation}
    pid = forks.start("write_within", file_bytes=size, **arguments)
    status = forks.wait(pid)
    if status:
        return f"the process ended with {status}"
    return _judge_outcome(site, kind, operation, old)


def _judge_outcome(site: Site, kind: str, operation: str, old: list[tuple[int, int]]) -> str | None:
    """Either it is done, or there is a typed error and all is as before; the next one works."""
    outcome = lines_of(site.diary)[-1]
    if outcome[0] == "raw":
        return f"an error is not typed: {outcome}"
    try:
        table = open_table(site.options)
        check_whole(table)
        rows = sorted(read(table))
        if outcome[0] == "typed" and rows != old and kind != "vectors":
            return f"an error was raised, and the rows are there: {outcome}"
        if outcome[0] == "fine" and rows == old and operation not in ("compact", "read"):
            return "no error was raised, and nothing has changed"
        write_batch(table, 7)
        if 7 not in {batch for _, batch in read(table)}:
            return "the next commit is not there"
    except Exception as error:  # noqa: BLE001 - whatever it is, the table is broken
        return f"afterwards: {type(error).__name__}: {error}"
    return None


def _mount(folder: Path, size: int) -> bool:
    """Whether a disk of that size could be put there: it takes rights."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _fill(forks: Forks, full: Site, kind: str) -> str | None:
    create(full.options, kind)
    with tempfile.TemporaryDirectory() as elsewhere:
        site = Site(full.options, Path(elsewhere))
        ballast = full.folder / "ballast"
        ballast.write_bytes(bytes(600_000))
        for turn in range(3):
            diary = str(site.diary)
            pid = forks.start(
                "fill", options=site.options, diary=diary, first=turn * 1000, most=999
            )
            if forks.wait(pid):
                return "the writer failed otherwise than by a StorageError"
            if lines_of(site.diary)[-1][0] != "failed":
                return "the disk was not full"
            problem, _ = _judge_kill(site, kind)
            if problem:
                return problem
            ballast.write_bytes(bytes(400_000 - 200_000 * turn))  # some room again
    return None


# --- locked out, and gone -------------------------------------------------------------------------

FOLDERS = ("", "schema", "snapshot", "manifest", "bucket-0")


def locked(seed: int, kinds: tuple[str, ...] = ("append", "keys")) -> Steps:
    """Folders that may not be written to, or not even be looked into."""
    with Forks() as forks:
        ways = itertools.product(kinds, (*OPERATIONS, "read"), FOLDERS, (0o555, 0o000))
        for kind, operation, folder, mode in ways:
            with disk_site() as site:
                problem = _lock(forks, site, kind, operation, folder, mode)
            name = f"{operation} of {kind}, {folder or 'the table'} has the mode {mode:o}"
            yield Step(name, {"locked folders": 1}, problem)


def _lock(
    forks: Forks, site: Site, kind: str, operation: str, folder: str, mode: int
) -> str | None:
    table = create(site.options, kind)
    write_batch(table, 1)
    old = sorted(read(table))
    root = Path(table.table_path)
    Diary(str(site.diary))
    subprocess.run(["chmod", "-R", "a+rwX", str(site.folder)], check=True)
    (root / folder).chmod(mode)
    arguments = {"options": site.options, "diary": str(site.diary), "operation": operation}
    status = forks.wait(forks.start("locked_out", **arguments))
    (root / folder).chmod(0o777)
    if status:
        return f"the process ended with {status}"
    outcome = lines_of(site.diary)[-1]
    if outcome[0] == "fine" and mode == 0 and folder != "bucket-0":
        return "nothing could be looked into, and no error was raised"
    return _judge_outcome(site, kind, operation, old)


def vanished(seed: int, kinds: tuple[str, ...] = ("append", "keys")) -> Steps:
    """Folders that go away in the middle of an operation: typed errors, or it does not matter."""
    for kind, operation, folder in itertools.product(kinds, (*OPERATIONS, "read"), FOLDERS):
        chance = chance_of(seed, kind, operation, folder)
        for at in sorted(chance.sample(range(1, 40), 4)):
            with disk_site() as site:
                problem = _vanish(site, kind, operation, folder, at)
            name = f"{operation} of {kind}, {folder or 'the table'} vanishes at call {at}"
            yield Step(name, {"vanished folders": 1}, problem)


def _vanish(site: Site, kind: str, operation: str, folder: str, at: int) -> str | None:
    table = create(site.options, kind)
    write_batch(table, 1)
    path = Path(table.table_path) / folder

    looked: list[str] = []  # what was listed since

    def vanish(call: Call) -> None:
        if call.number == at and not call.is_done:
            shutil.rmtree(path, ignore_errors=True)
        if call.number >= at and call.method == "list" and not call.is_done:
            looked.append(call.path)

    store = table.store
    watched = WatchedStorage(LocalStorage(), vanish)
    doomed = Table(table.identifier, watched, store.layout, store.schema, store.env)  # type: ignore[arg-type]
    try:
        operate(doomed, operation)
    except EmberlakeError:
        pass
    except Exception as error:  # noqa: BLE001 - whatever it is, it should have been typed
        return f"{type(error).__name__} is not typed: {error}"
    # Who has looked at the schema for the last time before that cannot know.
    has_looked = store.layout.schema_folder in looked
    if not folder and has_looked and (path / "snapshot").exists():
        return "a table that is gone was committed to"
    return None
