"""pandas DataFrames as Arrow tables. pandas itself is not imported."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from emberlake.base.names import listed
from emberlake.errors import DataMismatch
from emberlake.types import DataField, arrow_type

if TYPE_CHECKING:
    import pandas as pd


def is_pandas(data: object) -> bool:
    """Whether data is a DataFrame. A caller that has one has loaded pandas."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def from_pandas(dataframe: "pd.DataFrame", fields: Sequence[DataField]) -> pa.Table:
    """A DataFrame for a table with these columns; an index is written if it has the name of one.

    pandas keeps integers with missing values as floats: they become integers again.

    Raises:
        DataMismatch: a column has no Arrow type.
    """
    twice = dataframe.columns[dataframe.columns.duplicated()]
    if len(twice):
        raise DataMismatch(
            f"the DataFrame has several columns with the names {listed(list(dict.fromkeys(twice)))}"
        )
    wanted = {field.name for field in fields} - set(dataframe.columns)
    indexed = [name for name in dataframe.index.names if name in wanted]
    try:
        table = pa.Table.from_pandas(dataframe.reset_index(indexed), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        problem = ": ".join(map(str, reversed(error.args)))
        raise DataMismatch(
            f"the DataFrame has no Arrow form: {problem}; give all values of a column one type"
        ) from error
    return _with_integers(table, fields)


def _with_integers(table: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Turn columns of whole floats into integers where the table has integers."""
    for column in fields:
        index = table.schema.get_field_index(column.name)
        target = arrow_type(column.type)
        if index < 0 or not pa.types.is_integer(target):
            continue
        if not pa.types.is_floating(table.schema.field(index).type):
            continue
        with suppress(pa.ArrowInvalid):  # a fraction: the writer reports it, with everything else
            table = table.set_column(index, column.name, table.column(index).cast(target))
    return table
