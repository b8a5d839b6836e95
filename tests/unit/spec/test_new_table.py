import pytest

from emberlake.errors import InvalidSchema, Unsupported
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.rules import find_problems
from emberlake.spec.schema import Schema
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType

T = AtomicType


def a_schema(types=None, partition_keys=(), primary_keys=(), **options):
    types = types or {"k": "BIGINT", "a": "INT", "s": "STRING", "p": "STRING"}
    fields = [
        DataField(7, name, T(value) if isinstance(value, str) else value)
        for name, value in types.items()
    ]
    return Schema(fields, partition_keys, primary_keys, options)


def build(*args, **options):
    return build_table_schema(a_schema(*args, **options), time_millis=5)


def test_a_plain_table_is_built():
    schema = build(partition_keys=["p"], **{"file.format": "orc"})

    assert (schema.id, schema.version, schema.time_millis) == (0, 3, 5)
    assert [f.id for f in schema.fields] == [0, 1, 2, 3]
    assert schema.highest_field_id == 3
    assert schema.partition_keys == ("p",)
    assert dict(schema.options) == {"file.format": "orc"}


def test_field_ids_are_given_as_paimon_numbers_them():
    inner = RowType(True, (DataField(9, "z", T("INT")),))
    outer = RowType(True, (DataField(9, "x", T("INT")), DataField(9, "y", inner)))
    types = {"a": "INT", "r": outer, "l": ArrayType(True, inner), "b": "INT"}

    schema = build(types)

    row = schema.field_by_name["r"]
    assert row.id == 1
    assert [(f.name, f.id) for f in row.type.fields] == [("x", 2), ("y", 4)]
    assert row.type.fields[1].type.fields[0].id == 3  # what is inside is numbered first
    assert schema.field_by_name["l"].id == 5
    assert schema.field_by_name["l"].type.element.fields[0].id == 6
    assert schema.field_by_name["b"].id == schema.highest_field_id == 7


def test_primary_key_columns_become_not_null():
    schema = build(primary_keys=["k"], bucket="1")
    nullable = build(
        {"k": "BIGINT NOT NULL", "a": "INT"},
        primary_keys=["k"],
        **{"bucket": "1", "primary-key.nullable": "true"},
    )

    assert str(schema.field_by_name["k"].type) == "BIGINT NOT NULL"
    assert str(schema.field_by_name["a"].type) == "INT"
    assert str(nullable.field_by_name["k"].type) == "BIGINT"


def test_keys_may_be_given_as_options():
    schema = build(**{"primary-key": "k, p", "partition": "p", "bucket": "2"})

    assert schema.primary_keys == ("k", "p")
    assert schema.partition_keys == ("p",)
    assert dict(schema.options) == {"bucket": "2"}
    with pytest.raises(InvalidSchema, match="different keys"):
        build(primary_keys=["k"], **{"primary-key": "a"})


def test_option_values_are_written_as_text():
    schema = build(bucket=4, **{"bucket-key": "k, a", "deletion-vectors.enabled": True})

    assert dict(schema.options) == {
        "bucket": "4",
        "bucket-key": "k,a",
        "deletion-vectors.enabled": "true",
    }


def test_lists_of_columns_are_written_without_blanks_which_other_engines_would_not_trim():
    given = {
        "merge-engine": "partial-update",
        "sequence.field": " a ,p",
        "fields.a , p.sequence-group": "s , v",
        "partial-update.remove-record-on-sequence-group": "a, p",
    }
    schema = build({"k": "INT", "a": "INT", "p": "INT", "s": "INT", "v": "INT"}, **KEY, **given)

    assert dict(schema.options) == {
        "bucket": "1",
        "merge-engine": "partial-update",
        "sequence.field": "a,p",
        "fields.a,p.sequence-group": "s,v",
        "partial-update.remove-record-on-sequence-group": "a,p",
    }


def test_a_sequence_group_that_names_no_column_of_the_table_is_one_problem():
    with pytest.raises(InvalidSchema) as caught:
        build(**KEY, **{"merge-engine": "partial-update", "fields.x.sequence-group": "a"})

    assert str(caught.value).count("fields.x.sequence-group") == 1


