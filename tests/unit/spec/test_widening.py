import pytest

from emberlake.spec.widening import can_become, is_widening
from emberlake.types import AtomicType as T

WIDENINGS = [
    ("TINYINT", "SMALLINT"),
    ("INT", "BIGINT"),
    ("INT", "DOUBLE"),
    ("SMALLINT", "FLOAT"),
    ("INT", "DECIMAL(10, 0)"),
    ("BIGINT", "DECIMAL(21, 2)"),
    ("FLOAT", "DOUBLE"),
    ("DECIMAL(10, 2)", "DECIMAL(12, 4)"),
    ("CHAR(3)", "CHAR(5)"),
    ("CHAR(3)", "VARCHAR(3)"),
    ("VARCHAR(3)", "STRING"),
    ("INT", "STRING"),
    ("BOOLEAN", "STRING"),
    ("DATE", "STRING"),
    ("BINARY(3)", "VARBINARY(9)"),
    ("VARBINARY(3)", "BYTES"),
    ("TIMESTAMP(3)", "TIMESTAMP(9)"),
    ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"),
    ("INT NOT NULL", "INT"),
]
NARROWINGS = [
    ("INT", "FLOAT"),
    ("BIGINT", "DOUBLE"),
    ("INT", "DECIMAL(9, 0)"),
    ("INT", "DECIMAL(11, 2)"),
    ("DECIMAL(10, 2)", "DECIMAL(11, 4)"),
    ("DECIMAL(10, 2)", "DECIMAL(10, 1)"),
    ("DECIMAL(10, 0)", "BIGINT"),
    ("VARCHAR(3)", "CHAR(3)"),
    ("DATE", "TIMESTAMP(3)"),
    ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"),
    ("TIME(0)", "TIME(3)"),
    ("INT", "VARCHAR(20)"),
    ("TIMESTAMP(6)", "STRING"),
    ("BOOLEAN", "INT"),
]


@pytest.mark.parametrize(("old", "new"), WIDENINGS)
def test_a_type_may_widen_but_not_narrow(old, new):
    assert is_widening(T(old), T(new))
    assert T(old).type == T(new).type or not is_widening(T(new), T(old))


@pytest.mark.parametrize(("old", "new"), NARROWINGS)
def test_a_type_that_does_not_hold_every_value_is_no_widening(old, new):
    assert not is_widening(T(old), T(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *WIDENINGS,
        ("INT", "FLOAT"),
        ("BIGINT", "DOUBLE"),
        ("DOUBLE", "STRING"),
        ("DECIMAL(4, 2)", "STRING"),
        ("DECIMAL(9, 0)", "INT"),
        ("DATE", "TIMESTAMP(6)"),
        ("DATE", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP_LTZ(6)", "STRING"),
    ],
)
def test_a_column_can_become_what_spark_casts_without_asking(old, new):
    assert can_become(T(old), T(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DOUBLE", "FLOAT"),
        ("FLOAT", "DECIMAL(38, 10)"),
        ("DECIMAL(10, 0)", "INT"),
        ("DECIMAL(4, 2)", "DOUBLE"),
        ("TIMESTAMP(6)", "DATE"),
        ("TIMESTAMP(6)", "TIMESTAMP_LTZ(3)"),
        ("STRING", "INT"),
        ("BYTES", "STRING"),
        ("BOOLEAN", "INT"),
        ("DOUBLE", "VARCHAR(20)"),
    ],
)
def test_a_column_cannot_become_what_would_lose_values(old, new):
    assert not can_become(T(old), T(new))
