from dataclasses import replace

import pytest

from emberlake.errors import (
    ColumnAlreadyExists,
    ColumnNotFound,
    InvalidInput,
    InvalidOption,
    InvalidSchema,
)
from emberlake.options import TableOptions
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.schema import Schema
from emberlake.spec.schema_change import Move, SchemaChange
from emberlake.spec.schema_evolution import apply_changes
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType

T = AtomicType
ROW = RowType(True, (DataField(0, "x", T("INT")), DataField(1, "y", T("STRING"))))


def a_schema(primary_keys=(), partition_keys=("p",), **options):
    fields = [
        DataField(0, "k", T("BIGINT")),
        DataField(0, "a", T("INT")),
        DataField(0, "p", T("STRING")),
        DataField(0, "r", ROW),
        DataField(0, "rows", ArrayType(True, ROW)),
        DataField(0, "m", MapType(True, T("STRING NOT NULL"), ArrayType(True, T("INT")))),
    ]
    options = {key.replace("_", "-"): value for key, value in options.items()}
    schema = Schema(fields, partition_keys, primary_keys, options)
    return build_table_schema(schema, time_millis=1)


def change(schema, *changes, has_snapshots=True):
    return apply_changes(schema, changes, has_snapshots=has_snapshots, time_millis=99)


def names(schema):
    return list(schema.field_names)


def column(schema, name):
    return schema.field_by_name[name]


def test_a_change_makes_the_next_schema_and_leaves_the_old_one():
    old = a_schema()

    new = change(old, SchemaChange.update_comment("sales"))

    assert (new.id, new.time_millis, new.comment) == (1, 99, "sales")
    assert (old.id, old.time_millis, old.comment) == (0, 1, None)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [SchemaChange.update_comment(None)],
        [SchemaChange.rename_column("a", "a")],
        [SchemaChange.rename_column("a", "b"), SchemaChange.rename_column("b", "a")],
        [SchemaChange.update_column_type("a", T("INT"))],
        [SchemaChange.update_column_nullability("a", True)],
        [SchemaChange.update_column_position(Move.first("k"))],
        [SchemaChange.update_column_position(Move.last("m"))],
        [SchemaChange.update_column_position(Move.after("a", "k"))],
        [SchemaChange.remove_option("no-such-option")],
        [SchemaChange.set_option("type", "TABLE")],
        [SchemaChange.set_option("partition", " p ")],
    ],
)
def test_changes_that_change_nothing_return_the_same_schema(changes):
    schema = a_schema()

    assert change(schema, *changes) is schema


def test_added_columns_get_fresh_ids_and_ids_are_not_used_again():
    schema = a_schema()
    assert schema.highest_field_id == 9

    added = change(schema, SchemaChange.add_column("n", ROW, "a comment"))
    dropped = change(added, SchemaChange.drop_column("n"))
    again = change(dropped, SchemaChange.add_column("n", T("INT")))

    assert column(added, "n").id == 10
    assert [f.id for f in column(added, "n").type.fields] == [11, 12]
    assert column(added, "n").description == "a comment"
    assert added.highest_field_id == dropped.highest_field_id == 12
    assert column(again, "n").id == again.highest_field_id == 13


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (None, ["k", "a", "p", "r", "rows", "m", "n"]),
        (Move.first("n"), ["n", "k", "a", "p", "r", "rows", "m"]),
        (Move.after("n", "k"), ["k", "n", "a", "p", "r", "rows", "m"]),
        (Move.before("n", "p"), ["k", "a", "n", "p", "r", "rows", "m"]),
        (Move.last("n"), ["k", "a", "p", "r", "rows", "m", "n"]),
    ],
)
def test_an_added_column_goes_where_it_is_wanted(move, expected):
    new = change(a_schema(), SchemaChange.add_column("n", T("INT"), move=move))

    assert names(new) == expected


