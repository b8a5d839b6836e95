"""A query says which columns and rows of a table it needs; what is not sure is read."""

import pyarrow as pa
import pytest

from emberlake.spec.schema import TableSchema
from emberlake.sql.pruning import needed_columns, predicates_in
from emberlake.sql.scanner import find_references
from emberlake.types import from_arrow_schema

COLUMNS = pa.schema(
    [
        ("id", pa.int32()),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("weight", pa.float64()),
        ("at", pa.timestamp("us")),
    ]
)
TABLE = TableSchema(0, from_arrow_schema(COLUMNS), 5)


def predicates(text: str, **args: object) -> list[str]:
    places = {r.start: TABLE for r in find_references(text).references if r.name.last == "t"}
    found = predicates_in(text, places, args)
    return [str(found[place]) for place in sorted(found)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 3 AND name = 'x' AND weight > 1", ["id = 3 AND name = 'x'"]),
        ("5 > id", ["id < 5"]),
        ("id BETWEEN 1 AND 2.5", ["id >= 1 AND id <= 2"]),
        ("id IN (1, 2)", ["id IN (1, 2)"]),
        ("day = DATE '2024-01-02'", ["day = DATE '2024-01-02'"]),
        ("day > '2024-01-02'", ["day > DATE '2024-01-02'"]),
        ("price >= 1.5", ["price >= 1.50"]),
        # What Spark would cast, or what may be true for NULL, says nothing.
        ("name = 5", []),
        ("id = '5'", []),
        ("id = 1e0", []),
        ("day = '2024-1-2'", []),
        ("at > '2024-01-02'", []),
        ("name IS NULL", []),
        ("id <=> 1", []),
        ("id = 1 OR id = 2", []),
        ("NOT (id = 1)", []),
        ("other.id = 1", []),
        (r"name = 'a\'b'", []),
    ],
)
def test_comparisons_with_literals_prune(where: str, expected: list[str]) -> None:
    assert predicates(f"SELECT * FROM t WHERE {where}") == expected


def test_parameters_are_literals() -> None:
    assert predicates("SELECT * FROM t WHERE id = :i AND name = :n", i=3, n="x") == [
        "id = 3 AND name = 'x'"
    ]
    assert predicates("SELECT * FROM t WHERE id = :i", i="3") == []


def test_in_joins_only_columns_with_their_table_count() -> None:
    text = "SELECT * FROM u LEFT JOIN t ON u.id = t.id WHERE t.id = 1 AND id = 2 AND u.id = 3"

    assert predicates(text) == ["id = 1"]
    assert predicates("SELECT * FROM t TABLESAMPLE (5 ROWS) WHERE id = 1") == []
    nested = "SELECT * FROM u WHERE EXISTS (SELECT 1 FROM db.t x WHERE x.id = 1 AND x.id = u.id)"
    assert predicates(nested) == ["id = 1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT ID, count(*) FROM t WHERE name > 'x' GROUP BY id", ["id", "name"]),
        ("SELECT count(*) FROM t", []),
        ("SELECT * FROM t", None),
        ("SELECT to_json(struct(*)) FROM t", None),
        ("SELECT id FROM t NATURAL JOIN u", None),
        ("FROM t |> WHERE id = 1", None),
        ("TABLE t", None),
    ],
)
def test_columns_that_are_not_named_are_not_read(text: str, expected: list[str] | None) -> None:
    assert needed_columns(find_references(text), TABLE) == expected
