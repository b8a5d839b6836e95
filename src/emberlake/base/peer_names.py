"""What methods, commands and statements of Delta Lake and Iceberg are called here, for errors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

_READ: Final = "to_arrow(columns, filter), to_pandas or scan"
_ALTER: Final = "catalog.alter_table(name, changes)"

OF_TABLES: Final[Mapping[str, str]] = {
    "vacuum": "expire_snapshots() and remove_orphan_files()",
    "optimize": "compact()",
    "restore": "rollback_to(snapshot or tag)",
    "version": "history()",
    "snapshots": "history()",
    "inspect": "history(), files() and partitions()",
    "details": "history(), files() and partitions()",
    "detail": "history(), files() and partitions()",
    "alter": _ALTER,
    "update_schema": _ALTER,
    "manage_snapshots": "create_tag(name), rollback_to(snapshot or tag)",
    "refresh": "catalog.get_table(name)",
    "columns": "field_names",
    "insert": "append(data)",
    "write": "append(data), upsert(data) or overwrite(data)",
    "read": _READ,
    "load": _READ,
    "select": _READ,
    "where": _READ,
    "filter": _READ,
    "head": "to_pandas(limit=5)",
    "show": "to_pandas(limit=20)",
    "to_pyarrow_table": "to_arrow()",
    "to_pyarrow_dataset": "scan(), an Arrow stream",
    "toDF": "emberlake.spark.read_paimon(name, options)",
}
OF_CATALOGS: Final[Mapping[str, str]] = {
    "load_table": "get_table(name)",
    "table": "get_table(name)",
    "create_namespace": "create_database(name)",
    "drop_namespace": "drop_database(name)",
    "list_namespaces": "list_databases()",
    "tables": "list_tables(database)",
    "table_exists": "list_tables(database)",
}

OF_COMMANDS: Final[Mapping[str, str]] = {
    "help": "--help",
    "history": "snapshots",
    "log": "snapshots",
    "optimize": "compact",
    "vacuum": "expire, and emberlake orphans",
    "restore": "rollback",
    "describe": "table show",
    "detail": "table show",
    "info": "table show",
    "columns": "table show",
    "show": "table show",
    "schema": "table show, and emberlake schemas",
    "properties": "table show",
    "create": "table create, and emberlake db create",
    "drop": "table drop, and emberlake db drop",
    "rename": "table rename",
    "alter": "table alter",
    "tables": "table list",
    "database": "db list, and emberlake db create",
    "databases": "db list, and emberlake db create",
    "init": "db create",
    "ls": "db list, and emberlake table list",
    "list": "db list, and emberlake table list",
    "load": "ingest",
    "import": "ingest",
    "insert": "ingest",
    "append": "ingest",
    "write": "ingest",
    "upsert": "ingest --mode upsert",
    "query": "sql",
    "select": "sql",
    "shell": "sql",
    "scan": "read",
    "cat": "read",
    "head": "read",
    "count": "sql",
    "explain": "plan",
}
# For each option, those that mean the same; a command has one of them, or none.
OF_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "--filter": ("--where",),
    "--predicate": ("--where",),
    "--condition": ("--where",),
    "--select": ("--columns",),
    "--fields": ("--columns", "--column"),
    "--version": ("--snapshot",),
    "--version-as-of": ("--snapshot",),
    "--pk": ("--primary-key",),
    "--key": ("--primary-key", "--on"),
    "--keys": ("--primary-key", "--on"),
    "--add": ("--add-column",),
    "--drop": ("--drop-column",),
    "--rename": ("--rename-column",),
    "--properties": ("--option", "--set"),
    "--table": ("--into",),
    "--target": ("--into",),
    "--upsert": ("--mode upsert",),
    "--append": ("--mode append",),
    "--overwrite": ("--mode overwrite", "--force"),
    "--retain": ("--retain-max",),
}

# {table} is the name in the statement, {snapshots} and {files} are its system tables.
OF_STATEMENTS: Final[Mapping[str, str]] = {
    "OPTIMIZE": "CALL sys.compact(table => '{table}')",
    "VACUUM": "CALL sys.expire_snapshots(table => '{table}', retain_max => 10), and "
    "CALL sys.remove_orphan_files(table => '{table}')",
    "RESTORE": "CALL sys.rollback(table => '{table}', version => '1')",
    "DESCRIBE HISTORY": "SELECT * FROM {snapshots}",
    "DESCRIBE DETAIL": "DESCRIBE EXTENDED {table}, and SELECT * FROM {files}",
}


class _Answering:
    _peer_names: ClassVar[Mapping[str, str]]

    if not TYPE_CHECKING:  # or type checkers would believe that every attribute exists

        def __getattr__(self, name: str) -> NoReturn:
            told = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in self._peer_names:
                told = f"{told}; use {self._peer_names[name]}"
            raise AttributeError(told, name=name, obj=self)


class AnswersPeersOfTables(_Answering):
    """Names that tables of peers have are answered by what there is instead."""

    _peer_names = OF_TABLES


class AnswersPeersOfCatalogs(_Answering):
    """Names that catalogs of peers have are answered by what there is instead."""

    _peer_names = OF_CATALOGS
