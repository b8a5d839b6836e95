"""The numbers that Spark groups rows by: buckets, and hashes of keys and partitions.

Buckets are those of ``spec.bucket``. Spark computes them itself if it can: in the JVM, without
sending rows to Python and back. Otherwise ``spec.bucket`` computes them in a worker.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final, assert_never

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql

from emberlake.base.names import backquoted
from emberlake.errors import InvalidInput
from emberlake.options import BUCKET, BUCKET_FUNCTION, BucketFunction
from emberlake.spark.filters import to_literal
from emberlake.spark.row_hash import row_hash
from emberlake.spark.types import to_spark_type
from emberlake.spec.bucket import assign_buckets, bucket_of, check_bucket_key
from emberlake.spec.default_values import default_value
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, TypeRoot, arrow_type

ColumnOf = Callable[[str], Column]

_HIVE_INTS: Final = frozenset(
    {TypeRoot.BOOLEAN, TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.DATE}
)


def by_name(name: str) -> Column:
    """The column of a DataFrame with exactly this name."""
    return sql.col(backquoted(name))


def bucket_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """The bucket of every row of a DataFrame that fits the table, a number that is never null.

    A row that the table refuses, because a value does not fit its column or a NOT NULL column is
    null, gets an arbitrary bucket: the task that writes it says what is wrong.

    Args:
        schema: The schema of the table.
        column_of: Returns the values of a column of the table.

    Raises:
        InvalidInput: the table has no fixed number of buckets, or no bucket key.
    """
    fields = [schema.field_by_name[name] for name in schema.bucket_keys]
    function, count = schema.options.value(BUCKET_FUNCTION), schema.options.value(BUCKET)
    problem = check_bucket_key(function, [f.type for f in fields])
    if count < 1:
        problem = f"{BUCKET.key} is {count}: rows have a computed bucket only if it is 1 or more"
    if problem:
        raise InvalidInput(problem)
    types = [f.type for f in fields if isinstance(f.type, AtomicType)]
    values = [key_column(f, column_of(f.name)) for f in fields]
    native = _native_bucket(function, types, values, count)
    return _bucket_in_python(function, types, values, count) if native is None else native


def key_hash_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """A number that is equal for rows with the same key in a partition."""
    return sql.hash(*map(column_of, schema.trimmed_primary_keys))


def whole_key_hash_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """A number that is equal for rows with the same key, whatever their partition."""
    fields = [schema.field_by_name[name] for name in schema.primary_keys]
    return sql.hash(*(key_column(f, column_of(f.name)) for f in fields))


def partition_hash_column(schema: TableSchema, column_of: ColumnOf = by_name) -> Column:
    """A number that is equal for rows of one partition."""
    return sql.hash(*map(column_of, schema.partition_keys))


def missing_column(field: DataField) -> Column:
    """The value that a write uses for a column that a DataFrame leaves out."""
    if field.default_value is None:
        return sql.lit(None)
    value = default_value(field.type, field.default_value)
    if isinstance(field.type, AtomicType) and field.type.root is not TypeRoot.TIME:
        return to_literal(field.type, value)
    return sql.lit(value)  # milliseconds: times are hashed in Python


def key_column(field: DataField, column: Column) -> Column:
    """The values of a key column as those of the table; a value that does not fit is null."""
    if isinstance(field.type, AtomicType) and field.type.root is TypeRoot.TIME:
        return column  # no other type fits, and Spark casts to TIME only if a setting allows it
    # Narrower or wider types fit too, but the hash is that of the column's type.
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
    # All nulls are in one bucket, so other values need no null bit.
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
        # A value that the cast truncates does not fit the table; the writing task reports it.
        fitted = [column.cast(arrow_type(t), safe=False) for t, column in pairs]
        return pa.array(assign_buckets(function, types, fitted, count))

    # The type stubs of PySpark do not have this function yet.
    column: Column = sql.arrow_udf(assign, "int")(*values)  # type: ignore[attr-defined]
    return column
