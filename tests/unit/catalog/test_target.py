"""What a caller asks of the table that is written to, and what becomes of it."""

import pyarrow as pa
import pytest

from builders import new_storage, open_catalog
from emberlake import InvalidIdentifier, InvalidInput, TableAlreadyExists, TableNotFound
from emberlake.catalog.target import TargetRules, WriteMode, open_target
from emberlake.types import from_arrow_schema

FIELDS = from_arrow_schema(pa.schema([("id", pa.int64()), ("note", pa.string())]))


def names_in(catalog):
    return catalog.list_tables("db") if "db" in catalog.list_databases() else []


def test_an_overwrite_is_a_mode_whichever_word_says_so():
    assert TargetRules.of("overwrite").overwrite is True
    assert TargetRules.of(overwrite="all").mode is WriteMode.OVERWRITE
    assert TargetRules.of("errorifexists").mode is WriteMode.ERROR


def test_everything_that_is_wrong_is_one_error():
    with pytest.raises(InvalidInput) as refused:
        TargetRules.of("upsert", overwrite="some", partition_by="day", create=True)

    assert str(refused.value) == (
        "mode='upsert' contradicts overwrite='some': an overwrite is mode='overwrite', and "
        "overwrite= says what it replaces; overwrite='some' is not one of True, False, "
        "'dynamic', 'static', 'all'; partition_by is a list of columns, as in ['day']"
    )


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_a_mode_that_creates_needs_no_other_word(mode):
    catalog = open_catalog(new_storage())

    with open_target(catalog, "db.t", FIELDS, TargetRules.of(mode, primary_keys=["id"])) as table:
        assert table.primary_keys == ["id"]

    assert names_in(catalog) == ["t"]


def test_a_table_that_exists_is_left_alone_refused_or_opened():
    catalog = open_catalog(new_storage())
    with open_target(catalog, "db.t", FIELDS, TargetRules.of("error")):
        pass

    with open_target(catalog, "db.t", FIELDS, TargetRules.of("ignore")) as table:
        assert table is None
    with open_target(catalog, "db.t", FIELDS, TargetRules.of(create=True)) as table:
        assert table.field_names == ["id", "note"]
    with (
        pytest.raises(TableAlreadyExists, match="mode='append' adds rows"),
        open_target(catalog, "db.t", FIELDS, TargetRules.of("error")),
    ):
        pass


@pytest.mark.parametrize("mode", ["append", "ignore", "error"])
def test_a_table_that_somebody_else_creates_meanwhile_is_a_table_that_exists(mode, monkeypatch):
    catalog = open_catalog(new_storage())
    create = catalog.create_table

    def create_second(identifier, schema):
        create(identifier, schema)
        return create(identifier, schema)

    monkeypatch.setattr(catalog, "create_table", create_second)
    target = open_target(catalog, "db.t", FIELDS, TargetRules.of(mode, create=True))

    if mode == "error":
        with pytest.raises(TableAlreadyExists, match="mode='append' adds rows"), target:
            pass
    else:
        with target as table:
            assert (table is None) == (mode == "ignore")
    assert names_in(catalog) == ["t"]


def test_a_table_that_is_missing_is_created_only_if_somebody_says_so():
    catalog = open_catalog(new_storage())

    with (
        pytest.raises(TableNotFound, match="create=True creates it"),
        open_target(catalog, "db.t", FIELDS, TargetRules.of()),
    ):
        pass

    assert names_in(catalog) == []


def test_no_table_is_created_by_a_name_that_begins_with_a_catalog():
    catalog = open_catalog(new_storage())
    rules = TargetRules.of(create=True)

    with (
        pytest.raises(InvalidIdentifier, match=r"paimon\.db\.t has more than two parts"),
        open_target(catalog, "paimon.db.t", FIELDS, rules),
    ):
        pass
    with open_target(catalog, "`db`.`a.b`", FIELDS, rules) as table:
        assert table.identifier.table == "a.b"

    assert catalog.list_databases() == ["db"]


def test_a_new_table_is_dropped_after_a_failure_unless_somebody_wrote_to_it():
    catalog = open_catalog(new_storage())

    def fail(*, first_writes):
        with open_target(catalog, "db.t", FIELDS, TargetRules.of(create=True)) as table:
            if first_writes:
                table.append(pa.table({"id": [1]}))
            raise RuntimeError("the job failed")

    with pytest.raises(RuntimeError, match="the job failed"):
        fail(first_writes=False)
    assert names_in(catalog) == []
    with pytest.raises(RuntimeError, match="the job failed"):
        fail(first_writes=True)
    assert catalog.get_table("db.t").count() == 1
