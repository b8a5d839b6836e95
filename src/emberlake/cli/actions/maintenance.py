"""Compact, expire, remove orphans, check."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from emberlake.base.env import SYSTEM_ENV
from emberlake.base.extras import load_extra
from emberlake.base.texts import count_text, seconds_text, size_text
from emberlake.base.times import local_time
from emberlake.cli.actions.compaction_plan import iter_picked
from emberlake.cli.actions.moments import parse_moment
from emberlake.cli.actions.outcome import commit_document, commit_facts
from emberlake.cli.failures import ExitCode, UsageError, in_typed_words
from emberlake.cli.progress import progress
from emberlake.cli.report import Done, Facts, Grid, Note, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.commit.change import CommitResult
from emberlake.inspect.totals import describe_partitions
from emberlake.maintenance.orphans import OrphanResult
from emberlake.options import (
    POSTPONE_BUCKET,
    SNAPSHOT_RETAIN_MAX,
    SNAPSHOT_RETAIN_MIN,
    Option,
    TableOptions,
)
from emberlake.predicates import bind_partition_filter
from emberlake.table import Table

_SHOWN: Final = 20


# --- compact --------------------------------------------------------------------------------------


def compact(
    session: Session,
    identifier: str,
    *,
    where: str | None,
    full: bool,
    master: str | None,
    settings: Mapping[str, str],
    dry_run: bool,
) -> Report:
    """Merge files, here or on Spark."""
    if settings and master is None:
        raise UsageError("--conf is a Spark setting; give --master as well")
    table = session.table(identifier)
    if dry_run:
        return _plan_compaction(table, identifier, where, full=full)
    started = SYSTEM_ENV.now_ms()
    with progress("compacting"):
        if master is None:
            result = table.compact(full=full, where=where)
        else:
            result = _compact_on_spark(session, identifier, where, master, settings, full=full)
    seconds = (SYSTEM_ENV.now_ms() - started) / 1000
    document = {
        "table": identifier,
        "dry_run": False,
        **commit_document(result),
        "seconds": seconds,
    }
    if result.snapshot_id is None:
        return Report(document, [_nothing_to_compact(identifier)])
    facts = Facts([*commit_facts(result), ("time", seconds_text(seconds))])
    return Report(document, [Done(f"compacted {identifier}"), facts])


def _compact_on_spark(
    session: Session,
    identifier: str,
    where: str | None,
    master: str,
    settings: Mapping[str, str],
    *,
    full: bool,
) -> CommitResult:
    load_extra("pyspark", extra="spark")
    local = load_extra("emberlake.spark.local", extra="spark")
    jobs = load_extra("emberlake.jobs", extra="spark")
    with local.local_session(master, settings, verbose=session.settings.debug) as spark:
        result: CommitResult = jobs.compact(
            identifier, session.catalog_options, spark=spark, where=where, full=full
        )
    return result


def _plan_compaction(table: Table, identifier: str, where: str | None, *, full: bool) -> Report:
    bound = bind_partition_filter(where, table.store.schema)
    picked = list(iter_picked(table.store, table.latest_snapshot(), bound, full=full))
    files, size = sum(len(p.files) for p in picked), sum(p.file_size for p in picked)
    document = {
        "table": identifier,
        "dry_run": True,
        "buckets": len(picked),
        "files": files,
        "bytes": size,
    }
    if not picked:
        return Report(document, [_nothing_to_compact(identifier)])
    shown = picked[:_SHOWN]
    _, names = describe_partitions(table.store, [p.partition for p in shown])
    grid = Grid(
        [words("partition"), numbers("bucket"), numbers("files"), numbers("size")],
        [
            (
                name or "(not partitioned)",
                "postponed" if p.bucket == POSTPONE_BUCKET else str(p.bucket),
                f"{len(p.files):,}",
                size_text(p.file_size),
            )
            for name, p in zip(names, shown, strict=True)
        ],
    )
    left = len(picked) - len(shown)
    notes = [Note(f"... and {left:,} more")] if left > 0 else []
    what = f"{count_text(files, 'file')} in {count_text(len(picked), 'bucket')} of {identifier}"
    return Report(document, [Done(f"would compact {what}"), grid, *notes])


def _nothing_to_compact(identifier: str) -> Done:
    return Done(f"nothing to compact in {identifier}")


# --- expire and orphans ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Which snapshots to keep, as typed."""

    retain_max: int | None = None
    retain_min: int | None = None
    older_than: str | None = None
    max_deletes: int | None = None


def expire(
    session: Session, identifier: str, limits: Limits, *, dry_run: bool, yes: bool
) -> Report:
    """Expire snapshots, after announcing which."""
    table = session.table(identifier)
    _check_limits(limits, table.options)
    now = local_time(SYSTEM_ENV.now_ms())
    given: dict[str, Any] = {
        "retain_max": limits.retain_max,
        "retain_min": limits.retain_min,
        "older_than": None if limits.older_than is None else parse_moment(limits.older_than, now),
        # The limit in the table's options is for programs that run again; a person runs it once.
        "max_deletes": sys.maxsize if limits.max_deletes is None else limits.max_deletes,
    }
    with progress("planning"):
        result = table.expire_snapshots(**given, dry_run=True)
    if not dry_run and result.snapshots:
        session.confirm(f"This expires {_expired(identifier, result)}", yes=yes)
        with progress("deleting files") as bar:
            result = table.expire_snapshots(**given, dry_run=False, progress=bar.advance)
    document = {
        "table": identifier,
        "dry_run": dry_run,
        "snapshots": list(result.snapshots),
        "data_files": result.data_files,
        "metadata_files": result.metadata_files,
        "bytes": result.bytes,
        "remaining": result.remaining,
    }
    if not result.snapshots:
        return Report(document, [Done(f"no snapshot of {identifier} is due to expire")])
    verb = "would expire" if dry_run else "expired"
    blocks = [Done(f"{verb} {_expired(identifier, result)}")]
    if result.remaining:
        are = "is" if result.remaining == 1 else "are"
        blocks.append(
            Done(
                f"{result.remaining:,} more {are} due: run it again, or leave out --max-deletes to "
                "expire them all"
            )
        )
    return Report(document, blocks)


