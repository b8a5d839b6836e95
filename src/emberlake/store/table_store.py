"""Everything that the parts below the facade need from one table: where it is and what it is.

Parts take this value (or less), never a ``Table``. Stores are opened on first use and are cheap;
the value itself pickles as plain data, so a worker opens its own handles: the same table, with the
same publisher of its snapshots.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Final, Protocol, TypeVar

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.base.requests import begin
from emberlake.errors import CorruptFile, EmberlakeError, Unsupported
from emberlake.io.storage import Storage
from emberlake.options import (
    COMMIT_USER_PREFIX,
    DATA_FILE_DIRECTORY,
    INDEX_IN_DATA_DIR,
    MANIFEST_COMPRESSION,
    MANIFEST_TARGET_SIZE,
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    QUERY_AUTH,
    ZSTD_LEVEL,
    TableOptions,
)
from emberlake.predicates import ALL_SHOWN, RowRules
from emberlake.spec.binary_row import CorruptRow, decode_row
from emberlake.spec.external_paths import (
    ExternalPaths,
    FilePlaces,
    external_index_folder,
    external_paths,
)
from emberlake.spec.layout import TableLayout, relative_bucket
from emberlake.spec.manifest import DataFile, IndexFile
from emberlake.spec.partition import partition_path, partition_spec
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.values import Value
from emberlake.store.branches import BranchStore
from emberlake.store.manifests import ManifestStore
from emberlake.store.new_schema import NewSchema
from emberlake.store.publishing import Publisher, RowAccess, Snapshots, TableIdentity
from emberlake.store.schemas import SchemaStore
from emberlake.store.snapshots import FILE_PUBLISHER
from emberlake.store.tags import TagStore
from emberlake.types import DataType

_T = TypeVar("_T")
_OF_THE_PROCESS: Final = ("env", "siblings")


class Siblings(Protocol):
    """Opens other tables of the catalog that opened a table."""

    def quarantine(self, target: str) -> "TableStore":
        """The table that keeps bad rows, by its name or its path; created if it is missing."""


@dataclass(frozen=True)
class TableStore:
    """Storage, layout and schema of one table, with the stores of its metadata."""

    storage: Storage
    layout: TableLayout
    schema: TableSchema
    env: Env = field(default=SYSTEM_ENV, compare=False)
    _: KW_ONLY
    identity: TableIdentity
    publisher: Publisher = FILE_PUBLISHER
    new_schema: NewSchema | None = None  # what the next commit publishes before its snapshot
    access: RowAccess | None = None  # asked before rows are read; None: nobody has to be asked
    allowed: RowRules | None = None  # what it answered, for one read
    siblings: Siblings | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        # Builders and writers hold a store: what they show must stay short.
        return f"TableStore({self.layout.root!r}, branch={self.layout.branch!r})"

    @property
    def options(self) -> TableOptions:
        return self.schema.options

    @cached_property
    def schemas(self) -> SchemaStore:
        schemas = SchemaStore(self.storage, self.layout)
        if self.new_schema is not None:
            schemas.know(self.new_schema.schema)  # new files have it already
        return schemas

    def publish_schema(self) -> None:
        """Publish the new schema, if there is one; a commit does so right before its snapshot.

        Raises:
            CommitConflict: somebody else has changed the schema meanwhile.
        """
        if self.new_schema is not None:
            # Not by ``schemas``, which knows the new schema before it is there.
            there = SchemaStore(self.storage, self.layout)
            self.new_schema.publish(there, self.publisher.schema_server(self.identity))

    @property
    def is_guarded(self) -> bool:
        """Whether a server decides who sees which rows."""
        return self.access is not None or self.options.value(QUERY_AUTH)

    @property
    def rules(self) -> RowRules:
        """What may be shown of the rows. Everything that reads rows or plans to asks for this.

        Raises:
            Unsupported: a server decides it, and was not asked. Readers ask it by
                ``expressions.query_auth``; what does not know of rules must not read.
        """
        if self.allowed is not None:
            return self.allowed
        if self.is_guarded:
            raise Unsupported(
                f"{self.identity.identifier} cannot be read like this: a server decides who sees "
                f"which rows ({QUERY_AUTH.key}), and it was not asked"
            )
        return ALL_SHOWN

    def check_served(self) -> None:
        """Refuse a table whose rows a server guards, if it was opened without that server."""
        if self.is_guarded and self.access is None:
            raise Unsupported(
                f"{self.identity.identifier}: a server decides who sees which rows of the table "
                f"({QUERY_AUTH.key}); open it with the REST catalog of that server"
            )

    def check_shows_all(self) -> None:
        """Refuse to read rows by their places, which rules know nothing of, if any are hidden."""
        if self.rules.hides:
            raise Unsupported(
                f"{self.identity.identifier}: rows are hidden from you, or values masked "
                f"({QUERY_AUTH.key}), so rows cannot be read by their places"
            )

    def under(self, rules: RowRules) -> "TableStore":
        """The same table, for a read under rules."""
        store = replace(self, allowed=rules)
        store.__dict__["schemas"] = self.schemas  # they have loaded the same files
        return store

    @cached_property
    def snapshots(self) -> Snapshots:
        return self.snapshots_of(self.layout)

    def snapshots_of(self, layout: TableLayout) -> Snapshots:
        """The snapshots of another branch of the table."""
        return self.publisher.snapshots(self.storage, layout, self.identity)

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot, as it is now; if requests take long, with its manifest lists.

        While it is looked for, the lists of the one that was the latest before are fetched.
        """
        if not self.storage.traits.is_remote:
            return self.snapshots.latest()
        guess = self.snapshots.last_latest()
        ahead = self._begin_lists(guess)
        latest = self.snapshots.latest()
        if latest != guess:
            ahead = self._begin_lists(latest)
        _wait_for(ahead)
        return latest

    def unread_latest(self) -> Snapshot | None:
        """The snapshot that was the latest when the table was opened, if it is still to be read.

        None if requests do not take long.
        """
        guess = self.snapshots.last_latest() if self.storage.traits.is_remote else None
        is_read = guess is None or self.manifests.has_read(guess.delta_manifest_list)
        return None if is_read else guess

    def begin_check(self, guess: Snapshot) -> Callable[[], bool]:
        """Ask whether a snapshot is the latest; call what this returns to wait for the answer.

        It is if it still stands, and the next one does not exist. That is two small requests side
        by side; a listing of all snapshots would take the store longer.
        """
        standing = self.begin(partial(self.snapshots.find, guess.id))
        has_next = self.begin(partial(self.snapshots.exists, guess.id + 1))
        return lambda: standing() == guess and not has_next()

    def fetch_lists(self, snapshot: Snapshot | None) -> None:
        """Fetch what names the manifests of a snapshot, all of it at once."""
        _wait_for(self._begin_lists(snapshot))

    def _begin_lists(self, snapshot: Snapshot | None) -> list[Callable[[], object]]:
        """Fetch what names the manifests of a snapshot, to be remembered."""
        if snapshot is None:
            return []
        read: list[Callable[[], object]] = [
            partial(self.manifests.read_list, name, size) for name, size in snapshot.state_lists
        ]
        if snapshot.index_manifest is not None:
            read.append(partial(self.manifests.read_index, snapshot.index_manifest))
        return [self.begin(one) for one in read]

    def begin(self, work: Callable[[], _T]) -> Callable[[], _T]:
        """Begin a request, if requests to the storage take long; call the result to wait for it."""
        return begin(work, self.storage.traits.requests_at_once)

    @property
    def readers(self) -> int | None:
        """How many threads should read metadata; None: as many as decode it."""
        traits = self.storage.traits
        return traits.requests_at_once if traits.is_remote else None

    @cached_property
    def branches(self) -> BranchStore:
        server = self.publisher.branch_server(self.identity)
        return BranchStore(self.storage, self.layout, self.snapshots_of, self.env.new_id, server)

    @cached_property
    def tags(self) -> TagStore:
        return TagStore(self.storage, self.layout)

    @cached_property
    def manifests(self) -> ManifestStore:
        return ManifestStore(
            self.storage,
            self.layout,
            compression=self.options.value(MANIFEST_COMPRESSION),
            zstd_level=self.options.value(ZSTD_LEVEL),
            new_id=self.env.new_id,
            target_size=self.options.value(MANIFEST_TARGET_SIZE),
        )

    @cached_property
    def partition_types(self) -> tuple[DataType, ...]:
        return tuple(f.type for f in self.schema.partition_fields)

    def partition_values(self, partition: bytes) -> tuple[Value, ...]:
        """The values of a serialized partition row."""
        with self.decoding_rows():
            return decode_row(self.partition_types, partition)

    @contextmanager
    def decoding_rows(self) -> Iterator[None]:
        """Report invalid rows in manifests (partitions, keys, statistics) as corruption."""
        try:
            yield
        except CorruptRow as error:
            raise CorruptFile(
                self.layout.manifest_folder, f"a row in it cannot be decoded: {error}"
            ) from error

    def partition_path(self, partition: bytes) -> str:
        """The folder of a partition below the table's root; empty when unpartitioned."""
        return partition_path(
            self.schema.partition_fields,
            self.partition_values(partition),
            default_name=self.options.value(PARTITION_DEFAULT_NAME),
            legacy_name=self.options.value(PARTITION_LEGACY_NAME),
        )

    def partition_spec(self, partition: bytes) -> Mapping[str, str]:
        """The partition as text by column, as in its folder names."""
        return partition_spec(
            self.schema.partition_fields,
            self.partition_values(partition),
            default_name=self.options.value(PARTITION_DEFAULT_NAME),
            legacy_name=self.options.value(PARTITION_LEGACY_NAME),
        )

    def relative_bucket(self, partition: bytes, bucket: int) -> str:
        """The folder of a bucket below the table's root, or below a folder outside of it."""
        directory = self.options.value(DATA_FILE_DIRECTORY)
        return relative_bucket(self.partition_path(partition), bucket, directory)

    def bucket_folder(self, partition: bytes, bucket: int) -> str:
        """The folder that holds the files of a bucket."""
        return f"{self.layout.root}/{self.relative_bucket(partition, bucket)}"

    def data_file_path(self, partition: bytes, bucket: int, file: DataFile) -> str:
        """The path of a data file."""
        directory = self.options.value(DATA_FILE_DIRECTORY)
        return self.layout.data_file(self.partition_path(partition), bucket, file, directory)

    def index_file_path(self, partition: bytes, bucket: int, file: IndexFile) -> str:
        """The path of an index file."""
        if file.external_path is not None:
            return file.external_path
        if self.options.value(INDEX_IN_DATA_DIR):
            return f"{self.bucket_folder(partition, bucket)}/{file.file_name}"
        return self.layout.index(file.file_name)

    def new_files(self, partition: bytes, bucket: int) -> FilePlaces:
        """Where new data files of a bucket go."""
        relative, outside = self.relative_bucket(partition, bucket), self._external_paths
        choose = None if outside is None else outside.chooser(relative, self.env.chance)
        return FilePlaces(f"{self.layout.root}/{relative}", choose)

    def placed_index(self, partition: bytes, bucket: int, file: IndexFile) -> IndexFile:
        """A new index file that knows where it goes, if that is outside of the table."""
        if self.options.value(INDEX_IN_DATA_DIR):
            outside = self.new_files(partition, bucket).external_path(file.file_name)
        else:
            folder = external_index_folder(self.options)
            outside = None if folder is None else f"{folder}/{file.file_name}"
        return file if outside is None else replace(file, external_path=outside)

    def data_roots(self) -> tuple[str, ...]:
        """The folders that new files may be below: the table's own, and those outside of it."""
        outside = self._external_paths
        return (self.layout.root, *(() if outside is None else outside.folders))

    def index_folders(self) -> tuple[str, ...]:
        """The folders that new index files may be in, except those of buckets."""
        outside = external_index_folder(self.options)
        return (self.layout.index_folder, *(() if outside is None else (outside,)))

    @cached_property
    def _external_paths(self) -> ExternalPaths | None:
        return external_paths(self.options)

    def own_options(self) -> dict[str, str | None]:
        """The options that only this program has set, or removed (None), in no schema file."""
        stored = self.schemas.load(self.schema.id).options
        own = {key: self.options.get(key) for key in {*stored, *self.options}}
        return {key: value for key, value in own.items() if value != stored.get(key)}

    def new_commit_user(self) -> str:
        """A new name for a commit user."""
        prefix = self.options.value(COMMIT_USER_PREFIX)
        unique = self.env.new_id()
        return f"{prefix}_{unique}" if prefix else unique

    def with_schema(self, schema: TableSchema) -> "TableStore":
        """The same table seen with another schema or other dynamic options."""
        store = replace(self, schema=schema)
        store.__dict__["schemas"] = self.schemas  # they have loaded the same files
        return store

    def __getstate__(self) -> dict[str, object]:
        # Open stores are not pickled; caches are rebuilt where the value arrives. A worker opens no
        # other tables, so it gets no catalog.
        kept = (each.name for each in fields(self) if each.name not in _OF_THE_PROCESS)
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in {**state, "env": SYSTEM_ENV, "siblings": None}.items():
            object.__setattr__(self, name, value)


def _wait_for(answers: Iterable[Callable[[], object]]) -> None:
    for answer in answers:
        with suppress(EmberlakeError):  # a caller that needs the list meets the failure again
            answer()
