"""The heads of branches: the current schema and the latest snapshot of each.

Files are the truth, and rows of the database follow. A row can be behind when a server died between
a file and its row; ``settled`` reads the files again. On a local disk two looks tell whether a row
is behind. On object stores, where a look is a request, and for changes that take several steps,
the row is marked as pending before the first of them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from emberlake.base.env import Env
from emberlake.base.times import instant_ms
from emberlake.errors import (
    BranchNotFound,
    EmberlakeError,
    InvalidIdentifier,
    TableNotFound,
)
from emberlake.inspect.totals import load_partition_totals
from emberlake.options import TYPE
from emberlake.rest.values import schema_to_json
from emberlake.server.database.database import Bulk, Database
from emberlake.server.records import HEAD, HEADS, TABLE, TableRecord, table_record
from emberlake.server.warehouses import Warehouse
from emberlake.spec.identifier import Identifier, NameKind, check_name
from emberlake.spec.layout import MAIN_BRANCH
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import decode_snapshot
from emberlake.store.branches import is_unfinished
from emberlake.store.publishing import TableIdentity
from emberlake.store.schemas import SchemaStore
from emberlake.store.snapshots import SnapshotStore
from emberlake.store.table_store import TableStore

UNKNOWN_TOTALS: Final = "[-1, -1, -1, -1]"


_ADVANCE: Final = Bulk(
    (
        ("id", "TEXT"),
        ("branch", "TEXT"),
        ("snapshot_id", "BIGINT"),
        ("snapshot", "TEXT"),
        ("totals", "TEXT"),
    ),
    "UPDATE branches SET pending_since = NULL, (snapshot_id, snapshot, totals) = ("
    "SELECT given.snapshot_id, given.snapshot, given.totals FROM given "
    "WHERE given.id = branches.table_id AND given.branch = branches.name) "
    "WHERE (table_id, name) IN (SELECT id, branch FROM given)",
)


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table, or a branch of one, by the name that a client gave, and its id.

    The name may have another table by now: names are compared when the table is locked.
    """

    database: str
    name: str  # t, or t$branch_b
    id: str


@dataclass(frozen=True, slots=True)
class Advance:
    """A table and its next snapshot."""

    table: TableRecord
    snapshot_id: int
    snapshot: str
    totals: str | None


