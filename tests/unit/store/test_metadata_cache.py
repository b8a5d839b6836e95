"""Cached metadata is counted by the memory it takes, and bounded."""

import gc
import itertools
import json
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from builders import append, create_table, rows_of
from emberlake.base.avro_blocks import encode_container, parse_container
from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import InvalidOption
from emberlake.io import LocalStorage, MemoryStorage
from emberlake.io.cache import CACHE, DEFAULT_LIMIT, ENV_LIMIT, cache_limit
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import (
    DataFile,
    DeletionVectorRange,
    FileKind,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
    SimpleStats,
)
from emberlake.spec.schema import TableSchema
from emberlake.store import manifests as manifests_module
from emberlake.store import metadata_cache
from emberlake.store.manifests import ManifestStore
from emberlake.store.schemas import SchemaStore
from emberlake.types import AtomicType, DataField

NAMES = (f"data-0b5f3c0e-1df3-4b47-a6cd-3f1f0f9b{number:04x}-0.parquet" for number in range(2**16))
STATS = SimpleStats(bytes(100), bytes(100), (1000, None, 0, 70_000))
ENTRY = ManifestEntry(
    kind=FileKind.ADD,
    partition=bytes(20),
    bucket=0,
    total_buckets=1,
    file=DataFile(
        file_name="",
        file_size=1_000_000,
        row_count=1_000_000,
        value_stats=STATS,
        min_sequence_number=70_000,
        max_sequence_number=1_070_000,
        schema_id=0,
        creation_time=1_700_000_000_000,
    ),
)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(metadata_cache, "_SHARED_SCHEMAS", set())
    CACHE.clear()
    yield
    CACHE.clear()


def a_store(folder: Path | None = None) -> ManifestStore:
    ids = itertools.count()
    storage = MemoryStorage() if folder is None else LocalStorage()
    layout = TableLayout(str(folder or "t"))
    return ManifestStore(storage, layout, new_id=lambda: f"{next(ids):036}")


def entries(count: int) -> list[ManifestEntry]:
    return [
        replace(ENTRY, file=replace(ENTRY.file, file_name=name))
        for name in itertools.islice(NAMES, count)
    ]


def read_manifests(folder: Path, *, manifests: int, files: int) -> Callable[[], object]:
    store = a_store(folder)
    written = [m for _ in range(manifests) for m in store.write_manifests(entries(files), [])]
    return lambda: [store.read_manifest(manifest) for manifest in written]


def read_manifests_of_many_writers(
    folder: Path, *, manifests: int, characters: int
) -> Callable[[], object]:
    """Each manifest has a schema of its own: it is described in other words."""
    store, layout = a_store(folder), TableLayout(str(folder))
    written = [m for _ in range(manifests) for m in store.write_manifests(entries(1), [])]
    for number, manifest in enumerate(written):
        path = Path(layout.manifest(manifest.file_name))
        container = parse_container(path.read_bytes())
        schema = {**json.loads(container.schema), "doc": f"{number:0{characters}}"}
        path.write_bytes(encode_container(json.dumps(schema), "null", container.blocks))
    sized = [
        replace(m, file_size=Path(layout.manifest(m.file_name)).stat().st_size) for m in written
    ]
    return lambda: [store.read_manifest(manifest) for manifest in sized]


def read_manifests_of_small_blocks(
    folder: Path, *, manifests: int, blocks: int
) -> Callable[[], object]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifests_module, "_BLOCK_RECORDS", 1)
        return read_manifests(folder, manifests=manifests, files=blocks)


def read_lists(folder: Path, *, lists: int, manifests: int) -> Callable[[], object]:
    store = a_store(folder)
    named = [m for _ in range(manifests) for m in store.write_manifests(entries(1), [])]
    named = [replace(manifest, partition_stats=STATS) for manifest in named]
    written = [store.write_list(named) for _ in range(lists)]
    return lambda: [store.read_list(name, size) for name, size in written]


