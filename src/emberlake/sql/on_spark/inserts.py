"""INSERT INTO and INSERT OVERWRITE: which columns get which values, and what is replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from emberlake.errors import ColumnNotFound, DataMismatch, InvalidSql
from emberlake.rowops.write import Written
from emberlake.session.write_session import WriteSession
from emberlake.spark.types import nullable_fields, paimon_fields
from emberlake.spark.write import WriteJob
from emberlake.spec.replacement import Replacement
from emberlake.sql.evolving import is_evolving, with_new_columns
from emberlake.sql.lexer import Kind, tokenize
from emberlake.sql.on_spark.assignment import Filling, assigned, given_fields, lacking
from emberlake.sql.on_spark.rewriting import Rewriter
from emberlake.sql.positions import columns_by_position
from emberlake.sql.postponed import with_buckets
from emberlake.sql.replace_where import replaced_where
from emberlake.sql.replacing import Edit, edited
from emberlake.sql.session import SqlSession
from emberlake.sql.statements import Insert, PartitionValue
from emberlake.sql.targets import by_lower_name
from emberlake.table import Table
from emberlake.types import DataField

_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"


class FrameRows:
    """The rows of a query; the tables in it are pinned already."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns of a table for them."""
        return paimon_fields(nullable_fields(self._frame.schema))

    def write(self, table: Table, *, replaces: bool) -> Written:
        """Write their files for a table that is made of them."""
        places = {name: number for number, name in enumerate(table.field_names)}
        fitted = _fit(table, self._frame, {}, places, by_name=False, filling=None)
        whole = Replacement.whole_table(table.table_schema) if replaces else None
        return _PlannedWrite(fitted, table, whole).write(is_new=True)


@dataclass(frozen=True)
class _PlannedWrite:
    """Rows that fit a table."""

    rows: DataFrame
    table: Table
    replaces: Replacement | None

    def write(self, *, is_new: bool = False) -> Written:
        builder = self.table.new_batch_write_builder()
        session = WriteSession(builder.store, builder.commit_user, self.replaces)
        session = with_buckets(session, is_new=is_new)
        return Written(session, WriteJob(session=session).prepare(self.rows))


def insert_rows(statements: Sequence[Insert], session: SqlSession, rewriter: Rewriter) -> None:
    """Write the rows of each query, in a commit of its own.

    All of them see the tables as they were before the first commit.
    """
    for planned in [_planned(statement, session, rewriter) for statement in statements]:
        planned.write().commit()


def _planned(statement: Insert, session: SqlSession, rewriter: Rewriter) -> _PlannedWrite:
    table = session.table(statement.table)  # an unknown table is told before anything is read
    rows = rewriter.frame(without_default(statement.query))
    settings = session.engine.settings()
    filling = Filling() if statement.by_name and is_evolving(session) else None
    if filling is not None:
        given = given_fields(rows.schema, table.fields)
        table = with_new_columns(table, statement.table, given, session, nested=True)
    static = _static_values(statement.partition, table, rewriter)
    mode = "dynamic" if statement.is_dynamic else settings.get(_OVERWRITE_MODE, "static").lower()
    is_dynamic = mode == "dynamic" and statement.replace_where is None
    places = _places(statement, table, rows.columns, static, is_dynamic=is_dynamic)
    fitted = _fit(table, rows, static, places, by_name=statement.by_name, filling=filling)
    replaces = _replacement(statement, table, static, fitted, is_dynamic=is_dynamic)
    return _PlannedWrite(fitted, table, replaces)


# --- columns --------------------------------------------------------------------------------------


def _fit(
    table: Table,
    rows: DataFrame,
    static: dict[str, Column],
    places: dict[str, int],
    *,
    by_name: bool,
    filling: Filling | None,
) -> DataFrame:
    numbered = rows.toDF(*(f"_{number}" for number in range(len(rows.columns))))
    outputs: list[Column] = []
    for field in table.fields:
        if field.name in static:
            outputs.append(static[field.name])
        elif field.name in places:
            number = places[field.name]
            kind = rows.schema.fields[number].dataType
            value = F.col(f"_{number}")
            outputs.append(assigned(value, field, kind, by_name=by_name, filling=filling))
        else:
            outputs.append(lacking(field))
    return numbered.select(*outputs)


