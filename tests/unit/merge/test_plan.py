"""Merge options are read once, and everything that is wrong with them is said at once."""

import pickle
from dataclasses import replace

import pytest

from emberlake.errors import InvalidSchema, Unsupported
from emberlake.merge.column_options import Aggregator, NestedKeyNulls
from emberlake.merge.plan import check_merge_options, depends_on_arrival, plan_merge
from emberlake.options import MergeEngine, TableOptions
from emberlake.spec.aggregate import Aggregate
from emberlake.spec.schema import TableSchema
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType
from merge_tables import plan_of, schema_of

COLUMNS = {"k": "INT", "a": "INT", "b": "STRING", "g": "INT", "h": "BIGINT", "c": "DOUBLE"}
PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}


def names(fields: tuple[DataField, ...]) -> list[str]:
    return [f.name for f in fields]


def wanted(options: dict[str, str], *columns: str) -> list[str]:
    """The columns that are read when some are wanted."""
    schema = schema_of(COLUMNS, ["k"], options)
    return names(plan_merge(schema, tuple(schema.field_by_name[c] for c in columns)).read_fields)


def nested_schema(options: dict[str, str]) -> TableSchema:
    inner = ArrayType(True, AtomicType("INT"))
    row = RowType(
        True,
        (
            DataField(8, "id", AtomicType("INT")),
            DataField(9, "list", inner),
            DataField(10, "t", AtomicType("STRING")),
        ),
    )
    fields = (
        DataField(0, "k", AtomicType("INT")),
        DataField(1, "rows", ArrayType(True, row)),
        DataField(2, "map", MapType(True, AtomicType("STRING", False), row)),
        DataField(3, "raw", AtomicType("BYTES")),
    )
    return TableSchema(0, fields, 10, (), ("k",), TableOptions({**AGGREGATION, **options}))


def test_a_plan_reads_the_key_and_what_orders_records_besides_what_is_wanted():
    assert wanted({}, "a") == ["k", "a"]
    assert wanted({"sequence.field": "g,h"}, "a") == ["k", "a", "g", "h"]
    assert wanted({**AGGREGATION, "sequence.field": "h"}, "c") == ["k", "h", "c"]


def test_a_plan_reads_the_order_of_the_sequence_groups_of_wanted_columns():
    options = {**PARTIAL, "fields.g,h.sequence-group": "a,b"}
    assert wanted(options, "c") == ["k", "c"]
    assert wanted(options, "b") == ["k", "b", "g", "h"]
    assert wanted(options, "h") == ["k", "g", "h"]


def test_a_plan_reads_what_can_delete_a_row_whatever_is_wanted():
    options = {
        **PARTIAL,
        "fields.g,h.sequence-group": "a,b",
        "partial-update.remove-record-on-sequence-group": "h",
    }
    assert wanted(options, "c") == ["k", "g", "h", "c"]


def test_a_plan_of_groups_names_their_order_and_the_members_that_are_read():
    options = {**PARTIAL, "fields.g,h.sequence-group": "a, b", "fields.a.aggregate-function": "sum"}
    schema = schema_of(COLUMNS, ["k"], options)
    plan = plan_merge(schema, (schema.field_by_name["a"],))
    (group,) = plan.groups
    assert (names(group.ordering), names(group.members)) == (["g", "h"], ["a"])
    assert plan.aggregators == {
        "k": Aggregator(Aggregate.PRIMARY_KEY),
        "a": Aggregator(Aggregate.SUM),
    }


def test_every_column_of_an_aggregation_has_a_function():
    options = {
        **AGGREGATION,
        "sequence.field": "g",
        "sequence.field.sort-order": "DESCENDING",
        "fields.a.aggregate-function": "first_not_null_value",
        "fields.b.aggregate-function": "listagg",
        "fields.b.list-agg-delimiter": ";",
        "fields.b.distinct": "true",
        "fields.c.ignore-retract": "true",
    }
    plan = plan_of(COLUMNS, ["k"], options)
    assert [order.descending for order in plan.sequences] == [True]
    assert plan.aggregators == {
        "k": Aggregator(Aggregate.PRIMARY_KEY),
        "a": Aggregator(Aggregate.FIRST_NON_NULL_VALUE),
        "b": Aggregator(Aggregate.LISTAGG, delimiter=";", distinct=True),
        "g": Aggregator(Aggregate.LAST_VALUE),
        "h": Aggregator(Aggregate.LAST_NON_NULL_VALUE),
        "c": Aggregator(Aggregate.LAST_NON_NULL_VALUE, ignore_retract=True),
    }
    default = plan_of(
        {"k": "INT", "a": "INT"}, ["k"], {**AGGREGATION, "fields.default-aggregate-function": "max"}
    )
    assert default.aggregators["a"].function is Aggregate.MAX


