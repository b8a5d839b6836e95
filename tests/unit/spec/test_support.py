import pytest

from emberlake.errors import Unsupported
from emberlake.options import TableOptions
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.schema_evolution import apply_changes
from emberlake.spec.support import check_compactable, check_readable, check_writable
from emberlake.types import ArrayType, AtomicType, DataField, MapType, VectorType

T = AtomicType
KEY = {"primary_keys": ["k"], "bucket": "1"}


def columns(types=None):
    types = types or {"k": "BIGINT", "a": "INT", "s": "STRING", "p": "STRING"}
    return [
        DataField(place, name, T(value) if isinstance(value, str) else value)
        for place, (name, value) in enumerate(types.items())
    ]


def build(types=None, partition_keys=(), primary_keys=(), **options):
    schema = Schema(columns(types), partition_keys, primary_keys, options)
    return build_table_schema(schema, time_millis=5)


def of_others(types=None, partition_keys=(), primary_keys=(), **options):
    """A table that another engine created."""
    fields = tuple(columns(types))
    keys = tuple(partition_keys), tuple(primary_keys)
    return TableSchema(0, fields, len(fields) - 1, *keys, TableOptions(options))


UNREADABLE = [
    ({"scan.fallback-branch": "b"}, "two branches"),
    ({"scan.primary-branch": "b"}, "two branches"),
    ({"manifest.format": "orc"}, "manifest.format"),
    (
        {
            "types": {"m": MapType(True, T("INT NOT NULL"), T("INT"))},
            "fields.m.map.storage-layout": "shared-shredding",
        },
        "storage-layout=shared-shredding",
    ),
    ({**KEY, "pk-clustering-override": "true"}, "pk-clustering-override"),
    ({**KEY, "sequence.snapshot-ordering": "true"}, "sequence.snapshot-ordering"),
    ({**KEY, "record-level.expire-time": "1 d"}, "record-level.expire-time"),
    ({**KEY, "bucket": "-2", "postpone.merge-on-read": "true"}, "postpone.merge-on-read"),
    ({"type": "format-table"}, "a format-table"),
    ({**KEY, "chain-table.enabled": "true"}, "chain table"),
]
UNWRITABLE = [
    ({"metadata.iceberg.storage": "table-location"}, "Iceberg"),
    ({"commit.callbacks": "com.example.Hook"}, "commit.callbacks"),
    ({"types": {"a": "INT", "v": "VARIANT"}}, "v VARIANT"),
    ({"types": {"a": "INT", "e": VectorType(True, T("FLOAT"), 3)}}, "e VECTOR"),
    ({"file.format": "vortex"}, "file.format=vortex"),
    (
        {"primary_keys": ["k"], "partition_keys": ["p"], "bucket": "-1", "ignore-delete": "true"},
        "primary key that lacks the partition column p",
    ),
]


@pytest.mark.parametrize(("arguments", "reason"), UNREADABLE)
def test_what_cannot_be_read_cannot_be_written_either(arguments, reason):
    schema = of_others(**arguments)

    with pytest.raises(Unsupported, match=f"cannot be read: .*{reason}"):
        check_readable(schema)
    with pytest.raises(Unsupported, match=f"cannot be written: .*{reason}"):
        check_writable(schema)


@pytest.mark.parametrize(("arguments", "reason"), UNWRITABLE)
def test_some_tables_can_be_read_but_not_written(arguments, reason):
    schema = of_others(**arguments)

    check_readable(schema)

    with pytest.raises(Unsupported, match=reason):
        check_writable(schema)


@pytest.mark.parametrize(("arguments", "reason"), [*UNREADABLE, *UNWRITABLE])
def test_what_could_never_be_written_is_not_created(arguments, reason):
    with pytest.raises(Unsupported, match=f"cannot be created.*{reason}"):
        build(**arguments)


@pytest.mark.parametrize(
    "change",
    [
        SchemaChange.set_option("scan.fallback-branch", "b"),
        SchemaChange.set_option("commit.callbacks", "com.example.Hook"),
        SchemaChange.add_column("v", T("VARIANT")),
        SchemaChange.add_column("e", ArrayType(True, VectorType(True, T("FLOAT"), 3))),
    ],
    ids=str,
)
def test_a_change_does_not_make_a_table_that_could_never_be_written(change):
    with pytest.raises(Unsupported, match=r"cannot be (changed this way|added)"):
        alter(build(), change)


def alter(schema, *changes):
    return apply_changes(schema, changes, has_snapshots=False, time_millis=9)


def test_rows_that_move_are_deleted_where_they_were_so_deletes_must_count():
    keys = {"primary_keys": ["k"], "partition_keys": ["p"]}
    schema = build(**keys, bucket="-1")

    with pytest.raises(Unsupported, match=r"deleted where it was, which would be ignored"):
        alter(schema, SchemaChange.set_option("ignore-delete", "true"))

    for options in ({"merge-engine": "first-row"}, {"merge-engine": "partial-update"}):
        check_writable(build(**keys, bucket="-1", **options, **{"ignore-delete": "true"}))
    check_writable(build(**keys, bucket="2", **{"ignore-delete": "true"}))


def test_tables_of_others_can_be_changed_in_what_does_not_matter():
    schema = of_others({"a": "INT", "v": "VARIANT"}, **{"manifest.format": "orc"})

    changed = alter(
        schema, SchemaChange.add_column("b", T("INT")), SchemaChange.set_option("x", "1")
    )

    assert changed.field_names == ("a", "v", "b")
    with pytest.raises(Unsupported, match=r"cannot be changed this way: scan.primary-branch"):
        alter(schema, SchemaChange.set_option("scan.primary-branch", "b"))


def test_columns_of_types_that_are_not_known_can_be_left_out():
    types = {"a": "INT", "v": ArrayType(True, T("VARIANT")), "e": VectorType(True, T("FLOAT"), 3)}
    schema = of_others(types)

    check_readable(schema, schema.fields[:1])

    with pytest.raises(Unsupported, match=r"v ARRAY<VARIANT>, e VECTOR<FLOAT, 3>"):
        check_readable(schema, schema.fields)


def test_an_append_table_is_read_and_written():
    for options in ({}, {"deletion-vectors.enabled": "true"}, {"bucket": "2", "bucket-key": "k"}):
        schema = build(partition_keys=["p"], **options)

        check_readable(schema, schema.fields)
        check_writable(schema)


def test_a_key_table_that_is_compacted_is_written():
    for options in (
        {"deletion-vectors.enabled": "true"},
        {"merge-engine": "first-row"},
        {"changelog-producer": "lookup"},
        {"changelog-producer": "full-compaction", "write-only": "true"},
    ):
        schema = build(**KEY, **options)

        check_writable(schema)
        check_compactable(schema)


@pytest.mark.parametrize("bucket", ["1", "2", "-2"])
def test_a_key_may_lack_the_partition_column_unless_buckets_are_dynamic(bucket):
    schema = build(primary_keys=["k"], partition_keys=["p"], bucket=bucket)

    assert schema.trimmed_primary_keys == schema.bucket_keys == ("k",)
    assert schema.partition_keys_outside_key == ("p",)
    check_readable(schema, schema.fields)
    check_writable(schema)
    check_compactable(schema)
