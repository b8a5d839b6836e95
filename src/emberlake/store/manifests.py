"""The manifest lists, manifests and index manifests of a table: which files each snapshot has.

Spec: "Manifest list, manifest, index manifest". These files are written once, under unique names,
and never changed, so decoded files are cached (``metadata_cache``).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from typing import Final, TypeVar

from emberlake.base.avro_blocks import Block, Container, encode_container
from emberlake.base.avro_codecs import AVRO_CODECS, compressor
from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.parallel import parallel_map
from emberlake.base.requests import ask_all
from emberlake.errors import CorruptFile, InvalidInput
from emberlake.io.cache import CACHE, Key, file_key
from emberlake.io.storage import Storage
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import (
    EMPTY_STATS,
    FileKind,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFile,
)
from emberlake.spec.stats import partition_stats
from emberlake.store.avro_container import MANY_RECORDS, parse
from emberlake.store.entries import ManifestEntries
from emberlake.store.manifest_avro import (
    decode_entries,
    decode_index_manifest,
    decode_manifest_list,
    decode_small_manifests,
    encode_entry,
    encode_index_entry,
    encode_manifest_file,
)
from emberlake.store.manifest_schemas import (
    INDEX_MANIFEST_SCHEMA,
    MANIFEST_LIST_SCHEMA,
    MANIFEST_SCHEMA,
)
from emberlake.store.metadata_cache import (
    find_manifest,
    keep_entries,
    keep_index_manifest,
    keep_manifest_list,
)
from emberlake.types import DataType

_T = TypeVar("_T")

# Records in a block; the size of a growing manifest is checked after each block.
_BLOCK_RECORDS: Final = 1000
# Of encoded manifests that are read or written together.
_BYTES_AT_ONCE: Final = 64 * MEBIBYTE
_SMALL_AT_ONCE: Final = 500  # manifests; decoding more would hold up the requests for others


class ManifestStore:
    """Reads and writes the manifests of a table, the same for all branches."""

    def __init__(
        self,
        storage: Storage,
        layout: TableLayout,
        *,
        compression: str = "zstd",
        zstd_level: int = 1,
        new_id: Callable[[], str],
        target_size: int = 8 * MEBIBYTE,
    ) -> None:
        self._storage = storage
        self._layout = layout
        self._compression = compression
        self._level = zstd_level
        self._new_id = new_id
        self._target_size = target_size

    def read_list(self, name: str, size: int | None = None) -> tuple[ManifestFile, ...]:
        """The manifests that a manifest list names.

        Args:
            name: the name of the manifest list.
            size: its size, if the snapshot has it; a file of another size is corrupt.
        """
        path = self._layout.manifest(name)
        key = file_key(self._storage, path)
        found: tuple[ManifestFile, ...] | None = CACHE.find(key)
        if found is None:
            found = decode_manifest_list(self._read(path, size), path)
            keep_manifest_list(key, found)
        return found

    def has_read(self, name: str) -> bool:
        """Whether a manifest list is cached."""
        return CACHE.find(file_key(self._storage, self._layout.manifest(name))) is not None

    def read_manifest(self, manifest: ManifestFile) -> ManifestEntries:
        """The entries of a manifest."""
        return self.read_manifests([manifest])

    def read_lists(
        self, lists: Sequence[tuple[str, int | None]]
    ) -> tuple[tuple[ManifestFile, ...], ...]:
        """The manifests that each of some manifest lists names, by its name and size."""
        at_once = self._storage.traits.requests_at_once
        return tuple(ask_all((partial(self.read_list, *one) for one in lists), at_once))

    def read_manifests(self, manifests: Sequence[ManifestFile]) -> ManifestEntries:
        """The entries of some manifests, in their order."""
        return ManifestEntries.concat(
            entries for group in _groups(manifests) for entries in self._read_group(group)
        )

    def _read_group(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntries]:
        """The entries of manifests that are in memory together; those not cached are fetched."""
        paths = [self._layout.manifest(manifest.file_name) for manifest in manifests]
        keys = [file_key(self._storage, path) for path in paths]
        cached = [find_manifest(key) for key in keys]
        unread = [path for path, found in zip(paths, cached, strict=True) if found is None]
        raws = iter(self._storage.read_many(unread))
        # Small ones are parsed here, while others are fetched.
        loaded = (
            _Loaded(key, path, _parsed(next(raws), path, manifest) if found is None else found)
            for manifest, key, path, found in zip(manifests, keys, paths, cached, strict=True)
        )
        large = sum(
            found is None and not _is_small(manifest)
            for manifest, found in zip(manifests, cached, strict=True)
        )
        # Small ones keep the interpreter busy, so that more threads would not help.
        yield from parallel_map(_decode, _together(loaded), workers=1 if large <= 1 else None)

    def read_index(self, name: str) -> tuple[IndexManifestEntry, ...]:
        """The index files that an index manifest names."""
        path = self._layout.manifest(name)
        key = file_key(self._storage, path)
        found: tuple[IndexManifestEntry, ...] | None = CACHE.find(key)
        if found is None:
            found = decode_index_manifest(self._read(path, None), path)
            keep_index_manifest(key, found)
        return found

    def new_files(self) -> "NewFiles":
        """Files to be written together."""
        return NewFiles(self._storage)

    def write_list(
        self, manifests: Sequence[ManifestFile], into: "NewFiles | None" = None
    ) -> tuple[str, int]:
        """Write a manifest list, which may be empty, and return its name and size."""
        name = f"manifest-list-{self._new_id()}-0"
        blocks = self._pack(manifests, encode_manifest_file)
        size = self._write(name, MANIFEST_LIST_SCHEMA, blocks, into)
        # The next commit needs it.
        keep_manifest_list(file_key(self._storage, self._layout.manifest(name)), tuple(manifests))
        return name, size

    def write_manifests(
        self,
        entries: Sequence[ManifestEntry] | ManifestEntries,
        partition_types: Sequence[DataType],
        into: "NewFiles | None" = None,
    ) -> tuple[ManifestFile, ...]:
        """Write entries to as many manifests as the target size requires; none for no entries."""
        values = entries.entries() if isinstance(entries, ManifestEntries) else entries
        prefix = f"manifest-{self._new_id()}"
        written: list[ManifestFile] = []
        start, end, blocks = 0, 0, list[Block]()
        for block in self._pack(values, encode_entry):
            blocks.append(block)
            end += block.count
            is_full = sum(len(b.data) for b in blocks) >= self._target_size
            if is_full or end == len(values):
                name = f"{prefix}-{len(written)}"
                size = self._write(name, MANIFEST_SCHEMA, blocks, into)
                written.append(describe_manifest(name, size, values[start:end], partition_types))
                start, blocks = end, []
        return tuple(written)

    def write_index(
        self, entries: Sequence[IndexManifestEntry], into: "NewFiles | None" = None
    ) -> str:
        """Write an index manifest and return its name."""
        name = f"index-manifest-{self._new_id()}-0"
        self._write(name, INDEX_MANIFEST_SCHEMA, self._pack(entries, encode_index_entry), into)
        return name

    def _read(self, path: str, size: int | None) -> bytes:
        return _checked(self._storage.read(path), path, size)

    @property
    def _codec(self) -> str:
        # Only writers need it: reading does not depend on how new manifests would be written.
        codec = AVRO_CODECS.get(self._compression)
        if codec is None:
            known = ", ".join(sorted(AVRO_CODECS))
            raise InvalidInput(
                f"manifests cannot be compressed with {self._compression!r}; use one of {known}"
            )
        return codec

    def _pack(self, records: Sequence[_T], encode: Callable[[_T], bytes]) -> Iterator[Block]:
        compress = compressor(self._codec, self._level)
        for start in range(0, len(records), _BLOCK_RECORDS):
            some = records[start : start + _BLOCK_RECORDS]
            yield Block(len(some), compress(b"".join(map(encode, some))))

    def _write(
        self,
        name: str,
        schema: str,
        blocks: Sequence[Block] | Iterator[Block],
        into: "NewFiles | None",
    ) -> int:
        data = encode_container(schema, self._codec, tuple(blocks))
        path = self._layout.manifest(name)
        if into is None:
            self._storage.create(path, data)
        else:
            into.add(path, data)
        return len(data)


class NewFiles:
    """Files with unique names that are written together, in one trip if they are not too large."""

    def __init__(self, storage: Storage) -> None:
        self.paths: set[str] = set()  # of all that were added
        self._storage = storage
        self._waiting: list[tuple[str, bytes]] = []

    def add(self, path: str, data: bytes) -> None:
        """Write a file by the next ``flush``."""
        self.paths.add(path)
        self._waiting.append((path, data))
        if sum(len(data) for _, data in self._waiting) > _BYTES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what was added; a failure may leave some of it."""
        waiting, self._waiting = self._waiting, []
        self._storage.create_all(waiting)


