"""Values that are hard to pass between engines: the ends of every type, and disputed ones.

Values are in the form that the engine has them (``emberlake.spec.values``).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from emberlake.spark.types import handed_out, spark_schema, to_spark_batch
from emberlake.spec.values import from_arrow_array, to_arrow_array
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    arrow_schema,
)
from emberlake.write.align import align

SECOND: Final = 10**9
YEAR_1: Final = -62_135_596_800 * SECOND
YEAR_9999: Final = 253_402_300_799 * SECOND
MICROS: Final = 1000 * (2**63 - 1)  # the last microsecond that 64 bits reach
NANOS_FIRST: Final = -(2**63) + 808  # the first microsecond that 64 bits of nanoseconds reach
# Days that the Julian calendar lacks, and that Samoa lacks.
ODD_DAYS: Final = (-141_428, -141_427, 15_338)
# In the JVM's zone the clock skips the first of these hours and strikes the second twice.
SUMMER_TIME: Final = (1_741_487_400 * SECOND, 1_762_047_000 * SECOND)
FLOATS: Final = (1.5, math.nan, -0.0, 0.0, -math.inf, math.inf, -1.5)
TEXTS: Final = ("", "a", "A", "a%_\\", "é", "e\u0301", "\uffff", "\U0001f600", "\n", "ab\x00", "ß ")
BYTES: Final = (b"", b"\x00", b"\x7f", b"\x80", b"\xff\xff", b"ab")

HARD: Final[dict[str, tuple[Any, ...]]] = {
    "BOOLEAN": (True, False),
    "TINYINT": (-128, -1, 0, 127),
    "SMALLINT": (-(2**15), 0, 2**15 - 1),
    "INT": (-(2**31), -1, 0, 2**31 - 1),
    "BIGINT": (-(2**63), -1, 0, 2**31, 2**63 - 1),
    "FLOAT": (*FLOATS, 3.4028234663852886e38, 1.401298464324817e-45),
    "DOUBLE": (*FLOATS, 1.7976931348623157e308, 5e-324, 0.1),
    "DECIMAL(1, 1)": tuple(map(Decimal, ("-0.9", "0.0", "0.9"))),
    "DECIMAL(18, 2)": tuple(map(Decimal, ("-9999999999999999.99", "0.00", "1.10"))),
    "DECIMAL(38, 0)": (Decimal(-(10**38) + 1), Decimal(0), Decimal(10**38 - 1)),
    "DECIMAL(38, 38)": (Decimal("-0." + "9" * 38), Decimal("0." + "0" * 37 + "1")),
    "STRING": TEXTS,
    "CHAR(4)": TEXTS,
    "VARCHAR(4)": TEXTS,
    "BYTES": BYTES,
    "BINARY(2)": BYTES,
    "VARBINARY(2)": BYTES,
    "DATE": (-719_162, 2_932_896, -1, 0, *ODD_DAYS, -(2**31), 2**31 - 1),
    "TIME(0)": (0, 86_399_000),
    "TIME(3)": (0, 1, 86_399_999),
    "TIME(9)": (0, 1, 86_399_999),
    "TIMESTAMP(0)": (YEAR_1, YEAR_9999, -SECOND, 0),
    "TIMESTAMP(3)": (YEAR_1, YEAR_9999 + 999_000_000, -1_000_000, 0),
    "TIMESTAMP(6)": (YEAR_1, YEAR_9999, -MICROS - 1000, MICROS, -1000, 0, *SUMMER_TIME),
    "TIMESTAMP(9)": (NANOS_FIRST, 2**63 - 1, -1, -1000, 0, 1, 999),
    "TIMESTAMP_LTZ(0)": (YEAR_1, YEAR_9999, -SECOND, 0),
    "TIMESTAMP_LTZ(3)": (YEAR_1, YEAR_9999 + 999_000_000, -1_000_000, 0),
    "TIMESTAMP_LTZ(6)": (YEAR_1, YEAR_9999, -MICROS - 1000, MICROS, -1000, 0, *SUMMER_TIME),
    "TIMESTAMP_LTZ(9)": (NANOS_FIRST, 2**63 - 1, -1, -1000, 0, 1, 999),
}


def hard_values(data_type: AtomicType) -> tuple[Any, ...]:
    """The values of the table above that the type takes."""
    limit = data_type.length or math.inf
    found = next(values for text, values in HARD.items() if AtomicType(text).type == data_type.type)
    return tuple(
        value for value in found if not isinstance(value, str | bytes) or len(value) <= limit
    )


def a_field(type_text: str) -> DataField:
    """A column of an atomic type, named after it."""
    return DataField(
        0, type_text.replace("(", "_").replace(", ", "_").rstrip(")"), AtomicType(type_text)
    )


def atomic_values(data_type: AtomicType) -> st.SearchStrategy[Any]:
    """Hard values, and any others."""
    hard = st.sampled_from(hard_values(data_type))
    return hard | _ANY[data_type.root](data_type)


def atomic_types() -> st.SearchStrategy[AtomicType]:
    return st.builds(AtomicType, st.sampled_from(list(HARD)), st.booleans())


def data_types() -> st.SearchStrategy[DataType]:
    """Atomic types, and types made of them."""
    return st.recursive(atomic_types(), _nested_types, max_leaves=4)


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """Values of a type, nulls included where it takes them."""
    plain = _values(data_type)
    return plain | st.none() if data_type.nullable else plain


def hard_table(fields: Iterable[DataField], columns: Iterable[list[Any]]) -> pa.Table:
    """Columns of values as the engine hands them out."""
    fields = tuple(fields)
    arrays = [to_arrow_array(f.type, c) for f, c in zip(fields, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(fields))


def wide_fields() -> tuple[DataField, ...]:
    """A column of every atomic type, and each of them inside of every nested type."""
    fields: list[DataField] = []
    for text in HARD:
        atomic = a_field(text)
        inner: dict[str, DataType] = {
            "": atomic.type,
            "list_": ArrayType(True, atomic.type),
            "map_": MapType(True, atomic.type.with_nullable(False), atomic.type),
            "set_": MultisetType(True, atomic.type.with_nullable(False)),
            "row_": RowType(
                True, (DataField(0, "x", atomic.type), DataField(0, "y", AtomicType("INT")))
            ),
        }
        fields += [DataField(0, prefix + atomic.name, kind) for prefix, kind in inner.items()]
    return tuple(fields)


def hard_rows(fields: tuple[DataField, ...]) -> pa.Table:
    """All hard values of every column, and nulls at every depth."""
    columns = []
    for field in fields:
        match field.type:
            case AtomicType():
                column = list(hard_values(field.type))
            case ArrayType(element=AtomicType() as element):
                column = [[], [None], list(hard_values(element))]
            case MapType(value=AtomicType() as value):
                pairs = [(v, w) for v in hard_values(value) for w in (v, None)]
                column = [[], *([pair] for pair in pairs)]
            case MultisetType(element=AtomicType() as element):
                column = [[], *([(v, 1)] for v in hard_values(element))]
            case RowType(fields=(x, _)):
                column = [(None, None), *((v, 1) for v in hard_values(x.type))]
        columns.append([None, *column, *[None] * 30][:30])
    return hard_table(fields, columns)


def shown(table: pa.Table, fields: Iterable[DataField]) -> dict[str, str]:
    """Columns as text in which NaN is NaN and the two zeros differ."""
    return {f.name: repr(from_arrow_array(f.type, table.column(f.name))) for f in fields}


def in_micros(data_type: DataType, value: Any) -> Any:
    """What is left of a value where time is counted in microseconds."""
    match data_type, value:
        case _, None:
            return None
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ), _:
            return value - value % 1000
        case ArrayType(element=element), _:
            return [in_micros(element, v) for v in value]
        case MapType(key=key, value=item), _:
            return [(in_micros(key, k), in_micros(item, v)) for k, v in value]
        case MultisetType(element=element), _:
            return [(in_micros(element, k), n) for k, n in value]
        case RowType(fields=fields), _:
            return tuple(in_micros(f.type, v) for f, v in zip(fields, value, strict=True))
        case _:
            return value


@dataclass(frozen=True)
class Source:
    """A task that brings rows, whatever it is given."""

    rows: pa.RecordBatch

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield self.rows


@dataclass(frozen=True)
class Through:
    """A task that takes rows as a write does and hands them out as a read does."""

    fields: tuple[DataField, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = align(pa.Table.from_batches([batch]), self.fields)
            yield from to_spark_batch(rows, handed_out(self.fields)).to_batches()


@dataclass(frozen=True)
class Witness:
    """A task that reports exactly what it received."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"raw": [sink.getvalue().to_pybytes()]})