def test_settings_of_nested_functions_are_read():
    schema = nested_schema(
        {
            "fields.rows.aggregate-function": "nested_update",
            "fields.rows.nested-key": "id",
            "fields.rows.nested-key-null-strategy": "ignore",
            "fields.rows.nested-sequence-field": "t",
            "fields.rows.count-limit": "5",
            "fields.map.aggregate-function": "merge_map_with_keytime",
            "fields.map.ts-field": "t",
            "fields.raw.aggregate-function": "rbm32",
        }
    )
    aggregators = plan_merge(schema, schema.fields).aggregators
    assert aggregators["rows"] == Aggregator(
        Aggregate.NESTED_UPDATE,
        nested_key=("id",),
        nested_key_nulls=NestedKeyNulls.IGNORE,
        nested_sequence=("t",),
        count_limit=5,
    )
    assert aggregators["map"].time_field == "t"


@pytest.mark.parametrize(
    ("engine", "is_whole"),
    [("deduplicate", False), ("first-row", False), ("partial-update", True), ("aggregation", True)],
)
def test_a_nested_column_is_read_whole_where_rows_are_put_together(engine, is_whole):
    schema = nested_schema({"merge-engine": engine})
    part = RowType(True, (DataField(8, "id", AtomicType("INT")),))
    outputs = (
        DataField(1, "rows", ArrayType(True, part)),
        DataField(2, "map", MapType(True, AtomicType("STRING", False), part)),
    )
    assert plan_merge(schema, outputs).read_fields[1:] == (
        schema.fields[1:3] if is_whole else outputs
    )


def test_flags_are_read_under_all_their_names():
    for key in ("ignore-delete", "deduplicate.ignore-delete", "first-row.ignore-delete"):
        assert plan_of(COLUMNS, ["k"], {key: "TRUE"}).ignore_delete
    removing = plan_of(
        COLUMNS, ["k"], {**PARTIAL, "partial-update.remove-record-on-delete": "true"}
    )
    assert removing.remove_on_delete
    removing = plan_of(
        COLUMNS, ["k"], {**AGGREGATION, "aggregation.remove-record-on-delete": "true"}
    )
    assert removing.remove_on_delete
    other = plan_of(COLUMNS, ["k"], {"aggregation.remove-record-on-delete": "true"})
    assert not other.remove_on_delete


