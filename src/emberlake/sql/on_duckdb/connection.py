"""DuckDB in this process: one database for a session, and a connection for each statement."""

import re
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa

from emberlake.base.byte_cache import ByteCache
from emberlake.base.names import listed
from emberlake.errors import (
    CorruptFile,
    DataMismatch,
    EmberlakeError,
    FileNotFound,
    InvalidSchema,
    InvalidSql,
    StorageError,
    Unsupported,
)
from emberlake.sql.on_duckdb.decimals import divide
from emberlake.sql.on_duckdb.macros import definitions_in
from emberlake.sql.on_duckdb.types import quoted, result_type
from emberlake.sql.on_duckdb.typing import Digits
from emberlake.sql.on_duckdb.unknown_names import Known
from emberlake.types import DataField, from_arrow_schema

UNTYPED = '"NULL"'  # the type of a column of nulls
_NOTHING = Known()
_INTERNAL = "__"  # columns with such names are hidden, or only the engine's
_ROWS_AT_ONCE = 1 << 17
_MOST_VIEWS = 32 << 20  # bytes of views that no statement needs now
_VIEW_COPIES = 4  # of the text of a view: ours, and what DuckDB makes of it
_SAID = re.compile(r"string '(\[[A-Z_]+\].*)' to ")  # a cast that fails on purpose
_MISSING = re.compile(r'^IO Error: No files found that match the pattern "(.*)"')
_BROKEN = re.compile(
    r"^Invalid Input Error: (?:No magic bytes found at end of file '(.*)'"
    r"|File '(.*)' too small to be a Parquet file)"
)
_MIXED = re.compile(r"Cannot combine types (.*) and (.*) - an explicit cast is required")


@dataclass(frozen=True, eq=False)
class FileView:
    """A view of files in the database. It lasts as long as somebody refers to this value."""

    name: str


@dataclass(frozen=True)
class Prepared:
    """Text for DuckDB, what the names in it stand for, and views that it needs."""

    text: str
    sources: Mapping[str, object] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    files: tuple[FileView, ...] = ()
    bits: Mapping[str, bytes] = field(default_factory=dict)  # variables of these files

    def with_text(self, text: str) -> "Prepared":
        """Another query of the same tables."""
        return replace(self, text=text)

    def has_tables_of(self, other: "Prepared") -> bool:
        """Whether the names in both mean the same rows."""
        return (
            self.sources is other.sources
            and self.views == other.views
            and self.files == other.files
        )


@dataclass(frozen=True)
class _Kept:
    """A connection in which the tables of a query are registered, and the query, bound to them."""

    prepared: Prepared
    connection: Any
    relation: Any