class Heads:
    """Finds, locks and moves the heads of one server's tables."""

    def __init__(self, database: Database, env: Env) -> None:
        self._database = database
        self._env = env

    def find(self, warehouse: Warehouse, database: str, name: str) -> TableRecord:
        """A table or a branch of one (``t$branch_b``), as its files say.

        Raises:
            TableNotFound, BranchNotFound: there is none.
        """
        table, branch = split_object(name)
        rows = self._database.run(TABLE, warehouse.name, database, table, branch)
        if rows:
            return self.settled(warehouse, table_record(rows[0]))
        main = self._database.run(TABLE, warehouse.name, database, table, MAIN_BRANCH)
        if main:
            return self._adopted(warehouse, table_record(main[0]), branch)
        raise table_missing(database, name)

    @contextmanager
    def locked(self, warehouse: Warehouse, table: TableRecord) -> Iterator[TableRecord]:
        """Keep others from changing a table; the table as it is then.

        Raises:
            TableNotFound: it was dropped meanwhile.
        """
        with self._database.lock(table.id):
            rows = self._database.run(HEAD, table.id, table.branch)
            if not rows:
                raise table_missing(table.database, table.object_name)
            yield self._current(warehouse, table_record(rows[0]))

    @contextmanager
    def locked_together(
        self, warehouse: Warehouse, tables: Sequence[NamedTable]
    ) -> Iterator[Mapping[str, TableRecord | Exception]]:
        """Keep others from changing several tables, without waiting for those who do already.

        What is given has the tables as they are then, by their ids. Those that others have locked
        are not in it, nor those that have lost their name, nor external ones.
        """
        sought = {table.id: (table.database, *split_object(table.name)) for table in tables}
        with self._database.try_locks([*sought]) as held:
            wanted = [(key, sought[key][2]) for key in held]
            found = map(table_record, self._database.run_bulk(HEADS, wanted))
            yield {
                table.id: self._current_or_error(warehouse, table)
                for table in found
                if (table.database, table.table, table.branch) == sought[table.id]
                and not table.is_external
            }

    def _current(self, warehouse: Warehouse, table: TableRecord) -> TableRecord:
        return self._reread(warehouse, table) if self.may_be_behind(warehouse, table) else table

    def _current_or_error(
        self, warehouse: Warehouse, table: TableRecord
    ) -> TableRecord | Exception:
        try:
            return self._current(warehouse, table)
        except Exception as error:  # noqa: BLE001 - it must not be that of the others
            return error

    def settled(self, warehouse: Warehouse, table: TableRecord) -> TableRecord:
        """The table as its files say.

        A change that is under way is not waited for: until it is done, the table is as it was.
        """
        if table.is_external:
            return self._reread(warehouse, table)
        if not self.may_be_behind(warehouse, table):
            return table
        with self._database.try_lock(table.id) as is_locked:
            if not is_locked:
                return table
            rows = self._database.run(HEAD, table.id, table.branch)
            return self._reread(warehouse, table_record(rows[0])) if rows else table

    def may_be_behind(self, warehouse: Warehouse, table: TableRecord) -> bool:
        """Whether the files may differ from the row."""
        if table.is_external or table.pending_since is not None:
            return True
        if not warehouse.is_local:
            return False
        latest, exists = table.snapshot_id or 0, warehouse.storage.exists
        # A power failure takes rows back, perhaps to a snapshot that has expired since.
        return exists(table.layout.snapshot(latest + 1)) or (
            latest > 0 and not exists(table.layout.snapshot(latest))
        )

    def mark_pending(self, table: TableRecord) -> None:
        """Say that files are about to change; durable, so that it outlives this server."""
        self._database.run(
            "UPDATE branches SET pending_since = ? WHERE table_id = ? AND name = ?",
            self._env.now_ms(),
            table.id,
            table.branch,
        )

    def advance(self, advances: Sequence[Advance]) -> None:
        """Record the next snapshots of tables. Not durable: their files are."""
        self._database.run_bulk(
            _ADVANCE,
            [
                (each.table.id, each.table.branch, each.snapshot_id, each.snapshot, each.totals)
                for each in advances
            ],
        )

    def reread(self, warehouse: Warehouse, table: TableRecord) -> TableRecord:
        """Record what the files say, under the lock of the table."""
        return self._reread(warehouse, table)

    def _reread(self, warehouse: Warehouse, table: TableRecord) -> TableRecord:
        schema = SchemaStore(warehouse.files, table.layout).latest()
        if schema is None:
            raise table_missing(table.database, table.object_name)
        newest = SnapshotStore(warehouse.files, table.layout).latest_id()
        snapshot = None if newest is None else _snapshot_text(warehouse, table, newest)
        text = schema_text(schema)
        is_same = (schema.id, text, newest, snapshot) == (
            table.schema_id,
            table.schema,
            table.snapshot_id,
            table.snapshot,
        )
        totals = table.totals if (newest, snapshot) == (table.snapshot_id, table.snapshot) else None
        if not is_same or table.pending_since is not None:
            self._database.run(
                "UPDATE branches SET schema_id = ?, schema = ?, type = ?, snapshot_id = ?, "
                "snapshot = ?, totals = ?, pending_since = NULL WHERE table_id = ? AND name = ?",
                schema.id,
                text,
                schema.options.value(TYPE),
                newest,
                snapshot,
                totals,
                table.id,
                table.branch,
            )
        rows = self._database.run(HEAD, table.id, table.branch)
        return table_record(rows[0]) if rows else table

    def add_branch(self, warehouse: Warehouse, table: TableRecord, branch: str) -> TableRecord:
        """Record a branch whose files are there."""
        schema = self._schema_of_branch(warehouse, table, branch)
        self._database.run(
            "INSERT INTO branches (table_id, name, schema_id, schema, type, pending_since) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (table_id, name) DO NOTHING",
            table.id,
            branch,
            schema.id,
            schema_text(schema),
            schema.options.value(TYPE),
            self._env.now_ms(),
        )
        rows = self._database.run(HEAD, table.id, branch)
        if not rows:
            raise table_missing(table.database, table.table)
        return self._reread(warehouse, table_record(rows[0]))

    def forget_branch(self, table: TableRecord, branch: str) -> None:
        """Forget a branch whose files are gone, and which of its partitions were done."""
        with self._database.transaction() as session:
            session.run("DELETE FROM branches WHERE table_id = ? AND name = ?", table.id, branch)
            done = "DELETE FROM done_partitions WHERE table_id = ? AND branch = ?"
            session.run(done, table.id, branch)

    def _adopted(self, warehouse: Warehouse, main: TableRecord, branch: str) -> TableRecord:
        # A client may have created the branch by its files, or a server died before the row.
        try:
            check_name(NameKind.BRANCH, branch)
        except InvalidIdentifier:
            raise BranchNotFound(f"{main.table} has no such branch", branch=branch) from None
        self._schema_of_branch(warehouse, main, branch)  # no lock if there is none
        # Under the lock: a commit that comes between would be taken back from the row.
        with self._database.lock(main.id):
            return self.add_branch(warehouse, main, branch)

    def _schema_of_branch(
        self, warehouse: Warehouse, table: TableRecord, branch: str
    ) -> TableSchema:
        layout = table.layout.for_branch(branch)
        schema = SchemaStore(warehouse.files, layout).latest()
        if schema is None or is_unfinished(warehouse.files, layout):
            raise BranchNotFound(
                f"{table.database}.{table.table} has no branch {branch!r}", branch=branch
            )
        return schema

    def counted(self, warehouse: Warehouse, table: TableRecord) -> TableRecord:
        """The table with the totals of its latest snapshot."""
        if table.totals is not None or table.snapshot is None:
            return table
        try:
            totals = _count(self.store(warehouse, table), table.snapshot)
        except EmberlakeError:  # readers of the table meet the failure, and its reason
            totals = UNKNOWN_TOTALS
        self._database.run(
            "UPDATE branches SET totals = ? WHERE table_id = ? AND name = ? AND snapshot_id = ? "
            "AND totals IS NULL",
            totals,
            table.id,
            table.branch,
            table.snapshot_id,
            durable=False,
        )
        rows = self._database.run(HEAD, table.id, table.branch)
        return table_record(rows[0]) if rows else table

    def store(self, warehouse: Warehouse, table: TableRecord) -> TableStore:
        """The table for the parts of the engine, which work on its files."""
        schema = SchemaStore(warehouse.files, table.layout).load(table.schema_id)
        identity = TableIdentity(Identifier(table.database, table.object_name), table.id)
        return TableStore(warehouse.files, table.layout, schema, self._env, identity=identity)