def _checked(raw: bytes, path: str, size: int | None) -> bytes:
    # Cut off between two blocks, a container would pass as a shorter one.
    if size is not None and len(raw) != size:
        raise CorruptFile(path, f"it has {len(raw)} bytes, but {size} were written")
    return raw


def _groups(manifests: Sequence[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """Manifests that are held in memory together."""
    group: list[ManifestFile] = []
    size = 0
    for manifest in manifests:
        group.append(manifest)
        size += manifest.file_size
        if size > _BYTES_AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A manifest that was cached or fetched."""

    key: Key
    path: str
    content: ManifestEntries | Container | bytes  # its entries, their records, or the file


def _parsed(raw: bytes, path: str, manifest: ManifestFile) -> Container | bytes:
    _checked(raw, path, manifest.file_size)
    return parse(raw, path) if _is_small(manifest) else raw


def _together(manifests: Iterable[_Loaded]) -> Iterator[Sequence[_Loaded]]:
    """Manifests that are decoded in one go: runs of small ones, and each other one by itself."""
    for are_small, run in groupby(manifests, lambda one: isinstance(one.content, Container)):
        count = _SMALL_AT_ONCE if are_small else 1
        while some := [*islice(run, count)]:
            yield some


def _decode(manifests: Sequence[_Loaded]) -> ManifestEntries:
    """The entries of manifests that are decoded in one go, which are cached."""
    first = manifests[0]
    if isinstance(first.content, ManifestEntries):
        return first.content
    if isinstance(first.content, bytes):
        entries = decode_entries(first.content, first.path)
        keep_entries(first.key, entries)
        return entries
    small = [(one, one.content) for one in manifests if isinstance(one.content, Container)]
    entries = decode_small_manifests([(records, one.path) for one, records in small])
    start = 0
    for one, records in small:
        stop = start + records.count
        keep_entries(one.key, entries.slice(start, stop), records)
        start = stop
    return entries


def _is_small(manifest: ManifestFile) -> bool:
    return manifest.num_added_files + manifest.num_deleted_files < MANY_RECORDS


def describe_manifest(
    name: str, size: int, entries: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> ManifestFile:
    """The description of a manifest with these entries in a manifest list."""
    num_added = sum(entry.kind is FileKind.ADD for entry in entries)
    buckets = [entry.bucket for entry in entries]
    levels = [entry.file.level for entry in entries]
    first_ids = [e.file.first_row_id for e in entries if e.file.first_row_id is not None]
    # Row ids describe the manifest only if every file in it has some.
    has_row_ids = len(first_ids) == len(entries)
    return ManifestFile(
        file_name=name,
        file_size=size,
        num_added_files=num_added,
        num_deleted_files=len(entries) - num_added,
        partition_stats=(
            partition_stats(partition_types, [entry.partition for entry in entries])
            if partition_types
            else EMPTY_STATS
        ),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(buckets),
        max_bucket=max(buckets),
        min_level=min(levels),
        max_level=max(levels),
        min_row_id=min(first_ids) if has_row_ids else None,
        max_row_id=max(map(_last_row_id, entries)) if has_row_ids else None,
    )


def _last_row_id(entry: ManifestEntry) -> int:
    assert entry.file.first_row_id is not None
    return entry.file.first_row_id + entry.file.row_count - 1


def forget_manifests() -> None:
    """Clear the cache, for benchmarks of cold reads."""
    CACHE.clear()
