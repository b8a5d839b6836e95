import io
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import fastavro
import numpy as np
import pytest

from emberlake.errors import CorruptFile, FileNotFound, InvalidInput, Unsupported
from emberlake.io import MemoryStorage
from emberlake.spec.binary_row import encode_row
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import (
    DataFile,
    DeletionVectorRange,
    FileKind,
    FileSource,
    GlobalIndex,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
    ManifestFile,
    SimpleStats,
)
from emberlake.store.avro_container import MANY_RECORDS, parse
from emberlake.store.entries import EMPTY, ManifestEntries
from emberlake.store.manifest_avro import (
    decode_entries,
    decode_index_manifest,
    decode_manifest_list,
    decode_small_manifests,
)
from emberlake.store.manifests import ManifestStore, describe_manifest, forget_manifests
from emberlake.types.data_types import AtomicType
from remote_storage import RemoteStorage

INT = AtomicType("INT")

# The schemas of the format: every engine accepts exactly these.
LIST_SCHEMA = (
    '{"type":"record","name":"org.apache.paimon.avro.generated.record",'
    '"fields":[{"name":"_VERSION","type":"int"},{"name":"_FILE_NAME","type":"string"},'
    '{"name":"_FILE_SIZE","type":"long"},{"name":"_NUM_ADDED_FILES","type":"long"},'
    '{"name":"_NUM_DELETED_FILES","type":"long"},'
    '{"name":"_PARTITION_STATS","type":{"type":"record",'
    '"name":"org.apache.paimon.avro.generated.record__PARTITION_STATS",'
    '"fields":[{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},'
    '{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],'
    '"default":null}]}},{"name":"_SCHEMA_ID","type":"long"},'
    '{"name":"_MIN_BUCKET","type":["null","int"],"default":null},'
    '{"name":"_MAX_BUCKET","type":["null","int"],"default":null},'
    '{"name":"_MIN_LEVEL","type":["null","int"],"default":null},'
    '{"name":"_MAX_LEVEL","type":["null","int"],"default":null},'
    '{"name":"_MIN_ROW_ID","type":["null","long"],"default":null},'
    '{"name":"_MAX_ROW_ID","type":["null","long"],"default":null}]}'
)
ENTRY_SCHEMA_TEXT = (
    '{"type":"record","name":"org.apache.paimon.avro.generated.record",'
    '"fields":[{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},'
    '{"name":"_PARTITION","type":"bytes"},{"name":"_BUCKET","type":"int"},'
    '{"name":"_TOTAL_BUCKETS","type":"int"},'
    '{"name":"_FILE","type":{"type":"record",'
    '"name":"org.apache.paimon.avro.generated.record__FILE","fields":[{"name":"_FILE_NAME",'
    '"type":"string"},{"name":"_FILE_SIZE","type":"long"},'
    '{"name":"_ROW_COUNT","type":"long"},{"name":"_MIN_KEY","type":"bytes"},'
    '{"name":"_MAX_KEY","type":"bytes"},'
    '{"name":"_KEY_STATS","type":{"type":"record",'
    '"name":"org.apache.paimon.avro.generated.record__FILE__KEY_STATS",'
    '"fields":[{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},'
    '{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],'
    '"default":null}]}},'
    '{"name":"_VALUE_STATS","type":{"type":"record",'
    '"name":"org.apache.paimon.avro.generated.record__FILE__VALUE_STATS",'
    '"fields":[{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},'
    '{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],'
    '"default":null}]}},{"name":"_MIN_SEQUENCE_NUMBER","type":"long"},'
    '{"name":"_MAX_SEQUENCE_NUMBER","type":"long"},{"name":"_SCHEMA_ID","type":"long"},'
    '{"name":"_LEVEL","type":"int"},'
    '{"name":"_EXTRA_FILES","type":{"type":"array","items":"string"}},'
    '{"name":"_CREATION_TIME","type":["null",{"type":"long",'
    '"logicalType":"timestamp-millis"}],"default":null},'
    '{"name":"_DELETE_ROW_COUNT","type":["null","long"],"default":null},'
    '{"name":"_EMBEDDED_FILE_INDEX","type":["null","bytes"],"default":null},'
    '{"name":"_FILE_SOURCE","type":["null","int"],"default":null},'
    '{"name":"_VALUE_STATS_COLS","type":["null",{"type":"array","items":"string"}],'
    '"default":null},{"name":"_EXTERNAL_PATH","type":["null","string"],"default":null},'
    '{"name":"_FIRST_ROW_ID","type":["null","long"],"default":null},'
    '{"name":"_WRITE_COLS","type":["null",{"type":"array","items":"string"}],"default":null},'
    '{"name":"_WRITE_COLS_SEQUENCES","type":["null",{"type":"array","items":"long"}],'
    '"default":null}]}}]}'
)
INDEX_SCHEMA = (
    '{"type":"record","name":"org.apache.paimon.avro.generated.record",'
    '"fields":[{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},'
    '{"name":"_PARTITION","type":"bytes"},{"name":"_BUCKET","type":"int"},'
    '{"name":"_INDEX_TYPE","type":"string"},{"name":"_FILE_NAME","type":"string"},'
    '{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},'
    '{"name":"_DELETIONS_VECTORS_RANGES","type":["null",{"type":"array","items":["null",'
    '{"type":"record",'
    '"name":"org.apache.paimon.avro.generated.record__DELETIONS_VECTORS_RANGES",'
    '"fields":[{"name":"f0","type":"string"},{"name":"f1","type":"int"},'
    '{"name":"f2","type":"int"},'
    '{"name":"_CARDINALITY","type":["null","long"],"default":null}]}]}],"default":null},'
    '{"name":"_EXTERNAL_PATH","type":["null","string"],"default":null},'
    '{"name":"_GLOBAL_INDEX","type":["null",{"type":"record",'
    '"name":"org.apache.paimon.avro.generated.record__GLOBAL_INDEX",'
    '"fields":[{"name":"_ROW_RANGE_START","type":"long"},'
    '{"name":"_ROW_RANGE_END","type":"long"},{"name":"_INDEX_FIELD_ID","type":"int"},'
    '{"name":"_EXTRA_FIELD_IDS","type":["null",{"type":"array","items":"int"}],'
    '"default":null},{"name":"_INDEX_META","type":["null","bytes"],"default":null},'
    '{"name":"_SOURCE_META","type":["null","bytes"],"default":null}]}],"default":null}]}'
)


