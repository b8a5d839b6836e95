"""Rows, their hashes, statistics, partition folders and deletion vectors, for any values."""

import math
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from effort import examples
from emberlake.base.hashing import murmur3
from emberlake.options import BucketFunction
from emberlake.spec.binary_row import (
    CorruptRow,
    decode_row,
    encode_row,
    encode_row_body,
)
from emberlake.spec.bucket import assign_buckets, bucket_of
from emberlake.spec.deletion_vector import (
    decode_deletion_vector,
    deleted_positions,
    encode_deletion_vector,
)
from emberlake.spec.partition import (
    escape_path_name,
    partition_path,
    partition_spec,
)
from emberlake.spec.row_columns import decode_column, encode_rows, hash_rows
from emberlake.spec.stats import StatsCollector, truncate, truncate_max, truncate_min
from emberlake.spec.values import to_arrow_array
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

often = examples(100)
sometimes = examples(50)  # where drawing the input takes longest

_TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
_NANOS_OF = {0: 10**9, 3: 10**6, 6: 10**3, 9: 1}
_PLAIN: dict[TypeRoot, st.SearchStrategy[Any]] = {
    TypeRoot.BOOLEAN: st.booleans(),
    TypeRoot.TINYINT: st.integers(-(2**7), 2**7 - 1),
    TypeRoot.SMALLINT: st.integers(-(2**15), 2**15 - 1),
    TypeRoot.INT: st.integers(-(2**31), 2**31 - 1),
    TypeRoot.BIGINT: st.integers(-(2**63), 2**63 - 1),
    TypeRoot.FLOAT: st.floats(width=32, allow_nan=False),
    TypeRoot.DOUBLE: st.floats(allow_nan=False),
    TypeRoot.VARCHAR: _TEXT,
    TypeRoot.VARBINARY: st.binary(max_size=40),
    TypeRoot.DATE: st.integers(-(2**31), 2**31 - 1),
    TypeRoot.TIME: st.integers(0, 86_399_999),
}


@st.composite
def atomic_types(draw: st.DrawFn) -> AtomicType:
    root = draw(st.sampled_from([*_PLAIN, TypeRoot.DECIMAL, TypeRoot.TIMESTAMP]))
    if root is TypeRoot.DECIMAL:
        precision = draw(st.integers(1, 38))
        return AtomicType(f"DECIMAL({precision}, {draw(st.integers(0, precision))})")
    if root is TypeRoot.TIMESTAMP:
        zone = draw(st.sampled_from(["", " WITH LOCAL TIME ZONE"]))
        return AtomicType(f"TIMESTAMP({draw(st.sampled_from(sorted(_NANOS_OF)))}){zone}")
    names = {TypeRoot.VARCHAR: "STRING", TypeRoot.VARBINARY: "BYTES"}
    return AtomicType(names.get(root, root.value))


def _nested_types(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(inner, max_size=4).map(
        lambda types: tuple(DataField(i, f"f{i}", t) for i, t in enumerate(types))
    )
    return st.one_of(
        inner.map(lambda t: ArrayType(True, t)),
        inner.map(lambda t: MultisetType(True, t)),
        st.tuples(inner, inner).map(lambda p: MapType(True, p[0], p[1])),
        fields.map(lambda f: RowType(True, f)),
    )


any_types = st.recursive(atomic_types(), _nested_types, max_leaves=6)


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), present_values_of(data_type))


def present_values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            limit = 10**data_type.precision - 1
            scale = -data_type.scale
            return st.integers(-limit, limit).map(
                lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), scale))
            )
        case AtomicType() if data_type.root.is_timestamp:
            step = _NANOS_OF[data_type.precision]
            limit = min((2**63 - 1) // 10**9 * 10**9, 2**63 - 10**6)
            return st.integers(-limit // step, limit // step).map(lambda n: n * step)
        case AtomicType(root=root):
            return _PLAIN[root]
        case ArrayType(element=element):
            return st.lists(values_of(element), max_size=5)
        case MultisetType(element=element):
            return st.lists(st.tuples(values_of(element), st.integers(1, 9)), max_size=3)
        case MapType(key=key, value=value):
            return st.lists(st.tuples(values_of(key), values_of(value)), max_size=3)
        case RowType(fields=fields):
            return st.tuples(*(values_of(f.type) for f in fields))
        case _:
            raise AssertionError(data_type)


@st.composite
def rows(draw: st.DrawFn, types: st.SearchStrategy[DataType]) -> tuple[list[DataType], tuple]:
    row_types = draw(st.lists(types, max_size=8))
    return row_types, draw(st.tuples(*(values_of(t) for t in row_types)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[AtomicType], list[tuple]]:
    types = draw(st.lists(atomic_types(), min_size=1, max_size=6))
    # Some tables are wide, so that null bits take more than one word.
    types = types * draw(st.sampled_from([1, 1, 1, 1, 1, 12]))
    row = st.tuples(*(values_of(t) for t in types))
    return types, draw(st.lists(row, max_size=6))


def columns_of(types: list[AtomicType], table: list[tuple]) -> list[pa.Array]:
    return [to_arrow_array(t, [row[i] for row in table]) for i, t in enumerate(types)]


@sometimes
@given(rows(any_types))
def test_a_row_comes_back(row: tuple[list[DataType], tuple]) -> None:
    types, values = row

    raw = encode_row(types, values)

    assert decode_row(types, raw) == values
    assert len(raw) % 8 == 4


@sometimes
@given(rows(any_types), st.data())
def test_damaged_rows_give_values_or_one_error(row, data: st.DataObject) -> None:
    types, values = row
    raw = bytearray(encode_row(types, values))
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=5)):
        raw[at] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])

    try:
        decoded = decode_row(types, damaged)
    except CorruptRow:
        return

    assert len(decoded) == len(types)


