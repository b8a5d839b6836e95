"""The tables of a catalog as names in Spark's own catalog."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import RLock
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from emberlake.catalog import Catalog
from emberlake.errors import DatabaseNotFound, EmberlakeError, EmberlakeWarning, TableNotFound
from emberlake.io.registry import open_storage, scheme_of
from emberlake.spec.identifier import Identifier
from emberlake.sql.names import TableName, identify, quoted
from emberlake.sql.on_spark.bound import bound_source

SPARK_CATALOG: Final = "spark_catalog"
_TEMPORARY_VIEWS: Final = "global_temp"  # a database that nobody can create
_PLAIN: Final = re.compile(r"\w+", re.ASCII)  # the names that Spark's catalog accepts
_WAREHOUSE: Final = "warehouse"
_LOCAL: Final = "file"
_TAKEN: Final = "Spark has a table or view of that name"
_PROVIDER: Final = re.compile(r"^Provider: (.*)$", re.MULTILINE)
_COLUMN: Final = re.compile(r"^ \|-- (.*?): ", re.MULTILINE)  # not those of structs


@dataclass(frozen=True)
class _Made:
    """A table of the lake that Spark has a name for."""

    identifier: Identifier
    schema_id: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _Shown:
    """A table, as Spark's catalog has it."""

    provider: str  # what it is made of
    columns: tuple[str, ...]