def partition_of(value: int | None) -> bytes:
    return encode_row([INT], [value])


def an_entry(name: str = "data-0.parquet", **changes: Any) -> ManifestEntry:
    file = DataFile(
        file_name=name,
        file_size=1000,
        row_count=10,
        min_key=b"k1",
        max_key=b"k2",
        key_stats=SimpleStats(b"a", b"b", (0,)),
        value_stats=SimpleStats(b"c", b"d", (1, None, 300)),
        min_sequence_number=1,
        max_sequence_number=10,
        schema_id=0,
        creation_time=1_700_000_000_000,
    )
    entry = ManifestEntry(
        kind=FileKind.ADD, partition=partition_of(1), bucket=0, total_buckets=2, file=file
    )
    of_file = {key: value for key, value in changes.items() if hasattr(file, key)}
    of_entry = {key: value for key, value in changes.items() if key not in of_file}
    return replace(entry, **of_entry, file=replace(file, **of_file))


RICH = an_entry(
    "rich.orc",
    kind=FileKind.DELETE,
    bucket=-2,
    total_buckets=-2,
    level=5,
    extra_files=("x.index", "y.index"),
    delete_row_count=None,
    embedded_file_index=b"\x00idx",
    file_source=FileSource.COMPACT,
    value_stats_cols=("id", "näme"),
    external_path="s3://b/f",
    first_row_id=77,
    write_cols=("id",),
    write_cols_sequences=(4, 2**40),
    creation_time=None,
)
BARE = an_entry(
    "bare.avro", value_stats=SimpleStats(b"", b"", None), file_source=None, value_stats_cols=()
)
INDEXES = (
    IndexManifestEntry(
        kind=FileKind.ADD,
        partition=b"p",
        bucket=3,
        index_file=IndexFile(index_type="HASH", file_name="index-0", file_size=8, row_count=2),
    ),
    IndexManifestEntry(
        kind=FileKind.ADD,
        partition=b"",
        bucket=0,
        index_file=IndexFile(
            index_type="DELETION_VECTORS",
            file_name="index-1",
            file_size=80,
            row_count=2,
            deletion_vectors=(
                DeletionVectorRange("data-1", 1, 22, 5),
                DeletionVectorRange("data-2", 31, 24),
            ),
            external_path="s3://b/index-1",
        ),
    ),
    IndexManifestEntry(
        kind=FileKind.ADD,
        partition=b"",
        bucket=0,
        index_file=IndexFile(
            index_type="btree",
            file_name="index-2",
            file_size=80,
            row_count=2,
            global_index=GlobalIndex(
                row_range_start=0,
                row_range_end=99,
                index_field_id=4,
                extra_field_ids=(5, 6),
                index_meta=b"meta",
            ),
        ),
    ),
)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def a_store(storage: MemoryStorage, **options: Any) -> ManifestStore:
    numbers = itertools.count()
    return ManifestStore(storage, TableLayout("t"), new_id=lambda: f"id{next(numbers)}", **options)


