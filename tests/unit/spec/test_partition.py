from decimal import Decimal

import pytest

from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.partition import (
    escape_path_name,
    partition_path,
    partition_spec,
)
from emberlake.types import ArrayType, AtomicType, DataField

DEFAULT = "__DEFAULT_PARTITION__"
NANOS = 1_000_000_000
NOON = 1_705_314_030 * NANOS  # 2024-01-15 10:20:30


def text_of(type_text: str, value: object, *, legacy_name: bool = True) -> str:
    field = DataField(0, "k", AtomicType(type_text))
    return partition_spec([field], [value], default_name=DEFAULT, legacy_name=legacy_name)["k"]


@pytest.mark.parametrize(
    ("type_text", "value", "legacy", "readable"),
    [
        ("STRING", "a b", "a b", "a b"),
        ("CHAR(3)", "abc", "abc", "abc"),
        ("TINYINT", -5, "-5", "-5"),
        ("BIGINT", 2**62, str(2**62), str(2**62)),
        ("BOOLEAN", True, "true", "true"),
        ("BOOLEAN", False, "false", "false"),
        ("DATE", 19737, "19737", "2024-01-15"),
        ("DATE", -1, "-1", "1969-12-31"),
        ("DATE", -719162, "-719162", "0001-01-01"),
        ("DATE", 11016, "11016", "2000-02-29"),
        ("TIME(0)", 37230000, "37230000", "10:20:30"),
        ("TIME(3)", 37230120, "37230120", "10:20:30.12"),
        ("TIME(3)", 37230000, "37230000", "10:20:30.0"),
        ("DECIMAL(10, 2)", Decimal("1.5"), "1.50", "1.50"),
        ("DECIMAL(38, 10)", Decimal("1E-10"), "0.0000000001", "0.0000000001"),
        ("FLOAT", 1.0, "1.0", "1.0"),
        ("FLOAT", 0.10000000149011612, "0.1", "0.1"),
        ("DOUBLE", 1e10, "1.0E10", "1.0E10"),
        ("DOUBLE", -1.25e-5, "-1.25E-5", "-1.25E-5"),
        ("DOUBLE", 1234567.5, "1234567.5", "1234567.5"),
        ("DOUBLE", 0.001, "0.001", "0.001"),
        ("DOUBLE", -0.0, "-0.0", "-0.0"),
        ("DOUBLE", float("inf"), "Infinity", "Infinity"),
        ("DOUBLE", float("-inf"), "-Infinity", "-Infinity"),
        ("DOUBLE", float("nan"), "NaN", "NaN"),
        ("TIMESTAMP(6)", NOON, "2024-01-15T10:20:30", "2024-01-15 10:20:30.000000"),
        ("TIMESTAMP(0)", NOON, "2024-01-15T10:20:30", "2024-01-15 10:20:30"),
        ("TIMESTAMP(3)", NOON - 30 * NANOS, "2024-01-15T10:20", "2024-01-15 10:20:00.000"),
        ("TIMESTAMP(3)", NOON + 123_000_000, "2024-01-15T10:20:30.123", "2024-01-15 10:20:30.123"),
        (
            "TIMESTAMP(9)",
            NOON + 1_000,
            "2024-01-15T10:20:30.000001",
            "2024-01-15 10:20:30.000001000",
        ),
        (
            "TIMESTAMP(9)",
            NOON + 1,
            "2024-01-15T10:20:30.000000001",
            "2024-01-15 10:20:30.000000001",
        ),
        ("TIMESTAMP(6)", -1000, "1969-12-31T23:59:59.999999", "1969-12-31 23:59:59.999999"),
    ],
)
def test_values_have_a_legacy_and_a_readable_text(type_text, value, legacy, readable) -> None:
    assert text_of(type_text, value) == legacy
    assert text_of(type_text, value, legacy_name=False) == readable


def test_zoned_timestamps_have_a_legacy_text_only() -> None:
    ltz = "TIMESTAMP(3) WITH LOCAL TIME ZONE"

    assert text_of(ltz, NOON) == "2024-01-15T10:20:30"
    with pytest.raises(Unsupported, match="time zone"):
        text_of(ltz, NOON, legacy_name=False)


@pytest.mark.parametrize("value", [None, "", " ", "\t\n ", "\u2003"])
def test_null_and_blank_values_have_the_default_name(value: object) -> None:
    assert text_of("STRING", value) == DEFAULT


@pytest.mark.parametrize("value", ["\u00a0", "\u0085", ".", " x "])
def test_what_java_does_not_call_blank_is_kept(value: str) -> None:
    assert text_of("STRING", value) == value


def test_a_path_joins_escaped_keys_and_values() -> None:
    fields = [DataField(0, "dt", AtomicType("STRING")), DataField(1, "a/b", AtomicType("INT"))]

    path = partition_path(fields, ["p=1", 7], default_name=DEFAULT, legacy_name=True)

    assert path == "dt=p%3D1/a%2Fb=7"


def test_the_folders_of_the_reference() -> None:
    fields = [DataField(0, "dt", AtomicType("STRING"))]
    paths = [
        partition_path(fields, [value], default_name=DEFAULT, legacy_name=True)
        for value in ("p 2", "p=1", None)
    ]

    assert paths == ["dt=p 2", "dt=p%3D1", f"dt={DEFAULT}"]


def test_an_unpartitioned_table_has_no_folder() -> None:
    assert partition_path([], [], default_name=DEFAULT, legacy_name=True) == ""


def test_only_what_has_a_meaning_in_paths_is_escaped() -> None:
    escaped = "".join(f"%{ord(c):02X}" for c in "\x00\n\x1f\x7f\"#%'*/:=?\\{}[]^")

    assert escape_path_name("\x00\n\x1f\x7f\"#%'*/:=?\\{}[]^") == escaped
    assert escape_path_name("a @+,~ü☃") == "a @+,~ü☃"


@pytest.mark.parametrize("data_type", [AtomicType("BYTES"), ArrayType(True, AtomicType("INT"))])
def test_types_without_a_text_are_refused(data_type) -> None:
    with pytest.raises(Unsupported, match="partition key k"):
        partition_path(
            [DataField(0, "k", data_type)], [b"x"], default_name=DEFAULT, legacy_name=True
        )


def test_a_partition_needs_a_value_for_each_key() -> None:
    with pytest.raises(InvalidInput, match="0 values"):
        partition_path(
            [DataField(0, "k", AtomicType("INT"))], [], default_name=DEFAULT, legacy_name=True
        )