def _places(
    statement: Insert,
    table: Table,
    given: Sequence[str],
    static: dict[str, Column],
    *,
    is_dynamic: bool,
) -> dict[str, int]:
    """For columns of the table, the place of their values in the query."""
    if statement.by_name:
        return _places_by_name(table.fields, given, static)
    if statement.columns is None:
        wanted = columns_by_position(statement, table, static, lambda: given, is_dynamic=is_dynamic)
    else:
        wanted = _listed(statement.columns, table.fields, static)
    if len(wanted) != len(given):
        raise DataMismatch(
            f"cannot write to {statement.table}: the query has {len(given)} columns, but "
            f"{len(wanted)} are needed ({', '.join(wanted)})"
        )
    return {name: number for number, name in enumerate(wanted)}


def _places_by_name(
    fields: Sequence[DataField], given: Sequence[str], static: dict[str, Column]
) -> dict[str, int]:
    known = by_lower_name(fields)
    lower = [name.lower() for name in given]
    if len(set(lower)) < len(lower):
        twice = next(name for name in given if lower.count(name.lower()) > 1)
        raise DataMismatch(f"[COLUMN_ALREADY_EXISTS] the query has two columns {twice}")
    for name in given:
        if name.lower() not in known:
            raise _unknown(name, fields)
        if known[name.lower()].name in static:
            raise DataMismatch(f"{name} already has a value in PARTITION (...)")
    return {known[name.lower()].name: number for number, name in enumerate(given)}


def _listed(
    columns: Sequence[str], fields: Sequence[DataField], static: dict[str, Column]
) -> list[str]:
    known = by_lower_name(fields)
    wanted: list[str] = []
    for name in columns:
        if name.lower() not in known:
            raise _unknown(name, fields)
        found = known[name.lower()].name
        if found in wanted or found in static:
            raise InvalidSql(f"[COLUMN_ALREADY_EXISTS] the column {name} is named twice")
        wanted.append(found)
    return wanted


def _unknown(name: str, fields: Sequence[DataField]) -> ColumnNotFound:
    return ColumnNotFound(
        f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] the table has no column {name}; it has "
        f"{', '.join(f.name for f in fields)}",
        column=name,
    )


def _static_values(
    partition: Sequence[PartitionValue] | None, table: Table, rewriter: Rewriter
) -> dict[str, Column]:
    """The values that PARTITION (...) gives, as columns of the table."""
    known = by_lower_name(table.partition_keys_fields)
    static: dict[str, Column] = {}
    for part in partition or ():
        field = known.get(part.column.lower())
        if field is None:
            raise InvalidSql(
                f"[NON_PARTITION_COLUMN] {part.column} is not a partition column of "
                f"{table.identifier}: it has {', '.join(table.partition_keys) or 'none'}"
            )
        if part.value is not None:
            given = rewriter.frame(f"SELECT {part.value} AS v")
            kind = given.schema.fields[0].dataType
            value = F.lit(given.collect()[0][0]).cast(kind)
            static[field.name] = assigned(value, field, kind, by_name=False)
    return static


# --- what is replaced -----------------------------------------------------------------------------


def _replacement(
    statement: Insert,
    table: Table,
    static: dict[str, Column],
    fitted: DataFrame,
    *,
    is_dynamic: bool,
) -> Replacement | None:
    if not statement.overwrite:
        return None
    schema = table.store.schema
    if statement.replace_where is not None:
        return replaced_where(schema, statement.replace_where)
    if is_dynamic and schema.partition_keys:
        return Replacement.dynamic(schema)
    if not static:
        return Replacement.whole_table(schema)
    spark = fitted.sparkSession
    values = spark.range(1).select(*static.values()).collect()[0].asDict()
    return Replacement.static(schema, values)


# --- DEFAULT --------------------------------------------------------------------------------------


def without_default(query: str) -> str:
    """The query with NULL in place of DEFAULT: a NULL that is written becomes the default."""
    tokens = tokenize(query)
    edits = [
        Edit(token.start, token.end, "NULL")
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if token.is_word("DEFAULT")
        and (before.is_symbol("(", ",") or before.is_word("SELECT", "VALUES"))
        and (after.is_symbol(",", ")") or after.kind is Kind.END or after.is_word("FROM"))
    ]
    return edited(query, edits)
