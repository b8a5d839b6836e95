"""Plain names in clauses of MERGE that only one side has rows for."""

import pytest

from emberlake.sql.merge_scopes import qualified


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + ID * other", "`s`.n + `s`.ID * other"),
        ("s.n + t.n + x.y.n", "s.n + t.n + x.y.n"),
        ("n.field[n]", "`s`.n.field[`s`.n]"),
        ("`n` = 'n' -- n", "`s`.`n` = 'n' -- n"),
        ("concat(id, n(1))", "concat(`s`.id, n(1))"),
        ("CAST(n AS day)", "CAST(`s`.n AS day)"),
        ("date '2024-01-01' + INTERVAL 1 day", "date '2024-01-01' + INTERVAL 1 day"),
        ("transform(a, n -> n + id)", "transform(a, n -> n + `s`.id)"),
        ("reduce(a, 0, (n, id) -> n + id) + day", "reduce(a, 0, (n, id) -> n + id) + `s`.day"),
        ("(SELECT max(n) FROM u)", "(SELECT max(n) FROM u)"),
        (":n + n", ":n + `s`.n"),
    ],
)
def test_plain_names_of_columns_are_qualified_and_nothing_else(text: str, expected: str) -> None:
    names = {"n", "id", "day", "date"}

    found = qualified(text, names, "`s`", {"s", "t"})

    assert found == expected


def test_a_column_with_the_name_of_a_side_is_a_qualifier_before_a_dot() -> None:
    assert qualified("s.n + s", {"s"}, "`s`", {"s", "t"}) == "s.n + `s`.s"
