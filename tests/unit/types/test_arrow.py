"""Which column type an Arrow type becomes, and which of them are refused."""

import pyarrow as pa
import pytest

from emberlake import InvalidSchema, Schema, Unsupported
from emberlake.types import from_arrow_schema

BYTES = pa.field("value", pa.binary(), nullable=False)
VARIANT = pa.struct([BYTES, BYTES.with_name("metadata")])
BLOBS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def type_of(arrow: pa.DataType, **options: str) -> str:
    (column,) = Schema.from_pyarrow_schema(pa.schema([("c", arrow)]), options=options).fields
    return str(column.type)


@pytest.mark.parametrize(
    ("arrow", "column"),
    [
        (pa.large_binary(), "BYTES"),
        (pa.list_(pa.large_binary()), "ARRAY<BYTES>"),
        (pa.list_(pa.float32()), "ARRAY<FLOAT>"),
        (pa.list_(pa.string(), 2), "ARRAY<STRING>"),
        (pa.struct([("value", pa.binary()), ("metadata", pa.binary())]), None),
        (pa.struct([BYTES, pa.field("metadata", pa.string(), nullable=False)]), None),
        (pa.struct([*VARIANT, pa.field("typed_value", pa.int32())]), None),
        (pa.struct([BYTES]), "ROW<value BYTES NOT NULL>"),
    ],
    ids=str,
)
def test_what_only_looks_like_another_type_is_what_it_says(
    arrow: pa.DataType, column: str | None
) -> None:
    found = type_of(arrow)

    assert found == column if column else found.startswith("ROW<")


@pytest.mark.parametrize(
    ("arrow", "reason"),
    [
        (pa.list_(pa.float32(), 3), r"is a VECTOR, .*; list<item: float> is an ARRAY"),
        (pa.list_(pa.int8(), 1), "is a VECTOR"),
        (pa.list_(pa.list_(pa.float64(), 3)), "is a VECTOR"),
        (pa.struct([("v", pa.list_(pa.bool_(), 8))]), "is a VECTOR"),
        (VARIANT, "is a VARIANT"),
        (pa.struct([BYTES.with_name("metadata"), BYTES]), "is a VARIANT"),
        (pa.map_(pa.string(), VARIANT), "is a VARIANT"),
        (pa.list_(VARIANT), "is a VARIANT"),
    ],
    ids=str,
)
def test_types_that_would_become_something_else_are_refused(
    arrow: pa.DataType, reason: str
) -> None:
    with pytest.raises(Unsupported, match=f"not implemented: c: .*{reason}"):
        type_of(arrow)


@pytest.mark.parametrize(
    "arrow",
    [
        pa.large_binary(),
        pa.list_(pa.large_binary()),
        pa.map_(pa.string(), pa.large_binary()),
        pa.struct([("x", pa.large_binary())]),
    ],
    ids=str,
)
def test_with_data_evolution_large_bytes_are_blobs(arrow: pa.DataType) -> None:
    with pytest.raises(Unsupported, match="is a BLOB, which is not implemented; binary is BYTES"):
        type_of(arrow, **BLOBS)
    assert type_of(pa.binary(), **BLOBS) == "BYTES"


def test_all_columns_that_are_refused_are_in_one_error() -> None:
    columns = pa.schema([("a", VARIANT), ("b", pa.list_(pa.float32(), 3)), ("c", pa.int8())])

    with pytest.raises(Unsupported, match=r"a: .* VARIANT, .*; b: .* VECTOR"):
        from_arrow_schema(columns)
    with pytest.raises(InvalidSchema, match=r"a: .* VARIANT, .*; d: the Arrow type uint8 has no"):
        from_arrow_schema(columns.append(pa.field("d", pa.uint8())))
