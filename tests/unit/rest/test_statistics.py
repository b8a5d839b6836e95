"""What a commit changes in each partition, in Java's spelling."""

from dataclasses import replace

from builders import create_table, prepare, rows_of
from emberlake.rest.statistics import PartitionNames, partition_statistics
from emberlake.spec.binary_row import encode_row
from emberlake.spec.manifest import FileKind, ManifestEntry
from emberlake.types import AtomicType, DataField

FIELDS = tuple(
    DataField(number, name, AtomicType(text))
    for number, (name, text) in enumerate(
        {"d": "DATE", "i": "INT", "s": "STRING", "b": "BOOLEAN"}.items()
    )
)


def entry(partition: bytes, kind: FileKind = FileKind.ADD, rows: int = 3) -> ManifestEntry:
    [message] = prepare(create_table(), rows_of(range(rows)))
    [file] = message.new_files
    made = replace(file, row_count=rows, file_size=10 * rows, creation_time=1_750_000_000_000)
    return ManifestEntry(kind=kind, partition=partition, bucket=0, total_buckets=2, file=made)


def test_values_are_spelled_as_java_spells_them() -> None:
    types = tuple(field.type for field in FIELDS)
    filled = encode_row(types, (20455, 7, "x y", True))
    empty = encode_row(types, (None, None, None, None))

    one, other = partition_statistics([entry(filled), entry(empty)], PartitionNames(FIELDS))

    assert one.spec == {"d": "20455", "i": "7", "s": "x y", "b": "true"}
    assert set(other.spec.values()) == {"__DEFAULT_PARTITION__"}


def test_differences_are_added_up_and_may_be_negative() -> None:
    partition = encode_row((AtomicType("INT"),), (1,))
    entries = [entry(partition, rows=2), entry(partition, FileKind.DELETE, rows=5)]

    [found] = partition_statistics(entries, PartitionNames(FIELDS[1:2]))

    assert (found.record_count, found.file_size_in_bytes, found.file_count) == (-3, -30, 0)
    assert found.total_buckets == 2


def test_a_table_without_partitions_has_one() -> None:
    [found] = partition_statistics([entry(b"")], PartitionNames())

    assert (found.spec, found.record_count) == ({}, 3)
