from dataclasses import replace

import pytest

from emberlake.errors import Unsupported
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.schema import Schema
from emberlake.spec.support import check_compactable, check_readable, check_writable
from emberlake.types import ArrayType, AtomicType, DataField, MapType, VectorType

T = AtomicType
KEY = {"primary_keys": ["k"], "bucket": "1"}


def build(types=None, partition_keys=(), primary_keys=(), **options):
    types = types or {"k": "BIGINT", "a": "INT", "s": "STRING", "p": "STRING"}
    fields = [
        DataField(0, name, T(value) if isinstance(value, str) else value)
        for name, value in types.items()
    ]
    return build_table_schema(Schema(fields, partition_keys, primary_keys, options), time_millis=5)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"row-tracking.enabled": "true"}, "row tracking"),
        ({"scan.fallback-branch": "b"}, "two branches"),
        ({"manifest.format": "orc"}, "manifest.format"),
        (
            {
                "types": {"m": MapType(True, T("INT NOT NULL"), T("INT"))},
                "fields.m.map.storage-layout": "shared-shredding",
            },
            "storage-layout=shared-shredding",
        ),
        ({**KEY, "pk-clustering-override": "true"}, "pk-clustering-override"),
        ({**KEY, "record-level.expire-time": "1 d"}, "record-level.expire-time"),
    ],
)
def test_what_cannot_be_read_cannot_be_written_either(arguments, reason):
    schema = build(**arguments)

    with pytest.raises(Unsupported, match=f"cannot be read: .*{reason}"):
        check_readable(schema)
    with pytest.raises(Unsupported, match=f"cannot be written: .*{reason}"):
        check_writable(schema)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"data-file.external-paths": "s3://b/x"}, "external-paths"),
        ({"metadata.iceberg.storage": "table-location"}, "Iceberg"),
        ({"commit.callbacks": "com.example.Hook"}, "commit.callbacks"),
        ({"types": {"a": "INT", "v": "VARIANT"}}, "v VARIANT"),
        ({**KEY, "changelog-producer": "lookup"}, "changelog-producer=lookup"),
        ({**KEY, "changelog-producer": "full-compaction"}, "changelog-producer"),
    ],
)
def test_some_tables_can_be_read_but_not_written(arguments, reason):
    schema = build(**arguments)

    check_readable(schema)

    with pytest.raises(Unsupported, match=reason):
        check_writable(schema)


def test_columns_of_types_that_are_not_known_can_be_left_out():
    types = {"a": "INT", "v": ArrayType(True, T("VARIANT")), "e": VectorType(True, T("FLOAT"), 3)}
    schema = build(types)

    check_readable(schema, schema.fields[:1])

    with pytest.raises(Unsupported, match=r"v ARRAY<VARIANT>, e VECTOR<FLOAT, 3>"):
        check_readable(schema, schema.fields)


def test_an_append_table_is_read_and_written():
    for options in ({}, {"deletion-vectors.enabled": "true"}, {"bucket": "2", "bucket-key": "k"}):
        schema = build(partition_keys=["p"], **options)

        check_readable(schema, schema.fields)
        check_writable(schema)


def test_a_key_table_that_is_compacted_is_written():
    for options in ({"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}):
        check_writable(build(**KEY, **options))


def test_a_key_table_that_others_compact_is_written_but_not_compacted():
    schema = build(**KEY, **{"changelog-producer": "lookup", "write-only": "true"})

    check_writable(schema)
    with pytest.raises(Unsupported, match="changelog-producer=lookup"):
        check_compactable(schema)


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_a_key_that_could_move_between_partitions_is_refused_when_the_table_is_created(bucket):
    with pytest.raises(Unsupported, match="primary key lacks the partition column p"):
        build(primary_keys=["k"], partition_keys=["p"], bucket=bucket)


def test_a_table_with_a_key_that_could_move_is_read_but_not_written():
    schema = replace(build(partition_keys=["p"]), primary_keys=("k",))

    check_readable(schema, schema.fields)

    with pytest.raises(Unsupported, match="primary key lacks the partition column p"):
        check_writable(schema)
