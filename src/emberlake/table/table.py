"""A table as users hold it: what it is, and builders for reading and writing it."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from emberlake import maintenance
from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.html import html_box, html_note, html_title
from emberlake.base.lazy import LazyModule
from emberlake.base.peer_names import AnswersPeersOfTables
from emberlake.base.secrets import shown_options
from emberlake.errors import EmberlakeWarning, InvalidOption, InvalidSchema, TableNotFound
from emberlake.io import RoutedStorage, open_storage
from emberlake.io.storage import Storage
from emberlake.options import BRANCH, BUCKET, CHANGELOG_PRODUCER, TableOptions
from emberlake.scan.levels import reads_levels_alike
from emberlake.scan.travel import between as load_between
from emberlake.scan.travel import check_scan_options, is_incremental, is_travelling, travel
from emberlake.spec.identifier import Identifier
from emberlake.spec.layout import MAIN_BRANCH, TableLayout
from emberlake.spec.option_changes import remove_option, set_option
from emberlake.spec.option_columns import rename_all_in_options
from emberlake.spec.option_spelling import misspelled
from emberlake.spec.schema import TableSchema
from emberlake.spec.schema_text import schema_html
from emberlake.store.publishing import TableIdentity
from emberlake.store.schemas import SchemaStore
from emberlake.store.table_store import TableStore
from emberlake.table.listings import Listings
from emberlake.table.managers import SchemaManager
from emberlake.table.read_builder import ReadBuilder
from emberlake.table.short_forms import ShortForms
from emberlake.table.stream_read import StreamReadBuilder
from emberlake.table.upkeep import Upkeep
from emberlake.table.versions import VersionedTable
from emberlake.types import DataField

if TYPE_CHECKING:
    from emberlake.maintenance.check import CheckReport
    from emberlake.maintenance.expire import ExpireResult
    from emberlake.maintenance.orphans import OrphanResult
    from emberlake.table import write_builder
    from emberlake.table.write_builder import (
        BatchWriteBuilder,
        PostponeFixedBucketWriteBuilder,
        StreamWriteBuilder,
    )
else:
    write_builder = LazyModule("emberlake.table.write_builder")  # many programs only read

_SHOWN_COLUMNS: Final = 20
_SHOWN_OPTIONS: Final = 6


class Comment(str):
    """The comment of a table: a string, empty if there is none, that can also be called.

    In pypaimon ``comment()`` is a method that returns None for a table without a comment.
    """

    __slots__ = ()

    def __call__(self) -> str | None:
        """The text, or None if there is none."""
        return str(self) or None


@dataclass(frozen=True, init=False, repr=False)
class Table(VersionedTable, ShortForms, Listings, Upkeep, AnswersPeersOfTables):
    """A table of a catalog; it pickles, so workers can use it."""

    def __init__(
        self,
        identifier: Identifier,
        storage: Storage,
        layout: TableLayout,
        schema: TableSchema,
        env: Env = SYSTEM_ENV,
    ) -> None:
        identity = TableIdentity(identifier)
        store = TableStore(storage, layout, schema, env, identity=identity)
        object.__setattr__(self, "store", store)

    @classmethod
    def from_path(
        cls, table_path: str, file_io_options: Mapping[str, object] | None = None
    ) -> "Table":
        """The table in a folder, without a catalog; it is named after the folder.

        Raises:
            TableNotFound: there is no table in the folder.
        """
        options = file_io_options or {}
        storage, path = open_storage(table_path, options)
        layout = TableLayout(path.rstrip("/"))
        schema = SchemaStore(storage, layout).latest()
        if schema is None:
            raise TableNotFound(f"there is no table in {path}: it has no schema")
        *_, folder, name = ("", *layout.root.split("/"))
        identifier = Identifier(folder.removesuffix(".db") or "default", name)
        return cls(identifier, RoutedStorage(storage, layout.root, options), layout, schema)

    @property
    def table_path(self) -> str:
        return self.store.layout.root

    @property
    def table_schema(self) -> TableSchema:
        return self.store.schema

    @property
    def fields(self) -> list[DataField]:
        return list(self.store.schema.fields)

    @property
    def field_names(self) -> list[str]:
        return list(self.store.schema.field_names)

    @property
    def primary_keys(self) -> list[str]:
        return list(self.store.schema.primary_keys)

    @property
    def partition_keys(self) -> list[str]:
        return list(self.store.schema.partition_keys)

    @property
    def field_dict(self) -> dict[str, DataField]:
        return dict(self.store.schema.field_by_name)

    @property
    def primary_keys_fields(self) -> list[DataField]:
        return [self.field_dict[name] for name in self.primary_keys]

    @property
    def partition_keys_fields(self) -> list[DataField]:
        return list(self.store.schema.partition_fields)

    @property
    def trimmed_primary_keys(self) -> list[str]:
        return list(self.store.schema.trimmed_primary_keys)

    @property
    def trimmed_primary_keys_fields(self) -> list[DataField]:
        return [self.field_dict[name] for name in self.trimmed_primary_keys]

    @property
    def total_buckets(self) -> int:
        return self.store.options.value(BUCKET)

    @property
    def options(self) -> TableOptions:
        return self.store.options

    @property
    def comment(self) -> Comment:
        """The comment of the table: ``table.comment``, or ``table.comment()``."""
        return Comment(self.store.schema.comment or "")

    @property
    def schema_manager(self) -> SchemaManager:
        """The versions of the table's schema."""
        return SchemaManager(self.store.storage, self.store.layout)

    def schema(self) -> TableSchema:
        """The same as ``table_schema``."""
        return self.store.schema

    @property
    def is_primary_key_table(self) -> bool:
        return self.store.schema.profile.has_keys

    def copy(self, options: Mapping[str, object]) -> "Table":
        """The same table with other options for this program alone, or at an earlier snapshot.

        None resets an option to its default. The option ``branch`` opens another branch of the
        table, with its own columns.

        Raises:
            SnapshotNotFound, TagNotFound: the snapshot to travel to does not exist.
            BranchNotFound: there is no such branch.
            InvalidOption: an option cannot be parsed, contradicts another one, or decides how
                existing rows are interpreted (the number of buckets, for example).
        """
        texts = {key: None if value is None else _text(value) for key, value in options.items()}
        if BRANCH.key in texts:
            return self._on_branch(texts.pop(BRANCH.key)).copy(texts)
        for problem in misspelled(texts):
            warnings.warn(f"{self.identifier}: {problem}", EmberlakeWarning, stacklevel=2)
        present = self._present_schema()
        schema = _with_dynamic_options(present, texts)
        if not reads_levels_alike(present, schema):
            raise InvalidOption(
                f"{CHANGELOG_PRODUCER.key} decides how the rows of {self.identifier} are merged, "
                "so it cannot be another for one program: alter the table"
            )
        store = self.store.with_schema(schema)
        check_scan_options(schema.options)
        if is_incremental(schema.options):
            load_between(store)
        elif is_travelling(schema.options):
            snapshot = travel(store)
            assert snapshot is not None
            then = store.schemas.load(snapshot.schema_id)
            store = store.with_schema(_as_of(then, store))
        return table_of(store)

    def new_read_builder(self) -> ReadBuilder:
        """Start a read."""
        return ReadBuilder(self.store, _name=str(self.identifier))

    def new_stream_read_builder(self) -> StreamReadBuilder:
        """Start a read that follows the table: its state first, then every change."""
        # Changes have the columns that the table has now, wherever the stream starts.
        return StreamReadBuilder(self.store.with_schema(self._present_schema()))

    def new_batch_write_builder(self) -> "BatchWriteBuilder":
        """Start a write with one commit."""
        self._check_present()
        return write_builder.BatchWriteBuilder(self.store, self.store.new_commit_user())

    def new_write_builder(self) -> "BatchWriteBuilder":
        """Start a write with one commit; another name for ``new_batch_write_builder``."""
        return self.new_batch_write_builder()

    def new_postpone_fixed_bucket_write_builder(self) -> "PostponeFixedBucketWriteBuilder":
        """Start a write with one commit that assigns buckets at once, for tables with bucket=-2."""
        self._check_present()
        return write_builder.PostponeFixedBucketWriteBuilder(
            self.store, self.store.new_commit_user()
        )

    def new_stream_write_builder(self, commit_user: str | None = None) -> "StreamWriteBuilder":
        """Start a write with many commits.

        Give the same ``commit_user`` after a restart: it identifies the commits made before.
        """
        self._check_present()
        return write_builder.StreamWriteBuilder(
            self.store, commit_user or self.store.new_commit_user()
        )

    def expire_snapshots(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: datetime | int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "ExpireResult":
        """Delete old snapshots, and the files that no other snapshot, tag or branch needs.

        Defaults come from the table's options ``snapshot.num-retained.max``,
        ``snapshot.num-retained.min``, ``snapshot.time-retained`` and ``snapshot.expire.limit``.

        Args:
            retain_max: Snapshots beyond this many go, whatever their age.
            retain_min: This many of the newest always stay.
            older_than: In between, those that were replaced before this moment go: a datetime, or
                milliseconds since the epoch.
            max_deletes: At most this many go in one run; ``remaining`` of the result says how many
                more are due.
            dry_run: Only report what would be deleted.
            progress: Called with the number of files deleted so far, and of all files to delete.

        Raises:
            InvalidInput: ``retain_max`` is less than ``retain_min``.
            InvalidState: what other snapshots need cannot be found out; nothing was deleted.
            Unsupported: the table keeps changelogs for longer than snapshots.
        """
        self._check_present()
        retention = maintenance.expire.retention_of(
            self.options,
            self.store.env.now_ms(),
            retain_max=retain_max,
            retain_min=retain_min,
            older_than=older_than,
            max_deletes=max_deletes,
        )
        return maintenance.expire.expire_snapshots(
            self.store, retention, dry_run=dry_run, progress=progress
        )

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> "OrphanResult":
        """Delete files of the table that no snapshot, tag or branch refers to.

        On S3 and its compatibles, uploads into the table's folder that a lost process has left
        unfinished are ended, too.

        Args:
            older_than: Only files last modified, and uploads begun, before this moment, by default
                a day ago. It must be earlier than the start of every write that is still running.
            dry_run: Only report what would be deleted.
            progress: Called with the number of files deleted so far, and of all files to delete.

        Raises:
            InvalidInput: ``older_than`` is in the future.
            InvalidState: something that refers to files cannot be read; nothing was deleted.
        """
        return maintenance.orphans.remove_orphan_files(
            self.store, older_than=older_than, dry_run=dry_run, progress=progress
        )

    def check(
        self,
        *,
        snapshot_id: int | None = None,
        read_data: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> "CheckReport":
        """Look for damage: read every file of a snapshot and compare it with its metadata.

        Args:
            snapshot_id: The snapshot whose files are read, by default the latest. Without it, the
                metadata of all other snapshots and of tags is read too, their files are looked up
                but not read, and files that nothing refers to are reported.
            read_data: Whether to read data files, or only check that they exist in full size.
            progress: Called with the number of files checked so far, and of all files to check.

        Raises:
            SnapshotNotFound: there is no snapshot with that id.
        """
        return maintenance.check.check_table(
            self.store, snapshot_id=snapshot_id, read_data=read_data, progress=progress
        )

    def __repr__(self) -> str:
        schema = self.store.schema
        lines = [f"Table {self.identifier} at {self.table_path}"]
        lines += _first([f"{f}" for f in schema.fields], _SHOWN_COLUMNS, "columns")
        if schema.partition_keys:
            lines.append(f"  partitioned by {', '.join(schema.partition_keys)}")
        if schema.profile.has_keys:
            lines.append(f"  primary key {', '.join(schema.primary_keys)}")
        options = [f"{key} = {value}" for key, value in shown_options(schema.options).items()]
        return "\n".join([*lines, *_first(options, _SHOWN_OPTIONS, "options")])

    def _repr_html_(self) -> str:
        schema = self.store.schema
        keys = schema.partition_keys, schema.primary_keys
        return html_box(
            html_title(f"Table {self.identifier}", self.table_path),
            html_note(schema.comment) if schema.comment else "",
            schema_html(schema.fields, *keys, schema.options),
        )

    def _present_schema(self) -> TableSchema:
        """The schema to copy from: with time travel, the table has the columns of another time."""
        latest = self.store.schemas.latest() if is_travelling(self.options) else None
        return self.store.schema if latest is None else _as_of(latest, self.store)

    def _on_branch(self, name: str | None) -> "Table":
        """Another branch of the table, with the options of this program."""
        branch = name or MAIN_BRANCH
        if branch.lower() == MAIN_BRANCH:
            branch = MAIN_BRANCH
        else:
            self.store.branches.check_exists(branch)
        identifier = Identifier(self.identifier.database, self.identifier.table, branch)
        layout = self.store.layout.for_branch(branch)
        schema = SchemaStore(self.store.storage, layout).latest()
        if schema is None:
            raise TableNotFound(f"{identifier} has no schema", identifier=identifier)
        identity = replace(self.store.identity, identifier=identifier)
        own = _as_of(schema, self.store)
        return table_of(replace(self.store, layout=layout, schema=own, identity=identity))


def table_of(store: TableStore) -> Table:
    """The table of a store, which knows its identity and its publisher."""
    table = Table.__new__(Table)
    object.__setattr__(table, "store", store)
    return table


def _with_dynamic_options(schema: TableSchema, texts: Mapping[str, str | None]) -> TableSchema:
    try:
        for key, text in texts.items():
            if text is None:
                schema = remove_option(schema, key, has_snapshots=True)
            else:
                schema = set_option(schema, key, text, has_snapshots=True)
    except InvalidSchema as error:
        raise InvalidOption(str(error)) from error
    return schema


def _as_of(then: TableSchema, store: TableStore) -> TableSchema:
    """Another schema with its own options, which say how rows were merged, and this program's."""
    own = store.own_options()
    names = {f.id: f.name for f in then.fields}
    renamed = rename_all_in_options(
        TableOptions({key: value for key, value in own.items() if value is not None}),
        {f.name: names[f.id] for f in store.schema.fields if f.id in names},
    )
    removed = (key for key, value in own.items() if value is None)
    return then.with_options({**dict.fromkeys(removed), **renamed})


def _first(lines: list[str], shown: int, what: str) -> list[str]:
    left = len(lines) - shown
    return [f"  {line}" for line in lines[:shown]] + (
        [f"  and {left:,} more {what}"] if left > 0 else []
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