def test_every_problem_is_in_one_error():
    with pytest.raises(InvalidSchema) as caught:
        build(
            partition_keys=["nowhere"],
            primary_keys=["gone", "gone"],
            **{"bucket": "0", "merge-engine": "newest", "sequence.field": "no", "file.format": []},
        )

    for part in (
        "nowhere",
        "gone is given twice",
        "bucket=0",
        "newest",
        "sequence.field no",
        "list",
    ):
        assert part in str(caught.value)


KEY = {"primary_keys": ["k"], "bucket": "1"}
NESTED = {
    "k": "INT",
    "l": ArrayType(True, T("INT")),
    "m": MapType(True, T("INT NOT NULL"), T("INT")),
    "v": "VARIANT",
    "ts": "TIMESTAMP(9)",
}
ROW_TWICE = RowType(True, (DataField(0, "x", T("INT")), DataField(1, "x", T("INT"))))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"partition_keys": ["x"]}, "partition column x is not a column"),
        ({"partition_keys": ["p", "p"]}, "p is given twice"),
        ({"primary_keys": ["x"]}, r"primary key column x is not a column .*columns: k, a, s, p"),
        ({"primary_keys": ["p"], "partition_keys": ["p"]}, "only partition columns"),
        ({"types": NESTED, "partition_keys": ["l"]}, "cannot be of type ARRAY"),
        ({"types": NESTED, "primary_keys": ["v"]}, "cannot be of type VARIANT"),
        ({"types": {"_SEQUENCE_NUMBER": "INT"}}, "the format reserves"),
        ({"types": {"rowkind": "INT"}}, "the format reserves"),
        ({"types": {"_KEY_a": "INT"}}, "the format reserves"),
        ({"types": {"": "INT"}}, "has no name"),
        ({"types": {"r": ROW_TWICE}}, "field x appears 2 times"),
        ({"types": {"r": RowType(True, ())}}, "ROW without fields"),
        ({"bucket": "x"}, "bucket='x'"),
        ({"bucket": "0"}, "1 or more, or -1"),
        ({"bucket": "-2"}, "bucket=-2"),
        ({"bucket": "-3", "primary_keys": ["k"]}, "-1 or -2"),
        ({"bucket": "4"}, "needs bucket-key"),
        ({"bucket-key": "k"}, "needs a number of buckets"),
        ({"bucket": "4", "bucket-key": "x"}, "bucket-key x is not a column"),
        ({"bucket": "4", "bucket-key": "k,k"}, "k twice"),
        ({"bucket": "4", "bucket-key": "p", "partition_keys": ["p"]}, "partition column"),
        ({"bucket": "4", "bucket-key": "a", "primary_keys": ["k"]}, "not in the primary key"),
        ({"types": NESTED, "bucket": "4", "bucket-key": "l"}, "ARRAY<INT>"),
        ({"bucket": "4", "bucket-key": "s", "bucket-function.type": "mod"}, "mod needs"),
        ({"merge-engine": "first-row"}, "merge-engine needs a primary key"),
        ({"changelog-producer": "input"}, "changelog-producer needs a primary key"),
        ({"sequence.field": "a"}, "sequence.field needs a primary key"),
        ({"rowkind.field": "s"}, "rowkind.field needs a primary key"),
        ({"fields.a.aggregate-function": "sum"}, "needs a primary key"),
        ({"primary-key.nullable": "true"}, "primary-key.nullable needs a primary key"),
        (
            {**KEY, "merge-engine": "first-row", "changelog-producer": "input"},
            "first-row cannot be combined",
        ),
        ({**KEY, "merge-engine": "first-row", "sequence.field": "a"}, "sequence.field"),
        ({**KEY, "merge-engine": "first-row", "deletion-vectors.enabled": "true"}, "first-row"),
        (
            {**KEY, "deletion-vectors.enabled": "true", "changelog-producer": "full-compaction"},
            "deletion vectors cannot be combined",
        ),
        (
            {**KEY, "changelog-producer": "lookup", "full-compaction.delta-commits": "2"},
            "full-compaction.delta-commits cannot be combined with changelog-producer=lookup",
        ),
        (
            {**KEY, "changelog-producer": "full-compaction", "streaming-read-overwrite": "true"},
            "streaming-read-overwrite cannot be combined with changelog-producer=full-compaction",
        ),
        ({**KEY, "sequence.field": "x"}, "sequence.field x is not a column"),
        ({**KEY, "sequence.field": "a,a"}, "a twice"),
        ({**KEY, "sequence.field": "a,,s"}, r"sequence.field=a,,s has an empty name"),
        ({**KEY, "sequence.field": "a, "}, r"sequence.field=a, has an empty name"),
        ({**KEY, "sequence.field": ""}, "sequence.field names nothing"),
        ({"bucket": "2", "bucket-key": "k,,a"}, "bucket-key=k,,a has an empty name"),
        ({"primary-key": "k,,a"}, "primary-key=k,,a has an empty name"),
        ({"primary-key": "k,k"}, "k is given twice"),
        ({"partition": ",p"}, "partition=,p has an empty name"),
        ({"partition": " "}, "partition names nothing"),
        (
            {**KEY, "merge-engine": "partial-update", "fields.a.sequence-group": "s,,p"},
            "fields.a.sequence-group=s,,p has an empty name",
        ),
        (
            {**KEY, "merge-engine": "partial-update", "fields.a,,p.sequence-group": "s"},
            "the order of fields.a,,p.sequence-group=a,,p has an empty name",
        ),
        (
            {**KEY, "merge-engine": "partial-update", "fields.a,a.sequence-group": "s"},
            "the order of fields.a,a.sequence-group names a twice",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "fields.a.sequence-group": "s",
                "partial-update.remove-record-on-sequence-group": "a,,a",
            },
            "has an empty name.* names a twice",
        ),
        ({**KEY, "rowkind.field": "s,"}, "rowkind.field s, is not a column"),
        ({"file-index.bloom-filter.columns": "a,,s"}, "columns=a,,s has an empty name"),
        ({"file.format.per.level": "0:avro,,1:orc"}, "0:avro,,1:orc has an empty name"),
        ({"file.format.per.level": "0:avro,0:orc"}, "names level 0 twice"),
        ({**KEY, "sequence.field": "a", "fields.a.aggregate-function": "sum"}, "aggregated"),
        ({**KEY, "sequence.field": "a", "partition_keys": ["p"]}, "it lacks p"),
        ({**KEY, "rowkind.field": "x"}, "rowkind.field x is not a column"),
        ({**KEY, "rowkind.field": "a"}, "not a text"),
        (
            {**KEY, "merge-engine": "aggregation", "fields.a.aggregate-function": "summ"},
            "expected one of bool_and",
        ),
        (
            {**KEY, "merge-engine": "partial-update", "fields.x.sequence-group": "a"},
            "names x, which is not a column",
        ),
        (
            {**KEY, "merge-engine": "partial-update", "fields.a.sequence-group": "k"},
            "names k, which is in the primary key",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "fields.a.sequence-group": "s",
                "fields.p.sequence-group": "s",
            },
            "fields.p.sequence-group names s, which is in another sequence group",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "fields.a.sequence-group": "s",
                "fields.a,p.sequence-group": "more",
                "types": {"k": "INT", "a": "INT", "p": "INT", "s": "INT", "more": "INT"},
            },
            "fields.a,p.sequence-group names a, which is in another sequence group",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "fields.a.sequence-group": "p",
                "fields.p.sequence-group": "s",
            },
            "fields.p.sequence-group names p, which is in another sequence group",
        ),
        (
            {**KEY, "merge-engine": "partial-update", "fields.a.sequence-group": "s,s"},
            "fields.a.sequence-group names s twice",
        ),
        (
            {**KEY, "merge-engine": "partial-update", "fields.a.sequence-group": " "},
            "fields.a.sequence-group names nothing",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "partial-update.ignore-delete": "true",
                "partial-update.remove-record-on-delete": "true",
            },
            "partial-update.ignore-delete and partial-update.remove-record-on-delete exclude",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "ignore-delete": "true",
                "partial-update.remove-record-on-delete": "true",
            },
            "exclude each other",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "fields.a.sequence-group": "s",
                "partial-update.remove-record-on-delete": "true",
            },
            "sequence groups exclude",
        ),
        (
            {
                **KEY,
                "merge-engine": "partial-update",
                "partial-update.remove-record-on-sequence-group": "a",
            },
            "orders no sequence group",
        ),
        (
            {"row-tracking.enabled": "true", "primary_keys": ["k"]},
            "cannot be combined with a primary key",
        ),
        ({"row-tracking.enabled": "true", "bucket": "2", "bucket-key": "k"}, "with buckets"),
        ({"data-evolution.enabled": "true"}, "needs row-tracking.enabled"),
        ({"types": {"a": "INT", "b": "BLOB"}}, "BLOB needs data-evolution"),
        ({**KEY, "clustering.incremental": "true"}, "clustering.incremental"),
        ({"sequence.snapshot-ordering": "true"}, "sequence.snapshot-ordering needs"),
        ({"metadata.stats-mode": "some"}, "expected none, counts"),
        ({"metadata.stats-mode": "truncate(0)"}, "expected none, counts"),
        ({"metadata.stats-mode": "truncate( 8 )"}, "expected none, counts"),
        ({"fields.a.stats-mode": "some"}, "fields.a.stats-mode=some"),
        ({"fields.x.stats-mode": "full"}, "x is not a column"),
        ({"fields.a.default-value": "one"}, "default value of column a"),
        ({"file-index.bloom-filter.columns": "a,x"}, "names x"),
        ({"types": NESTED, "file.format": "avro"}, "precision of 6"),
        ({"types": {"g": "GEOMETRY"}, "file.format": "orc"}, "only Parquet"),
        ({**KEY, "file.format.per.level": "avro"}, "pairs such as 0:avro"),
        ({"target-file-row-num": "0"}, "1 or more"),
        ({"dynamic-bucket.max-buckets": "0", "primary_keys": ["k"]}, "1 or more, or -1"),
        ({"dynamic-bucket.max-buckets": "-2", "primary_keys": ["k"]}, "1 or more, or -1"),
        ({"snapshot.num-retained.min": "0"}, "1 or more"),
        ({"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "2"}, "larger than"),
    ],
)
def test_what_the_format_does_not_allow_is_refused(arguments, problem):
    with pytest.raises(InvalidSchema, match=problem):
        build(**arguments)


