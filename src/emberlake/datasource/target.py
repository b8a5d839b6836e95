"""The table that a data source writes to, and what happens to rows that do not fit it."""

from pyspark.sql.types import StructType

from emberlake.datasource.options import ON_BAD_ROWS, SourceOptions
from emberlake.errors import InvalidInput, InvalidOption
from emberlake.rowops.quarantine import BadRowRule
from emberlake.rowops.schema_growth import grow_now, growing
from emberlake.rowops.text_values import is_read_from_text
from emberlake.spark.alignment import check_alignment, may_have_bad_rows
from emberlake.spark.sifting import Sifting, sifting_of
from emberlake.spark.types import new_table_fields, to_spark_type
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import TableSchema
from emberlake.spec.support import check_writable
from emberlake.table import Table
from emberlake.table.table import table_of

_SUFFIX = "_bad_rows"


def open_checked(options: SourceOptions, schema: StructType, *, is_stream: bool = False) -> Table:
    """The table, if a DataFrame with this schema can be written to it.

    If it grows, a batch does that with its commit, but a stream at once: Spark makes another object
    for each batch, and all of them must mean the same schema.

    Raises:
        DataMismatch: lists every column that does not fit.
    """
    is_needed = options.create or options.merge_schema
    fields = new_table_fields(schema) if is_needed else ()
    table = options.open_target(fields)
    if options.merge_schema:
        table = table_of((grow_now if is_stream else growing)(table.store, fields))
    check_writable(table.table_schema)
    given = schema if rule_of(options).fails else _read_texts(schema, table.table_schema)
    check_alignment(given, table.table_schema)
    return table


def batch_sifting(options: SourceOptions, table: Table, commit_user: str) -> Sifting | None:
    """What tasks do with rows that do not fit; None: they fail."""
    return sifting_of(rule_of(options), table.store, commit_user, reads_texts=True)


def stream_sifting(
    options: SourceOptions, schema: StructType, table: Table, commit_user: str
) -> Sifting | None:
    """The same for streams, which do not stop on a bad row unless the option says so."""
    if options.on_bad_rows is not None:
        return batch_sifting(options, table, commit_user)
    if not may_have_bad_rows(schema, table.table_schema):
        return None
    rule = BadRowRule(quarantine=default_quarantine(options.identifier))
    return sifting_of(rule, table.store, commit_user)


def default_quarantine(identifier: str) -> str:
    """The table beside another one that keeps its bad rows."""
    parsed = Identifier.parse(identifier)
    return str(Identifier(parsed.database, f"{parsed.table}{_SUFFIX}"))


def rule_of(options: SourceOptions) -> BadRowRule:
    """What the option says about bad rows.

    Raises:
        InvalidOption: its value is unknown.
    """
    if options.on_bad_rows is None:
        return BadRowRule()
    try:
        return BadRowRule.parse(options.on_bad_rows)
    except InvalidInput as error:
        raise InvalidOption(f"{ON_BAD_ROWS}: {error}") from error


def _read_texts(given: StructType, schema: TableSchema) -> StructType:
    """The columns as tasks will have them: text is read as the types of the table."""
    columns = StructType()
    for column in given:
        field = schema.field_by_name.get(column.name)
        is_read = field is not None and is_read_from_text(field.type)
        if field is not None and is_read and column.dataType.typeName() == "string":
            columns = columns.add(column.name, to_spark_type(field.type), True)
        else:
            columns = columns.add(column)
    return columns