@sometimes
@given(tables())
def test_columns_encode_and_hash_as_their_rows(table: tuple[list[AtomicType], list[tuple]]) -> None:
    types, values = table
    columns = columns_of(types, values)

    assert encode_rows(types, columns).to_pylist() == [encode_row(types, v) for v in values]
    assert hash_rows(types, columns).tolist() == [
        murmur3(encode_row_body(types, v)) for v in values
    ]


@sometimes
@given(tables())
def test_columns_come_back_out_of_their_rows(table: tuple[list[AtomicType], list[tuple]]) -> None:
    types, values = table
    columns = columns_of(types, values)
    encoded = encode_rows(types, columns)

    for index, column in enumerate(columns):
        assert decode_column(types, encoded, index).equals(column)


@sometimes
@given(tables(), st.data())
def test_damaged_rows_of_a_column_give_values_or_one_error(table, data: st.DataObject) -> None:
    types, values = table
    raws = [bytearray(encode_row(types, v)) for v in values]
    for raw in raws:
        for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3)):
            raw[at] = data.draw(st.integers(0, 255))

    for index in range(min(3, len(types))):
        try:
            decoded = decode_column(types, pa.array(map(bytes, raws), pa.binary()), index)
        except CorruptRow:
            continue
        decoded.validate(full=True)
        assert len(decoded) == len(raws)


@sometimes
@given(tables(), st.integers(1, 2**31 - 1))
def test_a_row_has_the_same_bucket_alone_and_among_others(table, buckets: int) -> None:
    types, values = table
    function = BucketFunction.DEFAULT

    assigned = assign_buckets(function, types, columns_of(types, values), buckets)

    assert assigned.tolist() == [bucket_of(function, types, v, buckets) for v in values]
    assert all(0 <= bucket < buckets for bucket in assigned)


@often
@given(st.one_of(_TEXT, st.binary(max_size=40)), st.integers(1, 20))
def test_cut_values_are_bounds(value: str | bytes, length: int) -> None:
    low, high = truncate_min(value, length), truncate_max(value, length)

    assert low <= value
    assert len(low) <= length
    assert high is None or (value <= high and len(high) <= length)


@sometimes
@given(tables())
def test_statistics_bound_every_value(table: tuple[list[AtomicType], list[tuple]]) -> None:
    types, values = table
    fields = [DataField(i, f"c{i}", t) for i, t in enumerate(types)]
    arrow = pa.table(columns_of(types, values), names=[f.name for f in fields])
    collector = StatsCollector(fields, [truncate(4)] * len(fields))

    for start in range(0, len(values), 2):
        collector.update(arrow.slice(start, 2))
    stats, _ = collector.finish(dense=True)

    lows, highs = decode_row(types, stats.min_values), decode_row(types, stats.max_values)
    for index in range(len(types)):
        present = [row[index] for row in values if row[index] is not None]
        assert stats.null_counts[index] == len(values) - len(present)
        assert (lows[index] is None) == (highs[index] is None)
        assert lows[index] is None or all(lows[index] <= v <= highs[index] for v in present)


@often
@given(_TEXT.filter(bool))
def test_escaped_names_come_back(name: str) -> None:
    escaped = escape_path_name(name)

    assert "/" not in escaped
    assert unquote(escaped) == name


@often
@given(st.lists(st.tuples(atomic_types(), st.data()), min_size=1, max_size=3))
def test_partition_folders_hold_the_texts(drawn: list[tuple[AtomicType, st.DataObject]]) -> None:
    kept = [
        (t, data.draw(st.none() if t.root is TypeRoot.VARBINARY else values_of(t)))
        for t, data in drawn
    ]
    fields = [DataField(i, f"k={i}", t) for i, (t, _) in enumerate(kept)]
    values = [value for _, value in kept]
    names = {"default_name": "__NONE__", "legacy_name": True}

    path = partition_path(fields, values, **names)

    folders = (folder.split("=") for folder in path.split("/"))
    texts = {unquote(key): unquote(value) for key, value in folders}
    assert texts == partition_spec(fields, values, **names)


positions = st.sets(
    st.one_of(st.integers(0, 200), st.integers(60_000, 70_000), st.integers(0, 2**31 - 1)),
    max_size=60,
)


@often
@given(positions, st.booleans())
def test_deletion_vectors_come_back(deleted: set[int], bitmap64: bool) -> None:
    blob = encode_deletion_vector(BitMap(deleted), bitmap64=bitmap64)

    decoded = decode_deletion_vector(blob)

    assert list(decoded) == sorted(deleted)


@often
@given(
    positions, st.integers(0, 70_000), st.integers(0, 70_000), st.sampled_from([BitMap, BitMap64])
)
def test_deleted_positions_of_a_batch(deleted: set[int], start: int, count: int, kind) -> None:
    found = deleted_positions(kind(deleted), start, count)

    assert found.tolist() == sorted(p - start for p in deleted if start <= p < start + count)


@pytest.mark.parametrize("type_text", ["FLOAT", "DOUBLE"])
def test_all_nans_are_one_key(type_text: str) -> None:
    types = [AtomicType(type_text)]
    width = 4 if type_text == "FLOAT" else 8
    raw = {4: "010080ff", 8: "0100000000f0ffff"}[width]
    odd = pa.Array.from_buffers(
        pa.float32() if width == 4 else pa.float64(), 1, [None, pa.py_buffer(bytes.fromhex(raw))]
    )

    assert math.isnan(odd[0].as_py())
    assert encode_rows(types, [odd])[0].as_py() == encode_row(types, [math.nan])