def _check_limits(limits: Limits, options: TableOptions) -> None:
    """Refuse flags that contradict each other, or the table's options."""
    if limits.retain_max is None and limits.retain_min is None:
        return  # a contradiction within the options is not a mistake in what was typed
    most_name, most = _limit("--retain-max", limits.retain_max, SNAPSHOT_RETAIN_MAX, options)
    least_name, least = _limit("--retain-min", limits.retain_min, SNAPSHOT_RETAIN_MIN, options)
    if most < least:
        raise UsageError(
            f"{most_name} {most} is less than {least_name} {least}; give both, the larger as "
            "--retain-max"
        )


def _limit(
    flag: str, typed: int | None, option: Option[int], options: TableOptions
) -> tuple[str, int]:
    """A limit and where it comes from."""
    if typed is not None:
        return flag, typed
    return f"the table's {option.key}", options.value(option)


def _expired(identifier: str, result: Any) -> str:
    ids = result.snapshots
    names = f"{ids[0]}" if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
    return (
        f"{count_text(len(ids), 'snapshot')} of {identifier} ({names}) with "
        f"{count_text(result.data_files, 'data file')} and "
        f"{count_text(result.metadata_files, 'metadata file')}, {size_text(result.bytes)}"
    )


def orphans(
    session: Session, identifier: str, *, older_than: str, dry_run: bool, yes: bool
) -> Report:
    """Remove orphan files, after announcing which."""
    table = session.table(identifier)
    now = local_time(SYSTEM_ENV.now_ms())
    moment = parse_moment(older_than, now)
    if moment > now:
        raise UsageError(
            f"--older-than {older_than} is in the future: files that are being written now would "
            "look like orphans; give a time before the start of the oldest running write"
        )

    def run(**how: Any) -> OrphanResult:
        # One place for both runs: Python shows a warning once for each place.
        return table.remove_orphan_files(older_than=moment, **how)

    with progress("listing files"):
        found = run(dry_run=True)
    if not dry_run and (found.paths or found.uploads):
        session.confirm(f"This deletes {_orphans_text(identifier, found)}", yes=yes)
        with progress("deleting files") as bar:
            found = run(dry_run=False, progress=bar.advance)
    document = {
        "table": identifier,
        "dry_run": dry_run,
        "files": list(found.paths),
        "bytes": found.bytes,
        "uploads": list(found.upload_paths),
    }
    if not found.paths and not found.uploads:
        return Report(
            document, [Done(f"no orphan files of {identifier} (--older-than {older_than})")]
        )
    verb = "would delete" if dry_run else "deleted"
    # Lines, not a grid: a truncated path is useless.
    lines = [f"  {_below(table, path)}" for path in found.paths]
    lines += [f"  {_below(table, path)} (unfinished upload)" for path in found.upload_paths]
    paths = [Done(line) for line in lines[:_SHOWN]]
    left = len(lines) - _SHOWN
    notes = [Note(f"... and {left:,} more; --json lists all")] if left > 0 else []
    done = Done(f"{verb} {_orphans_text(identifier, found)}")
    return Report(document, [done, *paths, *notes])


def _orphans_text(identifier: str, found: OrphanResult) -> str:
    files = (
        f"{count_text(len(found.paths), 'orphan file')} of {identifier}, {size_text(found.bytes)}"
    )
    if not found.uploads:
        return files
    return f"{files}, and {count_text(found.uploads, 'unfinished upload')}"


def _below(table: Table, path: str) -> str:
    return path.removeprefix(table.table_path.rstrip("/") + "/")


# --- check ----------------------------------------------------------------------------------------


def check(session: Session, identifier: str, *, snapshot_id: int | None, read_data: bool) -> Report:
    """Look for damage; the exit code is 1 if there is any."""
    table = session.table(identifier)
    with progress("checking") as bar:
        found = table.check(snapshot_id=snapshot_id, read_data=read_data, progress=bar.advance)
    problems = found.problems
    looked = (
        f"{count_text(found.snapshots, 'snapshot')}, {count_text(found.files, 'file')}, "
        f"{count_text(found.rows, 'row')}, {size_text(found.bytes)}"
    )
    document = {
        "table": identifier,
        "ok": found.ok,
        "snapshots": found.snapshots,
        "files": found.files,
        "rows": found.rows,
        "bytes": found.bytes,
        "problems": [
            {"kind": str(p.kind), "path": p.path, "detail": in_typed_words(p.detail)}
            for p in problems
        ],
    }
    if found.ok:
        return Report(document, [Done(f"{identifier} is intact: {looked}")])
    kinds = Counter(str(p.kind) for p in problems)
    summary = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    done = Done(f"{identifier} has {count_text(len(problems), 'problem')}: {summary}")
    width = max(len(kind) for kind in kinds)
    lines = [
        line
        for p in problems
        for line in (
            Done(f"  {p.kind:<{width}}  {_below(table, p.path)}"),
            Done(f"  {'':<{width}}  {in_typed_words(p.detail)}"),
        )
    ]
    return Report(document, [done, Done(f"checked {looked}"), *lines], ExitCode.FAILED)
