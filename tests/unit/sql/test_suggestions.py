"""What Tab offers at a place in a statement."""

from collections.abc import Iterable

import pytest

from emberlake.sql.suggestions import suggest

TABLES = {"shop": ["orders", "customers", "odd name"], "logs": ["events"]}
COLUMNS = {
    ("orders",): ["order_id", "city", "price"],
    ("shop", "orders"): ["order_id", "city", "price"],
    ("customers",): ["id", "name"],
    ("logs", "events"): ["at", "what"],
}


class Lake:
    """The names of a lake."""

    catalog = "paimon"
    database = "shop"

    def databases(self) -> Iterable[str]:
        return list(TABLES)

    def tables(self, database: str) -> Iterable[str]:
        return TABLES.get(database, [])

    def columns(self, table: tuple[str, ...]) -> Iterable[str]:
        return COLUMNS.get(table, [])


def offered(text: str) -> list[str]:
    """What is offered at the mark ``|``, as the text would be after it was taken."""
    before, _, after = text.partition("|")
    return [
        before[: len(before) - found.replaces] + found.text
        for found in suggest(before, after, Lake())
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM ord|", "SELECT * FROM orders"),
        ("SELECT * FROM shop.cu|", "SELECT * FROM shop.customers"),
        ("SELECT * FROM paimon.lo|", "SELECT * FROM paimon.logs"),
        ("SELECT * FROM paimon.logs.e|", "SELECT * FROM paimon.logs.events"),
        ("SELECT * FROM orders o JOIN c|", "SELECT * FROM orders o JOIN customers"),
        ("SELECT * FROM orders, c|", "SELECT * FROM orders, customers"),
        ("SELECT * FROM od|", "SELECT * FROM `odd name`"),
        ("SELECT * FROM `odd|", "SELECT * FROM `odd name`"),
        ("SELECT pri| FROM orders", "SELECT price"),
        ("SELECT o.pri| FROM orders AS o", "SELECT o.price"),
        ("SELECT x.na| FROM orders o, customers x", "SELECT x.name"),
        ("SELECT wh| FROM logs.events", "SELECT what"),
        ("SELECT * FROM shop.orders WHERE shop.orders.ci|", None),
        ("SELECT 1; SELECT * FROM cu|", "SELECT 1; SELECT * FROM customers"),
        ("UPDATE orders SET pr|", "UPDATE orders SET price"),
        ("INSERT INTO cu|", "INSERT INTO customers"),
        ("USE lo|", "USE logs"),
        ("SHOW TABLES IN lo|", "SHOW TABLES IN logs"),
        ("CALL sys.create_t|", "CALL sys.create_tag("),
        ("SEL|", "SELECT"),
        ("sel|", "select"),
    ],
)
def test_the_one_name_that_fits_is_offered(text: str, expected: str | None) -> None:
    wanted = expected or text.partition("|")[0] + "ty"

    found = offered(text)

    assert wanted in found
    assert all(other.startswith(wanted[: text.index("|")]) or "`" in other for other in found)


@pytest.mark.parametrize("text", ["SELECT 'ord|", "SELECT 1 -- ord|\n'", "SELECT /* ord|"])
def test_nothing_is_offered_inside_of_texts_and_comments(text: str) -> None:
    assert [name for name in offered(text) if "orders" in name] == []


def test_columns_of_other_statements_are_not_offered() -> None:
    assert offered("SELECT * FROM customers; SELECT na| FROM orders") == []
    assert "SELECT na" not in offered("SELECT na| FROM orders; SELECT * FROM customers")


def test_without_a_letter_columns_come_before_everything_and_keywords_do_not() -> None:
    assert offered("SELECT | FROM customers c") == ["SELECT id", "SELECT name", "SELECT c"]