@pytest.fixture
def store(storage: MemoryStorage) -> ManifestStore:
    return a_store(storage)


def stored_records(storage: MemoryStorage, name: str) -> tuple[Any, list[Any]]:
    reader = fastavro.reader(io.BytesIO(storage.read(f"t/manifest/{name}")))
    assert reader.metadata["avro.codec"] == "zstandard"
    return json.loads(reader.metadata["avro.schema"]), list(reader)


def test_entries_are_written_and_read(store: ManifestStore) -> None:
    entries = [RICH, BARE, an_entry()]

    (manifest,) = store.write_manifests(entries, [INT])

    assert store.read_manifest(manifest).entries() == entries


def test_columnar_entries_are_written_as_well(store: ManifestStore) -> None:
    entries = ManifestEntries.from_entries([RICH, BARE])

    (manifest,) = store.write_manifests(entries, [INT])

    assert store.read_manifest(manifest) == entries


def test_what_was_written_is_decoded(store: ManifestStore, storage: MemoryStorage) -> None:
    (manifest,) = store.write_manifests([RICH, BARE, an_entry()], [INT])
    name, _ = store.write_list([manifest])
    index = store.write_index(INDEXES)

    def read(name: str) -> bytes:
        return storage.read(f"t/manifest/{name}")

    assert decode_entries(read(manifest.file_name), "m").entries() == [
        RICH,
        BARE,
        an_entry(),
    ]
    assert decode_manifest_list(read(name), "m") == (manifest,)
    assert decode_index_manifest(read(index), "m") == INDEXES


def test_a_manifest_has_the_schema_of_the_format(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])

    raw = storage.read(f"t/manifest/{manifest.file_name}")
    _, (record,) = stored_records(storage, manifest.file_name)

    assert ENTRY_SCHEMA_TEXT.encode() in raw
    assert record["_VERSION"] == 2
    assert record["_FILE"]["_FILE_NAME"] == "data-0.parquet"
    assert record["_FILE"]["_VALUE_STATS"]["_NULL_COUNTS"] == [1, None, 300]
    assert record["_FILE"]["_FILE_SOURCE"] == 0
    assert record["_FILE"]["_CREATION_TIME"].isoformat() == "2023-11-14T22:13:20+00:00"


