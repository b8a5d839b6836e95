"""A catalog that is a folder. Spec: "Directory layout and file names", "Filesystem catalog".

``<warehouse>/<database>.db/<table>/``: a database is a folder, a table is a folder with a schema.
Names are checked before they become part of a path. Who creates ``schema-0`` first has created the
table; who creates ``schema-<n>`` first has changed it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, cast

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.names import did_you_mean, listed
from emberlake.base.parallel import parallel_map
from emberlake.catalog.catalog import Catalog, Database, PagedList, Partition, as_identifier
from emberlake.catalog.partitions import check_partition_specs, list_partition_page
from emberlake.commit.change import CommitResult
from emberlake.errors import (
    AlreadyExists,
    BranchNotFound,
    ColumnAlreadyExists,
    ColumnNotFound,
    CommitConflict,
    ConflictReason,
    DatabaseAlreadyExists,
    DatabaseNotEmpty,
    DatabaseNotFound,
    InvalidIdentifier,
    InvalidInput,
    InvalidOption,
    InvalidSchema,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    with_context,
)
from emberlake.inspect import SystemTable, open_system_table
from emberlake.io import Storage
from emberlake.merge.plan import check_functions, check_merge_options
from emberlake.options import TYPE
from emberlake.spec.identifier import MAIN_BRANCH, Identifier, NameKind, check_name
from emberlake.spec.layout import TableLayout
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.schema_evolution import apply_changes
from emberlake.store.branches import BranchStore
from emberlake.store.schemas import SchemaStore
from emberlake.store.snapshots import SnapshotStore
from emberlake.store.table_store import TableStore
from emberlake.table import Table

_DATABASE_SUFFIX: Final = ".db"
_TABLE_DEFAULT: Final = "table-default."
_ALTER_ATTEMPTS: Final = 100


class FileSystemCatalog(Catalog):
    """Databases and tables under one folder, the warehouse."""

    def __init__(
        self,
        storage: Storage,
        warehouse: str,
        options: Mapping[str, str] | None = None,
        env: Env = SYSTEM_ENV,
    ) -> None:
        self.storage = storage
        self.warehouse = warehouse.rstrip("/")
        self.env = env
        self._options = dict(options or {})

    @property
    def options(self) -> dict[str, str]:
        """The options that the catalog was created with."""
        return dict(self._options)

    def __repr__(self) -> str:
        return f"FileSystemCatalog({self.warehouse!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # Clock and ids are of the process that the catalog arrives in.
        return FileSystemCatalog, (self.storage, self.warehouse, self._options)

    # --- databases --------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        """The names of all databases, sorted."""
        return sorted(
            info.name.removesuffix(_DATABASE_SUFFIX)
            for info in self.storage.list(self.warehouse)
            if info.is_folder and info.name.endswith(_DATABASE_SUFFIX)
        )

    def get_database(self, name: str) -> Database:
        """The database of that name."""
        if not self.storage.exists(self._database_path(name)):
            raise DatabaseNotFound(
                f"database {name!r} does not exist in {self.warehouse}"
                + did_you_mean([name], self.list_databases(), before="; "),
                database=name,
            )
        return Database(name)

    def create_database(
        self,
        name: str,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a database: a folder, which has no room for properties."""
        path = self._database_path(name)
        if properties:
            raise Unsupported(
                f"database {name!r}: a filesystem catalog cannot keep the properties "
                f"{', '.join(sorted(properties))}; create the database without them"
            )
        if self.storage.exists(path):
            if ignore_if_exists:
                return
            raise DatabaseAlreadyExists(
                f"database {name!r} already exists in {self.warehouse}", database=name
            )
        self.storage.make_folder(path)

    def drop_database(
        self,
        name: str,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
        cascade: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Drop a database; with ``cascade`` also all that is in it."""
        path = self._database_path(name)
        if ignore_if_not_exists and not self.storage.exists(path):
            return
        self.get_database(name)
        content = [info.name for info in self.storage.list(path)]
        if content and not cascade:
            raise DatabaseNotEmpty(
                f"database {name!r} holds {listed(content, 5)}; "
                "drop its tables first, or drop it with cascade=True",
                database=name,
            )
        for table in self.list_tables(name):
            self._delete_table(f"{path}/{table}")
        self.storage.delete_folder(path)

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        """The names of the tables of a database, sorted."""
        self.get_database(database_name)
        path = self._database_path(database_name)
        names = [
            info.name
            for info in self.storage.list(path)
            if info.is_folder and not info.name.startswith(".")
        ]
        is_table = parallel_map(lambda name: self._has_schema(TableLayout(f"{path}/{name}")), names)
        return sorted(name for name, found in zip(names, is_table, strict=True) if found)

    def get_table(self, identifier: str | Identifier) -> Table:
        """Open a table, a branch of one or a system table."""
        identifier = as_identifier(identifier)
        if identifier.system_table is not None:
            return cast("Table", self.get_system_table(identifier))
        layout, schema = self._load_table(identifier)
        return Table(identifier, self.storage, layout, schema, self.env)

    def get_system_table(self, identifier: str | Identifier) -> SystemTable:
        """Open a system table."""
        identifier = as_identifier(identifier)
        if identifier.system_table is None:
            raise InvalidIdentifier(f"{identifier} is no system table; one is {identifier}$files")
        store = TableStore(self.storage, *self._load_table(identifier), self.env)
        return open_system_table(identifier.system_table, identifier, store)

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Create a table, unless anything about it is wrong."""
        identifier = _plain_table(identifier, "created")
        layout = self._layout(identifier)
        self.get_database(identifier.database)
        if self._has_schema(layout):
            if ignore_if_exists:
                return
            raise _table_exists(identifier)
        with _about(identifier):
            first = build_table_schema(self._with_defaults(schema), time_millis=self.env.now_ms())
            _refuse_merging("created", check_merge_options(first))
            check_functions(first)
        if SnapshotStore(self.storage, layout).list_ids():
            # Its first reader would see the data of a table that is gone.
            raise InvalidInput(
                f"{identifier} cannot be created: {layout.root} has snapshots but no schema; "
                "move or delete that folder"
            )
        if not SchemaStore(self.storage, layout).create(first) and not ignore_if_exists:
            raise _table_exists(identifier)

    def drop_table(
        self,
        identifier: str | Identifier,
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Delete a table with all its files, whatever state they are in."""
        identifier = _plain_table(identifier, "dropped")
        layout = self._layout(identifier)
        # Schemas are not opened: a table that cannot be read can still be dropped.
        if self._has_schema(layout):
            self._delete_table(layout.root)
        elif not ignore_if_not_exists:
            raise self._table_not_found(identifier)

    def rename_table(
        self, source_identifier: str | Identifier, target_identifier: str | Identifier
    ) -> None:
        """Give a table another name, in the same database or in another one."""
        source = _plain_table(source_identifier, "renamed")
        target = _plain_table(target_identifier, "renamed to")
        old, new = self._layout(source), self._layout(target)
        if not self._has_schema(old):
            raise self._table_not_found(source)
        self.get_database(target.database)
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
        changes: Sequence[SchemaChange],
        ignore_if_not_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Change a table's schema by writing the next version of it."""
        identifier = as_identifier(identifier)
        if identifier.system_table is not None:
            raise InvalidIdentifier(f"{identifier} is a system table; it cannot be altered")
        layout = self._layout(identifier)
        if not self._has_schema(layout) and ignore_if_not_exists:
            return
        for _ in range(_ALTER_ATTEMPTS):
            # Each attempt starts from the newest schema, so that the change of a winner is kept.
            current = self._load_schema(identifier, layout)
            has_snapshots = SnapshotStore(self.storage, layout).latest_id() is not None
            with _about(identifier):
                changed = apply_changes(
                    current,
                    changes,
                    has_snapshots=has_snapshots,
                    time_millis=self.env.now_ms(),
                )
                known = set(check_merge_options(current))  # let pass by other engines
                problems = check_merge_options(changed)
                _refuse_merging("changed", [p for p in problems if p not in known])
                check_functions(changed, current)
            if changed.id == current.id or SchemaStore(self.storage, layout).create(changed):
                return
        raise CommitConflict(
            ConflictReason.RETRIES_EXHAUSTED,
            f"{identifier} got another schema in each of {_ALTER_ATTEMPTS} attempts",
            "alter the table again when fewer others do",
        )

    # --- partitions -------------------------------------------------------------------------------

    def list_partitions_paged(
        self,
        identifier: str | Identifier,
        max_results: int | None = None,
        page_token: str | None = None,
        partition_name_pattern: str | None = None,
    ) -> PagedList[Partition]:
        """The partitions of a table by name, a page at a time."""
        store = self._open_store(as_identifier(identifier))
        return list_partition_page(store, max_results, page_token, partition_name_pattern)

    def drop_partitions(
        self, identifier: str | Identifier, partitions: Sequence[Mapping[str, object]]
    ) -> CommitResult:
        """Delete all data of partitions, in one commit."""
        identifier = as_identifier(identifier)
        store = self._open_store(identifier)
        check_partition_specs(identifier, store.schema, partitions)
        table = Table(identifier, store.storage, store.layout, store.schema, self.env)
        return table.new_batch_write_builder().new_commit().truncate_partitions(partitions)

    # --- paths and schemas ------------------------------------------------------------------------

    def _database_path(self, name: str) -> str:
        check_name(NameKind.DATABASE, name)
        return f"{self.warehouse}/{name}{_DATABASE_SUFFIX}"

    def _layout(self, identifier: Identifier) -> TableLayout:
        # An identifier has checked its names when it was made.
        root = f"{self._database_path(identifier.database)}/{identifier.table}"
        return TableLayout(root, identifier.branch or MAIN_BRANCH)

    def _has_schema(self, layout: TableLayout) -> bool:
        return bool(SchemaStore(self.storage, layout).list_ids())

    def _load_schema(self, identifier: Identifier, layout: TableLayout) -> TableSchema:
        schema = SchemaStore(self.storage, layout).latest()
        if schema is not None:
            return schema
        if identifier.branch is not None and self._has_schema(TableLayout(layout.root)):
            branches = BranchStore(self.storage, layout, self.env.new_id).list()
            raise BranchNotFound(
                f"{identifier.database}.{identifier.table} has no branch {identifier.branch!r}"
                + did_you_mean([identifier.branch], branches, before="; "),
                branch=identifier.branch,
            )
        raise self._table_not_found(identifier)

    def _load_table(self, identifier: Identifier) -> tuple[TableLayout, TableSchema]:
        layout = self._layout(identifier)
        schema = self._load_schema(identifier, layout)
        kind = schema.options.value(TYPE)
        if kind.lower() != TYPE.default:
            raise Unsupported(f"{identifier} has the type {kind}; emberlake reads tables only")
        return layout, schema

    def _table_not_found(self, identifier: Identifier) -> TableNotFound:
        if not self.storage.exists(self._database_path(identifier.database)):
            return TableNotFound(
                f"{identifier} does not exist: there is no database {identifier.database!r} "
                f"in {self.warehouse}"
                + did_you_mean([identifier.database], self.list_databases(), before="; "),
                identifier=identifier,
            )
        # Folders, not tables: whether each of them is one would take a look into all of them.
        folders = self.storage.list(self._database_path(identifier.database))
        names = [info.name for info in folders if info.is_folder]
        return TableNotFound(
            f"{identifier} does not exist in {self.warehouse}"
            + did_you_mean([identifier.table], names, before="; "),
            identifier=identifier,
        )

    def _open_store(self, identifier: Identifier) -> TableStore:
        if identifier.system_table is not None:
            raise InvalidIdentifier(f"{identifier} is a system table; it has no partitions")
        layout = self._layout(identifier)
        schema = self._load_schema(identifier, layout)
        return TableStore(self.storage, layout, schema, self.env)

    def _with_defaults(self, schema: Schema) -> Schema:
        """The schema with the options that the catalog gives to new tables."""
        placed = [key for key in ("path", "branch") if key in schema.options]
        if placed:
            raise InvalidOption(
                f"the option {placed[0]!r} cannot be set; the catalog decides where a table is"
            )
        defaults = {
            key.removeprefix(_TABLE_DEFAULT): value
            for key, value in self._options.items()
            if key.startswith(_TABLE_DEFAULT)
        }
        options = {**defaults, **schema.options}
        return Schema(
            schema.fields, schema.partition_keys, schema.primary_keys, options, schema.comment
        )

    def _delete_table(self, root: str) -> None:
        # The schema goes last: a drop that fails half-way leaves a table that can be dropped
        # again, never a folder with old snapshots under the name of a new table.
        schema_folder = TableLayout(root).schema_folder
        for info in self.storage.list(root):
            path = f"{root}/{info.name}"
            if path == schema_folder:
                continue
            if info.is_folder:
                self.storage.delete_folder(path)
            else:
                self.storage.delete(path)
        self.storage.delete_folder(root)


def _plain_table(identifier: str | Identifier, action: str) -> Identifier:
    identifier = as_identifier(identifier)
    if identifier.branch is not None or identifier.system_table is not None:
        raise InvalidIdentifier(f"{identifier} cannot be {action}: give a table, without a $ part")
    return identifier


@contextmanager
def _about(identifier: Identifier) -> Iterator[None]:
    """Errors of what the caller gave name the table that it was given for."""
    try:
        yield
    except (InvalidInput, ColumnNotFound, ColumnAlreadyExists, Unsupported) as error:
        raise with_context(error, str(identifier)) from error


def _refuse_merging(what: str, problems: Sequence[str]) -> None:
    if problems:
        raise InvalidSchema(f"the table cannot be {what}: " + "; ".join(problems))


def _table_exists(identifier: Identifier) -> TableAlreadyExists:
    return TableAlreadyExists(
        f"{identifier} already exists; drop it first or choose another name", identifier=identifier
    )
