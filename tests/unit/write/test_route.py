"""Routing whole columns gives the same result as routing row by row."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from emberlake.options import BucketFunction, TableOptions
from emberlake.spec.binary_row import encode_row
from emberlake.spec.bucket import bucket_of
from emberlake.spec.manifest import EMPTY_ROW
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import from_arrow_array
from emberlake.types import AtomicType, DataField, arrow_schema
from emberlake.write.route import route

TYPES = {
    "id": "BIGINT",
    "day": "DATE",
    "city": "STRING",
    "price": "DECIMAL(20, 2)",
    "at": "TIMESTAMP(9)",
    "ok": "BOOLEAN",
}
FIELDS = tuple(DataField(n, name, AtomicType(t)) for n, (name, t) in enumerate(TYPES.items()))

VALUES = {
    "id": st.integers(-2, 2),
    "day": st.sampled_from([dt.date(1969, 12, 31), dt.date(2026, 6, 26)]),
    "city": st.sampled_from(["", " ", "rome", "a city with a long name", "größe"]),
    "price": st.sampled_from([Decimal("1.50"), Decimal("-123456789012345678.00")]),
    "at": st.integers(-1, 1),
    "ok": st.booleans(),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}),
    max_size=25,
)


def a_schema(partition_keys=(), bucket_keys=(), buckets=-1, function="default"):
    options = {"bucket": str(buckets), "bucket-function.type": function}
    if bucket_keys:
        options["bucket-key"] = ",".join(bucket_keys)
    return TableSchema(
        id=0,
        fields=FIELDS,
        highest_field_id=len(FIELDS) - 1,
        partition_keys=tuple(partition_keys),
        options=TableOptions(options),
    )


def naive(table, schema):
    """(partition, bucket) -> the numbers of its rows, one row at a time."""
    columns = {f.name: from_arrow_array(f.type, _array(table, f)) for f in FIELDS}
    groups = {}
    for row in range(table.num_rows):
        partition = EMPTY_ROW
        if schema.partition_keys:
            types = [f.type for f in schema.partition_fields]
            partition = encode_row(types, [columns[k][row] for k in schema.partition_keys])
        bucket = 0
        if schema.bucket_keys:
            keys = [schema.field_by_name[k] for k in schema.bucket_keys]
            function = BucketFunction(schema.options["bucket-function.type"])
            bucket = bucket_of(
                function,
                [f.type for f in keys],
                [columns[f.name][row] for f in keys],
                int(schema.options["bucket"]),
            )
        groups.setdefault((partition, bucket), []).append(row)
    return groups


def _array(table, field):
    return table.column(field.name).combine_chunks()


def routed(table, schema):
    found = {}
    for group in route(table, schema):
        rows = range(table.num_rows) if group.rows is None else group.rows.tolist()
        assert (group.partition, group.bucket) not in found
        found[(group.partition, group.bucket)] = list(rows)
        assert group.take(table).equals(table.take(list(rows)))
    return found


CASES = [
    a_schema(),
    a_schema(["day"]),
    a_schema(["city"]),
    a_schema(["city", "day", "ok"]),
    a_schema(["price", "at"]),
    a_schema([], ["id"], 4),
    a_schema([], ["city", "id"], 3),
    a_schema([], ["price"], 1),
    a_schema(["day"], ["id"], 2),
    a_schema(["ok", "city"], ["at", "price"], 7),
    a_schema(["day"], ["id"], 5, "hive"),
]


@pytest.mark.parametrize("schema", CASES, ids=lambda s: f"{s.partition_keys} {dict(s.options)}")
@examples(25)
@given(rows=ROWS, chunk=st.integers(1, 30))
def test_routing_equals_asking_row_by_row(schema, rows, chunk):
    table = pa.Table.from_pylist(rows, arrow_schema(FIELDS))
    table = pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)

    assert routed(table, schema) == naive(table, schema)


def test_no_rows_make_no_group():
    assert list(route(pa.Table.from_pylist([], arrow_schema(FIELDS)), a_schema(["day"]))) == []


def test_rows_of_one_partition_are_not_copied():
    table = pa.Table.from_pylist(
        [{"id": n, "city": "rome"} for n in range(3)], arrow_schema(FIELDS)
    )

    (group,) = route(table, a_schema(["city"]))

    assert group.take(table) is table


def many_rows(count, partitions):
    random = np.random.default_rng(7)
    numbers = random.integers(0, partitions, count)
    names = np.array([f"p{n}" for n in range(partitions)])
    columns = {
        "id": pa.array(np.arange(count)),
        "city": pa.array(names[numbers]),
        "at": pa.array(random.integers(0, partitions, count), pa.timestamp("ns")),
    }
    missing = {f.name: pa.nulls(count, arrow_schema((f,)).field(0).type) for f in FIELDS}
    return pa.table({**missing, **columns}).select(list(TYPES)), numbers


@pytest.mark.parametrize("partitions", [3, 70_000])
def test_many_partitions_keep_the_order_of_their_rows(partitions):
    table, numbers = many_rows(100_000, partitions)

    groups = list(route(table, a_schema(["city"])))

    assert len(groups) == len(np.unique(numbers))
    for group in groups[:50]:
        assert (np.diff(group.rows) > 0).all()
        assert len(np.unique(numbers[group.rows])) == 1
    assert sum(len(group.rows) for group in groups) == table.num_rows


def test_many_columns_with_many_values_do_not_overflow():
    # 40,000 distinct values in each of five columns: 10^23 combinations, of which few occur.
    count = 40_000
    names = [f"c{n}" for n in range(5)]
    columns = tuple(DataField(n, name, AtomicType("BIGINT")) for n, name in enumerate(names))
    schema = TableSchema(
        id=0,
        fields=columns,
        highest_field_id=4,
        partition_keys=tuple(names),
        options=TableOptions(),
    )
    random = np.random.default_rng(7)
    table = pa.table({name: random.permutation(count) for name in names})

    groups = list(route(table, schema))

    assert len(groups) == count
    rows = np.concatenate([group.rows for group in groups])
    assert (np.sort(rows) == np.arange(count)).all()