def test_a_manifest_list_has_the_schema_of_the_format(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    name, size = store.write_list(store.write_manifests([an_entry()], [INT]))

    raw = storage.read(f"t/manifest/{name}")

    assert LIST_SCHEMA.encode() in raw
    assert len(raw) == size
    assert stored_records(storage, name)[1][0]["_VERSION"] == 2


def test_an_index_manifest_has_the_schema_of_the_format(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    name = store.write_index(INDEXES)

    assert INDEX_SCHEMA.encode() in storage.read(f"t/manifest/{name}")
    _, records = stored_records(storage, name)
    assert [record["_VERSION"] for record in records] == [1, 1, 1]
    assert records[1]["_DELETIONS_VECTORS_RANGES"][0] == {
        "f0": "data-1",
        "f1": 1,
        "f2": 22,
        "_CARDINALITY": 5,
    }


def test_indexes_are_written_and_read(store: ManifestStore) -> None:
    assert store.read_index(store.write_index(INDEXES)) == INDEXES
    assert store.read_index(store.write_index(())) == ()


def test_a_list_may_be_empty(store: ManifestStore) -> None:
    name, size = store.write_list([])

    assert store.read_list(name, size) == ()


def test_no_entries_make_no_manifest(store: ManifestStore, storage: MemoryStorage) -> None:
    assert store.write_manifests([], [INT]) == ()
    assert store.write_manifests(EMPTY, [INT]) == ()
    assert list(storage.list("t/manifest")) == []


def test_a_manifest_is_described_by_what_is_in_it() -> None:
    manifest = describe_manifest(
        "m",
        123,
        [
            an_entry(partition=partition_of(5), bucket=1, level=2, schema_id=3),
            an_entry(kind=FileKind.DELETE, partition=partition_of(-7), bucket=4, level=0),
            an_entry(partition=partition_of(None), bucket=2),
        ],
        [INT],
    )

    assert manifest == ManifestFile(
        file_name="m",
        file_size=123,
        num_added_files=2,
        num_deleted_files=1,
        partition_stats=SimpleStats(partition_of(-7), partition_of(5), (1,)),
        schema_id=3,
        min_bucket=1,
        max_bucket=4,
        min_level=0,
        max_level=2,
    )


def test_row_ids_of_a_manifest_are_known_if_all_files_have_them() -> None:
    some = [an_entry(first_row_id=100), an_entry(first_row_id=20, row_count=5)]

    known = describe_manifest("m", 1, some, ())
    unknown = describe_manifest("m", 1, [*some, an_entry()], ())

    assert (known.min_row_id, known.max_row_id) == (20, 109)
    assert (unknown.min_row_id, unknown.max_row_id) == (None, None)


def test_an_unpartitioned_manifest_has_empty_statistics() -> None:
    assert describe_manifest("m", 1, [an_entry()], ()).partition_stats == SimpleStats()


def test_manifests_roll_at_the_target_size(storage: MemoryStorage) -> None:
    store = a_store(storage, target_size=1000, compression="none")
    entries = [an_entry(f"data-{number}", bucket=number) for number in range(2500)]

    manifests = store.write_manifests(entries, [INT])

    assert [m.file_name for m in manifests] == [f"manifest-id0-{k}" for k in range(3)]
    assert [m.num_added_files for m in manifests] == [1000, 1000, 500]
    assert [(m.min_bucket, m.max_bucket) for m in manifests] == [
        (0, 999),
        (1000, 1999),
        (2000, 2499),
    ]
    assert store.read_manifests(manifests).entries() == entries
    for manifest in manifests:
        assert storage.size(f"t/manifest/{manifest.file_name}") == manifest.file_size


def test_a_manifest_below_the_target_size_holds_many_blocks(store: ManifestStore) -> None:
    entries = [an_entry(f"data-{number}") for number in range(2500)]

    (manifest,) = store.write_manifests(entries, [INT])

    assert store.read_manifest(manifest).entries() == entries


def test_names_are_unique_and_say_what_they_are(store: ManifestStore) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])

    assert manifest.file_name == "manifest-id0-0"
    assert store.write_list([manifest])[0] == "manifest-list-id1-0"
    assert store.write_index([]) == "index-manifest-id2-0"


@pytest.mark.parametrize("compression", ["zstd", "none", "snappy", "gzip", "deflate"])
def test_every_compression_is_read_back(storage: MemoryStorage, compression: str) -> None:
    store = a_store(storage, compression=compression)

    (manifest,) = store.write_manifests([RICH], [INT])

    assert store.read_manifest(manifest).entries() == [RICH]


