"""Carry out a statement that moves no rows."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from emberlake.errors import Unsupported
from emberlake.sql.commands import run_alter, run_databases, run_settings, run_show, run_tables
from emberlake.sql.commands import values as v
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.of_peers import answer_peer
from emberlake.sql.commands.procedures import call_procedure
from emberlake.sql.statements import CreateTable, Statement

Run = Callable[[Any, Session], pa.Table | None]

_RUN: Final[Mapping[type[Statement], Run]] = {
    v.CreateDatabase: run_databases.create_database,
    v.DropDatabase: run_databases.drop_database,
    v.Use: run_databases.use,
    v.UseCatalog: run_databases.use_catalog,
    v.DescribeDatabase: run_databases.describe_database,
    v.ShowDatabases: run_databases.show_databases,
    v.ShowCurrentNamespace: run_databases.show_current,
    CreateTable: run_tables.create_table,
    v.CreateTableLike: run_tables.create_table_like,
    v.DropTable: run_tables.drop_table,
    v.AddColumns: run_alter.add_columns,
    v.DropColumns: run_alter.drop_columns,
    v.RenameColumn: run_alter.rename_column,
    v.AlterColumns: run_alter.alter_columns,
    v.SetTableProperties: run_alter.set_properties,
    v.UnsetTableProperties: run_alter.unset_properties,
    v.RenameTable: run_alter.rename_table,
    v.AddPartitions: run_alter.add_partitions,
    v.DropPartitions: run_alter.drop_partitions,
    v.CreateTag: run_alter.create_tag,
    v.RenameTag: run_alter.rename_tag,
    v.DeleteTag: run_alter.delete_tag,
    v.ShowTables: run_show.show_tables,
    v.ShowViews: run_show.show_views,
    v.ShowPartitions: run_show.show_partitions,
    v.ShowTags: run_show.show_tags,
    v.ShowCreateTable: run_show.show_create_table,
    v.ShowTableProperties: run_show.show_properties,
    v.ShowColumns: run_show.show_columns,
    v.DescribeTable: run_show.describe_table,
    v.RefreshTable: run_show.refresh_table,
    v.AnalyzeTable: run_alter.analyze_table,
    v.SetOption: run_settings.set_option,
    v.ResetOption: run_settings.reset_option,
    v.Call: call_procedure,
    v.OfPeer: answer_peer,
}


def run_command(statement: Statement, session: Session) -> pa.Table | None:
    """Carry out a command; returns its rows, or None if it returns none.

    ``session`` knows the catalog, the current database, which ``USE`` changes, and the settings.
    """
    run = _RUN.get(type(statement))
    if run is None:
        raise Unsupported(f"{type(statement).__name__} is not supported yet")
    return run(statement, session)
