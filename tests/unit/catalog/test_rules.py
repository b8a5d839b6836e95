"""The rules of creating and altering tables, without a catalog."""

import pytest

from emberlake import SchemaChange
from emberlake.catalog.rules import (
    alter_until_published,
    altered_schema,
    branch_not_found,
    check_no_snapshots,
    first_schema,
    plain_table,
    table_not_found,
)
from emberlake.errors import (
    ColumnNotFound,
    CommitConflict,
    InvalidIdentifier,
    InvalidInput,
    InvalidOption,
    InvalidSchema,
)
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import Schema
from emberlake.types import AtomicType, DataField

NAME = Identifier("db", "t")
SCHEMA = Schema([DataField(0, "id", AtomicType("BIGINT"))])
KEYED = Schema(
    [DataField(0, "id", AtomicType("BIGINT NOT NULL")), DataField(1, "n", AtomicType("STRING"))],
    primary_keys=["id"],
    options={"bucket": "1"},
)


def test_a_new_table_gets_the_options_that_it_says_and_those_of_its_catalog():
    schema = Schema(SCHEMA.fields, options={"a": "own"})
    options = {"table-default.a": "1", "table-default.b": "2", "c": "3"}

    first = first_schema(NAME, schema, options, time_millis=7)

    assert (first.id, first.time_millis) == (0, 7)
    assert dict(first.options) == {"a": "own", "b": "2"}


@pytest.mark.parametrize(
    ("schema", "error", "says"),
    [
        (Schema(SCHEMA.fields, options={"path": "/x"}), InvalidOption, "the catalog decides"),
        (Schema(SCHEMA.fields, primary_keys=["x"]), InvalidInput, "x"),
        (
            Schema(
                KEYED.fields, (), ("id",), {"bucket": "1", "fields.x.aggregate-function": "sum"}
            ),
            InvalidInput,
            "x",
        ),
    ],
)
def test_what_is_wrong_with_a_new_table_names_the_table(schema, error, says):
    with pytest.raises(error, match=rf"db\.t.*{says}"):
        first_schema(NAME, schema, {}, time_millis=0)


def test_a_change_makes_the_next_schema_or_none():
    current = first_schema(NAME, SCHEMA, {}, time_millis=0)

    changed = altered_schema(
        NAME, current, [SchemaChange.set_option("a", "b")], has_snapshots=True, time_millis=9
    )

    assert (changed.id, changed.time_millis, changed.options["a"]) == (1, 9, "b")
    with pytest.raises(ColumnNotFound, match=r"db\.t"):
        altered_schema(
            NAME, current, [SchemaChange.drop_column("x")], has_snapshots=True, time_millis=9
        )


def test_a_change_of_how_rows_merge_is_checked():
    current = first_schema(NAME, KEYED, {}, time_millis=0)
    change = SchemaChange.set_option("fields.nope.sequence-group", "n")

    with pytest.raises(InvalidSchema, match=r"db\.t.*nope"):
        altered_schema(NAME, current, [change], has_snapshots=False, time_millis=9)


@pytest.mark.parametrize(("wins_at", "tries"), [(1, 1), (3, 3), (100, 100)])
def test_a_change_is_tried_until_nobody_was_faster(wins_at, tries):
    tried = []

    alter_until_published(NAME, lambda: tried.append(1) or len(tried) == wins_at)

    assert len(tried) == tries


def test_a_change_that_never_wins_is_given_up():
    with pytest.raises(CommitConflict, match=r"db\.t got another schema in each of 100 attempts"):
        alter_until_published(NAME, lambda: False)


def test_old_snapshots_are_no_new_table():
    check_no_snapshots(NAME, (), "/w")

    with pytest.raises(InvalidInput, match="/w has snapshots but no schema"):
        check_no_snapshots(NAME, (3,), "/w")


def test_errors_say_what_may_be_meant():
    assert "orders" in str(table_not_found(Identifier("db", "oders"), "/w", ["orders", "x"]))
    assert "trial" in str(branch_not_found(Identifier("db", "t", "trail"), ["trial"]))
    with pytest.raises(InvalidIdentifier, match="cannot be dropped"):
        plain_table("db.t$files", "dropped")