def test_an_unknown_compression_is_refused_when_writing_only(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    (manifest,) = store.write_manifests([RICH], [INT])
    other = a_store(storage, compression="lzo")

    assert other.read_manifest(manifest).entries() == [RICH]
    with pytest.raises(InvalidInput, match=r"lzo.*zstd"):
        other.write_manifests([RICH], [INT])
    with pytest.raises(InvalidInput, match=r"lzo.*zstd"):
        other.write_list([])


def test_what_was_read_is_remembered(store: ManifestStore, storage: MemoryStorage) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    name, size = store.write_list([manifest])
    first = store.read_manifest(manifest), store.read_list(name, size)
    storage.delete_folder("t/manifest")

    again = a_store(storage).read_manifest(manifest), a_store(storage).read_list(name, size)

    assert again == first


def test_what_was_remembered_can_be_forgotten(store: ManifestStore, storage: MemoryStorage) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    store.read_manifest(manifest)
    storage.delete_folder("t/manifest")

    forget_manifests()

    with pytest.raises(FileNotFound):
        store.read_manifest(manifest)


def test_another_storage_is_not_mistaken_for_this_one(store: ManifestStore) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    store.read_manifest(manifest)

    with pytest.raises(FileNotFound):
        a_store(MemoryStorage()).read_manifest(manifest)


def readers(store: ManifestStore, manifest: ManifestFile) -> list[Callable[[], object]]:
    return [
        lambda: store.read_manifest(manifest),
        lambda: store.read_manifests([manifest]),
        lambda: store.read_manifests([manifest, manifest]),
        lambda: store.read_list(manifest.file_name, manifest.file_size),
        lambda: store.read_index(manifest.file_name),
    ]


@pytest.mark.parametrize("reader", range(5))
def test_a_missing_file_is_named(store: ManifestStore, reader: int) -> None:
    manifest = describe_manifest("gone", 1, [an_entry()], ())

    with pytest.raises(FileNotFound, match="t/manifest/gone"):
        readers(store, manifest)[reader]()


@pytest.mark.parametrize("reader", range(5))
def test_garbage_is_named(store: ManifestStore, storage: MemoryStorage, reader: int) -> None:
    storage.put("t/manifest/bad", b"garbage")
    manifest = describe_manifest("bad", 7, [an_entry()], ())

    with pytest.raises(CorruptFile, match="t/manifest/bad"):
        readers(store, manifest)[reader]()


def test_a_file_cut_between_blocks_is_noticed_by_its_size(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    (manifest,) = store.write_manifests([an_entry(f"{n}") for n in range(1001)], [INT])
    (first,) = a_store(MemoryStorage()).write_manifests([an_entry(f"{n}") for n in range(1000)], ())
    raw = storage.read(f"t/manifest/{manifest.file_name}")
    storage.put(f"t/manifest/{manifest.file_name}", raw[: first.file_size])

    with pytest.raises(CorruptFile, match=f"{first.file_size} bytes, but {manifest.file_size}"):
        store.read_manifest(manifest)


@pytest.mark.parametrize(("kind", "version"), [("entry", 1), ("list", 3), ("index", 2)])
def test_another_version_is_refused(
    store: ManifestStore, storage: MemoryStorage, kind: str, version: int
) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    name = {
        "entry": manifest.file_name,
        "list": store.write_list([manifest])[0],
        "index": store.write_index(INDEXES),
    }[kind]
    schema, records = stored_records(storage, name)
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{**record, "_VERSION": version} for record in records])
    storage.put("t/manifest/other", sink.getvalue())
    other = replace(manifest, file_name="other", file_size=len(sink.getvalue()))

    with pytest.raises(Unsupported, match=f"other has records of version {version}"):
        {
            "entry": lambda: store.read_manifest(other),
            "list": lambda: store.read_list("other"),
            "index": lambda: store.read_index("other"),
        }[kind]()


@pytest.mark.parametrize(("field", "value"), [("_KIND", 2), ("_KIND", -1), ("_FILE_SOURCE", 7)])
def test_a_code_that_does_not_exist_is_refused(
    store: ManifestStore, storage: MemoryStorage, field: str, value: int
) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    schema, (record,) = stored_records(storage, manifest.file_name)
    record = {**record, "_FILE": dict(record["_FILE"])}
    (record if field in record else record["_FILE"])[field] = value
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [record])

    with pytest.raises(CorruptFile, match=f"{field[1:].lower()} is {value}"):
        decode_entries(sink.getvalue(), "m")


