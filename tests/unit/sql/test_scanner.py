"""Names of tables are found where Spark's grammar has tables, and nowhere else."""

import pytest

from emberlake.errors import InvalidSql
from emberlake.sql.replacing import edited, edits_of
from emberlake.sql.scanner import find_references


def names(text: str) -> list[str]:
    return [".".join(reference.name.parts) for reference in find_references(text).references]


def replaced(text: str) -> str:
    found = find_references(text)
    edits = edits_of(found, dict.fromkeys(found.references, "X"), ("paimon", "db"))
    return edited(text, list(edits))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM a.b, c JOIN `d e` ON x = y", ["a.b", "c", "d e"]),
        ("SELECT (SELECT max(x) FROM a) FROM b WHERE c IN (SELECT d FROM e)", ["a", "b", "e"]),
        ("FROM a |> WHERE x > 1 |> JOIN b USING (id) |> AGGREGATE count(*)", ["a", "b"]),
        ("TABLE a UNION TABLE b", ["a", "b"]),
        ("WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a) SELECT * FROM a, B, c", ["a", "c"]),
        ("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM a", []),
        ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) JOIN a", ["a"]),
        ("SELECT 'FROM a', \"FROM b\" FROM c -- FROM d\n/* FROM e /* */ FROM f */", ["c"]),
        ("SELECT extract(day FROM d), trim('x' FROM s) FROM a", ["a"]),
        ("SELECT x IS NOT DISTINCT FROM y FROM a", ["a"]),
        ("SELECT from FROM select", ["select"]),
        ("SELECT a.from, table FROM b WHERE join = 1", ["b"]),
        ("SELECT * FROM VALUES (1), (2) AS v(id), a", ["a"]),
        ("SELECT * FROM range(3) r, LATERAL explode(x) t, b", ["range", "explode", "b"]),
        ("SELECT * FROM a LATERAL VIEW explode(x) t AS y, z", ["a"]),
        ("SELECT * FROM ((a CROSS JOIN b) JOIN (SELECT * FROM c) d)", ["a", "b", "c"]),
        ("SELECT a, b FROM c ORDER BY d, e LIMIT 3", ["c"]),
    ],
)
def test_tables_are_found(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_versions_and_times_belong_to_their_tables() -> None:
    text = (
        "SELECT * FROM a VERSION AS OF 1 x, b FOR VERSION AS OF 'tag' JOIN c TIMESTAMP AS OF "
        "TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR AS y"
    )

    found = find_references(text).references

    assert [(r.version, r.timestamp, r.alias) for r in found] == [
        ("1", None, "x"),
        ("tag", None, None),
        (None, "TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR", "y"),
    ]
    with pytest.raises(InvalidSql, match="snapshot"):
        find_references("SELECT * FROM a VERSION AS OF id")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT t.id FROM db.t", "SELECT t.id FROM X AS `t`"),
        ("SELECT db.t.id, db.t.* FROM db.t", "SELECT t.id, t.* FROM X AS `t`"),
        ("SELECT db.t.id, paimon.db.t.s.x FROM t", "SELECT t.id, t.s.x FROM X AS `t`"),
        ("SELECT db.t.id FROM other.t", "SELECT db.t.id FROM X AS `t`"),
        ("SELECT t.id FROM db.t u", "SELECT t.id FROM X u"),
        ("SELECT * FROM t WITH ('a' = 1, b.c = 'd') x", "SELECT * FROM X x"),
        (
            "SELECT * FROM db.t WHERE EXISTS (SELECT 1 FROM i WHERE i.id = db.t.id)",
            "SELECT * FROM X AS `t` WHERE EXISTS (SELECT 1 FROM X AS `i` WHERE i.id = t.id)",
        ),
        (
            "SELECT * FROM t TABLESAMPLE (10 PERCENT), u VERSION AS OF 1",
            "SELECT * FROM X TABLESAMPLE (10 PERCENT) AS `t`, X AS `u`",
        ),
        ("TABLE db.t", "TABLE X"),
    ],
)
def test_only_names_are_replaced_and_tables_keep_theirs(text: str, expected: str) -> None:
    assert replaced(text) == expected


def test_functions_stars_and_words_are_found() -> None:
    found = find_references("SELECT *, t.*, struct(*), count(*) FROM t WHERE sys.max_pt('t') = a")

    assert [(call.name, call.arguments) for call in found.calls] == [(("sys", "max_pt"), ("'t'",))]
    assert [star.qualifier for star in found.stars] == [None, "t", None]
    assert "max_pt" in found.words
    current = find_references("SELECT current_database(), current_schema FROM t").calls
    assert [call.name for call in current] == [("current_database",)]


def test_options_behind_a_table_are_its_own() -> None:
    (found,) = find_references(
        "SELECT * FROM t VERSION AS OF 1 WITH ('a' = 1, b.c = 'd')"
    ).references

    assert (found.version, found.options) == ("1", (("a", "1"), ("b.c", "d")))


def test_a_table_may_be_called_order() -> None:
    found = find_references("SELECT order.a FROM order JOIN order ON true ORDER BY a")

    assert [reference.name.last for reference in found.references] == ["order", "order"]
    assert find_references("SELECT a FROM (SELECT 1 AS a) ORDER BY a").references == []
