"""What only a catalog with a server has: properties, external tables, views and functions."""

from pathlib import Path

import pyarrow as pa
import pytest

from builders import COLUMNS, append, rows_of
from emberlake import CatalogFactory, Schema
from emberlake.catalog import RestCatalog
from emberlake.errors import (
    DatabaseNotEmpty,
    DatabaseNotFound,
    FunctionNotFound,
    InvalidOption,
    InvalidSql,
    NoPermission,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    ViewNotFound,
)
from rest_recordings import labelled
from rest_server import RestServer
from table_reads import read_ids


@pytest.fixture
def catalog(server: RestServer) -> RestCatalog:
    made = server.open()
    assert isinstance(made, RestCatalog)
    made.create_database("db", properties={"a": "1", "comment": "ours"})
    return made


def test_a_database_has_properties_that_can_be_changed(catalog: RestCatalog) -> None:
    catalog.alter_database("db", {"b": "2"}, ["a"])

    found = catalog.get_database("db")
    assert (found.options, found.comment) == ({"b": "2", "comment": "ours"}, "ours")
    with pytest.raises(DatabaseNotFound, match="did you mean db"):
        catalog.alter_database("dbb", {"b": "2"})


def test_a_folder_becomes_an_external_table_whose_snapshots_are_files(
    catalog: RestCatalog, server: RestServer, tmp_path: Path
) -> None:
    elsewhere = CatalogFactory.create({"warehouse": str(tmp_path / "elsewhere")})
    elsewhere.create_database("d")
    made = elsewhere.create_table("d.t", COLUMNS)
    append(made, rows_of([1]))

    table = catalog.register_table("db.ext", made.table_path)
    append(table, rows_of([2]))

    assert read_ids(table) == read_ids(made) == [1, 2]
    assert server.asked("POST .*/commit$") == []
    assert catalog.list_tables("db") == ["ext"]
    catalog.drop_table("db.ext")
    assert read_ids(made) == [1, 2]


def test_a_name_that_is_taken_is_not_registered(
    catalog: RestCatalog, server: RestServer, tmp_path: Path
) -> None:
    taken = {"resourceType": "TABLE", "resourceName": "t", "code": 409}
    server.fail("POST .*/register$", status=409, body=taken)

    with pytest.raises(TableAlreadyExists, match=r"db\.t already exists"):
        catalog.register_table("db.t", str(tmp_path))


def test_a_view_is_read_by_sql_and_sees_the_names_of_its_database(
    catalog: RestCatalog, server: RestServer
) -> None:
    [view] = labelled("get view")
    catalog.sql("CREATE TABLE db.t (k BIGINT, g STRING)")
    catalog.sql("INSERT INTO db.t VALUES (1, 'a'), (2, 'b')")
    server.views["db", "v"] = view["answer"]

    assert catalog.sql(
        "SELECT x.k FROM db.v x JOIN db.t ON x.k = t.k WHERE g = 'b'"
    ).fetchall() == [(2,)]
    assert catalog.sql("SELECT sum(v.k) FROM paimon.db.v").fetchall() == [(3,)]
    assert catalog.sql("DESCRIBE db.v").fetchall() == [("k", "bigint", None)]
    assert catalog.sql("SHOW VIEWS IN db").fetchall() == [("db", "v", False)]
    itself = {**view["answer"]["schema"], "dialects": {}, "query": "SELECT k FROM v"}
    server.views["db", "v"] = {**view["answer"], "schema": itself}
    with pytest.raises(InvalidSql, match="uses itself"):
        catalog.sql("SELECT * FROM db.v")


