"""Procedures about tags, branches, rollback and consumers."""

from typing import Final

import pyarrow as pa

from emberlake.errors import InvalidInput, SnapshotNotFound, TagNotFound
from emberlake.sql.commands.answers import rows_of, texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.procedures.arguments import (
    TABLE,
    Arguments,
    Procedure,
    chosen_names,
    done,
    moment_of,
    optional,
    required,
    table_of,
    words_of,
)
from emberlake.table import Table

_ROLLED_BACK: Final = (("previous_snapshot_id", pa.int64()), ("current_snapshot_id", pa.int64()))


# --- tags -----------------------------------------------------------------------------------------


def create_tag(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.create_tag``."""
    table = table_of(session, given)
    table.create_tag(given["tag"], given["snapshot"], time_retained=given["time_retained"])
    return done()


def replace_tag(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.replace_tag``."""
    table_of(session, given).replace_tag(given["tag"], given["snapshot"], given["time_retained"])
    return done()


def rename_tag(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rename_tag``."""
    table_of(session, given).rename_tag(given["tag"], given["target_tag"])
    return done()


def delete_tag(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.delete_tag``."""
    table = table_of(session, given)
    for tag in words_of(given["tag"]):
        table.delete_tag(tag)  # an unknown tag is not an error, as in Java
    return done()


def expire_tags(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.expire_tags``."""
    tags = table_of(session, given).expire_tags(older_than=moment_of(given["older_than"]))
    return texts_of(("expired_tags",), [(tag,) for tag in tags] or [("No expired tags.",)])


def create_tag_from_timestamp(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.create_tag_from_timestamp``."""
    table = table_of(session, given)
    moment = given["timestamp"]
    later = (s for s in table.snapshot_manager().list_snapshots() if s.time_millis >= moment)
    snapshot = min(later, key=lambda s: s.id, default=None)
    if snapshot is None:
        raise SnapshotNotFound(f"{table.identifier} has no snapshot of {moment} ms or later")
    table.create_tag(given["tag"], snapshot.id, time_retained=given["time_retained"])
    columns = (
        ("tagName", pa.string()),
        ("snapshot", pa.int64()),
        ("commit_time", pa.int64()),
        ("watermark", pa.string()),
    )
    watermark = "null" if snapshot.watermark is None else str(snapshot.watermark)  # as in Java
    return rows_of(columns, [(given["tag"], snapshot.id, snapshot.time_millis, watermark)])


# --- branches -------------------------------------------------------------------------------------


def create_branch(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.create_branch``."""
    ignored = given["ignoreIfExists"] is not None and given["ignoreIfExists"].lower() == "true"
    table_of(session, given).create_branch(given["branch"], given["tag"], ignored)
    return done()


def delete_branch(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.delete_branch``."""
    table = table_of(session, given)
    for branch in words_of(given["branch"]) or [""]:  # a blank name is refused
        table.delete_branch(branch)
    return done()


def rename_branch(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rename_branch``."""
    table_of(session, given).rename_branch(given["from_branch"], given["to_branch"])
    return done()


def fast_forward(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.fast_forward``."""
    table_of(session, given).fast_forward(given["branch"])
    return done()


# --- rollback -------------------------------------------------------------------------------------


def rollback(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rollback``."""
    table = table_of(session, given)
    targets = [name for name in ("version", "snapshot", "tag") if given[name] not in (None, "")]
    if len(targets) != 1:
        raise InvalidInput("sys.rollback takes one of version, snapshot and tag")
    target = given[targets[0]]
    if targets == ["version"] and target.isdigit():
        target = int(target)  # as in Java, even if a tag has this name
    if isinstance(target, str) and target not in table.list_tags():
        raise TagNotFound(f"{table.identifier}: tag {target!r} does not exist", tag=target)
    before = _latest_id(table)
    table.rollback_to(target)
    return rows_of(_ROLLED_BACK, [(before, _latest_id(table))])


def rollback_to_timestamp(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rollback_to_timestamp``."""
    table = table_of(session, given)
    before = _latest_id(table)
    table.rollback_to_timestamp(given["timestamp"])
    return rows_of(_ROLLED_BACK, [(before, _latest_id(table))])


def rollback_to_watermark(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rollback_to_watermark``."""
    table = table_of(session, given)
    before = _latest_id(table)
    table.rollback_to_watermark(given["watermark"])
    return rows_of(_ROLLED_BACK, [(before, _latest_id(table))])


def _latest_id(table: Table) -> int:
    latest = table.snapshot_manager().latest_id()
    if latest is None:
        raise SnapshotNotFound(f"{table.identifier} has no snapshot to roll back from")
    return latest


# --- consumers ------------------------------------------------------------------------------------


def reset_consumer(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.reset_consumer``."""
    table, next_id = table_of(session, given), given["nextSnapshotId"]
    consumers = table.consumer_manager()
    if next_id is None:
        consumers.delete(given["consumerId"])
    elif table.snapshot_manager().exists(next_id):
        consumers.save(given["consumerId"], next_id)
    else:
        raise SnapshotNotFound(f"{table.identifier} has no snapshot {next_id}")
    return done()


def clear_consumers(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.clear_consumers``."""
    consumers = table_of(session, given).consumer_manager()
    is_chosen = chosen_names(given["includingConsumers"], given["excludingConsumers"])
    for consumer_id in filter(is_chosen, consumers.list()):
        consumers.delete(consumer_id)
    return done()


VERSIONS: Final = (
    Procedure(
        "create_tag",
        (TABLE, required("tag"), optional("snapshot", int), optional("time_retained")),
        create_tag,
    ),
    Procedure(
        "replace_tag",
        (TABLE, required("tag"), optional("snapshot", int), optional("time_retained")),
        replace_tag,
    ),
    Procedure("rename_tag", (TABLE, required("tag"), required("target_tag")), rename_tag),
    Procedure("delete_tag", (TABLE, required("tag")), delete_tag),
    Procedure("expire_tags", (TABLE, optional("older_than")), expire_tags),
    Procedure(
        "create_tag_from_timestamp",
        (TABLE, required("tag"), required("timestamp", int), optional("time_retained")),
        create_tag_from_timestamp,
    ),
    Procedure(
        "create_branch",
        (TABLE, required("branch"), optional("tag"), optional("ignoreIfExists")),
        create_branch,
    ),
    Procedure("delete_branch", (TABLE, required("branch")), delete_branch),
    Procedure(
        "rename_branch", (TABLE, required("from_branch"), required("to_branch")), rename_branch
    ),
    Procedure("fast_forward", (TABLE, required("branch")), fast_forward),
    Procedure(
        "rollback",
        (TABLE, optional("version"), optional("snapshot", int), optional("tag")),
        rollback,
    ),
    Procedure("rollback_to_timestamp", (TABLE, required("timestamp", int)), rollback_to_timestamp),
    Procedure("rollback_to_watermark", (TABLE, required("watermark", int)), rollback_to_watermark),
    Procedure(
        "reset_consumer",
        (TABLE, required("consumerId"), optional("nextSnapshotId", int)),
        reset_consumer,
    ),
    Procedure(
        "clear_consumers",
        (TABLE, optional("includingConsumers"), optional("excludingConsumers")),
        clear_consumers,
    ),
)
