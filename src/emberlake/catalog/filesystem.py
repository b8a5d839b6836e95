"""A catalog that is a folder. Spec: "Directory layout and file names", "Filesystem catalog".

``<warehouse>/<database>.db/<table>/``: a database is a folder, a table is a folder with a schema.
Names are checked before they become part of a path. Whichever process creates ``schema-0`` has
created the table, and whichever creates ``schema-<n>`` has changed it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.parallel import parallel_map
from emberlake.base.requests import begin
from emberlake.catalog import rules
from emberlake.catalog.catalog import Catalog, Database
from emberlake.catalog.declarations import Declaration, declared_schema
from emberlake.catalog.opening import OpeningCatalog
from emberlake.catalog.rules import as_identifier, plain_table
from emberlake.errors import (
    AlreadyExists,
    CorruptFile,
    EmberlakeError,
    EmberlakeWarning,
    InvalidIdentifier,
    InvalidState,
    StorageError,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from emberlake.io import RoutedStorage, Storage, open_storage
from emberlake.io.routed import own_storage, routed
from emberlake.maintenance.outside import files_outside, schemas_outside
from emberlake.scan.levels import check_one_level, reads_levels_alike
from emberlake.spec.identifier import MAIN_BRANCH, Identifier, NameKind, check_name
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.store.branches import is_unfinished, list_branches
from emberlake.store.publishing import TableIdentity
from emberlake.store.schemas import SchemaFiles, SchemaStore
from emberlake.store.snapshots import SnapshotStore
from emberlake.store.table_store import TableStore
from emberlake.table import Table

_DATABASE_SUFFIX: Final = ".db"
_FOLDERS_AT_ONCE: Final = 8  # deleted in parallel: a table may have many partitions


class FileSystemCatalog(OpeningCatalog):
    """Databases and tables under one folder, the warehouse."""

    def __init__(
        self,
        storage: Storage,
        warehouse: str,
        options: Mapping[str, str] | None = None,
        env: Env = SYSTEM_ENV,
    ) -> None:
        self.storage = own_storage(storage)
        self.warehouse = warehouse.rstrip("/")
        self.env = env
        self._options = dict(options or {})
        # Files of tables may be on other storages, which are opened once for all tables.
        self._files = routed(storage, self.warehouse, self._options)

    @staticmethod
    def open(
        warehouse: str, options: Mapping[str, object], texts: Mapping[str, str]
    ) -> "FileSystemCatalog":
        """The catalog of a folder, on the storage that its path names.

        Args:
            warehouse: The folder.
            options: How to reach storages; some are functions.
            texts: The options that are texts.
        """
        storage, path = open_storage(warehouse, options)
        return FileSystemCatalog(RoutedStorage(storage, path, options), path, texts)

    @property
    def options(self) -> dict[str, str]:
        """The options that the catalog was created with."""
        return dict(self._options)

    def __repr__(self) -> str:
        return f"FileSystemCatalog({self.warehouse!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # Clock and ids belong to the process that unpickles the catalog.
        return FileSystemCatalog, (self._files, self.warehouse, self._options)

    # --- databases --------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        """The names of all databases, sorted."""
        return sorted(
            info.name.removesuffix(_DATABASE_SUFFIX)
            for info in self.storage.list(self.warehouse)
            if info.is_folder and info.name.endswith(_DATABASE_SUFFIX)
        )

    def get_database(self, name: str) -> Database:
        """The database with that name."""
        if not self.storage.exists(self._database_path(name)):
            raise rules.database_not_found(name, self.warehouse, self.list_databases())
        return Database(name)

    def create_database(
        self,
        name: str,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a database: a folder, which cannot store properties."""
        path = self._database_path(name)
        if properties:
            raise Unsupported(
                f"database {name!r}: a filesystem catalog cannot store the properties "
                f"{', '.join(sorted(properties))}; create the database without them"
            )
        if self.storage.exists(path):
            if ignore_if_exists:
                return
            raise rules.database_exists(name, self.warehouse)
        self.storage.make_folder(path)

    def drop_database(
        self,
        name: str,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
        cascade: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Drop a database; with ``cascade`` also everything in it."""
        path = self._database_path(name)
        if ignore_if_not_exists and not self.storage.exists(path):
            return
        self.get_database(name)
        content = [info.name for info in self.storage.list(path)]
        if content and not cascade:
            raise rules.database_not_empty(name, content)
        for table in self._tables(name, lambda found: bool(found.etags) or found.is_dropped):
            self._delete_table(Identifier(name, table))
        self.storage.delete_folder(path)
        if self.storage.exists(path):
            raise StorageError(
                f"database {name!r} is empty, but it is still there: somebody creates something in "
                f"it, or {path} has objects whose names end in a slash, which other programs write "
                "for folders and emberlake cannot delete; delete them with the store's own tools"
            )

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        """The names of the tables of a database, sorted."""
        self.get_database(database_name)
        return self._tables(database_name, lambda found: bool(found.etags) and not found.is_dropped)

    def _tables(self, database_name: str, chosen: Callable[[SchemaFiles], bool]) -> list[str]:
        path = self._database_path(database_name)
        names = [
            info.name
            for info in self.storage.list(path)
            if info.is_folder and not info.name.startswith(".")
        ]
        layouts = (TableLayout(f"{path}/{name}") for name in names)
        files = parallel_map(self._schema_files, layouts)
        return sorted(name for name, found in zip(names, files, strict=True) if chosen(found))

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Declaration,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        *,
        partition_keys: Sequence[str] | None = None,
        primary_keys: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Table:
        """Create a table, unless anything about it is wrong, and return it."""
        identifier = plain_table(identifier, "created")
        layout = self._layout(identifier)
        with rules.about(identifier):
            declared = declared_schema(schema, partition_keys, primary_keys, options, comment)
        with rules.naming_the_remedy():
            self.get_database(identifier.database)
        found = self._schema_files(layout)
        rules.check_not_dropped(identifier, is_dropped=found.is_dropped)
        if found.etags:
            if ignore_if_exists:
                return self.get_table(identifier)
            raise rules.table_exists(identifier)
        first = rules.first_schema(identifier, declared, self._options, self.env.now_ms())
        rules.check_unserved(identifier, first)
        left = SnapshotStore(self.storage, layout).list_ids()
        rules.check_no_snapshots(identifier, left, layout.root)
        if not SchemaStore(self.storage, layout).create(first) and not ignore_if_exists:
            raise rules.table_exists(identifier)
        return self.get_table(identifier)

    def replace_table(self, identifier: str | Identifier, schema: Schema) -> Table:
        """Empty a table, and then publish the next schema, which shares no column with the last."""
        identifier = plain_table(identifier, "replaced")
        layout = self._layout(identifier)
        first = rules.first_schema(identifier, schema, self._options, self.env.now_ms())
        rules.check_unserved(identifier, first)

        def attempt() -> bool:
            table = self.get_table(identifier)
            rules.check_replaceable(identifier, table.table_schema, first)
            # In this order, no reader ever sees old rows under the new columns.
            if table.latest_snapshot() is not None:
                table.new_batch_write_builder().new_commit().truncate_table()
            changed = replace(first, id=table.table_schema.id + 1)
            return SchemaStore(self.storage, layout).create(changed)

        rules.alter_until_published(identifier, attempt)
        return self.get_table(identifier)

    def drop_table(
        self,
        identifier: str | Identifier,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Delete a table with all its files, whatever state they are in.

        The table is gone immediately. An interrupted call leaves files; another call deletes them.
        """
        identifier = plain_table(identifier, "dropped")
        found = self._schema_files(self._layout(identifier))
        # A table whose schemas cannot be read can still be dropped.
        if found.etags or found.is_dropped:
            self._delete_table(identifier)
        elif not ignore_if_not_exists:
            raise self._table_not_found(identifier)

    def rename_table(
        self, source_identifier: str | Identifier, target_identifier: str | Identifier
    ) -> None:
        """Give a table another name, in the same database or in another one."""
        source = plain_table(source_identifier, "renamed")
        target = plain_table(target_identifier, "renamed to")
        old, new = self._layout(source), self._layout(target)
        if not self._has_schema(old):
            raise self._table_not_found(source)
        self.get_database(target.database)
        if not self.storage.traits.moves_folders:
            raise Unsupported(
                f"{source} cannot be renamed: its storage cannot move a folder in one step; create "
                f"{target} and copy the rows while nobody writes to {source}, then drop it"
            )
        try:
            self.storage.move_folder(old.root, new.root)
        except AlreadyExists as error:
            raise TableAlreadyExists(
                f"{source} cannot be renamed: {target} already exists, or its folder "
                f"{new.root} does",
                identifier=target,
            ) from error

    def alter_table(
        self,
        identifier: str | Identifier,
        changes: SchemaChange | Sequence[SchemaChange],
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Change a table's schema by writing its next version."""
        identifier = as_identifier(identifier)
        if identifier.system_table is not None:
            raise InvalidIdentifier(f"{identifier} is a system table; it cannot be altered")
        wanted = rules.as_changes(changes)
        layout = self._layout(identifier)
        if ignore_if_not_exists and self._find_schema(layout) is None:
            return

        def attempt() -> bool:
            current = self._load_schema(identifier, layout)
            changed = rules.altered_schema(
                identifier,
                current,
                wanted,
                has_snapshots=SnapshotStore(self.storage, layout).latest_id() is not None,
                time_millis=self.env.now_ms(),
            )
            rules.check_unserved(identifier, changed)
            if not reads_levels_alike(current, changed):
                store = self._load_store(identifier)
                with rules.about(identifier):
                    check_one_level(store, store.latest_snapshot())
            return changed.id == current.id or SchemaStore(self.storage, layout).create(changed)

        rules.alter_until_published(identifier, attempt)

    def elsewhere(self, warehouse: str) -> Catalog:
        """The tables below another folder, on storages with the same options."""
        texts = {**self._options, "warehouse": warehouse}
        return FileSystemCatalog.open(warehouse, self._files.options, texts)

    # --- paths and schemas ------------------------------------------------------------------------

    def _database_path(self, name: str) -> str:
        check_name(NameKind.DATABASE, name)
        return f"{self.warehouse}/{name}{_DATABASE_SUFFIX}"

    def _layout(self, identifier: Identifier) -> TableLayout:
        # An identifier checks its names when it is created.
        root = f"{self._database_path(identifier.database)}/{identifier.table}"
        return TableLayout(root, identifier.branch or MAIN_BRANCH)

    def _has_schema(self, layout: TableLayout) -> bool:
        return bool(SchemaStore(self.storage, layout).list_ids())

    def _schema_files(self, layout: TableLayout) -> SchemaFiles:
        return SchemaStore(self.storage, layout).files()

    def _find_schema(self, layout: TableLayout) -> TableSchema | None:
        """The newest schema of a table or a branch; None if it does not exist."""
        if is_unfinished(self.storage, layout):
            return None
        # Branches are dropped with their table. The mark for that is in the main branch.
        main = TableLayout(layout.root)
        if layout.branch != MAIN_BRANCH and self._schema_files(main).is_dropped:
            return None
        return SchemaStore(self.storage, layout).latest()

    def _load_schema(self, identifier: Identifier, layout: TableLayout) -> TableSchema:
        schema = self._find_schema(layout)
        if schema is not None:
            return schema
        if identifier.branch is not None and self._has_schema(TableLayout(layout.root)):
            raise rules.branch_not_found(identifier, list_branches(self.storage, layout))
        raise self._table_not_found(identifier)

    def _load_store(self, identifier: Identifier) -> TableStore:
        layout = self._layout(identifier)
        # A table is usually opened to be read or written, and that begins with this snapshot.
        snapshots = SnapshotStore(self.storage, layout)
        at_once = self.storage.traits.requests_at_once
        load = begin(partial(self._load_schema, identifier, layout), at_once)
        if at_once > 1:
            with suppress(EmberlakeError):  # a caller that needs it meets the failure again
                snapshots.look_ahead()
        schema = load()
        identity = TableIdentity(identifier)
        store = TableStore(
            self._files, layout, schema, self.env, identity=identity, siblings=self.siblings
        )
        store.schemas.know(schema)
        return store

    def _table_not_found(self, identifier: Identifier) -> TableNotFound:
        if not self.storage.exists(self._database_path(identifier.database)):
            databases = self.list_databases()
            return rules.table_without_database(identifier, self.warehouse, databases)
        # Folders, not tables: to find out which are tables we would have to look into all of them.
        folders = self.storage.list(self._database_path(identifier.database))
        names = [i.name for i in folders if i.is_folder and i.name != identifier.table]
        return rules.table_not_found(identifier, self.warehouse, names)

    def _delete_table(self, identifier: Identifier) -> None:
        # The mark is written first: from then on no listing shows the table. Snapshots are deleted
        # next, so that other engines find none whose files are gone. Schemas and the mark go last:
        # until then nobody can create a table with this name. After that somebody may, and then
        # files here belong to the new table.
        layout = self._layout(identifier)
        schemas, drop_id = SchemaStore(self.storage, layout), self.env.new_id()
        schemas.begin_drop(drop_id)
        self._delete_hint(schemas, layout)
        self._delete_outside(identifier, layout)
        schemas.check_drop(drop_id)
        self.storage.delete_folder(layout.snapshot_folder)
        self._end_uploads(layout.root)
        content = [i for i in self.storage.list(layout.root) if i.path != layout.schema_folder]
        schemas.check_drop(drop_id)
        self.storage.delete_all([info.path for info in content if not info.is_folder])

        def delete_folder(path: str) -> None:
            schemas.check_drop(drop_id)
            self.storage.delete_folder(path)

        folders = [info.path for info in content if info.is_folder]
        for _ in parallel_map(delete_folder, folders, workers=_FOLDERS_AT_ONCE):
            pass
        # Files that writers have written meanwhile. Their commits will fail.
        late = [i.path for i in self.storage.list_all(layout.root) if not schemas.has(i.path)]
        schemas.check_drop(drop_id)
        self.storage.delete_all(late)
        schemas.end_drop()
        self.storage.delete_empty_folder(layout.root)

    def _delete_hint(self, schemas: SchemaStore, layout: TableLayout) -> None:
        """Find out whether we may delete files, by deleting one that nobody needs."""
        try:
            self.storage.delete(layout.latest_hint)
        except StorageError as error:
            if error.had_no_effect:
                schemas.cancel_drop()
            raise

    def _delete_outside(self, identifier: Identifier, layout: TableLayout) -> None:
        """Delete the files of a table that lie outside of its folder."""
        schemas = schemas_outside(self._files, layout)
        if not schemas:
            return
        try:
            identity = TableIdentity(identifier)
            store = TableStore(self._files, layout, schemas[0], self.env, identity=identity)
            paths = files_outside(store, schemas)
        except (CorruptFile, InvalidIdentifier, InvalidState) as error:
            warnings.warn(
                f"{identifier} is dropped, but its files outside of {layout.root} stay: it "
                f"is unknown which they are. {error}",
                EmberlakeWarning,
                stacklevel=4,
            )
        else:
            self._files.delete_all(paths)

    def _end_uploads(self, root: str) -> None:
        """End unfinished uploads, which cost money, if the storage can."""
        try:
            self.storage.end_uploads(self.storage.unfinished_uploads(root))
        except Unsupported:
            pass  # a rule of the bucket must end them; the documentation says so
        except StorageError as error:
            if not error.had_no_effect:
                raise
            warnings.warn(
                f"unfinished uploads into {root} may be left: {error}",
                EmberlakeWarning,
                stacklevel=4,
            )
