"""Scripts: where statements begin, and whether what was typed is one."""

import pytest

from emberlake.errors import InvalidSql
from emberlake.sql.script import Part, is_finished, split_script


def test_statements_are_split_at_semicolons_outside_of_quotes_and_comments() -> None:
    text = "-- first;\nSELECT ';' AS `a;b`;\n\n/* ; */ SELECT\n  2 -- ;\n;;\n"

    assert split_script(text) == (Part("SELECT ';' AS `a;b`", 2), Part("SELECT\n  2", 4))


def test_the_last_semicolon_may_be_left_out() -> None:
    assert split_script("SELECT 1;SELECT 2") == (Part("SELECT 1", 1), Part("SELECT 2", 1))
    assert split_script(" -- nothing\n") == ()


def test_an_error_in_the_text_says_in_which_line() -> None:
    with pytest.raises(InvalidSql) as caught:
        split_script("SELECT 1;\nSELECT 'a;\nSELECT 2")

    assert caught.value.__notes__ == ["line 2"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- all", True),
        ("SELECT 1;\n", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT `a;", False),
        ("SELECT 1 /* ;", False),
        ("", False),
        ("SELECT gr\u00f6\u00dfe", True),  # more text does not mend it
    ],
)
def test_a_statement_is_finished_by_its_semicolon(typed: str, expected: bool) -> None:
    assert is_finished(typed) is expected