@pytest.mark.parametrize("counts", [(1, 3, 2), (1,) * MANY_RECORDS, (100, 1, 140)])
@pytest.mark.parametrize("is_first_early", [False, True])
def test_small_manifests_that_are_decoded_together_are_those_of_each_file(
    store: ManifestStore,
    storage: MemoryStorage,
    counts: Sequence[int],
    is_first_early: bool,
) -> None:
    written = [
        store.write_manifests([an_entry(row_count=n)] * count, [INT])[0]
        for n, count in enumerate(counts)
    ]
    if is_first_early:
        storage.put(f"t/manifest/{written[0].file_name}", early_manifest(storage, written[0]))
    files = [(storage.read(f"t/manifest/{m.file_name}"), m.file_name) for m in written]

    together = decode_small_manifests([(parse(*file), file[1]) for file in files])

    apart = [decode_entries(*file) for file in files]
    assert together.entries() == [entry for one in apart for entry in one.entries()]
    assert together.row_count.tolist() == np.repeat(range(len(counts)), counts).tolist()


def test_manifests_that_are_fetched_stand_between_those_that_are_cached() -> None:
    storage, ids = RemoteStorage(), itertools.count()
    store = ManifestStore(storage, TableLayout("t"), new_id=lambda: str(next(ids)))
    counts = (2, 1, 200, 1, 3, 0, 2)  # a large one is decoded by itself
    written = [
        store.write_manifests([an_entry(row_count=n)] * count, [INT])[0]
        if count
        else empty_manifest(store, storage)
        for n, count in enumerate(counts)
    ]
    for cached in (written[1], written[4]):
        store.read_manifest(cached)

    for _ in range(2):
        entries = store.read_manifests(written)

        expected = [n for n, count in enumerate(counts) for _ in range(count)]
        assert entries.row_count.tolist() == expected
    reads = [call for call in storage.calls if call.startswith("read")]
    assert len(reads) == len(set(reads)) == len(counts)


def empty_manifest(store: ManifestStore, storage: RemoteStorage) -> ManifestFile:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    path = f"t/manifest/{manifest.file_name}"
    schema, _ = stored_records(storage.storage, manifest.file_name)
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [])
    storage.storage.put(path, sink.getvalue())
    return replace(manifest, file_size=len(sink.getvalue()), num_added_files=0)


def test_a_wrong_manifest_among_small_ones_is_named(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    right = storage.read(f"t/manifest/{manifest.file_name}")
    schema, (record,) = stored_records(storage, manifest.file_name)
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{**record, "_KIND": 7}])

    files = [(right, "one"), (sink.getvalue(), "the-wrong-one"), (right, "two")]
    with pytest.raises(CorruptFile, match="the-wrong-one"):
        decode_small_manifests([(parse(*file), file[1]) for file in files])


def early_manifest(storage: MemoryStorage, manifest: ManifestFile) -> bytes:
    """The same entries as an early release wrote them, with fewer fields."""
    schema, records = stored_records(storage, manifest.file_name)
    file_type = schema["fields"][5]["type"]
    file_type["fields"] = file_type["fields"][:14]
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records)
    return sink.getvalue()


def test_a_manifest_of_an_early_release_is_read(
    store: ManifestStore, storage: MemoryStorage
) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])

    (entry,) = decode_entries(early_manifest(storage, manifest), "m").entries()

    assert entry == an_entry(file_source=None)


def test_statistics_that_are_null_are_empty(store: ManifestStore, storage: MemoryStorage) -> None:
    (manifest,) = store.write_manifests([an_entry()], [INT])
    schema, (record,) = stored_records(storage, manifest.file_name)
    stats = schema["fields"][5]["type"]["fields"][6]
    stats["type"] = ["null", stats["type"]]
    record["_FILE"]["_VALUE_STATS"] = None
    sink = io.BytesIO()
    fastavro.writer(sink, ["null", schema], [record])

    (entry,) = decode_entries(sink.getvalue(), "m").entries()

    assert entry == an_entry(value_stats=SimpleStats(null_counts=None))


def test_a_list_of_an_early_release_is_read(store: ManifestStore, storage: MemoryStorage) -> None:
    manifests = store.write_manifests([an_entry()], [INT])
    schema, records = stored_records(storage, store.write_list(manifests)[0])
    schema["fields"] = schema["fields"][:7]
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records)

    (found,) = decode_manifest_list(sink.getvalue(), "m")

    assert found == replace(
        manifests[0], min_bucket=None, max_bucket=None, min_level=None, max_level=None
    )
