"""INSERT in this process: the rows of a query, cast to the columns of a table, in one commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from emberlake.errors import ColumnNotFound, InvalidInput, InvalidSql
from emberlake.rowops.write import Written, write_files
from emberlake.spec.replacement import Replacement
from emberlake.sql.engine import Args
from emberlake.sql.evolving import is_evolving, with_new_columns
from emberlake.sql.on_duckdb.assign import assigned
from emberlake.sql.on_duckdb.connection import Prepared
from emberlake.sql.on_duckdb.context import Local
from emberlake.sql.on_duckdb.dialect import parse_query, to_duckdb
from emberlake.sql.on_duckdb.parameters import bind_parameters
from emberlake.sql.on_duckdb.pinned import Pins
from emberlake.sql.on_duckdb.types import quoted
from emberlake.sql.positions import columns_by_position
from emberlake.sql.postponed import with_buckets
from emberlake.sql.replace_where import replaced_where
from emberlake.sql.statements import Insert
from emberlake.table import Table
from emberlake.table.write_builder import session_of
from emberlake.types import DataField

_DYNAMIC = "dynamic"
_OVERWRITE_MODE = "spark.sql.sources.partitionoverwritemode"


@dataclass(frozen=True)
class Target:
    """Which columns the rows of a query go to, and the values of the others."""

    table: Table
    inputs: tuple[DataField, ...]
    static: dict[str, str]  # partition columns with a value, as an expression of DuckDB
    by_name: bool = False  # whether fields of structs are found by their names
    fills: bool = False  # whether structs may lack fields


def insert(engine: Local, statements: Sequence[Insert], args: Args) -> None:
    """Carry out INSERT; several queries see the tables as they were before the first commit."""
    pins = Pins()
    for planned in [_planned(engine, statement, args, pins) for statement in statements]:
        planned.write().commit()


def _planned(engine: Local, statement: Insert, args: Args, pins: Pins) -> "PlannedWrite":
    table = engine.session.table(statement.table)
    tree = bind_parameters(_as_query(parse_query(statement.query)), args)
    fills = statement.by_name and is_evolving(engine.session)
    if fills:
        given = engine.database.fields(engine.prepare_tree(tree.copy()), table.fields)
        table = with_new_columns(table, statement.table, given, engine.session, nested=True)
    static = _static_values(statement, table, args)
    is_dynamic = statement.is_dynamic or _is_dynamic(engine)
    is_dynamic = is_dynamic and statement.replace_where is None
    if statement.by_name:
        inputs = _found_fields(table, _given_names(engine, tree))
    elif statement.columns is not None:
        inputs = _found_fields(table, statement.columns)
        static_too = [f.name for f in inputs if f.name in static]
        if static_too:
            raise InvalidSql(
                f"[STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST] {static_too[0]} is in both lists"
            )
    else:
        columns = partial(_given_names, engine, tree)
        names = columns_by_position(statement, table, static, columns, is_dynamic=is_dynamic)
        inputs = _found_fields(table, names)
    tree = _with_defaults(tree, inputs)
    rows = engine.prepare_tree(tree, pins=pins)
    target = Target(table, inputs, static, by_name=statement.by_name, fills=fills)
    prepared = _selected(engine, rows, target)
    replaces = None
    if statement.replace_where is not None:
        replaces = replaced_where(table.table_schema, statement.replace_where)
    elif statement.overwrite:
        replaces = _replaced(engine, table, static, is_dynamic=is_dynamic)
    return PlannedWrite(engine, prepared, table, replaces)


@dataclass(frozen=True)
class PlannedWrite:
    """A query whose rows fit a table; the tables in it are pinned already."""

    engine: Local
    prepared: Prepared
    table: Table
    replaces: Replacement | None = None

    def write(self, *, is_new: bool = False) -> Written:
        """Write the files of the rows."""
        builder = self.table.new_batch_write_builder()
        if self.replaces is not None:
            builder = builder.overwrite(self.replaces)
        session = with_buckets(session_of(builder), is_new=is_new)
        return write_files(session, self.engine.database.stream(self.prepared))


@dataclass(frozen=True)
class PreparedRows:
    """The rows of a query; the tables in it are pinned already."""

    engine: Local
    prepared: Prepared

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns of a table for them."""
        return self.engine.database.fields(self.prepared)

    def write(self, table: Table, *, replaces: bool) -> Written:
        """Write their files for a table that is made of them."""
        target = Target(table, tuple(table.fields), {})
        rows = _selected(self.engine, self.prepared, target)
        whole = Replacement.whole_table(table.table_schema) if replaces else None
        return PlannedWrite(self.engine, rows, table, whole).write(is_new=True)


def _as_query(tree: exp.Expr) -> exp.Expr:
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(exp.Subquery(this=tree, alias=exp.TableAlias(this="v")))
    return tree


