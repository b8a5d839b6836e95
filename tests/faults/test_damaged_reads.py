"""Damage that only a reader meets: deletion vectors, old schemas, rows inside manifests, data."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import alter, append, create_table, delete_rows, open_table, publish, rows_of
from emberlake import AtomicType, SchemaChange
from emberlake.errors import CorruptFile, EmberlakeError, FileNotFound, SchemaNotFound, Unsupported
from emberlake.store.manifests import forget_manifests
from emberlake.table import Table
from table_reads import data_files, files_under, latest_snapshot, live_files, read_rows


def with_deletions() -> Table:
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    (entry,) = live_files(table)
    delete_rows(table, {entry.file.file_name: [1]})
    forget_manifests()
    return table


def index_file(table: Table) -> str:
    (path,) = files_under(table.store.storage, table.store.layout.index_folder)
    return path


def index_manifest(table: Table) -> str:
    name = latest_snapshot(table).index_manifest
    assert name is not None
    return table.store.layout.manifest(name)


@pytest.mark.parametrize("find", [index_file, index_manifest])
def test_deletions_that_are_missing_are_not_taken_for_none(find: Callable[[Table], str]) -> None:
    table = with_deletions()
    path = find(table)
    table.store.storage.delete(path)

    with pytest.raises(FileNotFound) as caught:
        read_rows(table)

    assert caught.value.path == path


@pytest.mark.parametrize("find", [index_file, index_manifest])
@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:9], lambda raw: bytes(len(raw)), lambda raw: b""]
)
def test_deletions_that_cannot_be_read_are_corrupt(
    find: Callable[[Table], str], damage: Callable[[bytes], bytes]
) -> None:
    table = with_deletions()
    path = find(table)
    table.store.storage.put(path, damage(table.store.storage.read(path)))

    with pytest.raises(CorruptFile) as caught:
        read_rows(table)

    assert caught.value.path == path


def test_a_flipped_bit_in_a_deletion_vector_is_noticed() -> None:
    table = with_deletions()
    path = index_file(table)
    raw = bytearray(table.store.storage.read(path))
    raw[-6] ^= 1
    table.store.storage.put(path, bytes(raw))

    with pytest.raises(CorruptFile, match="checksum"):
        read_rows(table)


def test_the_schema_of_an_old_file_may_not_be_missing() -> None:
    table = create_table()
    append(table, rows_of([1]))
    alter(table, SchemaChange.add_column("v", AtomicType("INT")))
    table.store.storage.delete(table.store.layout.schema(0))
    opened = open_table(table.store.storage)

    with pytest.raises(SchemaNotFound, match="schema 0"):
        read_rows(opened)


def test_a_data_file_of_an_unknown_format_is_refused() -> None:
    table = create_table()
    append(table, rows_of([1]))
    (entry,) = live_files(table)
    file = replace(entry.file, file_name="data-1.stone")
    publish(table, [replace(entry, file=file)])

    with pytest.raises(Unsupported, match="stone"):
        read_rows(table)


@pytest.mark.parametrize("stats", ["min_values", "max_values"])
def test_statistics_that_are_no_rows_are_corrupt(stats: str) -> None:
    table = create_table()
    append(table, rows_of([1]))
    (entry,) = live_files(table)
    broken = replace(entry.file.value_stats, **{stats: (2).to_bytes(4, "big") + b"\xff" * 3})
    publish(table, [replace(entry, file=replace(entry.file, value_stats=broken))])

    with pytest.raises(CorruptFile):
        read_rows(table, "id = 1")
    assert read_rows(table) == rows_of([1])  # who does not need them does not stumble


def test_a_partition_that_is_no_row_is_corrupt() -> None:
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1]))
    (entry,) = live_files(table)
    beyond = (1000 << 32 | 20).to_bytes(8, "little")  # text at a place behind the row's end
    broken = replace(entry, partition=entry.partition[:4] + bytes(8) + beyond)
    unpartitioned = replace(table.store.schema, partition_keys=())
    store = table.store
    writer = Table(table.identifier, store.storage, store.layout, unpartitioned)
    publish(writer, [broken])

    with pytest.raises(CorruptFile):
        read_rows(table, "day = 'mon'")
    with pytest.raises(CorruptFile):
        read_rows(table)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "lance"])
def test_a_torn_data_file_is_corrupt_wherever_it_is_torn(file_format: str) -> None:
    table = create_table(options={"file.format": file_format})
    append(table, rows_of(range(50)))
    (path,) = data_files(table)
    storage = table.store.storage
    raw = storage.read(path)

    for size in range(0, len(raw), max(1, len(raw) // 60)):
        storage.put(path, raw[:size])

        with pytest.raises(CorruptFile) as caught:
            read_rows(table)
        assert caught.value.path == path


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "lance"])
def test_flipped_bytes_give_rows_or_typed_errors_never_crashes(file_format: str) -> None:
    table = create_table(options={"file.format": file_format})
    append(table, rows_of(range(50)))
    (path,) = data_files(table)
    storage = table.store.storage
    raw = storage.read(path)

    for at in range(0, len(raw), max(1, len(raw) // 80)):
        broken = bytearray(raw)
        broken[at] ^= 0xFF
        storage.put(path, bytes(broken))
        builder = table.new_read_builder()
        splits = builder.new_scan().plan().splits()
        try:
            builder.new_read().to_arrow(splits)
        except EmberlakeError as error:
            assert path in str(error)  # noqa: PT017


@pytest.mark.parametrize("how", ["batches", "iterator", "limit", "filter"])
def test_every_way_of_reading_names_the_missing_file(how: str) -> None:
    table = create_table()
    append(table, rows_of([1, 2]))
    (path,) = data_files(table)
    builder = table.new_read_builder()
    splits, read = builder.new_scan().plan().splits(), builder.new_read()
    table.store.storage.delete(path)
    ways: dict[str, Callable[[], object]] = {
        "batches": lambda: read.to_arrow_batch_reader(splits).read_all(),
        "iterator": lambda: list(read.to_iterator(splits)),
        "limit": lambda: read_rows(table, limit=1),
        "filter": lambda: read_rows(table, "id = 1"),
    }

    with pytest.raises(FileNotFound) as caught:
        ways[how]()

    assert caught.value.path == path
