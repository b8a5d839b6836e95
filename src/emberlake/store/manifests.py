"""The manifest lists, manifests and index manifests of a table: which files each snapshot has.

Spec: "Manifest list, manifest, index manifest". These files are written once, under unique names,
and never changed, so decoded files are cached (``metadata_cache``).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Final, TypeVar

from emberlake.base.avro_blocks import Block, encode_container
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
from emberlake.store.avro_container import MANY_RECORDS
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
    find_entries,
    keep_entries,
    keep_index_manifest,
    keep_manifest_list,
    keep_small_manifests,
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

    def read_manifest(self, manifest: ManifestFile) -> ManifestEntries:
        """The entries of a manifest."""
        path = self._layout.manifest(manifest.file_name)
        key = file_key(self._storage, path)
        found = find_entries(key)
        if found is None:
            found = decode_entries(self._read(path, manifest.file_size), path)
            keep_entries(key, found)
        return found

    def read_lists(
        self, lists: Sequence[tuple[str, int | None]]
    ) -> tuple[tuple[ManifestFile, ...], ...]:
        """The manifests that each of some manifest lists names, by its name and size."""
        at_once = self._storage.traits.requests_at_once
        return tuple(ask_all((partial(self.read_list, *one) for one in lists), at_once))

    def read_manifests(self, manifests: Sequence[ManifestFile]) -> ManifestEntries:
        """The entries of some manifests, in their order."""
        if not self._storage.traits.is_remote:
            is_read = [CACHE.find(self._key(m.file_name)) is not None for m in manifests]
            each = map if sum(is_read) + 1 >= len(manifests) else parallel_map
            return ManifestEntries.concat(each(self.read_manifest, manifests))
        found = [find_entries(self._key(m.file_name)) for m in manifests]
        unread = [m for m, entries in zip(manifests, found, strict=True) if entries is None]
        fetched = list(self._fetch(unread))
        entries = ManifestEntries.concat(part for part, _ in fetched)
        return ManifestEntries.concat(
            _in_order(found, entries, [count for _, counts in fetched for count in counts])
        )

    def _fetch(
        self, manifests: Sequence[ManifestFile]
    ) -> Iterator[tuple[ManifestEntries, list[int]]]:
        """The entries of manifests, with the count of each: fetched side by side."""
        for group in _groups(manifests):
            raws = iter(
                self._storage.read_many([self._layout.manifest(m.file_name) for m in group])
            )
            fetched = ((some, [*islice(raws, len(some))]) for some in _together(group))
            # Small ones keep the interpreter busy, so that more threads would not help.
            is_small = all(map(_is_small, group))
            yield from parallel_map(self._decode, fetched, workers=1 if is_small else None)

    def _decode(
        self, fetched: tuple[list[ManifestFile], list[bytes]]
    ) -> tuple[ManifestEntries, list[int]]:
        """The entries of manifests that are decoded together, with the count of each."""
        manifests, raws = fetched
        paths = [self._layout.manifest(m.file_name) for m in manifests]
        files = [
            (_checked(raw, path, manifest.file_size), path)
            for manifest, raw, path in zip(manifests, raws, paths, strict=True)
        ]
        keys = [file_key(self._storage, path) for path in paths]
        if len(files) == 1:
            entries = decode_entries(*files[0])
            keep_entries(keys[0], entries)
            return entries, [len(entries)]
        entries, counts = decode_small_manifests(files)
        keep_small_manifests(keys, entries, counts)
        return entries, counts

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

    def _key(self, name: str) -> Key:
        return file_key(self._storage, self._layout.manifest(name))

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


def _in_order(
    found: Sequence[ManifestEntries | None], fetched: ManifestEntries, counts: Sequence[int]
) -> Iterator[ManifestEntries]:
    """The entries that were cached, and in the gaps those that were fetched."""
    sizes = iter(counts)
    start = 0
    for is_gap, run in groupby(found, lambda entries: entries is None):
        if not is_gap:
            yield from (entries for entries in run if entries is not None)
            continue
        stop = start + sum(islice(sizes, len([*run])))
        yield fetched.slice(start, stop)
        start = stop


def _together(manifests: Sequence[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """Manifests that are decoded in one go: runs of small ones, and each large one by itself."""
    for is_small, run in groupby(manifests, _is_small):
        some = [*run]
        count = _SMALL_AT_ONCE if is_small else 1
        yield from (some[start : start + count] for start in range(0, len(some), count))


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