def test_a_view_sees_no_temporary_view_and_no_variable_and_does_not_travel(
    catalog: RestCatalog, server: RestServer
) -> None:
    [view] = labelled("get view")
    catalog.sql("CREATE TABLE db.t (k BIGINT, g STRING)")
    catalog.sql("INSERT INTO db.t VALUES (1, 'a'), (2, 'b')")
    server.views["db", "v"] = view["answer"]
    catalog.sql("CREATE TEMPORARY VIEW t AS SELECT 99 AS k")

    assert catalog.sql("SELECT k FROM db.v ORDER BY k").fetchall() == [(1,), (2,)]
    assert catalog.sql("SELECT k FROM t").fetchall() == [(99,)]
    with pytest.raises(Unsupported, match=r"db\.v is a view"):
        catalog.sql("SELECT * FROM db.v VERSION AS OF 1")
    missing = {**view["answer"]["schema"], "dialects": {}, "query": "SELECT k FROM delivery"}
    server.views["db", "v"] = {**view["answer"], "schema": missing}
    delivery = pa.table({"k": [1]})
    assert catalog.sql("SELECT k FROM delivery").fetchall() == [(1,)]
    with pytest.raises(TableNotFound, match="delivery"):
        catalog.sql("SELECT * FROM db.v")
    del delivery


def test_views_and_functions_are_listed_and_shown(catalog: RestCatalog, server: RestServer) -> None:
    [view], [function] = labelled("get view"), labelled("get function")
    server.views["db", "v"] = view["answer"]
    server.functions["db", "f"] = function["answer"]

    assert (catalog.list_views("db"), catalog.list_functions("db")) == (["v"], ["f"])
    shown = catalog.get_view("db.v")
    assert (shown.query, shown.dialects) == ("SELECT k FROM t", {"spark": "SELECT k FROM t"})
    assert [str(field.type) for field in shown.fields] == ["BIGINT"]
    assert catalog.get_function("db.f").definitions["sql"]["definition"] == "SELECT 1"
    with pytest.raises(ViewNotFound):
        catalog.get_view("db.nope")
    with pytest.raises(FunctionNotFound):
        catalog.get_function("db.nope")
    with pytest.raises(DatabaseNotEmpty, match="holds f, v"):
        catalog.drop_database("db")


def test_names_may_have_blanks_and_letters_of_any_alphabet(catalog: RestCatalog) -> None:
    name = "db.`a b+c é~%`"
    append(catalog.create_table(name, COLUMNS), rows_of([1]))

    assert read_ids(catalog.get_table(name)) == [1]
    assert catalog.list_tables("db") == ["a b+c é~%"]


def test_a_forbidden_request_is_reported_with_what_was_asked(
    catalog: RestCatalog, server: RestServer
) -> None:
    body = {"resourceType": "TABLE", "resourceName": "t", "message": "not for you", "code": 403}
    server.fail("GET .*/tables/t$", status=403, body=body)

    with pytest.raises(NoPermission, match=r"/tables/t failed with 403, request r-1: not for you"):
        catalog.get_table("db.t")


@pytest.mark.parametrize(
    "key",
    ["s3.credentials-provider", "fs.gs.credential-path", "s3.web.identity.token.file",
     "s3a.profile", "azure.ssl.ca.file"],
)  # fmt: skip
@pytest.mark.parametrize("part", ["defaults", "overrides"])
def test_no_server_names_code_or_files_of_its_clients(
    server: RestServer, part: str, key: str
) -> None:
    server.config = {part: {key: "antigravity:theirs"}}

    with pytest.raises(InvalidOption, match=f"the server wants {key}"):
        server.open()

    mine = {**server.options, key: "mine"}
    if part == "defaults":
        assert RestCatalog.connect(mine).options[key] == "mine"


def test_a_table_is_not_replaced_by_a_server_that_cannot(catalog: RestCatalog) -> None:
    catalog.create_table("db.t", COLUMNS)

    with pytest.raises(Unsupported, match="drop it, and create it again"):
        catalog.replace_table("db.t", Schema.from_pyarrow_schema(COLUMNS))
    with pytest.raises(TableNotFound):
        catalog.replace_table("db.no", Schema.from_pyarrow_schema(COLUMNS))