def test_a_table_can_ask_for_new_columns_before_its_partition_columns():
    schema = a_schema(add_column_before_partition="true")

    new = change(schema, SchemaChange.add_column("n", T("INT")))

    assert names(new) == ["k", "a", "n", "p", "r", "rows", "m"]


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (Move.first("r"), ["r", "k", "a", "p", "rows", "m"]),
        (Move.last("k"), ["a", "p", "r", "rows", "m", "k"]),
        (Move.after("k", "p"), ["a", "p", "k", "r", "rows", "m"]),
        (Move.after("m", "k"), ["k", "m", "a", "p", "r", "rows"]),
        (Move.before("k", "p"), ["a", "k", "p", "r", "rows", "m"]),
        (Move.before("m", "a"), ["k", "m", "a", "p", "r", "rows"]),
    ],
)
def test_a_column_moves_and_keeps_its_id(move, expected):
    old = a_schema()

    new = change(old, SchemaChange.update_column_position(move))

    assert names(new) == expected
    assert set(new.fields) == set(old.fields)


def test_fields_inside_rows_arrays_and_maps_are_changed_by_their_path():
    new = change(
        a_schema(),
        SchemaChange.add_column(["r", "z"], T("DOUBLE"), move=Move.first("z")),
        SchemaChange.drop_column(["r", "y"]),
        SchemaChange.rename_column(["rows", "element", "x"], "w"),
        SchemaChange.update_column_type(["rows", "element", "w"], T("BIGINT")),
        SchemaChange.update_column_type(["m", "value", "element"], T("BIGINT")),
        SchemaChange.update_column_comment(["r", "x"], "why"),
    )

    assert [(f.id, f.name) for f in column(new, "r").type.fields] == [(10, "z"), (4, "x")]
    assert column(new, "r").type.fields[1].description == "why"
    element = column(new, "rows").type.element
    assert element.fields[0] == DataField(7, "w", T("BIGINT"))
    assert str(column(new, "m").type) == "MAP<STRING NOT NULL, ARRAY<BIGINT>>"


def test_a_renamed_column_keeps_its_id_and_is_renamed_in_keys_and_options():
    schema = build_table_schema(
        Schema(
            [DataField(0, n, T("INT")) for n in ("k", "s", "a", "g")],
            primary_keys=["k"],
            options={
                "bucket": "2",
                "bucket-key": "k",
                "sequence.field": "s, g",
                "fields.a.stats-mode": "full",
                "file-index.bloom-filter.columns": "k,a",
            },
        ),
        time_millis=1,
    )

    new = change(
        schema,
        SchemaChange.rename_column("k", "key"),
        SchemaChange.rename_column("s", "seq"),
        SchemaChange.rename_column("a", "amount"),
    )

    assert [f.id for f in new.fields] == [0, 1, 2, 3]
    assert new.primary_keys == ("key",)
    assert dict(new.options) == {
        "bucket": "2",
        "bucket-key": "key",
        "sequence.field": "seq,g",
        "fields.amount.stats-mode": "full",
        "file-index.bloom-filter.columns": "key,amount",
    }