def test_a_table_needs_columns_with_different_names():
    with pytest.raises(InvalidSchema, match="no columns"):
        build_table_schema(Schema(), time_millis=0)
    twice = Schema([DataField(0, "a", T("INT")), DataField(1, "a", T("INT"))])
    with pytest.raises(InvalidSchema, match="column a appears 2 times"):
        build_table_schema(twice, time_millis=0)


def test_a_default_value_must_fit_its_column():
    good = Schema([DataField(0, "a", T("DATE"), None, "2026-06-26")])
    bad = Schema([DataField(0, "a", T("DATE"), None, "soon")])

    assert build_table_schema(good, time_millis=0).fields[0].default_value == "2026-06-26"
    with pytest.raises(InvalidSchema, match="default value of column a"):
        build_table_schema(bad, time_millis=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"merge-engine": "deduplicate", "changelog-producer": "none"},
        {"bucket": "4", "bucket-key": "k,s"},
        {"bucket": "4", "bucket-key": "k", "bucket-function.type": "mod"},
        {"primary_keys": ["k"]},
        {"primary_keys": ["k"], "partition_keys": ["p"], "bucket": "2"},
        {"primary_keys": ["k"], "partition_keys": ["p"], "bucket": "-2"},
        {"primary_keys": ["k"], "bucket": "-2"},
        {"primary_keys": ["k", "p"], "partition_keys": ["p"]},
        {"primary_keys": ["k", "p"], "partition_keys": ["p"], "sequence.field": "a"},
        {**KEY, "merge-engine": "first-row", "changelog-producer": "lookup"},
        {
            **KEY,
            "merge-engine": "partial-update",
            "fields.a,p.sequence-group": "s",
            "fields.default-aggregate-function": "last_non_null_value",
        },
        {**KEY, "merge-engine": "partial-update", "fields.a.sequence-group": "a,s"},
        {**KEY, "merge-engine": "aggregation", "fields.a.aggregate-function": "sum"},
        {"metadata.stats-mode": "truncate(8)", "fields.a.stats-mode": "none"},
        {"snapshot.num-retained.min": "1", "some.other.engine": "x"},
        {"types": {"a.b": "INT"}, "fields.a.b.stats-mode": "full"},
    ],
)
def test_what_the_format_allows_is_built(arguments):
    assert find_problems(build(**arguments)) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"type": "format-table"}, "format-table"),
        ({"chain-table.enabled": "true"}, "chain table"),
        ({"file.format": "vortex"}, "file.format=vortex"),
    ],
)
def test_a_kind_of_table_that_is_not_known_cannot_be_created(arguments, reason):
    with pytest.raises(Unsupported, match=reason):
        build(**arguments)