def through_spark(spark: SparkSession, rows: pa.Table, fields: tuple[DataField, ...]) -> pa.Table:
    """The rows after they went to Spark, to a task like that of a write, back, and out again."""
    (batch,) = to_spark_batch(rows, handed_out(fields)).combine_chunks().to_batches()
    schema = spark_schema(fields)
    df = spark.range(1).coalesce(1).mapInArrow(Source(batch), schema)
    seen = df.mapInArrow(Through(fields), schema).mapInArrow(Witness(), "raw binary").collect()
    return pa.concat_tables([pa.ipc.open_stream(row.raw).read_all() for row in seen])


def _integers(low: int, high: int, step: int = 1) -> Any:
    numbers = st.integers(low // step, high // step).map(lambda n: n * step)
    return lambda _type: numbers


def _timestamps(data_type: AtomicType) -> st.SearchStrategy[int]:
    step = 10 ** (9 - data_type.precision)
    low, high = (NANOS_FIRST, 2**63 - 1) if step == 1 else (YEAR_1, YEAR_9999)
    return st.integers(low // step, high // step).map(lambda n: n * step)


def _limit(data_type: AtomicType) -> int:
    return min(data_type.length, 20)


_ANY: Final[dict[TypeRoot, Any]] = {
    TypeRoot.BOOLEAN: lambda _type: st.booleans(),
    TypeRoot.TINYINT: _integers(-(2**7), 2**7 - 1),
    TypeRoot.SMALLINT: _integers(-(2**15), 2**15 - 1),
    TypeRoot.INT: _integers(-(2**31), 2**31 - 1),
    TypeRoot.BIGINT: _integers(-(2**63), 2**63 - 1),
    TypeRoot.FLOAT: lambda _type: st.floats(width=32),
    TypeRoot.DOUBLE: lambda _type: st.floats(),
    TypeRoot.DECIMAL: lambda t: st.integers(-(10**t.precision) + 1, 10**t.precision - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -t.scale))
    ),
    TypeRoot.CHAR: lambda t: st.text(max_size=_limit(t)),
    TypeRoot.VARCHAR: lambda t: st.text(max_size=_limit(t)),
    TypeRoot.BINARY: lambda t: st.binary(max_size=_limit(t)),
    TypeRoot.VARBINARY: lambda t: st.binary(max_size=_limit(t)),
    TypeRoot.DATE: _integers(-(2**31), 2**31 - 1),
    TypeRoot.TIME: _integers(0, 86_399_999),
    TypeRoot.TIMESTAMP: _timestamps,
    TypeRoot.TIMESTAMP_LTZ: _timestamps,
}


def _nested_types(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    keys = inner.map(lambda t: t.with_nullable(False))
    rows = st.lists(inner, min_size=1, max_size=3).map(
        lambda types: tuple(DataField(i, f"f{i}", t) for i, t in enumerate(types))
    )
    return (
        st.builds(ArrayType, st.booleans(), inner)
        | st.builds(MultisetType, st.booleans(), keys)
        | st.builds(MapType, st.booleans(), keys, inner)
        | st.builds(RowType, st.booleans(), rows)
    )


def _values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case AtomicType():
            return atomic_values(data_type)
        case ArrayType(element=element):
            return st.lists(values(element), max_size=3)
        case MultisetType(element=element):
            return st.lists(st.tuples(values(element), st.integers(1, 9)), max_size=3)
        case MapType(key=key, value=value):
            return st.lists(st.tuples(values(key), values(value)), max_size=3)
        case RowType(fields=fields):
            return st.tuples(*(values(f.type) for f in fields))
        case _:
            raise AssertionError(data_type)
