"""The rows that a merge or an update brings: a table in memory, with the types that tables have."""

from typing import Any, Final

import pyarrow as pa

from emberlake.base.names import listed
from emberlake.errors import DataMismatch
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField
from emberlake.write.align import align, as_tables
from emberlake.write.pandas_data import from_pandas, is_pandas

_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def source_rows(source: Any, schema: TableSchema) -> pa.Table:
    """The rows of a source, all of them in memory.

    Raises:
        InvalidInput: it is no data.
        DataMismatch: it has columns of the same name, or values that do not fit theirs.
    """
    if is_pandas(source):
        source = from_pandas(source, schema.fields)
    rows = pa.concat_tables(list(as_tables(source)))
    twice = sorted({name for name in rows.column_names if rows.column_names.count(name) > 1})
    if twice:
        raise DataMismatch(f"the source has several columns with the names {listed(twice)}")
    return with_paimon_types(rows, schema)


def with_paimon_types(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """The rows, where columns of types that tables do not have get one that holds their values.

    These are nulls of no type, unsigned integers and half floats. A column of the table says which
    type it is; a write takes such data, too.

    Raises:
        DataMismatch: values that do not fit the column of their name.
    """
    for place, column in enumerate(rows.schema):
        is_null = pa.types.is_null(column.type)
        if not is_null and column.type not in _WIDER:
            continue
        values = rows.column(place)
        known = schema.field_by_name.get(column.name)
        if known is not None:
            values = _fitted(values, known)
        elif not is_null:
            values = values.cast(_WIDER[column.type])
        rows = rows.set_column(place, column.name, values)
    return rows


def _fitted(values: pa.ChunkedArray, known: DataField) -> pa.ChunkedArray:
    nullable = DataField(known.id, known.name, known.type.with_nullable(True))
    return align(pa.table({known.name: values}), (nullable,)).column(0)
