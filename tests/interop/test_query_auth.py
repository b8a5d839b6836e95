"""The same rules of one server, obeyed by us, by pypaimon and by Java."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from canonical import canonical_rows, sorted_rows
from emberlake import Schema
from emberlake.table import Table
from interop.judges import JavaJudge, Peer, Warehouse
from query_auth import NULL, column, compound, leaf, of_inputs, ref, rules, upper
from rest_server import RestServer, serving

pytestmark = pytest.mark.interop

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.string()), ("w", pa.string())])
ROWS = pa.table(
    {
        "k": [1, 2, 3, 4],
        "v": ["ann", "bob", None, "dan"],
        "w": [None, "x", "y", "100%"],
    },
    schema=COLUMNS,
)
K = column("k", "BIGINT")
CONCAT = of_inputs("CONCAT", ref("v"), "-", ref("w"))
RULES: dict[str, Mapping[str, Any]] = {
    "nothing": rules(),
    "comparison": rules(leaf(K, "GREATER_THAN", 1)),
    "several": rules(leaf(K, "NOT_EQUAL", 2), leaf("v", "IS_NOT_NULL")),
    "in": rules(leaf("v", "IN", "ann", None, "dan")),
    "not in": rules(leaf("v", "NOT_IN", "ann")),
    "between": rules(leaf(K, "BETWEEN", 2, 3)),
    "not between": rules(leaf(K, "NOT_BETWEEN", 2, 3)),
    "text": rules(compound("OR", leaf("v", "STARTS_WITH", "b"), leaf("w", "CONTAINS", "%"))),
    "like": rules(leaf("v", "LIKE", "_an")),
    "computed": rules(leaf(upper("v"), "EQUAL", "BOB")),
    "joined": rules(leaf(CONCAT, "ENDS_WITH", "-x")),
    "mask": rules(masks={"v": upper("v")}),
    "null": rules(masks={"w": NULL}),
    "mask by filter": rules(leaf("w", "IS_NOT_NULL"), masks={"v": CONCAT}),
    "separated": rules(masks={"v": of_inputs("CONCAT_WS", "/", ref("v"), None, ref("w"))}),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    with serving(tmp_path_factory.mktemp("served"), warehouse="w") as made:
        yield made


@pytest.fixture(scope="module")
def table(server: RestServer) -> Table:
    catalog = server.open()
    catalog.create_database("db")
    schema = Schema.from_pyarrow_schema(COLUMNS, options={"query-auth.enabled": "true"})
    made = catalog.create_table("db.t", schema)
    made.append(ROWS)
    return made


def where(server: RestServer) -> Warehouse:
    return Warehouse("w", server.options)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("columns", [None, ["k"], ["w", "v"]], ids=str)
def test_we_see_what_pypaimon_sees(
    server: RestServer, table: Table, pypaimon: Peer, name: str, columns: list[str] | None
) -> None:
    answer = RULES[name]
    server.rules = lambda _: answer

    theirs = pypaimon.read(where(server), "db.t", columns=columns)

    assert sorted_rows(canonical_rows(table.to_arrow(columns=columns))) == sorted_rows(
        canonical_rows(theirs)
    )


@pytest.mark.parametrize("name", RULES)
def test_we_see_what_java_sees(
    server: RestServer, table: Table, java: JavaJudge, name: str
) -> None:
    answer = RULES[name]
    server.rules = lambda _: answer

    theirs = java.rows(where(server), "db.t")

    assert sorted_rows(canonical_rows(table.to_arrow())) == theirs
