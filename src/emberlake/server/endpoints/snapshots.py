"""Snapshots: the latest one, the history, commits and rollbacks."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from emberlake.errors import (
    InvalidIdentifier,
    InvalidInput,
    InvalidState,
    SchemaNotFound,
    SnapshotNotFound,
    TagNotFound,
)
from emberlake.maintenance.rollback import rollback_to_snapshot, rollback_to_tag
from emberlake.rest.reading import Fields
from emberlake.rest.values import page_to_json
from emberlake.server.calls import Call, Paging, Services, page_of_names
from emberlake.server.commits import Commit, commit_snapshot
from emberlake.server.endpoints.query_auth import check_columns
from emberlake.server.heads import UNKNOWN_TOTALS
from emberlake.server.records import TableRecord
from emberlake.spec.identifier import NameKind, check_name
from emberlake.spec.instant import Instant, SnapshotInstant, TagInstant
from emberlake.store.schemas import SchemaStore
from emberlake.store.snapshots import SnapshotStore
from emberlake.store.table_store import TableStore

_ID: Final = re.compile(r"[0-9]{1,19}")


def commit(services: Services, call: Call) -> Mapping[str, Any]:
    """Make a snapshot the next one, or answer that it cannot be."""
    asked = Commit.from_json(call.body)
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    return {"success": commit_snapshot(services.heads, call.warehouse, found, asked)}


def get_snapshot(services: Services, call: Call) -> bytes:
    """The latest snapshot and the totals of the table."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    check_columns(call, found)
    return snapshot_answer(services.heads.counted(call.warehouse, found))


def snapshot_answer(table: TableRecord) -> bytes:
    """The JSON of a latest snapshot, which is pasted as it is stored."""
    if table.snapshot is None:
        raise SnapshotNotFound(f"{table.database}.{table.object_name} has no snapshot yet")
    rows, size, files, newest = json.loads(table.totals or UNKNOWN_TOTALS)
    return (
        f'{{"snapshot": {{"snapshot": {table.snapshot}, "recordCount": {rows}, '
        f'"fileSizeInBytes": {size}, "fileCount": {files}, "lastFileCreationTime": {newest}}}}}'
    ).encode()


def list_snapshots(services: Services, call: Call) -> Mapping[str, Any]:
    """The history of a table or a branch, the oldest snapshot first."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    check_columns(call, found)
    ids = SnapshotStore(call.warehouse.files, found.layout).list_ids()
    page, token = page_of_names([f"{number:020d}" for number in ids], Paging.of(call.query))
    snapshots = [_read(call, found, int(number)) for number in page]
    return page_to_json("snapshots", [each for each in snapshots if each is not None], token)


def get_snapshot_version(services: Services, call: Call) -> Mapping[str, Any]:
    """A snapshot by its id, by a tag, or as EARLIEST or LATEST."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    check_columns(call, found)
    version = call.names["version"]
    store = services.heads.store(call.warehouse, found)
    snapshots = SnapshotStore(call.warehouse.files, found.layout)
    snapshot: Any = None
    if version == "LATEST":
        snapshot = None if found.snapshot is None else json.loads(found.snapshot)
    elif version == "EARLIEST":
        earliest = snapshots.earliest()
        snapshot = None if earliest is None else earliest.to_json()
    elif _ID.fullmatch(version):
        snapshot = _read(call, found, int(version))
    else:
        try:
            check_name(NameKind.TAG, version)
            snapshot = store.tags.load(version).to_json()
        except (TagNotFound, InvalidIdentifier):
            snapshot = None
    if snapshot is None:
        raise SnapshotNotFound(f"{found.database}.{found.object_name} has no snapshot {version}")
    return {"snapshot": snapshot}


def rollback(services: Services, call: Call) -> None:
    """Make an earlier snapshot the latest; later ones are deleted."""
    fields = Fields(call.body, "the request")
    instant = fields.read("instant", Instant.from_dict)
    from_snapshot = fields.optional_integer("fromSnapshot")
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    with services.heads.locked(call.warehouse, found) as table:
        if from_snapshot is not None and table.snapshot_id != from_snapshot:
            raise InvalidState(
                f"the latest snapshot is {table.snapshot_id}, not {from_snapshot}; nothing was "
                "changed"
            )
        store = services.heads.store(call.warehouse, table)
        _check_instant(store, instant)
        services.heads.mark_pending(table)
        try:
            match instant:
                case SnapshotInstant(snapshot_id):
                    rollback_to_snapshot(store, snapshot_id)
                case TagInstant(tag_name):
                    rollback_to_tag(store, tag_name)
                case _:
                    raise InvalidInput("the instant is neither a snapshot nor a tag")
        finally:
            services.heads.reread(call.warehouse, table)


def rollback_schema(services: Services, call: Call) -> None:
    """Delete the schemas after one, if no snapshot and no tag uses them."""
    schema_id = Fields(call.body, "the request").integer("schemaId")
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    with services.heads.locked(call.warehouse, found) as table:
        store = services.heads.store(call.warehouse, table)
        schemas = SchemaStore(call.warehouse.files, table.layout)
        ids = schemas.list_ids()
        if schema_id not in ids:
            raise SchemaNotFound(f"{table.database}.{table.object_name} has no schema {schema_id}")
        used = max((each.schema_id for each in _all_snapshots(store)), default=0)
        if used > schema_id:
            raise InvalidInput(
                f"{table.database}.{table.object_name} has snapshots or tags with schema {used}; "
                "roll it back to a snapshot of an older schema first"
            )
        services.heads.mark_pending(table)
        try:
            for later in sorted((each for each in ids if each > schema_id), reverse=True):
                call.warehouse.files.delete(table.layout.schema(later))
        finally:
            services.heads.reread(call.warehouse, table)


def _all_snapshots(store: TableStore) -> list[Any]:
    kept = [store.snapshots.find(number) for number in store.snapshots.list_ids()]
    return [*filter(None, kept), *store.tags.list().values()]


def _check_instant(store: TableStore, instant: Instant) -> None:
    match instant:
        case SnapshotInstant(snapshot_id):
            store.snapshots.load(snapshot_id)
        case TagInstant(tag_name):
            check_name(NameKind.TAG, tag_name)
            store.tags.load(tag_name)
        case _:
            raise InvalidInput("the instant is neither a snapshot nor a tag")


def _read(call: Call, table: TableRecord, snapshot_id: int) -> Any:
    found = SnapshotStore(call.warehouse.files, table.layout).find(snapshot_id)
    return None if found is None else found.to_json()
