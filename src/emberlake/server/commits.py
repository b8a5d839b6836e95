"""Commits: whether a snapshot becomes the next one. The snapshot file decides.

    lock the table
      this very snapshot is there already      -> true: the answer to an earlier try was lost
      it is not the next one                   -> false
      it was built on another snapshot         -> false
      put its file, if absent                  -> from here on it is committed
      record it as the head
    unlock, answer

A server that dies before the file has changed nothing; after it, whoever looks next finds the file
and records it.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from emberlake.errors import (
    FileNotFound,
    InvalidInput,
    StorageError,
    TableNotFound,
)
from emberlake.rest.commits import CommitRequest, PartitionStatistics
from emberlake.rest.reading import Fields
from emberlake.server.heads import UNKNOWN_TOTALS, Heads, snapshot_text
from emberlake.server.records import TableRecord
from emberlake.server.warehouses import Warehouse
from emberlake.store.snapshots import SnapshotStore


@dataclass(frozen=True)
class Commit:
    """A commit request: what it says, and the snapshot exactly as it came."""

    request: CommitRequest
    snapshot: Mapping[str, Any]

    @staticmethod
    def from_json(value: object) -> "Commit":
        """The request of a body; the snapshot is checked, and kept with all its keys.

        Raises:
            InvalidInput: something is missing or of the wrong type.
        """
        request = CommitRequest.from_json(value)
        snapshot = Fields(value, "the commit").raw("snapshot")
        if request.snapshot.id < 1 or request.snapshot.schema_id < 0:
            raise InvalidInput("the snapshot has no usable id or schemaId")
        return Commit(request, snapshot)

    @property
    def id(self) -> int:
        return self.request.snapshot.id


class Verdict(Enum):
    """What is to be done with a commit, as far as the head tells."""

    REPEATED = auto()
    LOST = auto()
    OLDER = auto()  # it may be in the history
    NEXT = auto()


def judge(commit: Commit, head: Mapping[str, Any] | None) -> Verdict:
    """Compare a commit with the latest snapshot, which may be none."""
    latest = 0 if head is None else head["id"]
    if head is not None and commit.id == latest:
        return Verdict.REPEATED if head == commit.snapshot else Verdict.LOST
    if commit.id < latest:
        return Verdict.OLDER
    if commit.id != latest + 1:
        return Verdict.LOST
    # Clients before 2.0 do not say what they built on.
    base = None if head is None else head.get("uuid")
    if commit.request.names_base and commit.request.base_snapshot_uuid != base:
        return Verdict.LOST
    return Verdict.NEXT


def commit_snapshot(heads: Heads, warehouse: Warehouse, table: TableRecord, commit: Commit) -> bool:
    """Make a snapshot the next one; False if it cannot be.

    Raises:
        TableNotFound: the table was dropped, or created again since the client opened it.
        InvalidInput: the snapshot has a schema that the table does not have.
        StorageError: it is not known whether the snapshot was published.
    """
    wanted = commit.request.table_id
    if wanted is not None and wanted != table.id:
        raise TableNotFound(
            f"{table.database}.{table.object_name} was dropped and created again; open it again"
        )
    with heads.locked(warehouse, table) as current:
        verdict = judge(commit, None if current.snapshot is None else json.loads(current.snapshot))
        match verdict:
            case Verdict.REPEATED:
                return True
            case Verdict.LOST:
                return False
            case Verdict.OLDER:
                return _stands(warehouse, current, commit)
            case Verdict.NEXT:
                is_ours = _publish(heads, warehouse, current, commit)
    if is_ours:
        _write_hints(warehouse, table, commit.id)
    return is_ours


def _publish(heads: Heads, warehouse: Warehouse, table: TableRecord, commit: Commit) -> bool:
    schema_id = commit.request.snapshot.schema_id
    if schema_id > table.schema_id:
        raise InvalidInput(
            f"the snapshot has schema {schema_id}; {table.database}.{table.object_name} has "
            f"schemas up to {table.schema_id}"
        )
    if not warehouse.is_local:
        heads.mark_pending(table)
    text = snapshot_text(commit.snapshot)
    path = table.layout.snapshot(commit.id)
    try:
        is_ours = warehouse.files.put_if_absent(path, text.encode())
    except StorageError as error:
        if error.had_no_effect or not _stands(warehouse, table, commit):
            raise
        is_ours = True  # the answer was lost, not the file
    if not is_ours and not _stands(warehouse, table, commit):
        heads.reread(warehouse, table)
        return False
    heads.advance(table, commit.id, text, _new_totals(table, commit))
    return True


def _stands(warehouse: Warehouse, table: TableRecord, commit: Commit) -> bool:
    """Whether the file of that id is this very snapshot."""
    try:
        found = json.loads(warehouse.files.read(table.layout.snapshot(commit.id)))
    except FileNotFound:
        return False
    return bool(found == commit.snapshot)


def _new_totals(table: TableRecord, commit: Commit) -> str | None:
    """The totals of the table after a commit; None if they must be counted."""
    changes: tuple[PartitionStatistics, ...] = tuple(commit.request.statistics)
    if table.snapshot is None:
        before = [0, 0, 0, 0]
    elif table.totals in (None, UNKNOWN_TOTALS):
        return None
    else:
        before = json.loads(table.totals or UNKNOWN_TOTALS)
    if not changes:
        return None
    return json.dumps(
        [
            before[0] + sum(each.record_count for each in changes),
            before[1] + sum(each.file_size_in_bytes for each in changes),
            before[2] + sum(each.file_count for each in changes),
            max(before[3], *(each.last_file_creation_time for each in changes)),
        ]
    )


def _write_hints(warehouse: Warehouse, table: TableRecord, snapshot_id: int) -> None:
    """Save readers of files a search. Whoever reads a hint does not trust it."""
    snapshots = SnapshotStore(warehouse.files, table.layout)
    with suppress(StorageError):
        snapshots.write_latest_hint(snapshot_id)
        if snapshot_id == 1:
            snapshots.write_earliest_hint(snapshot_id)
