"""A table as users hold it: what it is, and builders for reading and writing it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.html import html_table, html_title
from emberlake.commit.change import CommitResult
from emberlake.errors import InvalidOption, InvalidSchema, InvalidState, SnapshotNotFound
from emberlake.io.storage import Storage
from emberlake.maintenance.branches import branches_of, create_branch, fast_forward
from emberlake.maintenance.check import CheckReport, check_table
from emberlake.maintenance.compact import compact_table
from emberlake.maintenance.expire import ExpireResult, expire_snapshots, retention_of
from emberlake.maintenance.orphans import OrphanResult, remove_orphan_files
from emberlake.maintenance.rollback import rollback_to_snapshot, rollback_to_tag
from emberlake.options import BRANCH, TableOptions
from emberlake.predicates import Predicate
from emberlake.scan.travel import between as load_between
from emberlake.scan.travel import check_scan_options, is_incremental, is_travelling, travel
from emberlake.spec.identifier import Identifier
from emberlake.spec.layout import TableLayout
from emberlake.spec.option_changes import remove_option, set_option
from emberlake.spec.option_columns import rename_all_in_options
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.snapshots import SnapshotStore
from emberlake.store.table_store import TableStore
from emberlake.table.read_builder import ReadBuilder
from emberlake.table.short_forms import ShortForms
from emberlake.table.stream_read import StreamReadBuilder
from emberlake.table.write_builder import (
    BatchWriteBuilder,
    StreamWriteBuilder,
    new_commit_user,
)
from emberlake.types import DataField

_SHOWN_OPTIONS: Final = 6


@dataclass(frozen=True, init=False, repr=False)
class Table(ShortForms):
    """A table of a catalog; pickles, so that it can be used on workers."""

    identifier: Identifier
    store: TableStore

    def __init__(
        self,
        identifier: Identifier,
        storage: Storage,
        layout: TableLayout,
        schema: TableSchema,
        env: Env = SYSTEM_ENV,
    ) -> None:
        object.__setattr__(self, "identifier", identifier)
        object.__setattr__(self, "store", TableStore(storage, layout, schema, env))

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
    def options(self) -> TableOptions:
        return self.store.options

    @property
    def comment(self) -> str | None:
        return self.store.schema.comment

    @property
    def is_primary_key_table(self) -> bool:
        return bool(self.store.schema.primary_keys)

    def copy(self, options: Mapping[str, object]) -> "Table":
        """The same table with other options for this program alone, or at an earlier snapshot.

        An option of None goes back to its default.

        Raises:
            SnapshotNotFound, TagNotFound: the snapshot to travel to does not exist.
            InvalidOption: an option cannot be read, contradicts another one, or decides how the
                rows that are there are understood (the number of buckets, say).
        """
        texts = {key: None if value is None else _text(value) for key, value in options.items()}
        schema = _with_dynamic_options(self._present_schema(), texts)
        store = self.store.with_schema(schema)
        check_scan_options(schema.options)
        if is_incremental(schema.options):
            load_between(store)
        elif is_travelling(schema.options):
            snapshot = travel(store)
            assert snapshot is not None
            then = store.schemas.load(snapshot.schema_id)
            store = store.with_schema(_as_of(then, store))
        return _with_store(self, store)

    def new_read_builder(self) -> ReadBuilder:
        """Start a read."""
        return ReadBuilder(self.store)

    def new_stream_read_builder(self) -> StreamReadBuilder:
        """Start a read that follows the table: its state first, then every change."""
        # Changes come with the columns that the table has now, wherever the stream starts.
        return StreamReadBuilder(self.store.with_schema(self._present_schema()))

    def new_batch_write_builder(self) -> BatchWriteBuilder:
        """Start a write of one commit."""
        self._check_present()
        return BatchWriteBuilder(self.store, new_commit_user(self.store))

    def new_stream_write_builder(self, commit_user: str | None = None) -> StreamWriteBuilder:
        """Start a write of many commits.

        Give the same ``commit_user`` after a restart: it is how commits that were made before
        are recognised.
        """
        self._check_present()
        return StreamWriteBuilder(self.store, commit_user or new_commit_user(self.store))

    def snapshot_manager(self) -> SnapshotStore:
        """The snapshots of the table."""
        return self.store.snapshots

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot, or None when nothing was ever committed."""
        return self.store.snapshots.latest()

    def create_tag(
        self,
        tag_name: str,
        snapshot_id: int | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Keep a snapshot, the latest by default, under a name."""
        snapshots = self.store.snapshots
        snapshot = snapshots.latest() if snapshot_id is None else snapshots.load(snapshot_id)
        if snapshot is None:
            raise SnapshotNotFound(f"{self.identifier} has no snapshot to tag")
        self.store.tags.create(tag_name, snapshot, ignore_if_exists=ignore_if_exists)

    def delete_tag(self, tag_name: str) -> bool:
        """Delete a tag; False when there is none of that name."""
        if not self.store.tags.exists(tag_name):
            return False
        self.store.tags.delete(tag_name)
        return True

    def rename_tag(self, old_name: str, new_name: str) -> None:
        """Give a tag another name."""
        self.store.tags.rename(old_name, new_name)

    def list_tags(self) -> list[str]:
        """The names of all tags, sorted."""
        return sorted(self.store.tags.list())

    def rollback_to(self, target: int | str) -> None:
        """Make a snapshot (by id) or a tag (by name) the latest; what came after is gone."""
        if isinstance(target, str):
            rollback_to_tag(self.store, target)
        else:
            rollback_to_snapshot(self.store, target)

    def create_branch(
        self,
        branch_name: str,
        tag_name: str | None = None,
        ignore_if_exists: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Make a branch: a history of its own that begins with a tag, or empty.

        It is opened as ``db.t$branch_name``, and written to like any table.

        Raises:
            BranchAlreadyExists: the name is taken and that is not to be ignored.
            TagNotFound: there is no such tag.
        """
        create_branch(self.store, branch_name, tag_name, ignore_if_exists=ignore_if_exists)

    def delete_branch(self, branch_name: str) -> None:
        """Delete a branch; what it alone refers to is left for ``remove_orphan_files``.

        Raises:
            BranchNotFound: there is no such branch.
        """
        branches_of(self.store).delete(branch_name)

    def list_branches(self) -> list[str]:
        """The names of all branches but the main one, sorted."""
        return branches_of(self.store).list()

    def fast_forward(self, branch_name: str) -> None:
        """Give this table the history of a branch, from the branch's first snapshot on.

        Snapshots and tags that this table has from there on are gone. Open it anew afterwards: its
        schema may be another one.

        Raises:
            BranchNotFound, SnapshotNotFound: there is no such branch, or it is empty.
            InvalidState: somebody committed to this table meanwhile.
        """
        self._check_present()
        fast_forward(self.store, branch_name)

    def expire_snapshots(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: datetime | int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> ExpireResult:
        """Delete old snapshots, and the files that no other snapshot, tag or branch needs.

        What is not given comes from the table's options ``snapshot.num-retained.max``,
        ``snapshot.num-retained.min``, ``snapshot.time-retained`` and ``snapshot.expire.limit``.

        Args:
            retain_max: Snapshots beyond so many go, whatever their age.
            retain_min: So many of the newest stay in any case.
            older_than: In between go those that were replaced before that moment: a datetime, or
                milliseconds since the epoch.
            max_deletes: So many go in one run.
            dry_run: Whether to tell what would be deleted, and delete nothing.
            progress: Is told how many files are deleted so far, and of how many.

        Raises:
            InvalidInput: ``retain_max`` is less than ``retain_min``.
            InvalidState: what other snapshots need cannot be told; nothing was deleted.
            Unsupported: the table keeps changelogs for longer than snapshots.
        """
        self._check_present()
        retention = retention_of(
            self.options,
            self.store.env.now_ms(),
            retain_max=retain_max,
            retain_min=retain_min,
            older_than=older_than,
            max_deletes=max_deletes,
        )
        return expire_snapshots(self.store, retention, dry_run=dry_run, progress=progress)

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> OrphanResult:
        """Delete files of the table that no snapshot, tag or branch refers to.

        Args:
            older_than: Only what was last modified before that moment, by default a day ago; give
                none that a write which is still running has begun before.
            dry_run: Whether to tell what would be deleted, and delete nothing.
            progress: Is told how many files are deleted so far, and of how many.

        Raises:
            InvalidInput: ``older_than`` is in the future.
            InvalidState: something that refers to files cannot be read; nothing was deleted.
        """
        return remove_orphan_files(
            self.store, older_than=older_than, dry_run=dry_run, progress=progress
        )

    def check(
        self,
        *,
        snapshot_id: int | None = None,
        read_data: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> CheckReport:
        """Look for damage: read every file of a snapshot, and compare what they say.

        Args:
            snapshot_id: The snapshot whose files are read, by default the latest; without one the
                metadata of all others and of tags is read as well, their files are looked for but
                not read, and so are files that nothing refers to.
            read_data: Whether to read data files, rather than see that they are there in full size.
            progress: Is told how many files are checked so far, and of how many.

        Raises:
            SnapshotNotFound: there is no snapshot of that id.
        """
        return check_table(
            self.store, snapshot_id=snapshot_id, read_data=read_data, progress=progress
        )

    def compact(self, full: bool = False, where: Predicate | str | None = None) -> CommitResult:  # noqa: FBT001, FBT002
        """Merge files, which changes no rows but makes reading faster, and commit that.

        Args:
            full: Whether all files of a bucket become as few as possible, rather than those that
                are due by the table's options; rows that are deleted are gone then.
            where: Which partitions: a predicate on partition columns, or text.

        Raises:
            CommitConflict: another writer compacted the same files; nothing changes.
        """
        self._check_present()
        # The filter of a read, bound the same way.
        bound = self.new_read_builder().with_partition_filter(where).partition_filter
        user = new_commit_user(self.store)
        return compact_table(self.store, user, full=full, where=bound)

    def __repr__(self) -> str:
        schema = self.store.schema
        lines = [f"Table {self.identifier} at {self.table_path}"]
        lines += [f"  {f}" for f in schema.fields]
        if schema.partition_keys:
            lines.append(f"  partitioned by {', '.join(schema.partition_keys)}")
        if schema.primary_keys:
            lines.append(f"  primary key {', '.join(schema.primary_keys)}")
        shown = list(schema.options.items())[:_SHOWN_OPTIONS]
        lines += [f"  {key} = {value}" for key, value in shown]
        if len(schema.options) > _SHOWN_OPTIONS:
            lines.append(f"  and {len(schema.options) - _SHOWN_OPTIONS} more options")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        schema = self.store.schema
        columns = html_table(
            ("column", "type", "", "comment"),
            [(f.name, str(f.type), self._role(f.name), f.description or "") for f in schema.fields],
        )
        options = html_table(("option", "value"), sorted(schema.options.items()))
        title = html_title(f"Table {self.identifier}", self.table_path)
        return title + columns + (options if schema.options else "")

    def _role(self, name: str) -> str:
        schema = self.store.schema
        roles = {"primary key": schema.primary_keys, "partition": schema.partition_keys}
        return ", ".join(role for role, names in roles.items() if name in names)

    def _present_schema(self) -> TableSchema:
        """The schema to copy from: a table that travels has the columns of another time."""
        latest = self.store.schemas.latest() if is_travelling(self.options) else None
        return self.store.schema if latest is None else _as_of(latest, self.store)

    def _check_present(self) -> None:
        if is_travelling(self.options) or is_incremental(self.options):
            raise InvalidState(
                f"{self.identifier} is seen at an earlier snapshot here; "
                "write to the table without scan options"
            )


def _with_store(table: Table, store: TableStore) -> Table:
    return Table(table.identifier, store.storage, store.layout, store.schema, store.env)


def _with_dynamic_options(schema: TableSchema, texts: Mapping[str, str | None]) -> TableSchema:
    if BRANCH.key in texts:
        raise InvalidOption("a branch is part of the table's name: open db.table$branch_name")
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


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
