"""Parameters that are bound before a statement is parsed."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from emberlake.errors import InvalidSql
from emberlake.sql.parameters import with_literals


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "true"),
        (-3, "-3"),
        (Decimal("1.50"), "1.50"),
        ("it's a \\", "'it\\'s a \\\\'"),
        (date(2024, 1, 2), "DATE '2024-01-02'"),
        (datetime(2024, 1, 2, 3), "TIMESTAMP '2024-01-02 03:00:00'"),  # noqa: DTZ001
    ],
)
def test_commands_get_literals(value: Any, literal: str) -> None:
    assert with_literals("CALL sys.f(a => :v)", {"v": value}) == f"CALL sys.f(a => {literal})"


def test_versions_get_literals_in_every_statement() -> None:
    query = "SELECT :v FROM t VERSION AS OF :v JOIN u FOR SYSTEM_VERSION AS OF :w"

    assert with_literals(query, {"v": 1, "w": 2}) == (
        "SELECT :v FROM t VERSION AS OF 1 JOIN u FOR SYSTEM_VERSION AS OF 2"
    )


def test_fields_of_structs_are_no_parameters() -> None:
    text = "ALTER TABLE t ADD COLUMN s STRUCT<a:INT, b : STRING COMMENT 'x:y'>"

    assert with_literals(text, {"y": 1}) == text


def test_a_parameter_without_a_value_is_told() -> None:
    for text in ("CALL sys.f(:v)", "SELECT * FROM t VERSION AS OF :v"):
        with pytest.raises(InvalidSql, match="UNBOUND_SQL_PARAMETER"):
            with_literals(text, {"w": 1})
    with pytest.raises(InvalidSql, match="cannot be a list"):
        with_literals("CALL sys.f(:v)", {"v": [1]})
