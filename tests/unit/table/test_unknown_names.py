"""The error for an unknown name suggests the nearest ones, and stays short."""

import pyarrow as pa
import pytest

from builders import NAME, append, create_table, open_catalog, rows_of
from emberlake import Schema, SchemaChange
from emberlake.base.peer_names import OF_CATALOGS, OF_TABLES
from emberlake.errors import EmberlakeError, NotFound
from emberlake.io import MemoryStorage

WIDE = pa.schema([(f"column_{number:03}", pa.int32()) for number in range(499)] + [("price", "f8")])


def raw(**columns):
    return pa.table({name: pa.array(values) for name, values in columns.items()})


MISTAKES = {
    "filter": lambda catalog, table: table.new_read_builder().with_filter("prise > 1"),
    "filter of the builder": lambda catalog, table: (
        table.new_read_builder().new_predicate_builder().equal("prise", 1)
    ),
    "projection": lambda catalog, table: table.new_read_builder().with_projection(["prise"]),
    "write type": lambda catalog, table: (
        table.new_batch_write_builder().new_write().with_write_type(["prise"])
    ),
    "rows": lambda catalog, table: append(table, raw(prise=[1.0])),
    "change": lambda catalog, table: catalog.alter_table(NAME, [SchemaChange.drop_column("prise")]),
    "key": lambda catalog, table: catalog.create_table(
        "db.other", Schema.from_pyarrow_schema(WIDE, primary_keys=["prise"])
    ),
    "option": lambda catalog, table: catalog.create_table(
        "db.other", Schema.from_pyarrow_schema(WIDE, options={"bucket": "1", "bucket-key": "prise"})
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_of_five_hundred_columns_the_nearest_is_named(mistake):
    storage = MemoryStorage()
    table = create_table(storage, WIDE)

    with pytest.raises(EmberlakeError) as refused:
        MISTAKES[mistake](open_catalog(storage), table)

    assert "did you mean price?" in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_name_that_is_near_to_none_is_answered_by_some():
    table = create_table(columns=WIDE)

    with pytest.raises(EmberlakeError, match=r"has column_000, .* and 492 more$") as refused:
        table.new_read_builder().with_projection(["x", "y"])

    assert len(str(refused.value)) < 300


OTHERS = {
    "database": (lambda catalog, table: catalog.get_database("dbx"), "db"),
    "database of a table": (lambda catalog, table: catalog.get_table("dbx.t"), "db"),
    "table": (lambda catalog, table: catalog.get_table("db.T"), "t"),
    "system table": (lambda catalog, table: catalog.get_table("db.t$snapshot"), "snapshots"),
    "branch to open": (lambda catalog, table: catalog.get_table("db.t$branch_tril"), "trial"),
    "branch": (lambda catalog, table: table.delete_branch("tril"), "trial"),
    "tag": (lambda catalog, table: table.rollback_to("week-24"), "week-23"),
    "tag of a branch": (lambda catalog, table: table.create_branch("b", "week23"), "week-23"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_whatever_has_a_name_is_offered_by_it(what):
    storage = MemoryStorage()
    table = create_table(storage)
    append(table, rows_of([1]))
    table.create_tag("week-23")
    table.create_branch("trial", "week-23")
    attempt, meant = OTHERS[what]

    with pytest.raises(NotFound, match=f"did you mean {meant}\\?$"):
        attempt(open_catalog(storage), table)


def test_an_unknown_field_of_a_row_is_answered_by_the_fields_that_there_are() -> None:
    catalog = open_catalog(MemoryStorage())
    place = pa.struct([("street", "string"), ("town", "string")])
    catalog.create_database("db")
    table = catalog.create_table(NAME, pa.schema([("id", pa.int64()), ("place", place)]))
    told = r"did you mean place\.town or place\?"

    with pytest.raises(NotFound, match=told):
        table.to_arrow(["place.twn"])
    with pytest.raises(NotFound, match=told):
        table.to_arrow(filter="place.twn = 'x'")


def test_names_of_delta_lake_and_iceberg_are_answered_by_ours() -> None:
    catalog = open_catalog(MemoryStorage())
    table = create_table()

    with pytest.raises(AttributeError, match=r"'vacuum'; use expire_snapshots\(\) and remove_orph"):
        _ = table.vacuum
    with pytest.raises(AttributeError, match=r"'load_table'; use get_table\(name\)"):
        _ = catalog.load_table
    assert not hasattr(table, "something_else")


def test_every_name_that_is_suggested_for_those_of_peers_exists() -> None:
    for owner, names in ((create_table(), OF_TABLES), (open_catalog(MemoryStorage()), OF_CATALOGS)):
        for peer, told in names.items():
            assert not hasattr(owner, peer)
            name = told.removeprefix("catalog.").partition("(")[0].partition(",")[0]
            assert hasattr(owner, name) or "catalog." in told or "emberlake." in told, told
