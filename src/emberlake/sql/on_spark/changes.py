"""DELETE and UPDATE: Spark evaluates conditions and values, with subqueries and functions.

Each statement becomes one query that decides what happens to which rows. The rows of the table
carry their places (``emberlake.spark.located``), where the changes are then made
(``emberlake.spark.changes``).
"""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from emberlake.predicates import Predicate
from emberlake.rowops.isolation import isolated
from emberlake.rowops.row_actions import ACTION, DELETE, UPDATE, RowActions
from emberlake.spark.changes import change_rows
from emberlake.spark.located import PLACE, LocatedRows
from emberlake.spark.write import WriteJob
from emberlake.spec.replacement import Replacement
from emberlake.sql.names import quoted
from emberlake.sql.on_spark.rewriting import Rewriter
from emberlake.sql.on_spark.target_rows import shown_rows
from emberlake.sql.on_spark.targets import assigned_values
from emberlake.sql.pruning import predicates_in
from emberlake.sql.row_texts import (
    is_about_partitions,
    keeps_values,
    named,
    needed_columns,
    refuse_varying,
    takes_deletes,
    write_session,
)
from emberlake.sql.statements import Delete, Update
from emberlake.sql.targets import changed_by, value_text
from emberlake.table import Table

# --- DELETE ---------------------------------------------------------------------------------------


def delete_rows(statement: Delete, table: Table, rewriter: Rewriter) -> None:
    """Delete the rows for which the condition is true.

    Whole partitions, or the whole table, are truncated, as in Paimon's connector.
    """
    refuse_varying(statement.where or "")
    if is_about_partitions(statement.where, table):
        _delete_partitions(statement, table, rewriter)
        return
    if not takes_deletes(table):
        _rewrite_without(statement, table, rewriter)
        return
    session = write_session(table)

    def decide(located: LocatedRows) -> DataFrame:
        values = f"{PLACE}, {DELETE} AS {ACTION}"
        head = f"{statement.ctes} SELECT {values} FROM "
        text = f"{head}{named(statement.table, statement.alias)} WHERE ({statement.where}\n)"
        return rewriter.run(text, {len(head): shown_rows(located)})

    change_rows(
        session,
        rewriter.spark,
        decide,
        RowActions(deletes=True),
        predicate=_predicate(statement, table, rewriter),
        columns=needed_columns(table, statement.where or ""),
    )


def _delete_partitions(statement: Delete, table: Table, rewriter: Rewriter) -> None:
    keys = [quoted(key) for key in table.partition_keys]
    head = f"{statement.ctes} SELECT DISTINCT {', '.join(keys) or '1'} FROM "
    where = "" if statement.where is None else f" WHERE ({statement.where}\n)"
    text = f"{head}{named(statement.table, statement.alias)}{where}"
    found = rewriter.run(text).collect()
    if not found:
        return
    commit = table.new_batch_write_builder().new_commit()
    if statement.where is None or not keys:
        commit.truncate_table()
    else:
        commit.truncate_partitions([row.asDict() for row in found])


def _rewrite_without(statement: Delete, table: Table, rewriter: Rewriter) -> None:
    """Replace the table by the rows that remain, unless others write to it meanwhile."""
    source = f"FROM {named(statement.table, statement.alias)} WHERE"
    is_gone = f"({statement.where}\n)"
    if not rewriter.run(f"{statement.ctes} SELECT 1 {source} {is_gone}").head(1):
        return
    columns = ", ".join(map(quoted, table.field_names))
    staying = f"{statement.ctes} SELECT {columns} {source} NOT coalesce({is_gone}, false)"
    rows = rewriter.run(staying)
    replaces = Replacement.whole_table(table.store.schema)
    session = replace(write_session(table), replaces=replaces)
    job = WriteJob(session=isolated(session, "serializable"), as_of=rewriter.snapshot_of(table))
    job.run(rows)


def _predicate(statement: Delete | Update, table: Table, rewriter: Rewriter) -> Predicate | None:
    """The part of the condition by which files can be skipped."""
    if statement.where is None:
        return None
    head = "SELECT * FROM "
    text = f"{head}{named(statement.table, statement.alias)} WHERE ({statement.where}\n)"
    found = predicates_in(text, {len(head): table.store.schema}, rewriter.args)
    return found.get(len(head))


# --- UPDATE ---------------------------------------------------------------------------------------


def update_rows(statement: Update, table: Table, rewriter: Rewriter) -> None:
    """Set columns of the rows for which the condition is true."""
    texts = [statement.where or "", *(item.value for item in statement.assignments)]
    refuse_varying(texts[0])
    targets = changed_by(statement, table)
    if not targets:
        return
    session = write_session(table)
    keeps_old = keeps_values(table)
    old = sorted({target.field.name for target in targets if target.path or keeps_old})

    def decide(located: LocatedRows) -> DataFrame:
        values = [f"{value_text(target)} AS _{number}" for number, target in enumerate(targets)]
        values += [f"{quoted(name)} AS _old_{n}" for n, name in enumerate(old)]
        head = f"{statement.ctes} SELECT {', '.join([PLACE, *values])} FROM "
        where = "" if statement.where is None else f" WHERE ({statement.where}\n)"
        text = f"{head}{named(statement.table, statement.alias)}{where}"
        found = rewriter.run(text, {len(head): shown_rows(located)})
        known = {name: F.col(f"_old_{n}") for n, name in enumerate(old)}
        new = assigned_values(targets, found.schema, known, keeps_old=keeps_old)
        return found.select(PLACE, F.lit(UPDATE).alias(ACTION), *new)

    names = tuple(dict.fromkeys(target.field.name for target in targets))
    change_rows(
        session,
        rewriter.spark,
        decide,
        RowActions(sets=names),
        predicate=_predicate(statement, table, rewriter),
        columns=needed_columns(table, " ".join(texts)),
    )