def test_a_renamed_column_is_renamed_in_sequence_groups():
    schema = build_table_schema(
        Schema(
            [DataField(0, n, T("INT")) for n in ("k", "g", "h", "a", "b")],
            primary_keys=["k"],
            options={
                "merge-engine": "partial-update",
                "fields.g,h.sequence-group": "a,b",
                "fields.a.aggregate-function": "sum",
            },
        ),
        time_millis=1,
    )

    new = change(
        schema, SchemaChange.rename_column("g", "g2"), SchemaChange.rename_column("a", "a2")
    )

    assert dict(new.options) == {
        "merge-engine": "partial-update",
        "fields.g2,h.sequence-group": "a2,b",
        "fields.a2.aggregate-function": "sum",
    }


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (SchemaChange.add_column("n", T("INT NOT NULL")), InvalidSchema, "NOT NULL"),
        (SchemaChange.add_column("a", T("INT")), ColumnAlreadyExists, "a already exists"),
        (SchemaChange.add_column(["r", "x"], T("INT")), ColumnAlreadyExists, "r.x"),
        (SchemaChange.add_column(["a", "x"], T("INT")), ColumnNotFound, "has no fields"),
        (SchemaChange.add_column(["no", "x"], T("INT")), ColumnNotFound, "no does not exist"),
        (SchemaChange.add_column("n", T("INT"), move=Move.after("n", "no")), ColumnNotFound, "no"),
        (SchemaChange.add_column("_KEY_a", T("INT")), InvalidSchema, "the format reserves"),
        (SchemaChange.add_column(" ", T("INT")), InvalidSchema, "no name"),
        (SchemaChange.drop_column("no"), ColumnNotFound, "there are: k, a, p"),
        (SchemaChange.drop_column("p"), InvalidSchema, "partition column"),
        (SchemaChange.drop_column(["r", "no"]), ColumnNotFound, "r.no"),
        (SchemaChange.rename_column("p", "q"), InvalidSchema, "partition column"),
        (SchemaChange.rename_column("a", "k"), ColumnAlreadyExists, "k"),
        (SchemaChange.rename_column("no", "k"), ColumnNotFound, "no"),
        (SchemaChange.rename_column("a", "_ROW_ID"), InvalidSchema, "the format reserves"),
        (SchemaChange.update_column_type("k", T("INT")), InvalidSchema, "only widen"),
        (SchemaChange.update_column_type("a", T("VARCHAR(20)")), InvalidSchema, "only widen"),
        (SchemaChange.update_column_type("p", T("STRING")), InvalidSchema, "partition column"),
        (SchemaChange.update_column_type("a", T("BIGINT NOT NULL")), InvalidSchema, "nulls"),
        (SchemaChange.update_column_type("r", T("STRING")), InvalidSchema, "only widen"),
        (SchemaChange.update_column_type("no", T("INT")), ColumnNotFound, "no"),
        (SchemaChange.update_column_type(["m", "key"], T("STRING")), ColumnNotFound, "named key"),
        (SchemaChange.update_column_nullability("a", False), InvalidSchema, "nulls"),
        (SchemaChange.update_column_comment("no", "x"), ColumnNotFound, "no"),
        (SchemaChange.update_column_position(Move.first("no")), ColumnNotFound, "no"),
        (SchemaChange.update_column_position(Move.after("a", "no")), ColumnNotFound, "no"),
        (SchemaChange.update_column_position(Move.after("a", "a")), InvalidSchema, "itself"),
        (SchemaChange.update_column_default_value("a", "x"), InvalidSchema, "default value"),
        (SchemaChange.set_option("bucket", "4"), InvalidSchema, "holds data"),
        (SchemaChange.set_option("merge-engine", "first-row"), InvalidSchema, "holds data"),
        (SchemaChange.set_option("deletion-vectors.enabled", "true"), InvalidSchema, "modifiable"),
        (SchemaChange.set_option("type", "format-table"), InvalidSchema, "type"),
        (SchemaChange.set_option("primary-key", "k"), InvalidSchema, "primary-key"),
        (SchemaChange.set_option("target-file-size", "big"), InvalidOption, "target-file-size"),
        (SchemaChange.set_option("changelog-producer", "input"), InvalidSchema, "primary key"),
        ("drop everything", InvalidInput, "not a change"),
    ],
)
def test_a_change_that_is_not_safe_is_refused(what, error, message):
    with pytest.raises(error, match=message):
        change(a_schema(), what)


def test_the_last_column_stays():
    schema = build_table_schema(Schema([DataField(0, "a", T("INT"))]), time_millis=1)

    with pytest.raises(InvalidSchema, match="only one left"):
        change(schema, SchemaChange.drop_column("a"))


def test_a_primary_key_column_may_only_be_renamed():
    schema = a_schema(primary_keys=["k"], partition_keys=[], bucket="1")

    for refused in (
        SchemaChange.drop_column("k"),
        SchemaChange.update_column_type("k", T("BIGINT NOT NULL")),
        SchemaChange.update_column_nullability("k", True),
    ):
        with pytest.raises(InvalidSchema, match="in the primary key"):
            change(schema, refused)
    assert change(schema, SchemaChange.rename_column("k", "id")).primary_keys == ("id",)


def test_a_column_that_an_option_names_cannot_be_dropped():
    schema = a_schema(bucket="2", bucket_key="a")

    with pytest.raises(InvalidSchema, match="bucket-key a is not a column"):
        change(schema, SchemaChange.drop_column("a"))