def read_indexes(folder: Path, *, indexes: int, vectors: int) -> Callable[[], object]:
    store = a_store(folder)

    def index() -> IndexManifestEntry:
        ranges = [
            DeletionVectorRange(name, 70_000, 300, 1000)
            for name in itertools.islice(NAMES, vectors)
        ]
        file = IndexFile(
            index_type="DELETION_VECTORS",
            file_name=next(NAMES),
            file_size=100_000,
            row_count=vectors,
            deletion_vectors=tuple(ranges) or None,
        )
        return IndexManifestEntry(kind=FileKind.ADD, partition=bytes(20), bucket=0, index_file=file)

    written = [store.write_index([index() for _ in range(5)]) for _ in range(indexes)]
    return lambda: [store.read_index(name) for name in written]


def read_schemas(folder: Path, *, schemas: int, columns: int) -> Callable[[], object]:
    storage, layout = LocalStorage(), TableLayout(str(folder))
    fields = tuple(
        DataField(number, f"column_{number}", AtomicType("DECIMAL(10, 2)" if number % 2 else "INT"))
        for number in range(columns)
    )
    for number in range(schemas):
        schema = TableSchema(id=number, fields=fields, highest_field_id=columns)
        storage.put_if_absent(layout.schema(number), schema.encode())

    def read() -> None:
        for number in range(schemas):  # a new store each: it remembers by itself
            schema = SchemaStore(storage, layout).load(number)
            assert len(schema.field_by_name) == len(schema.field_names)

    return read


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("prepare", "sizes"),
    [
        (read_manifests, {"manifests": 100, "files": 1}),
        (read_manifests, {"manifests": 10, "files": 30}),
        (read_manifests, {"manifests": 2, "files": 1000}),
        (read_manifests_of_many_writers, {"manifests": 40, "characters": 20_000}),
        (read_manifests_of_many_writers, {"manifests": 5, "characters": 100_000}),
        (read_manifests_of_small_blocks, {"manifests": 50, "blocks": 20}),
        (read_lists, {"lists": 100, "manifests": 1}),
        (read_lists, {"lists": 10, "manifests": 50}),
        (read_indexes, {"indexes": 50, "vectors": 0}),
        (read_indexes, {"indexes": 5, "vectors": 50}),
        (read_schemas, {"schemas": 50, "columns": 2}),
        (read_schemas, {"schemas": 5, "columns": 500}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "-".join(map(str, value.values())),
)
def test_what_is_counted_is_what_is_freed(prepare, sizes, tmp_path) -> None:
    read = prepare(tmp_path, **sizes)
    read()  # what is made once for the process is there now
    CACHE.clear()

    tracemalloc.start()
    try:
        read()
        counted, held = CACHE.held_bytes, memory()
        CACHE.clear()
        freed = held - memory()
    finally:
        tracemalloc.stop()

    assert freed <= counted <= 1.35 * freed


def memory() -> int:
    """Bytes of Python objects and of Arrow buffers."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()


@pytest.mark.thorough
def test_a_loop_of_small_commits_stays_below_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV_LIMIT, "200 kb")
    table = create_table()
    for number in range(20):
        append(table, rows_of([number]))
    CACHE.clear()

    tracemalloc.start()
    try:
        for number in range(20, 80):
            append(table, rows_of([number]))
        counted, held = CACHE.held_bytes, memory()
        CACHE.clear()
        freed = held - memory()
    finally:
        tracemalloc.stop()

    assert 100 * 1024 < counted <= 200 * 1024
    assert freed <= counted


def test_remembering_a_file_does_not_keep_its_storage_alive() -> None:
    store = a_store()
    store.read_list(*store.write_list([]))
    alive = weakref.ref(store._storage)

    del store
    gc.collect()

    assert len(CACHE) == 1
    assert alive() is None


def test_the_limit_is_a_setting_of_the_environment() -> None:
    assert cache_limit({}) == DEFAULT_LIMIT == 64 * MEBIBYTE
    assert cache_limit({ENV_LIMIT: "1 gb"}) == 1024 * MEBIBYTE
    assert cache_limit({ENV_LIMIT: "0"}) == 0
    with pytest.raises(InvalidOption, match=f"{ENV_LIMIT} is 'many': expected a size such as"):
        cache_limit({ENV_LIMIT: "many"})
