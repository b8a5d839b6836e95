"""The engine of ``catalog.sql``: queries on DuckDB, writes and changes of rows by the tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from emberlake.errors import InvalidSql, TableNotFound, Unsupported
from emberlake.read.sql_result import SqlResult
from emberlake.sql.commands.answers import column_rows, texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.types import spark_type
from emberlake.sql.cursor import Cursor
from emberlake.sql.engine import Args
from emberlake.sql.names import TableName
from emberlake.sql.on_duckdb.changes import delete, merge, update
from emberlake.sql.on_duckdb.connection import UNTYPED, Database, Prepared
from emberlake.sql.on_duckdb.dialect import parse_query
from emberlake.sql.on_duckdb.native_queries import NativeQueries
from emberlake.sql.on_duckdb.parameters import bind_parameters
from emberlake.sql.on_duckdb.pinned import Pins
from emberlake.sql.on_duckdb.preparing import Lookup, Preparation
from emberlake.sql.on_duckdb.target_rows import TargetRows
from emberlake.sql.on_duckdb.writing import PreparedRows, insert
from emberlake.sql.statements import (
    CreateTemporaryView,
    Delete,
    Foreign,
    Insert,
    Merge,
    Query,
    Update,
)
from emberlake.types import from_arrow_schema

_CHANGES: Final = ("INSERT", "DELETE", "UPDATE", "MERGE", "TRUNCATE")
_QUERIES: Final = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
# First words of statements that only Spark knows.
_OF_SPARK: Final = frozenset(
    [
        "ADD",
        "ALTER",
        "BEGIN",
        "CACHE",
        "CLEAR",
        "CREATE",
        "DECLARE",
        "DROP",
        "EXECUTE",
        "EXPLAIN",
        "EXPORT",
        "GRANT",
        "IMPORT",
        "LIST",
        "LOCK",
        "REFRESH",
        "REPAIR",
        "REVOKE",
        "SET",
        "SHOW",
        "UNCACHE",
        "UNLOCK",
    ]
)

# Objects of the caller, by their Python names. Threads carry out statements side by side.
_LOOKUP: Final[ContextVar[Lookup]] = ContextVar("lookup", default=lambda _: None)


class DuckDbEngine:
    """Carries out statements in this process."""

    session: Session  # set by the caller, which makes both

    def __init__(self) -> None:
        self.database = Database()
        self._native = NativeQueries(self.database)
        self._settings: dict[str, str] = {}
        self._views: dict[str, exp.Expr] = {}
        self._cached: dict[str, pa.Table] = {}  # rows of views, as they were when they were cached

    @contextmanager
    def looking_up(self, lookup: Lookup) -> Iterator[None]:
        """Find objects of the caller while a statement of this thread is carried out."""
        before = _LOOKUP.set(lookup)
        try:
            yield
        finally:
            _LOOKUP.reset(before)

    # --- queries ----------------------------------------------------------------------------------

    def query(self, statement: Query, args: Args) -> SqlResult:
        prepared = self.database.as_spark(self.prepare(statement.text, args))
        return SqlResult(
            lambda: self.database.schema(prepared), lambda: self.database.stream(prepared)
        )

    def prepare(self, text: str, args: Args) -> Prepared:
        """A query for DuckDB, with all its tables pinned."""
        return self.prepare_tree(bind_parameters(parse_query(text), args))

    def prepare_tree(
        self,
        tree: exp.Expr,
        targets: Mapping[str, TargetRows] | None = None,
        pins: Pins | None = None,
    ) -> Prepared:
        """The same for a query that is parsed already; some of its names stand for rows."""
        views = {**self._views, **self._cached}
        preparation = Preparation(
            self.session, self.database, self._native, views, _LOOKUP.get(), pins
        )
        return preparation.prepare(tree, targets or {})

    def rows_of(self, query: str, args: Args) -> PreparedRows:
        return PreparedRows(self, self.prepare(query, args))

    def value(self, expression: str, args: Args) -> Any:
        tree = bind_parameters(parse_query(f"SELECT {expression}"), args)
        return self.database.stream(self.prepare_tree(tree)).read_all().column(0)[0].as_py()

    def create_view(self, statement: CreateTemporaryView, args: Args) -> SqlResult:
        name = statement.view.lower()
        if statement.is_global:
            name = f"global_temp.{name}"
        if name in self._views and not statement.replace:
            raise Unsupported(
                f"[TEMP_TABLE_OR_VIEW_ALREADY_EXISTS] view {statement.view} already exists; use "
                "CREATE OR REPLACE"
            )
        tree = bind_parameters(parse_query(statement.query), args)
        if statement.columns is not None:
            columns = [exp.to_identifier(column, quoted=True) for column in statement.columns]
            alias = exp.TableAlias(this=exp.to_identifier("v"), columns=columns)
            tree = exp.select("*").from_(exp.Subquery(this=tree, alias=alias))
        self.prepare_tree(tree.copy())  # a view of tables that are not there is refused at once
        self._cached.pop(name, None)
        self._views[name] = tree
        if statement.is_cached:
            prepared = self.database.as_spark(self.prepare_tree(tree.copy()))
            self._cached[name] = self.database.stream(prepared).read_all()
        return self.answer(None)

    def has_view(self, name: str) -> bool:
        """Whether a temporary view has that name."""
        return name.lower() in self._views

    def owns(self, name: TableName) -> bool:
        """Whether a temporary view has that name."""
        return self.has_view(".".join(name.parts))

    def is_view(self, name: TableName) -> bool:
        """Whether it is the name of a temporary view."""
        return len(name.parts) == 1 and self.has_view(name.last)

    # --- rows -------------------------------------------------------------------------------------

    def insert(self, statements: Sequence[Insert], args: Args) -> SqlResult:
        insert(self, statements, args)
        return self.answer(None)

    def delete(self, statement: Delete, args: Args) -> SqlResult:
        delete(self, statement, args)
        return self.answer(None)

    def update(self, statement: Update, args: Args) -> SqlResult:
        update(self, statement, args)
        return self.answer(None)

    def merge(self, statement: Merge, args: Args) -> SqlResult:
        merge(self, statement, args)
        return self.answer(None)

    # --- everything else --------------------------------------------------------------------------

    def foreign(self, statement: Foreign, args: Args) -> SqlResult:
        cursor = Cursor(statement.text)
        if cursor.take("DROP", "VIEW"):
            return self._drop_view(cursor)
        if cursor.take("DESCRIBE") or cursor.take("DESC"):
            return self._describe(_described(cursor), args)
        if cursor.take("UNCACHE", "TABLE"):
            return self._uncache(cursor)
        if cursor.take("CLEAR", "CACHE"):
            cursor.expect_end()
            self._cached.clear()
            return self.answer(None)
        if cursor.token.word in _CHANGES:
            raise InvalidSql(
                "[EXPECT_TABLE_NOT_VIEW] the rows of a temporary view cannot be changed"
            )
        if cursor.token.word not in _OF_SPARK:
            raise InvalidSql(f"[PARSE_SYNTAX_ERROR] this is not a statement: {statement.text[:80]}")
        raise Unsupported(
            f"{' '.join(statement.text.split()[:3])} ... cannot be carried out without Spark; "
            "lake.sql of emberlake.spark.attach hands it to Spark"
        )

    def _drop_view(self, cursor: Cursor) -> SqlResult:
        if_exists = cursor.take("IF", "EXISTS")
        name = ".".join(cursor.path())
        cursor.expect_end()
        self._cached.pop(name.lower(), None)
        if self._views.pop(name.lower(), None) is None and not if_exists:
            raise Unsupported(f"there is no temporary view {name}; only those can be dropped here")
        return self.answer(None)

    def _uncache(self, cursor: Cursor) -> SqlResult:
        """The view stays, and shows the current rows of its tables."""
        if_exists = cursor.take("IF", "EXISTS")
        path = cursor.path()
        cursor.expect_end()
        name = ".".join(path).lower()
        is_known = name in self._views or self.session.find(TableName(path)) is not None
        if not is_known and not if_exists:
            raise TableNotFound(f"[TABLE_OR_VIEW_NOT_FOUND] there is no table or view {name}")
        self._cached.pop(name, None)
        return self.answer(None)

    def _describe(self, query: str, args: Args) -> SqlResult:
        prepared = self.prepare(query, args)
        untyped = [kind == UNTYPED for _, kind in self.database.columns(prepared)]
        fields = from_arrow_schema(self.database.schema(self.database.as_spark(prepared)))
        types = [
            "void" if is_untyped else spark_type(field.type)
            for field, is_untyped in zip(fields, untyped, strict=True)
        ]
        rows = column_rows(fields, types)
        return SqlResult.of_table(texts_of(("col_name", "data_type", "comment"), rows))

    def answer(self, rows: pa.Table | None) -> SqlResult:
        return SqlResult.of_table(pa.table({}) if rows is None else rows)

    def settings(self) -> Mapping[str, str]:
        return self._settings

    def set_setting(self, key: str, value: str) -> None:
        self._settings[key] = value

    def reset_setting(self, key: str | None) -> None:
        if key is None:
            self._settings.clear()
        else:
            self._settings.pop(key, None)


def _described(cursor: Cursor) -> str:
    """The query that DESCRIBE is about: what follows, or all rows of a view."""
    cursor.take("QUERY")
    if cursor.token.is_word(*_QUERIES) or cursor.token.is_symbol("("):
        return cursor.rest()
    cursor.take("EXTENDED")
    name = cursor.table()
    cursor.expect_end()
    return f"SELECT * FROM {name}"