def test_the_type_of_a_bucket_key_stays_once_there_is_data():
    schema = a_schema(bucket="2", bucket_key="a")
    wider = SchemaChange.update_column_type("a", T("BIGINT"))

    with pytest.raises(InvalidSchema, match="decides the bucket"):
        change(schema, wider)
    assert str(column(change(schema, wider, has_snapshots=False), "a").type) == "BIGINT"


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "a"},
        {"merge-engine": "partial-update", "fields.a,p.sequence-group": "r"},
        {"merge-engine": "aggregation", "fields.a.aggregate-function": "max"},
        {"merge-engine": "aggregation", "fields.default-aggregate-function": "min"},
    ],
)
def test_numbers_that_order_changes_do_not_become_texts(options):
    """As text, 9 is newer, and greater, than 10, so newer rows or greater values would be lost."""
    schema = a_schema(primary_keys=("k",), partition_keys=(), bucket="1", **options)

    with pytest.raises(InvalidSchema, match="another order"):
        change(schema, SchemaChange.update_column_type("a", T("STRING")))
    wider = change(schema, SchemaChange.update_column_type("a", T("BIGINT")))
    assert str(column(wider, "a").type) == "BIGINT"
    assert str(column(change(wider, SchemaChange.rename_column("a", "b")), "b").type) == "BIGINT"


def test_options_of_an_empty_table_may_change():
    schema = a_schema()

    bucketed = change(
        schema,
        SchemaChange.set_option("bucket", "4"),
        SchemaChange.set_option("bucket-key", "k, a"),
        has_snapshots=False,
    )
    back = change(
        bucketed,
        SchemaChange.remove_option("bucket"),
        SchemaChange.remove_option("bucket-key"),
        has_snapshots=False,
    )

    assert dict(bucketed.options) == {"bucket": "4", "bucket-key": "k,a"}
    assert dict(back.options) == {}


def test_a_sequence_group_is_set_without_blanks():
    schema = a_schema(primary_keys=["k", "p"], bucket="1", **{"merge-engine": "partial-update"})

    new = change(schema, SchemaChange.set_option("fields. a.sequence-group", "r , m"))

    assert new.options["fields.a.sequence-group"] == "r,m"


def test_an_option_that_is_set_to_its_default_may_be_set_with_data():
    new = change(a_schema(), SchemaChange.set_option("bucket", "-1"))

    assert dict(new.options) == {"bucket": "-1"}
    assert dict(change(new, SchemaChange.remove_option("bucket")).options) == {}


def test_ignoring_deletes_cannot_be_taken_back_once_there_is_data():
    schema = a_schema(primary_keys=["k", "p"], bucket="1")

    on = change(schema, SchemaChange.set_option("ignore-delete", "true"))

    with pytest.raises(InvalidSchema, match="true to false"):
        change(on, SchemaChange.set_option("ignore-delete", "false"))
    with pytest.raises(InvalidSchema, match="true to false"):
        change(on, SchemaChange.remove_option("ignore-delete"))


def test_deletion_vectors_can_be_turned_on_by_those_who_are_sure():
    new = change(
        a_schema(),
        SchemaChange.set_option("deletion-vectors.modifiable", "true"),
        SchemaChange.set_option("deletion-vectors.enabled", "true"),
    )

    assert new.options["deletion-vectors.enabled"] == "true"


def test_a_column_can_become_not_null_where_the_table_allows_it():
    schema = a_schema(**{"alter-column-null-to-not-null.disabled": "false"})

    new = change(schema, SchemaChange.update_column_nullability("a", False))

    assert not column(new, "a").type.nullable
    relaxed = change(new, SchemaChange.update_column_type("a", T("BIGINT")))
    kept = change(new, SchemaChange.update_column_type("a", T("BIGINT"), keep_nullability=True))
    assert str(column(relaxed, "a").type) == "BIGINT"
    assert str(column(kept, "a").type) == "BIGINT NOT NULL"


def test_nullable_keys_can_be_chosen_while_a_table_is_empty():
    schema = a_schema(primary_keys=["k"], partition_keys=[], bucket="1")
    nullable = SchemaChange.set_option("primary-key.nullable", "true")

    assert column(change(schema, nullable, has_snapshots=False), "k").type.nullable
    with pytest.raises(InvalidSchema, match="holds data"):
        change(schema, nullable)


def test_what_was_wrong_before_does_not_stop_a_change():
    schema = a_schema()
    odd = replace(schema, options=TableOptions({"fields.no.stats-mode": "full"}))

    assert change(odd, SchemaChange.update_comment("x")).comment == "x"