class AttachedTables:
    """The tables that a lake has put into Spark's catalog, and those that it has left out."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        catalog_options: Mapping[str, object],
        databases: Sequence[str] | None,
    ) -> None:
        self._spark = spark
        self._catalog = catalog
        self._options = dict(catalog_options)  # with secrets, which a catalog does not reveal
        self._databases = databases
        self._made: dict[str, _Made] = {}  # by Spark's name
        self._own_databases: list[str] = []
        self.left_out: dict[str, str] = {}  # names of tables, and why Spark does not know them
        self._lock = RLock()  # threads save tables side by side

    @property
    def names(self) -> dict[str, str]:
        """The tables that Spark knows: their names there, in lower case, and their own."""
        return {name: str(made.identifier) for name, made in self._made.items()}

    @property
    def catalog_options(self) -> Mapping[str, object]:
        """What opens the catalog again. It may hold secrets."""
        return self._options

    def identify(self, name: TableName, catalog: str, database: str) -> Identifier | None:
        """The table of the lake that a name in Spark stands for, or would stand for.

        Args:
            name: Without the name of Spark's catalog.
            catalog: What statements call the lake.
            database: Where names of one part are looked up.
        """
        identifier = identify(name, catalog=catalog, database=database)
        if identifier is None or not _is_plain(identifier):
            return None
        made = self._made.get(str(identifier).lower())
        if made is not None:
            return made.identifier
        is_ours = self._databases is None or identifier.database in self._databases
        return identifier if is_ours else None

    def spelled(self, identifier: Identifier) -> Identifier:
        """A table with the names that the catalog has: for Spark, those in another case are equal.

        New names stay as they are.
        """
        database = _as_in(self._catalog.list_databases(), identifier.database)
        return Identifier(database, _as_in(self._tables(database), identifier.table))

    def has_database(self, database: str) -> bool:
        """Whether the catalog has a database."""
        databases = self._catalog.list_databases()
        return _as_in(databases, database) in databases

    def options_of(self, identifier: Identifier) -> Mapping[str, str] | None:
        """The options of a table; None if it does not exist."""
        try:
            return self._catalog.get_table(identifier).table_schema.options
        except (TableNotFound, DatabaseNotFound):
            return None

    def is_at(self, given: Mapping[str, object]) -> bool:
        """Whether options that say where a catalog is are among those of the lake."""
        own = {key.lower(): value for key, value in self._options.items()}
        return all(_text(key, own.get(key)) == _text(key, value) for key, value in given.items())

    def is_in_spark(self, identifier: Identifier) -> bool:
        """Whether Spark knows a table of the lake by its name."""
        if str(identifier).lower() not in self._made:
            return False
        return self._provider(identifier) == _source_name(self._catalog, identifier)

    def is_name_of_another(self, identifier: Identifier) -> bool:
        """Whether Spark has a table that is not of the lake under the name of a table of it."""
        provider = self._provider(identifier)
        return provider is not None and provider != _source_name(self._catalog, identifier)

    def refresh(self) -> None:
        """Bring Spark's names up to date, and make those again that Spark has lost."""
        with self._lock:
            self._forget_changed()
            self.update()

    def update(self) -> None:
        """Let Spark know new, altered and dropped tables; it is trusted to have kept the others."""
        if self._databases is not None and not self._databases:
            return
        with self._lock:
            self.left_out = {}
            found = dict(self._found())
            stale = [name for name, made in self._made.items() if found.get(name) != made]
            if stale:
                self._forget_changed()
            for name in stale:
                self._drop(name)
            for name, table in found.items():
                if name not in self._made:
                    self._make(name, table)

    def follow(self, saved: Identifier | None = None) -> None:
        """``update`` after something is done, which a failure here must not make look undone.

        Args:
            saved: A table that was written: Spark gets its name again if it has lost it.
        """
        try:
            with self._lock:
                if saved is not None and self._provider(saved) is None:
                    self._made.pop(str(saved).lower(), None)
                self.update()
        except (EmberlakeError, OSError, PySparkException) as error:
            done = "the statement is done" if saved is None else f"the rows are saved to {saved}"
            warnings.warn(
                f"{done}, but names in Spark may be missing or old; lake.refresh() tries again: "
                f"{_reason(error)}",
                EmberlakeWarning,
                stacklevel=3 if saved is None else 5,  # lake.sql, or saveAsTable
            )

    def detach(self) -> None:
        """Remove all names. Tables that Spark has made itself stay, and so do their databases."""
        with self._lock:
            self._forget_changed()
            for name in list(self._made):
                self._drop(name)
            for database in self._own_databases:
                if not self._tables_of_spark(database):
                    self._spark.sql(f"DROP DATABASE IF EXISTS {_in_spark(database)}")
            self._own_databases.clear()
            self.left_out = {}

    def _forget_changed(self) -> None:
        """Forget names that Spark no longer has, has altered, or has given to tables of its own.

        ``writeTo(...).createOrReplace()`` drops a name and makes a table of Spark in its place.
        What is in that table must not be lost with our name.
        """
        databases = {made.identifier.database for made in self._made.values()}
        tables = {name: it for db in databases for name, it in self._tables_of_spark(db).items()}
        for name, made in list(self._made.items()):
            shown = tables.get(name)
            if shown is None or shown.provider != _source_name(self._catalog, made.identifier):
                del self._made[name]
                if shown is not None:
                    _warn_about_replaced(made.identifier, shown.provider)
            elif shown.columns != made.columns:  # ALTER TABLE of Spark, which changes only the name
                self._drop(name)

    def _tables_of_spark(self, database: str) -> dict[str, _Shown]:
        """Spark's tables in a database, by their names in lower case."""
        if not self._spark.catalog.databaseExists(_in_spark(database)):
            return {}
        return self._shown(database, "*")

    def _provider(self, identifier: Identifier) -> str | None:
        """What Spark's table of that name is made of; None if it has none."""
        if not self._spark.catalog.tableExists(_in_spark(identifier.database, identifier.table)):
            return None
        shown = self._shown(identifier.database, identifier.table).get(str(identifier).lower())
        return None if shown is None else shown.provider

    def _shown(self, database: str, pattern: str) -> dict[str, _Shown]:
        shown = self._spark.sql(f"SHOW TABLE EXTENDED IN {_in_spark(database)} LIKE '{pattern}'")
        return {
            f"{database}.{row['tableName']}".lower(): _shown_in(row["information"])
            for row in shown.collect()
            if not row["isTemporary"]
        }

    def _found(self) -> Iterator[tuple[str, _Made]]:
        """The tables of the catalog that Spark can name."""
        names: set[str] = set()
        for database in self._databases or self._catalog.list_databases():
            for table in self._tables(database):
                identifier = Identifier(database, table)
                name = f"{database}.{table}".lower()
                if not _is_plain(identifier):
                    self.left_out[str(identifier)] = "Spark's catalog takes only plain names"
                elif name in names:
                    self.left_out[str(identifier)] = "another table has the name in another case"
                elif (found := self._table(identifier)) is not None:
                    names.add(name)
                    yield name, found

    def _tables(self, database: str) -> list[str]:
        try:
            return self._catalog.list_tables(database)
        except DatabaseNotFound:
            return []  # dropped meanwhile

    def _table(self, identifier: Identifier) -> _Made | None:
        try:
            schema = self._catalog.get_table(identifier).table_schema
            return _Made(identifier, schema.id, _columns_in(_tree(schema.field_names)))
        except TableNotFound:
            return None  # dropped meanwhile
        except EmberlakeError as error:
            self.left_out[str(identifier)] = str(error)
            return None

    def _make(self, name: str, table: _Made) -> None:
        identifier = table.identifier
        path = _in_spark(identifier.database, identifier.table)
        source = _source_name(self._catalog, identifier)
        provider = self._provider(identifier)
        if provider is not None:
            if provider != source:
                self.left_out[str(identifier)] = _TAKEN
                return
            # An earlier attach of the same catalog, in a cell that is run again: its columns may
            # have changed, and this lake is the one to refresh and to detach.
            self._spark.sql(f"DROP TABLE {path}")
        try:
            self._make_database(identifier.database)
            self._spark.dataSource.register(bound_source(source, str(identifier), self._options))
            self._spark.sql(f"CREATE TABLE {path} USING {quoted(source)}")
        except PySparkException as error:  # columns that Spark has no type for
            self.left_out[str(identifier)] = _reason(error)
            return
        self._made[name] = table

    def _make_database(self, database: str) -> None:
        if not self._spark.catalog.databaseExists(_in_spark(database)):
            self._spark.sql(f"CREATE DATABASE {_in_spark(database)}")
            self._own_databases.append(database)

    def _drop(self, name: str) -> None:
        if name not in self._made:
            return  # Spark has given the name to another table
        identifier = self._made.pop(name).identifier
        path = _in_spark(identifier.database, identifier.table)
        self._spark.sql(f"DROP TABLE IF EXISTS {path}")


