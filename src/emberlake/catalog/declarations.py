"""A new table is declared as a ``Schema``, or by its columns in Arrow or Spark types."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.errors import InvalidInput
from emberlake.spec.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Declaration: TypeAlias = Union[Schema, pa.Schema, "StructType"]


def declared_schema(
    declared: Declaration,
    partition_keys: Sequence[str] | None = None,
    primary_keys: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    comment: str | None = None,
) -> Schema:
    """The schema that the arguments of ``create_table`` declare.

    Raises:
        InvalidInput: there are keys or options in addition to a ``Schema``, which has its own; or
            ``declared`` has no columns.
        InvalidSchema: names every column that has no Paimon type.
        Unsupported: names every column whose Paimon type emberlake does not have.
    """
    if isinstance(declared, Schema):
        others = {
            "partition_keys": partition_keys,
            "primary_keys": primary_keys,
            "options": options,
            "comment": comment,
        }
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise InvalidInput(
                f"a Schema has its own {', '.join(given)}: pass them to the Schema, or pass the "
                "columns as a pyarrow.Schema"
            )
        return declared
    if isinstance(declared, pa.Schema):
        return Schema.from_pyarrow_schema(declared, partition_keys, primary_keys, options, comment)
    if _is_struct_type(declared):
        types = load_extra("emberlake.spark.types", extra="spark")
        fields = types.paimon_fields(declared)
        return Schema(fields, partition_keys, primary_keys, options, comment)
    if hasattr(declared, "__arrow_c_schema__"):  # such as the schema of a Polars DataFrame
        columns = pa.schema(declared)
        return Schema.from_pyarrow_schema(columns, partition_keys, primary_keys, options, comment)
    raise InvalidInput(
        f"a table is declared by a Schema, a pyarrow.Schema or a Spark StructType, not by "
        f"{type(declared).__name__}; for a pyarrow.Table or a Spark DataFrame, pass its .schema, "
        "for pandas or Polars pa.table(frame).schema"
    )


def _is_struct_type(declared: object) -> bool:
    # A caller that has a StructType has loaded PySpark.
    types: Any = sys.modules.get("pyspark.sql.types")
    return types is not None and isinstance(declared, types.StructType)
