"""The schema files of a table: one per version, never changed. Spec: "Schema files"."""

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

from emberlake.errors import (
    CorruptFile,
    FileNotFound,
    InvalidState,
    SchemaNotFound,
    StorageError,
)
from emberlake.io.storage import Storage
from emberlake.spec.layout import DROP_MARK, SCHEMA_PREFIX, TableLayout, parse_numbered
from emberlake.spec.schema import TableSchema
from emberlake.store.metadata_cache import (
    decoded_schema,
    keep_schema,
    listed_key,
    listed_schema,
)


@dataclass(frozen=True, slots=True)
class SchemaFiles:
    """What the schema folder of a table holds."""

    etags: Mapping[int, str | None]  # the marks of all schema files, by id
    is_dropped: bool  # a drop has begun: there is no table any more, only its remains


class SchemaStore:
    """Loads and creates the schemas of one branch of a table; caches what it loaded."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        self._storage = storage
        self._layout = layout
        # The cache of the process holds what was decoded, up to its bound; this tells which.
        self._loaded: WeakValueDictionary[int, TableSchema] = WeakValueDictionary()

    def __reduce__(self) -> tuple[object, ...]:
        return SchemaStore, (self._storage, self._layout)

    def know(self, schema: TableSchema) -> None:
        """Remember a schema that was loaded elsewhere."""
        self._loaded[schema.id] = schema

    def load(self, schema_id: int, etag: str | None = None) -> TableSchema:
        """The schema with that id.

        Args:
            schema_id: which one.
            etag: the mark of its file in a listing, which saves reading it again.

        Raises:
            SchemaNotFound: there is no such schema file.
        """
        schema = self._loaded.get(schema_id)
        if schema is None:
            path = self._layout.schema(schema_id)
            schema = listed_schema(self._storage, path, etag) or self._read(schema_id, path)
            self._loaded[schema_id] = schema
        return schema

    def _read(self, schema_id: int, path: str) -> TableSchema:
        try:
            raw, etag = self._storage.read_marked(path)
        except FileNotFound as error:
            raise SchemaNotFound(f"schema {schema_id} does not exist: no {path}") from error
        schema = decoded_schema(raw, path)
        if schema.id != schema_id:
            raise CorruptFile(path, f"it says that it is schema {schema.id}")
        if etag is not None:
            keep_schema(listed_key(self._storage, path, etag), schema, len(raw))
        return schema

    def latest(self) -> TableSchema | None:
        """The newest schema; None if there is none, which means that there is no table."""
        found = self.files()
        if found.is_dropped or not found.etags:
            return None
        newest = max(found.etags)
        return self.load(newest, found.etags[newest])

    def list_ids(self) -> tuple[int, ...]:
        """The ids of all schemas, ascending; none if the table is being dropped."""
        found = self.files()
        return () if found.is_dropped else tuple(sorted(found.etags))

    def files(self) -> SchemaFiles:
        """The schema files, even if the table is being dropped."""
        infos = [*self._storage.list(self._layout.schema_folder)]
        found = ((parse_numbered(info.name, SCHEMA_PREFIX), info.etag) for info in infos)
        etags = {number: etag for number, etag in found if number is not None}
        # An empty mark is one that was withdrawn, by somebody who may not delete it.
        return SchemaFiles(etags, any(info.name == DROP_MARK and info.size for info in infos))

    def has(self, path: str) -> bool:
        """Whether a file is in the schema folder."""
        return path.startswith(f"{self._layout.schema_folder}/")

    def begin_drop(self, drop_id: str) -> None:
        """Make the table disappear in one step, for everybody who lists its schemas.

        A drop that was interrupted is taken over; if it still runs, it ends at its next step.
        """
        self._storage.put(self._layout.drop_mark, drop_id.encode())

    def check_drop(self, drop_id: str) -> None:
        """Check that nobody else has taken the drop over, finished it, or created a new table.

        Raises:
            InvalidState: somebody else has.
        """
        mark = self._layout.drop_mark
        try:
            is_ours = self._storage.read(mark) == drop_id.encode()
        except FileNotFound:
            is_ours = False
        if not is_ours:
            raise InvalidState(
                f"somebody else drops the table in {self._layout.root} at the same time, or has "
                "dropped it meanwhile; this drop has ended and deletes nothing more"
            )

    def cancel_drop(self) -> None:
        """Make the table visible again, if nothing of it was deleted."""
        try:
            self._storage.delete(self._layout.drop_mark)
        except StorageError:  # a user who may not delete files may not delete this one either
            self._storage.put(self._layout.drop_mark, b"")

    def end_drop(self) -> None:
        """Delete the schemas, and then the mark: without schemas nobody needs it."""
        files = self._storage.list(self._layout.schema_folder)
        mark = self._layout.drop_mark
        self._storage.delete_all([info.path for info in files if info.path != mark])
        self._storage.delete(mark)

    def create(self, schema: TableSchema) -> bool:
        """Publish a schema under its id; False if the id is taken."""
        path, raw = self._layout.schema(schema.id), schema.encode()
        try:
            return self._storage.put_if_absent(path, raw)
        except StorageError:
            # The response may have been lost after the schema was published.
            if not self._storage.exists(path):
                raise
            return self._storage.read(path) == raw