class Database:
    """An empty database in memory; what does not fit there spills to a temporary folder."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="emberlake-sql-")
        config = {
            "temp_directory": self._folder.name,
            "autoinstall_known_extensions": "false",  # nothing is downloaded silently
            "parquet_metadata_cache": "true",  # files of tables do not change
            "python_enable_replacements": "false",  # names are looked up by the session
        }
        self._connection = duckdb.connect(":memory:", config=config)
        weakref.finalize(self, _close, self._connection, self._folder)
        # Connections of statements, by their ids. A stream that nobody reads ends with its owner.
        self._running: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._functions: set[str] = set()
        self._views = ByteCache(lambda: _MOST_VIEWS)  # by the texts of their queries
        self._view_number = count(1)
        self._unused: deque[str] = deque()  # names of views that nobody refers to
        self._defining = threading.Lock()
        self._kept: _Kept | None = None
        self._keeping = threading.Lock()

    def divider(self, a: Digits, b: Digits, result: Digits) -> str:
        """The name of a function that divides decimals of these digits."""
        sizes = [size for d in (a, b, result) for size in (d.precision, d.scale)]
        name = f"spark_divide_{'_'.join(map(str, sizes))}"
        kinds = [f"DECIMAL({d.precision}, {d.scale})" for d in (a, b, result)]
        with self._defining:
            if name not in self._functions:
                self._connection.create_function(
                    name,
                    lambda left, right: divide(left, right, result),
                    kinds[:2],
                    kinds[2],
                    type="arrow",
                )
                self._functions.add(name)
        return name

    def _define(self, text: str) -> None:
        """Define the functions of Spark that a query calls."""
        with self._defining:
            for name, definition in definitions_in(text, self._functions):
                self._connection.execute(definition)
                self._functions.add(name)

    def view_of(self, query: str, prefix: str) -> FileView:
        """A view of a query whose rows never change; later statements find it again."""
        with self._defining:
            while self._unused:
                self._connection.execute(f"DROP VIEW {self._unused.popleft()}")
            view: FileView | None = self._views.find((query,))
            if view is None:
                view = FileView(f"{prefix}{next(self._view_number)}")
                try:
                    self._connection.execute(f"CREATE VIEW {view.name} AS {query}")
                except duckdb.Error as error:
                    raise _ours(error) from error
                weakref.finalize(view, self._unused.append, view.name).atexit = False
                self._views.keep((query,), view, _VIEW_COPIES * len(query))
        return view

    def columns(self, prepared: Prepared) -> list[tuple[str, str]]:
        """Names and types of the columns of a query; nothing is run."""
        connection, relation = self._bound(prepared)
        kinds = map(str, relation.types)
        found = list(zip(relation.columns, kinds, strict=True))
        self._keep(_Kept(prepared, connection, relation))  # another thread may end it from here on
        return found

    def stream(self, prepared: Prepared) -> pa.RecordBatchReader:
        """Run a query; its rows as a stream."""
        connection, relation = self._bound(prepared)
        try:
            reader = relation.to_arrow_reader(_ROWS_AT_ONCE)
        except duckdb.Error as error:
            self._end(connection)
            raise _problem_of(prepared) or _ours(error) from error

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from reader
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise _ours(error) from error
            finally:
                self._end(connection)

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def schema(self, prepared: Prepared) -> pa.Schema:
        """The Arrow types of the columns of a query; no row is read."""
        empty = prepared.with_text(f"SELECT * FROM ({prepared.text}) LIMIT 0")
        names = [name for name, _ in self.columns(prepared)]  # DuckDB gives twins other names
        fields = zip(self.stream(empty).schema, names, strict=True)
        return pa.schema([field.with_name(name) for field, name in fields])

    def fields(
        self, prepared: Prepared, known: Collection[DataField] = ()
    ) -> tuple[DataField, ...]:
        """The columns of a table for the rows of a query.

        Args:
            prepared: The query.
            known: Columns that the table has: what is NULL for them is left out.

        Raises:
            InvalidSchema: a column has no type, because all its values are NULL, or none of Paimon.
        """
        untyped = {name.lower() for name, kind in self.columns(prepared) if kind == UNTYPED}
        unknown = untyped - {field.name.lower() for field in known}
        if unknown:
            raise InvalidSchema(
                f"columns without a Paimon type: {listed(sorted(unknown))}; CAST NULL to one"
            )
        schema = self.schema(self.as_spark(prepared))
        return from_arrow_schema(pa.schema(f for f in schema if f.name.lower() not in untyped))

    def value(self, text: str) -> Any:
        """The value of an expression without columns."""
        return self.stream(Prepared(f"SELECT {text}")).read_all().column(0)[0].as_py()

    def as_spark(self, prepared: Prepared) -> Prepared:
        """The same query with columns of the types that Spark has for them."""
        columns = self.columns(prepared)
        if any(kind == "INTERVAL" for _, kind in columns):
            raise Unsupported("a column of intervals needs Spark: CAST it, or take parts of it")
        changed = [result_type(kind) for _, kind in columns]
        if not any(changed):
            return prepared
        names = [f"c{at}" for at in range(len(columns))]
        outputs = ", ".join(
            f"{name if kind is None else f'CAST({name} AS {kind})'} AS {quoted(column)}"
            for name, (column, _), kind in zip(names, columns, changed, strict=True)
        )
        text = f"SELECT {outputs} FROM ({prepared.text}) AS q({', '.join(names)})"
        return prepared.with_text(text)

    def _keep(self, kept: "_Kept | None") -> "_Kept | None":
        """Keep a connection with its tables, for the query that reads the rows next."""
        with self._keeping:  # so that no two threads take the same one
            before, self._kept = self._kept, kept
        if kept is not None and before is not None:
            self._end(before.connection)
        return before

    def interrupt(self) -> None:
        """Stop the statements that run, from another thread."""
        for running in self._running.valuerefs():
            with suppress(duckdb.Error):  # it has just ended
                if (connection := running()) is not None:
                    connection.interrupt()

    def _end(self, connection: Any) -> None:
        self._running.pop(id(connection), None)
        connection.close()

    def _bound(self, prepared: Prepared) -> tuple[Any, Any]:
        """A connection with the tables of a query, and the query, bound to them."""
        kept = self._keep(None)
        if kept is not None and kept.prepared is prepared:
            return kept.connection, kept.relation
        connection = self._open(prepared, kept)
        try:
            return connection, connection.sql(prepared.text)
        except duckdb.Error as error:
            known = _known(connection, prepared.text)
            self._end(connection)
            raise _ours(error, known) from error

    def _open(self, prepared: Prepared, kept: "_Kept | None") -> Any:
        if kept is not None:
            if kept.prepared.has_tables_of(prepared):
                self._define(prepared.text)
                return kept.connection
            self._end(kept.connection)
        self._define(prepared.text)
        connection = self._connection.cursor()
        self._running[id(connection)] = connection
        try:
            for name, source in prepared.sources.items():
                connection.register(name, source)
            for name, bits in prepared.bits.items():
                connection.execute(f"SET VARIABLE {name} = CAST(CAST(? AS BLOB) AS BIT)", [bits])
            for view in prepared.views:
                connection.execute(view)
        except duckdb.Error as error:
            self._end(connection)
            raise _ours(error) from error
        return connection


def _close(connection: Any, folder: "tempfile.TemporaryDirectory[str]") -> None:
    connection.close()
    folder.cleanup()


def _problem_of(prepared: Prepared) -> EmberlakeError | None:
    """Why a source of a query could not be opened."""
    found = (getattr(source, "problem", None) for source in prepared.sources.values())
    return next((problem for problem in found if problem is not None), None)


def _known(connection: Any, query: str) -> Known:
    """The columns of the tables that a query names."""
    columns: dict[str, list[str]] = {}
    text = "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal"
    with suppress(duckdb.Error):  # there is an error to report already
        for table, column in connection.execute(f"{text} ORDER BY column_index").fetchall():
            if quoted(table) in query and not column.startswith(_INTERNAL):
                columns.setdefault(table, []).append(column)
    return Known(query, columns)


def _ours(error: Exception, known: Known = _NOTHING) -> EmberlakeError:
    if isinstance(error.__cause__, EmberlakeError):
        return error.__cause__
    text = str(error).split("\n\n", maxsplit=1)[0].replace("\n", " ")
    said = _SAID.search(text)
    if said is not None:
        text = said.group(1)
    if (mixed := _MIXED.search(text)) is not None:
        kinds = " and ".join(mixed.groups())
        return Unsupported(f"values of types {kinds} are in one column: CAST them to the same type")
    if (of_file := _problem_of_file(text)) is not None:
        return of_file
    if "needs Spark" in text or "without Spark" in text:
        return Unsupported(text)
    is_about_text = isinstance(
        error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException
    )
    return InvalidSql(known.in_our_words(text)) if is_about_text else DataMismatch(text)


def _problem_of_file(text: str) -> EmberlakeError | None:
    """The error that our own reader raises for a file that DuckDB cannot read."""
    if (missing := _MISSING.search(text)) is not None:
        return FileNotFound(missing.group(1))
    if (broken := _BROKEN.search(text)) is not None:
        path = broken.group(1) or broken.group(2)
        return CorruptFile(path, "it does not end like a Parquet file")
    return StorageError(text) if text.startswith("IO Error") else None