# --- columns --------------------------------------------------------------------------------------


def _given_names(engine: Local, tree: exp.Expr) -> list[str]:
    """The names of the columns of a query."""
    query = _with_defaults(tree.copy(), None)
    return [name for name, _ in engine.database.columns(engine.prepare_tree(query))]


def _found_fields(table: Table, names: Sequence[str]) -> tuple[DataField, ...]:
    fields = tuple(found_field(table, name) for name in names)
    twice = sorted({f.name for f in fields if fields.count(f) > 1})
    if twice:
        raise InvalidSql(f"[COLUMN_ALREADY_EXISTS] {', '.join(twice)} is given twice")
    return fields


def found_field(table: Table, name: str) -> DataField:
    """The column of that name, ignoring case.

    Raises:
        ColumnNotFound: there is no such column.
    """
    for field in table.fields:
        if field.name.lower() == name.lower():
            return field
    raise ColumnNotFound(
        f"{table.identifier} has no column {name}; it has {', '.join(table.field_names)}",
        column=name,
    )


def _static_values(statement: Insert, table: Table, args: Args) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in statement.partition or ():
        field = found_field(table, part.column)
        if field.name not in table.partition_keys:
            raise InvalidInput(
                f"[NON_PARTITION_COLUMN] {part.column} does not partition {table.identifier}"
            )
        if part.value is not None:
            tree = bind_parameters(parse_query(f"SELECT {part.value}"), args)
            found[field.name] = to_duckdb(tree.expressions[0])
    return found


def _with_defaults(tree: exp.Expr, inputs: Sequence[DataField] | None) -> exp.Expr:
    """DEFAULT in VALUES is the default of the column, or NULL where the columns are unknown."""
    for values in tree.find_all(exp.Values):
        for row in values.expressions:
            for at, value in enumerate(list(getattr(row, "expressions", ()))):
                is_default = (
                    isinstance(value, exp.Column | exp.Var | exp.Identifier)
                    and value.name.upper() == "DEFAULT"
                )
                if is_default and (inputs is None or at < len(inputs)):
                    value.replace(exp.Null() if inputs is None else default_of(inputs[at]))
    return tree


def default_of(field: DataField) -> exp.Expr:
    """The default of a column as an expression."""
    if field.default_value is None:
        return exp.Null()
    said: exp.Expr = parse_query(f"SELECT {field.default_value}").expressions[0]
    return said


# --- rows -----------------------------------------------------------------------------------------


def _selected(engine: Local, prepared: Prepared, target: Target) -> Prepared:
    """The query with the columns of the table, each of its type."""
    columns = engine.database.columns(prepared)
    if len(columns) != len(target.inputs):
        raise InvalidInput(
            f"{target.table.identifier} takes {len(target.inputs)} columns here, the query has "
            f"{len(columns)}"
        )
    names = [f"c{at}" for at in range(len(columns))]
    given = {
        f.name: assigned(name, kind, f.type, by_name=target.by_name, fills=target.fills)
        for f, name, (_, kind) in zip(target.inputs, names, columns, strict=True)
    }
    for name, value in target.static.items():
        field = found_field(target.table, name)
        ((_, kind),) = engine.database.columns(Prepared(f"SELECT {value}"))
        given[name] = assigned(f"({value})", kind, field.type)
    outputs = ", ".join(
        f"{value_or_default(engine, f, given.get(f.name))} AS {quoted(f.name)}"
        for f in target.table.fields
    )
    text = f"SELECT {outputs} FROM ({prepared.text}) AS q({', '.join(names)})"
    return prepared.with_text(text)


def value_or_default(engine: Local, field: DataField, given: str | None) -> str:
    """A value, or the default: a NULL that is written into a column becomes its default."""
    if field.default_value is None:
        return given or "NULL"
    text = to_duckdb(default_of(field))
    ((_, kind),) = engine.database.columns(Prepared(f"SELECT {text}"))
    default = assigned(f"({text})", kind, field.type)
    return default if given is None else f"coalesce({given}, {default})"


# --- overwriting ----------------------------------------------------------------------------------


def _replaced(
    engine: Local, table: Table, static: dict[str, str], *, is_dynamic: bool
) -> Replacement:
    schema = table.table_schema
    values: dict[str, Any] = {}
    for name, text in static.items():
        field = found_field(table, name)
        ((_, kind),) = engine.database.columns(Prepared(f"SELECT {text}"))
        values[name] = engine.database.value(assigned(f"({text})", kind, field.type))
    if is_dynamic and table.partition_keys:
        return Replacement.dynamic(schema, values)
    return Replacement.static(schema, values)


def _is_dynamic(engine: Local) -> bool:
    settings = {key.lower(): value for key, value in engine.settings().items()}
    return settings.get(_OVERWRITE_MODE, "static").lower() == _DYNAMIC
