"""Text is taken apart as Spark does it."""

import pytest

from emberlake.errors import InvalidSql
from emberlake.sql.lexer import Kind, text_value, tokenize


def texts(sql: str) -> list[str]:
    return [token.text for token in tokenize(sql)[:-1]]


def test_every_token_knows_its_place() -> None:
    sql = "SELECT `a``b`.c, 'it''s' /* n.t /* in */ */ FROM x -- n.t\nWHERE y>=1.5e3"

    tokens = tokenize(sql)

    assert [sql[token.start : token.end] for token in tokens] == [token.text for token in tokens]
    assert texts(sql) == [
        "SELECT", "`a``b`", ".", "c", ",", "'it''s'", "FROM", "x", "WHERE", "y", ">=", "1.5e3"
    ]  # fmt: skip


def test_names_may_begin_with_digits() -> None:
    assert texts("1st t.1st 1 t.1") == ["1st", "t", ".", "1st", "1", "t", ".", "1"]
    assert tokenize("2L")[0].kind is Kind.NUMBER


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        ('"it\'s"', "it's"),
        (r"'back\\slash'", "back\\slash"),
        (r"'tab\tline\n'", "tab\tline\n"),
        (r"r'raw\n'", r"raw\n"),
        (r"'50\%'", r"50\%"),
        (r"'é'", "é"),
        ("''''", "'"),
    ],
)
def test_text_has_the_value_that_spark_gives_it(literal: str, value: str) -> None:
    assert text_value(tokenize(literal)[0]) == value


@pytest.mark.parametrize("text", ["'open", '"open', "`open", "/* open /* */"])
def test_what_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidSql, match="does not end"):
        tokenize(text)
