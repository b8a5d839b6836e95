"""Which rows of some data a table cannot take, and why."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberlake import DataMismatch, Schema
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.schema import TableSchema
from emberlake.write.align import align
from emberlake.write.bad_rows import BadRows, drop_bad_rows, find_bad_cells, take_bad_rows

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("price", pa.decimal128(4, 2)),
        ("at", pa.timestamp("ms")),
        ("bytes", pa.list_(pa.int8())),
    ]
)


def table_schema(
    columns: pa.Schema = COLUMNS, primary_keys: tuple[str, ...] = (), **options: str
) -> TableSchema:
    named = {key.replace("_", "-"): value for key, value in options.items()}
    declared = Schema.from_pyarrow_schema(columns, primary_keys=list(primary_keys), options=named)
    return build_table_schema(declared, time_millis=0)


def found(data: pa.Table, schema: TableSchema) -> dict[int, str]:
    bad = BadRows.of(find_bad_cells(data, schema))
    return dict(zip(bad.positions.tolist(), bad.reasons.to_pylist(), strict=True))


def test_each_row_that_does_not_fit_is_named_with_every_reason() -> None:
    data = pa.table(
        {
            "id": pa.array([1, None, 1 << 40, 3], pa.int64()),
            "price": pa.array([Decimal("1.50"), Decimal("1.5"), Decimal("1.555"), None]),
            "at": pa.array([0, 1000, 2000, 3001], pa.timestamp("us")),
            "bytes": pa.array([[1], None, [300], []], pa.list_(pa.int64())),
        }
    )

    reasons = found(data, table_schema())

    assert list(reasons) == [1, 2, 3]
    assert reasons[1] == "id: is null, and is NOT NULL"
    assert reasons[2].startswith("id: 1099511627776 does not fit INT; price: ")
    assert "bytes: int64 to TINYINT would lose data: Integer value 300" in reasons[2]
    assert reasons[3].startswith("at: ")


def test_the_first_column_at_fault_is_separate_from_the_reasons() -> None:
    data = pa.table({"id": pa.array([None], pa.int64()), "at": pa.array([1], pa.timestamp("us"))})

    bad = BadRows.of(find_bad_cells(data, table_schema()))

    assert bad.columns.to_pylist() == ["id"]


def test_the_two_parts_of_the_data_are_all_of_it() -> None:
    data = pa.table({"id": pa.array([1, None, 2, 1 << 40], pa.int64())})

    bad = BadRows.of(find_bad_cells(data, table_schema()))

    assert take_bad_rows(data, bad)["id"].to_pylist() == [None, 1 << 40]
    assert drop_bad_rows(data, bad)["id"].to_pylist() == [1, 2]


def test_values_in_several_chunks_keep_their_positions() -> None:
    chunks = pa.chunked_array([[1, 1 << 40], [2, 3, None], [1 << 41]], pa.int64())

    assert list(found(pa.table({"id": chunks}), table_schema())) == [1, 4, 5]


def test_unknown_row_kinds_are_bad_rows() -> None:
    schema = table_schema(primary_keys=("id",), bucket="1")
    data = pa.table({"id": [1, 2, 3], "_row_kind": ["+I", "upsert", None]})

    reasons = found(data, schema)

    assert reasons == {
        1: "_row_kind: upsert is not a row kind (+I, -U, +U, -D)",
        2: "_row_kind: null is not a row kind (+I, -U, +U, -D)",
    }


def test_row_kinds_that_the_table_does_not_accept_are_bad_rows() -> None:
    options = {"bucket": "1", "merge_engine": "first-row"}
    schema = table_schema(primary_keys=("id",), **options)
    data = pa.table({"id": [1, 2], "_row_kind": ["+I", "-D"]})

    assert list(found(data, schema)) == [1]


def test_what_is_wrong_with_all_rows_alike_is_no_bad_row() -> None:
    data = pa.table({"id": ["x"], "colour": ["red"]})

    with pytest.raises(DataMismatch, match="colour: is not a column"):
        find_bad_cells(data, table_schema())


VALUES = {
    "id": st.none() | st.integers(-(1 << 40), 1 << 40),
    "price": st.none() | st.decimals(-200, 200, places=3, allow_nan=False),
    "at": st.none() | st.integers(0, 5000),
    "bytes": st.none() | st.lists(st.integers(-300, 300), max_size=3),
}
TYPES = {
    "id": pa.int64(),
    "price": pa.decimal128(10, 3),
    "at": pa.timestamp("us"),
    "bytes": pa.list_(pa.int64()),
}


@given(st.lists(st.fixed_dictionaries(VALUES), max_size=12))
def test_a_row_is_bad_if_and_only_if_it_is_refused_alone(rows: list[dict[str, object]]) -> None:
    schema = table_schema()
    data = pa.Table.from_pylist(rows, pa.schema(TYPES))

    refused = {at for at in range(len(rows)) if is_refused(data.slice(at, 1), schema)}

    assert set(found(data, schema)) == refused


def is_refused(data: pa.Table, schema: TableSchema) -> bool:
    try:
        align(data, schema.fields)
    except DataMismatch:
        return True
    return False
