"""Checks from its schema alone whether a DataFrame fits a table, before any task starts.

The rules are those of ``emberlake.write.align``, which the tasks apply to the rows: whatever
is refused here would be refused there for any values. Only the tasks can check values: integers in
a narrower column, the length of strings, and nulls in a NOT NULL column.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pyspark.sql import types as spark

from emberlake.errors import DataMismatch, InvalidInput, InvalidSchema, Unsupported
from emberlake.merge.plan import plan_merge
from emberlake.options import ROWKIND_FIELD
from emberlake.rowops.text_values import is_read_from_text
from emberlake.spark.types import arrow_input_schema, to_paimon_type, type_name
from emberlake.spec.default_values import default_value
from emberlake.spec.schema import TableSchema
from emberlake.spec.widening import is_widening
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
from emberlake.write.align import align, there_is, unknown_column
from emberlake.write.lacking import lacking_columns
from emberlake.write.row_kinds import ROW_KIND_COLUMN


def check_alignment(
    df_schema: spark.StructType,
    schema: TableSchema,
    write_columns: Sequence[str] | None = None,
) -> None:
    """Refuse a DataFrame whose rows could never be written.

    Args:
        df_schema: The schema of the DataFrame.
        schema: The schema of the table.
        write_columns: The columns that the DataFrame must have, no more and no less. Without it,
            columns that are nullable or have a default can be left out, unless the row with the
            same key would lose their values.

    Raises:
        DataMismatch: lists every difference.
    """
    problems = list(_problems(df_schema, schema, write_columns))
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise DataMismatch(f"the DataFrame does not fit the table:{lines}")


def check_values(given: spark.StructType, schema: TableSchema) -> None:
    """Refuse columns whose values could never be written to the columns of the same names.

    Raises:
        DataMismatch: lists every difference.
    """
    problems = [
        f"{'.'.join((column.name, *path))}: {problem}"
        for column in given
        for path, problem in _type_problems(column.dataType, schema.field_by_name[column.name].type)
    ]
    if problems:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        raise DataMismatch(f"the values do not fit the table:{lines}")


def may_have_bad_rows(df_schema: spark.StructType, schema: TableSchema) -> bool:
    """Whether rows of a DataFrame that fits may still be refused, because of their values."""
    columns = {column.name: column for column in df_schema}
    if ROW_KIND_COLUMN in columns or schema.options.value(ROWKIND_FIELD) is not None:
        return True
    return any(
        not _always_fits(columns[field.name], field)
        for field in schema.fields
        if field.name in columns
    )


def _always_fits(column: spark.StructField, field: DataField) -> bool:
    if column.nullable and not field.type.nullable:
        return False
    try:
        given = to_paimon_type(column.dataType)
    except (InvalidSchema, Unsupported):
        return False
    if isinstance(field.type, AtomicType):
        wanted = field.type.with_nullable(True)
        return given == wanted or is_widening(given, wanted)
    return given == field.type.with_nullable(True)


def _problems(
    df_schema: spark.StructType, schema: TableSchema, write_columns: Sequence[str] | None
) -> Iterator[str]:
    columns = list(df_schema)
    if not columns:  # Arrow does not count rows without columns: they would be lost
        yield "it has no columns"
    kinds: list[spark.StructField] = []
    if ROW_KIND_COLUMN not in schema.field_by_name:
        kinds = [column for column in columns if column.name == ROW_KIND_COLUMN]
        columns = [column for column in columns if column.name != ROW_KIND_COLUMN]
        yield from _kind_problems(kinds, schema)
    counts = Counter(column.name for column in columns)
    yield from (f"{name}: is given more than once" for name, n in counts.items() if n > 1)
    for column in columns:
        field = schema.field_by_name.get(column.name)
        if field is None and isinstance(column.dataType, spark.NullType):
            yield f"{column.name}: is not a column of the table, and NULL has no type; cast it"
        elif field is None:
            yield f"{column.name}: {unknown_column(column.name, schema.fields)}"
        elif write_columns is not None and column.name not in write_columns:
            yield f"{column.name}: is not among the columns declared by with_write_type"
        elif counts[column.name] == 1:
            yield from _column_problems(column, field)
    yield from _absent_problems(frozenset(counts), schema, write_columns, has_kinds=bool(kinds))


def _absent_problems(
    given: frozenset[str],
    schema: TableSchema,
    write_columns: Sequence[str] | None,
    *,
    has_kinds: bool,
) -> Iterator[str]:
    """Problems with columns that the DataFrame lacks."""
    declared = frozenset(write_columns or ())
    kind_field = schema.options.value(ROWKIND_FIELD)
    for field in schema.fields:
        if field.name in given:
            continue
        if field.name == kind_field:
            yield f"{field.name}: is missing, and tells row kinds (rowkind.field)"
        else:
            yield from _missing_problems(field, is_declared=field.name in declared)
    if not schema.profile.has_keys:
        return
    # If the data has row kinds, only the tasks can see whether all rows are deletes.
    lacking = lacking_columns(
        schema,
        plan_merge(schema, schema.fields),
        given,
        is_declared=write_columns is not None,
        has_adds=not has_kinds and kind_field is None,
    )
    yield from (f"{names}: {problem}" for names, problem in lacking.items())


def _kind_problems(kinds: list[spark.StructField], schema: TableSchema) -> Iterator[str]:
    """Problems with a column of row kinds, which is not a column of the table."""
    kind_field = schema.options.value(ROWKIND_FIELD)
    if not kinds:
        return
    if len(kinds) > 1:
        yield f"{ROW_KIND_COLUMN}: is given more than once"
    if not schema.profile.has_keys:
        yield (
            f"{ROW_KIND_COLUMN}: tells row kinds, but the table has no primary key: its rows are "
            "all inserts"
        )
    if kind_field is not None:
        yield (
            f"{ROW_KIND_COLUMN}: row kinds come from the column {kind_field} of the table "
            "(rowkind.field): give them only once"
        )
    if not _is_text(kinds[0].dataType):
        yield f"{ROW_KIND_COLUMN}: row kinds are text, not {type_name(kinds[0].dataType)}"


def _is_text(kind: spark.DataType) -> bool:
    return isinstance(kind, spark.StringType | spark.CharType | spark.VarcharType)


def _missing_problems(field: DataField, *, is_declared: bool) -> Iterator[str]:
    if is_declared:
        yield f"{field.name}: is declared by with_write_type but not given"
    elif field.default_value is not None:
        try:
            default_value(field.type, field.default_value)
        except InvalidInput as error:
            yield f"{field.name}: is missing, and its default value cannot be used: {error}"
    elif not field.type.nullable:
        yield f"{field.name}: is missing, and the column is NOT NULL"


def _column_problems(column: spark.StructField, field: DataField) -> Iterator[str]:
    if isinstance(column.dataType, spark.NullType) and not field.type.nullable:
        yield f"{column.name}: is always null, and the column is NOT NULL"
    is_text = isinstance(column.dataType, spark.StringType)
    hint = (
        ", or pass on_bad_rows, which reads text"
        if is_text and is_read_from_text(field.type)
        else ""
    )
    for path, problem in _type_problems(column.dataType, field.type):
        yield f"{'.'.join((column.name, *path))}: {problem}{hint}"


_Problems = Iterator[tuple[tuple[str, ...], str]]  # where, and what is wrong


def _type_problems(given: spark.DataType, wanted: DataType) -> _Problems:
    if isinstance(given, spark.NullType):
        return
    match given, wanted:
        case spark.StructType(), RowType():
            yield from _struct_problems(given, wanted)
        case spark.ArrayType(), ArrayType(element=element):
            yield from _inside("element", given.elementType, element)
        case spark.MapType(keyType=spark.NullType()), _:  # no Arrow type has such keys
            yield (), f"{type_name(given)} cannot be written to {wanted}; cast it first"
        case spark.MapType(), MapType(key=key, value=value):
            yield from _inside("key", given.keyType, key)
            yield from _inside("value", given.valueType, value)
        case spark.MapType(), MultisetType(element=element):
            yield from _inside("key", given.keyType, element)
            yield from _inside("value", given.valueType, AtomicType("INT", False))
        case _, AtomicType() if _fits(given, wanted):
            return
        case _:
            yield (), f"{type_name(given)} cannot be written to {wanted}{_hint(given, wanted)}"


def _inside(name: str, given: spark.DataType, wanted: DataType) -> _Problems:
    for path, problem in _type_problems(given, wanted):
        yield (name, *path), problem


def _struct_problems(given: spark.StructType, row: RowType) -> _Problems:
    counts = Counter(inner.name for inner in given)
    for name in counts:
        if row.field(name) is None:
            yield (name,), f"is not in {row} ({there_is(name, row.fields)})"
    for field in row.fields:
        if counts[field.name] > 1:
            yield (field.name,), "is given more than once"
        elif counts[field.name]:
            yield from _inside(field.name, given[field.name].dataType, field.type)
        elif not field.type.nullable:
            yield (field.name,), "is missing, and NOT NULL"


def _fits(given: spark.DataType, wanted: AtomicType) -> bool:
    """Whether values of the type can be written at all, found out by aligning an empty table."""
    try:
        schema = arrow_input_schema(spark.StructType([spark.StructField("c", given)]))
        align(schema.empty_table(), (DataField(0, "c", wanted.with_nullable(True)),))
    except (InvalidSchema, DataMismatch):
        return False
    return True


def _hint(given: spark.DataType, wanted: DataType) -> str:
    root = wanted.root if isinstance(wanted, AtomicType) else None
    if root is TypeRoot.TIMESTAMP and isinstance(given, spark.TimestampType):
        return ": the column has no time zone; cast it to timestamp_ntz, in the session's time zone"
    if root is TypeRoot.TIMESTAMP_LTZ and isinstance(given, spark.TimestampNTZType):
        return ": the column has a time zone; cast it to timestamp, in the session's time zone"
    return "" if root is None else "; cast it first"