def _in_spark(*parts: str) -> str:
    """A name in Spark's own catalog, whichever is the current one."""
    return ".".join(map(quoted, (SPARK_CATALOG, *parts)))


def _as_in(names: Sequence[str], name: str) -> str:
    """A name as a list spells it, if the list has it only in another case."""
    if name in names:
        return name
    return next((known for known in names if known.lower() == name.lower()), name)


def _is_plain(identifier: Identifier) -> bool:
    """Whether Spark's catalog takes the name."""
    if identifier.database.lower() == _TEMPORARY_VIEWS:
        return False
    return bool(_PLAIN.fullmatch(identifier.database) and _PLAIN.fullmatch(identifier.table))


def _text(key: str, value: object) -> str:
    """The text of an option of a catalog, as Spark's writers spell it."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if key != _WAREHOUSE:
        return text
    return open_storage(text, {})[1] if scheme_of(text) == _LOCAL else text.rstrip("/")


def _reason(error: Exception) -> str:
    """What went wrong, in one line: if it was our source that failed, what the source said."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(EmberlakeError.__module__)]
    return (own or lines or [type(error).__name__])[0]


def _shown_in(information: str) -> _Shown:
    """A table, from what ``SHOW TABLE EXTENDED`` says about it."""
    found = _PROVIDER.search(information)
    return _Shown("view" if found is None else found[1], _columns_in(information))


def _columns_in(tree: str) -> tuple[str, ...]:
    """The columns of a schema as Spark draws it; a name with a colon is cut, as it always is."""
    return tuple(_COLUMN.findall(tree))


def _tree(columns: Sequence[str]) -> str:
    """What Spark would draw of a schema with these columns."""
    return "".join(f" |-- {column}: \n" for column in columns)


def _warn_about_replaced(identifier: Identifier, provider: str) -> None:
    path = f"{quoted(identifier.database)}.{quoted(identifier.table)}"
    warnings.warn(
        f"{identifier} is now a table of Spark itself ({provider}), which has replaced the name of "
        "the lake's table, as writeTo(...).createOrReplace() does. The table of the lake is "
        "unchanged, and lake.sql and write_paimon still use it. For spark.sql to see it again, "
        f'copy what you need, then run spark.sql("DROP TABLE {path}") and lake.refresh(). To '
        'overwrite the table of the lake: df.write.format("emberlake").mode("overwrite")'
        f'.saveAsTable("{identifier}")',
        EmberlakeWarning,
        stacklevel=5,
    )


def _source_name(catalog: Catalog, identifier: Identifier) -> str:
    """A name that differs between catalogs, and reveals none of their secrets."""
    place = "\n".join(str(catalog.options.get(key)) for key in ("metastore", "uri", "warehouse"))
    text = f"{place}\n{identifier}"
    return f"emberlake_{sha256(text.encode()).hexdigest()[:16]}"
