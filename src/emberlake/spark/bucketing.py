"""The numbers by which Spark brings rows together: buckets, and hashes of keys and partitions.

Buckets are those of ``spec.bucket``, computed by Spark itself where it can: in the JVM, without a
row on its way to Python and back. Where it cannot, ``spec.bucket`` does it in a worker.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final, assert_never

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql

from emberlake.errors import InvalidInput
from emberlake.options import BUCKET, BUCKET_FUNCTION, BucketFunction
from emberlake.spark.filters import to_literal
from emberlake.spark.row_hash import row_hash
from emberlake.spark.types import to_spark_type
from emberlake.spec.bucket import assign_buckets, bucket_of, check_bucket_key
from emberlake.spec.literals import cast_literal
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, TypeRoot, arrow_type

ColumnOf = Callable[[str], Column]

_HIVE_INTS: Final = frozenset(
    {TypeRoot.BOOLEAN, TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.DATE}
)


def by_name(name: str) -> Column:
    """The column of a DataFrame that has just this name."""
    return sql.col("`" + name.replace("`", "``") + "`")


def bucket_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """The bucket of every row of a DataFrame that fits the table, a number that is never null.

    A row that the table refuses, for a value that does not fit its column or a null where there
    must be none, gets some bucket: the task that writes it says what is wrong.

    Args:
        schema: The schema of the table.
        column_of: Gives the values of a column of the table.

    Raises:
        InvalidInput: the table has no fixed number of buckets, or no key to tell them by.
    """
    fields = [schema.field_by_name[name] for name in schema.bucket_keys]
    function, count = schema.options.value(BUCKET_FUNCTION), schema.options.value(BUCKET)
    problem = check_bucket_key(function, [f.type for f in fields])
    if count < 1:
        problem = f"{BUCKET.key} is {count}: only a fixed number of buckets tells a row's bucket"
    if problem:
        raise InvalidInput(problem)
    types = [f.type for f in fields if isinstance(f.type, AtomicType)]
    values = [_value(f, column_of(f.name)) for f in fields]
    native = _native_bucket(function, types, values, count)
    return _bucket_in_python(function, types, values, count) if native is None else native


def key_hash_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """A number that rows with the same key in a partition have in common."""
    return sql.hash(*map(column_of, schema.trimmed_primary_keys))


def partition_hash_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """A number that rows of one partition have in common."""
    return sql.hash(*map(column_of, schema.partition_keys))


def missing_column(field: DataField) -> Column:
    """What a write puts into a column that a DataFrame leaves out."""
    if field.default_value is None:
        return sql.lit(None)
    value = cast_literal(field.type, field.default_value)
    if isinstance(field.type, AtomicType) and field.type.root is not TypeRoot.TIME:
        return to_literal(field.type, value)
    return sql.lit(value)  # milliseconds: it is Python that hashes a time


def _value(field: DataField, column: Column) -> Column:
    if isinstance(field.type, AtomicType) and field.type.root is TypeRoot.TIME:
        return column  # nothing else fits, and Spark casts to it only where a setting allows that
    # A DataFrame fits with narrower or wider types, too. The hash is that of the column's.
    return column.try_cast(to_spark_type(field.type))


def _native_bucket(
    function: BucketFunction, types: Sequence[AtomicType], values: Sequence[Column], count: int
) -> Column | None:
    match function:
        case BucketFunction.DEFAULT:
            return _default_bucket(types, values, count)
        case BucketFunction.MOD:
            number = sql.pmod(sql.coalesce(values[0], sql.lit(0)), sql.lit(count))
            return number.cast("int")
        case BucketFunction.HIVE:
            hashes = [_hive_hash(t, v) for t, v in zip(types, values, strict=True)]
            known = [number for number in hashes if number is not None]
            if len(known) < len(hashes):
                return None
            combined = reduce(lambda state, one: _low_bits(state * 31 + one), known)
            return (combined.bitwiseAND(0x7FFFFFFF) % count).cast("int")
        case _:
            assert_never(function)


def _default_bucket(
    types: Sequence[AtomicType], values: Sequence[Column], count: int
) -> Column | None:
    if len(types) > 1 or not types[0].nullable:
        hashes = row_hash(types, values)
        return None if hashes is None else sql.abs(hashes % count)
    # All nulls are in one bucket, so that the others need no bit that says that they are none.
    present = _default_bucket([types[0].with_nullable(False)], values, count)
    if present is None:
        return None
    of_null = bucket_of(BucketFunction.DEFAULT, types, [None], count)
    return sql.when(values[0].isNull(), of_null).otherwise(present)


def _hive_hash(data_type: AtomicType, value: Column) -> Column | None:
    root = data_type.root
    if root is TypeRoot.BIGINT:
        number = _low_bits(value.bitwiseXOR(sql.shiftrightunsigned(value, 32)))
    elif root in _HIVE_INTS:
        number = (sql.unix_date(value) if root is TypeRoot.DATE else value).cast("bigint")
    else:
        return None
    return sql.coalesce(number, sql.lit(0))


def _low_bits(number: Column) -> Column:
    return number.bitwiseAND(0xFFFFFFFF)


def _bucket_in_python(
    function: BucketFunction, types: Sequence[AtomicType], values: Sequence[Column], count: int
) -> Column:
    def assign(*columns: pa.Array) -> pa.Array:
        pairs = zip(types, columns, strict=True)
        # What a cast cuts off does not fit the table, which is not to be said here.
        fitted = [column.cast(arrow_type(t), safe=False) for t, column in pairs]
        return pa.array(assign_buckets(function, types, fitted, count))

    # What PySpark says of its own types does not know this function yet.
    column: Column = sql.arrow_udf(assign, "int")(*values)  # type: ignore[attr-defined]
    return column
