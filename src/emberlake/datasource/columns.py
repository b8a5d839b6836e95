"""Decides which columns Spark reads: those of the table, the option, or the user's schema."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from emberlake.base.names import choices, listed
from emberlake.datasource.options import ROW_KIND, SourceOptions
from emberlake.errors import ColumnNotFound, DataMismatch, InvalidInput, InvalidOption
from emberlake.read.projection import ROW_KIND as KIND_COLUMN
from emberlake.read.projection import Projection, project, project_all
from emberlake.spark.types import (
    arrow_input_schema,
    handed_out,
    nullable_fields,
    spark_schema,
    to_spark_batch,
)
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema

_KIND_FIELD: Final = StructField(KIND_COLUMN, StringType(), True)
_ARROW_KIND: Final = pa.field(KIND_COLUMN, pa.string())


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a read, and how its rows are converted for Spark."""

    projection: Projection
    with_kind: bool
    read_schema: pa.Schema  # in Spark's types, as the table declares them
    schema: pa.Schema  # as Spark expects them

    def to_spark(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert rows of the engine to the form that Spark expects."""
        rows = to_spark_batch(batch, self.read_schema)
        return rows if rows.schema.equals(self.schema) else rows.cast(self.schema)


def offered_schema(options: SourceOptions, schema: TableSchema) -> StructType:
    """The columns that a read has unless the user gives a schema.

    All of them are nullable for Spark: it would trust a NOT NULL and skip checks, even if another
    engine has violated it.
    """
    projection = _projection(options, schema)
    offered = nullable_fields(spark_schema(projection.fields))
    if not options.with_kind:
        return offered
    if KIND_COLUMN in offered.names:
        raise InvalidOption(f"{ROW_KIND}: the table already has a column {KIND_COLUMN}")
    return StructType([_KIND_FIELD, *offered.fields])


def choose_columns(options: SourceOptions, schema: TableSchema, asked: StructType) -> Columns:
    """The columns that Spark asks for, by name.

    Raises:
        ColumnNotFound: names every column that does not exist.
        DataMismatch: lists every column that has another type.
    """
    offered = offered_schema(options, schema)
    unknown = [name for name in asked.names if name not in offered.names]
    if unknown:
        raise ColumnNotFound(
            f"{options.identifier} has no columns {listed(unknown)} to read; "
            f"{choices(unknown, offered.names, 'choose from')} "
            f"({KIND_COLUMN} comes with {ROW_KIND}=true)"
        )
    if options.with_kind and KIND_COLUMN not in asked.names:
        raise InvalidOption(
            f"{ROW_KIND}=true returns deleted rows too: the schema needs the column {KIND_COLUMN}"
        )
    outputs = {output.field.name: output for output in _projection(options, schema).outputs}
    declared = spark_schema(tuple(output.field for output in outputs.values()))
    _check_types(options, asked, declared)
    chosen = Projection(tuple(outputs[name] for name in asked.names if name in outputs))
    if not chosen.outputs:
        raise InvalidInput(f"the schema needs at least one column of {options.identifier}")
    read = {field.name: field for field in handed_out(chosen.fields)}
    if options.with_kind:
        read[KIND_COLUMN] = _ARROW_KIND
    return Columns(
        chosen,
        options.with_kind,
        pa.schema([read[name] for name in asked.names]),
        arrow_input_schema(asked),
    )


def _projection(options: SourceOptions, schema: TableSchema) -> Projection:
    if options.columns is None:
        return project_all(schema.fields)
    return project(readable_fields(schema), options.columns)


# --- types ----------------------------------------------------------------------------------------


def _check_types(options: SourceOptions, asked: StructType, declared: StructType) -> None:
    known = StructType([*declared.fields, _KIND_FIELD]) if options.with_kind else declared
    wrong = [
        f"{field.name} is {_text(known[field.name])}, not {_text(field)}"
        for field in asked
        if not _fits(field, known[field.name])
    ]
    if wrong:
        raise DataMismatch(
            f"the schema does not fit {options.identifier}: {'; '.join(wrong)}; read the columns "
            "as they are and cast them"
        )


def _fits(asked: StructField, declared: StructField) -> bool:
    """Whether the asked type is the declared one; it may allow nulls where there are none."""
    return _allows(asked.nullable, declared.nullable) and _is_same(
        asked.dataType, declared.dataType
    )


def _is_same(asked: DataType, declared: DataType) -> bool:
    match asked, declared:
        case StructType(), StructType():
            return asked.names == declared.names and all(map(_fits, asked, declared))
        case ArrayType(), ArrayType():
            return _allows(asked.containsNull, declared.containsNull) and _is_same(
                asked.elementType, declared.elementType
            )
        case MapType(), MapType():
            return (
                _allows(asked.valueContainsNull, declared.valueContainsNull)
                and _is_same(asked.keyType, declared.keyType)
                and _is_same(asked.valueType, declared.valueType)
            )
        case _:
            return asked == declared


def _allows(asked_nulls: bool, declared_nulls: bool) -> bool:  # noqa: FBT001
    return asked_nulls or not declared_nulls


def _text(field: StructField) -> str:
    return field.dataType.simpleString() + ("" if field.nullable else " not null")
