"""Compact, expire, remove orphans, check."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from emberlake.base.env import SYSTEM_ENV
from emberlake.base.extras import load_extra
from emberlake.cli.actions.moments import parse_moment
from emberlake.cli.actions.outcome import commit_document, commit_facts
from emberlake.cli.failures import ExitCode, UsageError
from emberlake.cli.progress import progress
from emberlake.cli.report import Done, Facts, Grid, Note, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.cli.texts import count_text, local_time, seconds_text, size_text
from emberlake.commit.change import CommitResult
from emberlake.maintenance.compact import compaction_places
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
        raise UsageError("--conf is a setting of Spark; give --master as well")
    table = session.table(identifier)
    if dry_run:
        return _plan_compaction(table, identifier, where)
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
        return Report(document, [Done(f"nothing to compact in {identifier}")])
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


def _plan_compaction(table: Table, identifier: str, where: str | None) -> Report:
    snapshot = table.latest_snapshot()
    bound = table.new_read_builder().with_partition_filter(where).partition_filter
    places = [] if snapshot is None else compaction_places(table.store, snapshot, bound)
    rows = [
        (_partition_text(table, place.partition), str(place.bucket), size_text(place.file_size))
        for place in places
    ]
    document = {
        "table": identifier,
        "dry_run": True,
        "buckets": len(places),
        "bytes": sum(place.file_size for place in places),
    }
    grid = Grid(
        [words("partition"), numbers("bucket"), numbers("size")],
        rows[:_SHOWN],
        empty="nothing to compact: the table is empty",
    )
    left = len(rows) - _SHOWN
    notes = [Note(f"and {left:,} more")] if left > 0 else []
    what = f"{count_text(len(places), 'bucket')} of {identifier}"
    return Report(document, [Done(f"would look for files to merge in {what}"), grid, *notes])


def _partition_text(table: Table, partition: bytes) -> str:
    spec = dict(table.store.partition_spec(partition))
    return "/".join(f"{key}={value}" for key, value in spec.items()) or "(not partitioned)"


# --- expire and orphans ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What was typed about which snapshots stay."""

    retain_max: int | None = None
    retain_min: int | None = None
    older_than: str | None = None
    max_deletes: int | None = None


def expire(
    session: Session, identifier: str, limits: Limits, *, dry_run: bool, yes: bool
) -> Report:
    """Expire snapshots, after having said which."""
    table = session.table(identifier)
    now = local_time(SYSTEM_ENV.now_ms())
    given: dict[str, Any] = {
        "retain_max": limits.retain_max,
        "retain_min": limits.retain_min,
        "older_than": None if limits.older_than is None else parse_moment(limits.older_than, now),
        "max_deletes": limits.max_deletes,
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
    }
    if not result.snapshots:
        return Report(document, [Done(f"no snapshot of {identifier} is due to expire")])
    verb = "would expire" if dry_run else "expired"
    return Report(document, [Done(f"{verb} {_expired(identifier, result)}")])


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
    """Remove orphan files, after having said which."""
    table = session.table(identifier)
    moment = parse_moment(older_than, local_time(SYSTEM_ENV.now_ms()))
    with progress("listing files"):
        found = table.remove_orphan_files(older_than=moment, dry_run=True)
    what = (
        f"{count_text(len(found.paths), 'orphan file')} of {identifier}, {size_text(found.bytes)}"
    )
    if not dry_run and found.paths:
        session.confirm(f"This deletes {what}", yes=yes)
        with progress("deleting files") as bar:
            found = table.remove_orphan_files(
                older_than=moment, dry_run=False, progress=bar.advance
            )
        what = (
            f"{count_text(len(found.paths), 'orphan file')} of {identifier}, "
            f"{size_text(found.bytes)}"
        )
    document = {
        "table": identifier,
        "dry_run": dry_run,
        "files": list(found.paths),
        "bytes": found.bytes,
    }
    if not found.paths:
        return Report(
            document, [Done(f"no orphan files of {identifier} (--older-than {older_than})")]
        )
    verb = "would delete" if dry_run else "deleted"
    # Lines, not a grid: a path that is cut is of no use.
    paths = [Done(f"  {_below(table, path)}") for path in found.paths[:_SHOWN]]
    left = len(found.paths) - _SHOWN
    notes = [Note(f"and {left:,} more; --json lists all")] if left > 0 else []
    return Report(document, [Done(f"{verb} {what}"), *paths, *notes])


def _below(table: Table, path: str) -> str:
    return path.removeprefix(table.table_path.rstrip("/") + "/")


# --- check ----------------------------------------------------------------------------------------


def check(session: Session, identifier: str, *, snapshot_id: int | None, read_data: bool) -> Report:
    """Look for damage; exit code 1 when there is any."""
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
        "problems": [{"kind": str(p.kind), "path": p.path, "detail": p.detail} for p in problems],
    }
    if found.ok:
        return Report(document, [Done(f"{identifier} is whole: {looked}")])
    kinds = Counter(str(p.kind) for p in problems)
    summary = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    done = Done(f"{identifier} has {count_text(len(problems), 'problem')}: {summary}")
    width = max(len(kind) for kind in kinds)
    lines = [
        line
        for p in problems
        for line in (
            Done(f"  {p.kind:<{width}}  {_below(table, p.path)}"),
            Done(f"  {'':<{width}}  {p.detail}"),
        )
    ]
    return Report(document, [done, Done(f"looked at {looked}"), *lines], ExitCode.FAILED)