def split_object(name: str) -> tuple[str, str]:
    """The table and the branch of ``t`` or ``t$branch_b``."""
    table, separator, branch = name.partition("$branch_")
    return (table, branch) if separator and branch else (name, MAIN_BRANCH)


def table_missing(database: str, name: str) -> TableNotFound:
    """The error for a table that does not exist; it reveals nothing about others."""
    return TableNotFound(f"{database}.{name} does not exist")


def schema_text(schema: TableSchema) -> str:
    """The schema of a table as answers have it."""
    value = schema_to_json(schema)
    value["options"].pop("path", None)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def snapshot_text(value: object) -> str:
    """A snapshot as answers have it: every key as it came."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _snapshot_text(warehouse: Warehouse, table: TableRecord, snapshot_id: int) -> str:
    path = table.layout.snapshot(snapshot_id)
    raw = warehouse.files.read(path)
    decode_snapshot(raw, path)  # refuses what is not a snapshot
    return snapshot_text(json.loads(raw))


def _count(store: TableStore, text: str) -> str:
    snapshot = decode_snapshot(text.encode(), store.layout.snapshot_folder)
    files = load_partition_totals(store, snapshot).files
    newest = max(filter(None, files.last_creation_time.cast("int64").to_pylist()), default=None)
    return json.dumps(
        [
            int(files.record_count.sum()),
            int(files.file_size_in_bytes.sum()),
            int(files.file_count.sum()),
            0 if newest is None else instant_ms(newest),
        ]
    )