def test_a_plan_pickles():
    options = {**PARTIAL, "fields.g,h.sequence-group": "a,b", "ignore-delete": "true"}
    plan = plan_of(COLUMNS, ["k"], options)
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan.engine is MergeEngine.PARTIAL_UPDATE


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fields.a.aggregate-function": "median", **AGGREGATION}, "median: expected one of"),
        ({"fields.b.aggregate-function": "sum", **AGGREGATION}, "sum needs a number, not column b"),
        ({"fields.a.aggregate-function": "listagg", **AGGREGATION}, "listagg needs STRING"),
        ({"fields.a.aggregate-function": "bool_or", **AGGREGATION}, "bool_or needs BOOLEAN"),
        ({"fields.a.aggregate-function": "collect", **AGGREGATION}, "collect needs ARRAY"),
        ({"fields.a.aggregate-function": "sum", **PARTIAL}, "it must be in a sequence group"),
        (
            {"fields.g.sequence-group": "a", "fields.h.sequence-group": "a", **PARTIAL},
            "a, which is in another sequence group",
        ),
        ({"fields.g.sequence-group": "k", **PARTIAL}, "k, which is in the primary key"),
        ({"fields.g.sequence-group": "z", **PARTIAL}, "z, which is not a column"),
        ({"fields.a.distinct": "maybe", **AGGREGATION}, "fields.a.distinct=maybe"),
        ({"sequence.field": "z"}, "sequence.field z is not a column"),
        (
            {
                **AGGREGATION,
                "aggregation.remove-record-on-delete": "true",
                "fields.a.ignore-retract": "true",
            },
            "exclude each other",
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused_with_the_reason(options, problem):
    schema = schema_of(COLUMNS, ["k"], options)
    assert any(problem in found for found in check_merge_options(schema))
    with pytest.raises(InvalidSchema, match="merge options that cannot be used"):
        plan_merge(schema, schema.fields)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"fields.rows.aggregate-function": "nested_partial_update"},
            "aggregate-function needs fields.rows.nested-key",
        ),
        (
            {"fields.rows.aggregate-function": "nested_update", "fields.rows.nested-key": "x"},
            "nested-key names x, which",
        ),
        (
            {
                "fields.rows.aggregate-function": "nested_update",
                "fields.rows.nested-sequence-field": "t",
            },
            "nested-sequence-field needs fields.rows.nested-key",
        ),
        (
            {
                "fields.map.aggregate-function": "merge_map_with_keytime",
                "fields.map.ts-field": "x",
            },
            "ts-field names x, which",
        ),
        (
            {
                "fields.map.aggregate-function": "merge_map_with_keytime",
                "fields.map.ts-field": "id",
            },
            "merge_map_with_keytime compares times as texts, but field id of column map",
        ),
        (
            {
                "fields.rows.aggregate-function": "nested_update",
                "fields.rows.nested-key-null-strategy": "merge",
            },
            "nested-key-null-strategy needs fields.rows.nested-key",
        ),
        (
            {
                "fields.rows.aggregate-function": "nested_update",
                "fields.rows.nested-key": "id",
                "fields.rows.nested-sequence-field": "t,list",
            },
            "nested-sequence-field names list, which has no order",
        ),
        ({"sequence.field": "rows"}, "cannot order rows"),
        ({"fields.map.aggregate-function": "nested_update"}, "needs ARRAY<ROW<...>>"),
    ],
)
def test_nested_settings_that_do_not_fit_are_refused_with_the_reason(options, problem):
    assert any(problem in found for found in check_merge_options(nested_schema(options)))


def test_sketches_are_refused_only_where_they_are_read():
    schema = nested_schema({"fields.raw.aggregate-function": "theta_sketch"})
    with pytest.raises(Unsupported, match="column raw has the aggregate function theta_sketch"):
        plan_merge(schema, schema.fields)
    assert names(plan_merge(schema, schema.fields[1:2]).read_fields) == ["k", "rows"]


@pytest.mark.parametrize("options", [PARTIAL, AGGREGATION])
def test_a_partition_beside_the_key_is_not_merged_but_kept(options):
    schema = replace(schema_of(COLUMNS, ["k"], options), partition_keys=("b",))

    plan = plan_merge(schema, schema.fields)

    assert plan.aggregators["b"] == Aggregator(Aggregate.PRIMARY_KEY)


def test_a_table_without_a_key_has_no_merge_options_to_check():
    assert check_merge_options(schema_of(COLUMNS, [])) == []


# --- what orders the records ----------------------------------------------------------------------

ORDER_FREE = {"fields.default-aggregate-function": "max", "fields.c.aggregate-function": "sum"}
GROUPS = {"fields.g.sequence-group": "a", "fields.h.sequence-group": "b,c"}


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "g"},
        {**PARTIAL, "sequence.field": "g"},
        {**AGGREGATION, "sequence.field": "g"},
        {**AGGREGATION, **ORDER_FREE},
        {**PARTIAL, **GROUPS},
        {**PARTIAL, **GROUPS, "fields.c.aggregate-function": "sum"},
    ],
    ids=str,
)
def test_some_tables_order_their_records_by_what_is_in_them_or_need_no_order(options):
    assert not depends_on_arrival(schema_of(COLUMNS, ["k"], options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "first-row"},
        PARTIAL,
        AGGREGATION,
        {**PARTIAL, "fields.g.sequence-group": "a"},
        {**PARTIAL, **GROUPS, "fields.c.aggregate-function": "product"},
        {**PARTIAL, **GROUPS, "partial-update.remove-record-on-sequence-group": "g"},
        {**AGGREGATION, **ORDER_FREE, "fields.c.aggregate-function": "last_value"},
        {**AGGREGATION, **ORDER_FREE, "fields.b.aggregate-function": "listagg"},
        {**AGGREGATION, **ORDER_FREE, "aggregation.remove-record-on-delete": "true"},
    ],
    ids=str,
)
def test_in_all_others_it_counts_which_record_came_first(options):
    assert depends_on_arrival(schema_of(COLUMNS, ["k"], options))
