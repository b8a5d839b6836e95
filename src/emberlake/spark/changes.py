"""Let Spark decide what happens to rows, and change them: the way from any expression to a commit.

::

    def decide(located):
        located.rows.createOrReplaceTempView("t")  # the columns of the table, and PLACE
        values = f"{PLACE}, {UPDATE} AS {ACTION}, price * 2 AS price"
        return spark.sql(f"SELECT {values} FROM t WHERE id IN (SELECT id FROM sold)")

    change_rows(session, spark, decide, RowActions(sets=("price",)))

``decide`` gets the rows of one snapshot and returns the changes, as a DataFrame with these columns,
in any order:

``PLACE``
    The value that the row came with; null for a new row. Pass it through; never compute it.
``ACTION``
    ``UPDATE``, ``DELETE`` or ``INSERT``, an integer.
columns of the table
    By their names: those of ``RowActions.sets`` hold the new values of rows that are updated, those
    of ``RowActions.inserts`` the values of new rows. Their types need not be those of the table:
    values are fitted as in any write, which refuses what would be lost (see ``write.align``). For
    any other cast, cast in ``decide``. Values that the action of a row does not need are ignored.

Rows that are not among the changes stay as they are. All changes become one snapshot, or none: if
nothing changes there is no snapshot. Changes are computed once, unless Spark repeats a task; what
``decide`` reads should not change meanwhile. If others change the same rows before the commit,
``decide`` is called again with the rows of the new snapshot, a few times.

The following are refused, and nothing changes: two changes of one row (unless both delete it),
nulls in NOT NULL columns, and anything that the table does not take (``RowActions.check``).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from emberlake.base.names import backquoted, listed
from emberlake.base.parallel import limit_threads
from emberlake.errors import InvalidInput, Unsupported
from emberlake.expressions import Expression
from emberlake.expressions.typed import Column as TypedColumn
from emberlake.predicates import Predicate
from emberlake.rowops.attempts import run_change
from emberlake.rowops.clauses import TARGET, Editor, inserted_rows
from emberlake.rowops.edits import Prepared
from emberlake.rowops.isolation import isolated
from emberlake.rowops.key_changes import KeyWriting
from emberlake.rowops.result import RowChangeResult
from emberlake.rowops.row_actions import ACTION, INSERT, RowActions
from emberlake.session.write_session import WriteSession
from emberlake.spark.alignment import check_values
from emberlake.spark.failures import reported_errors, typed_errors
from emberlake.spark.key_rows import Records, records_schema, write_key_rows
from emberlake.spark.located import FILE, PLACE, POSITION, LocatedRows, located_rows
from emberlake.spark.merge_tasks import CLAUSE, Columns
from emberlake.spark.numbering import numbered
from emberlake.spark.owner_task import FileWork
from emberlake.spark.owners import change_files, with_units
from emberlake.spark.sessions import check_workers, fast_arrow
from emberlake.spark.write_task import gathered
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore
from emberlake.write.align import align

_SHOWN_COLUMNS: Final = 4  # columns that identify rows in messages, if no keys are given

Decide = Callable[[LocatedRows], DataFrame]


def change_rows(  # noqa: PLR0913
    session: WriteSession,
    spark: SparkSession,
    decide: Decide,
    actions: RowActions,
    *,
    predicate: Predicate | None = None,
    columns: Sequence[str] | None = None,
    keys: Sequence[str] = (),
    isolation: str = "snapshot",
) -> RowChangeResult:
    """Read the rows of a table, let ``decide`` say what happens to them, and commit it.

    Args:
        session: The write.
        spark: The session that reads and decides.
        decide: Turns located rows into changes, which the docstring of the module describes.
        actions: What the changes may do.
        predicate: Rows that do not match it are not read: files are pruned by it.
        columns: The columns that ``decide`` needs; None: all. See ``located_rows``.
        keys: Columns of the table that identify rows in messages.
        isolation: ``"serializable"``: start again after any commit that changed rows meanwhile.

    Raises:
        DataMismatch: two changes of one row, or values that do not fit; nothing changes.
        ColumnNotFound, InvalidExpression, Unsupported: the table does not take such changes.
        IncompleteJob: not every task reported what it wrote; nothing changes.
        CommitConflict: others changed the same rows again and again.
    """
    check_reachable(session, spark)

    def prepare(current: WriteSession, snapshot: Snapshot | None) -> Prepared:
        actions.check(current.store.schema)
        located = located_rows(current, snapshot, spark, predicate=predicate, columns=columns)
        return prepare_changes(located, decide(located), actions, keys=keys)

    return run_change(isolated(session, isolation), prepare)


def check_reachable(session: WriteSession, spark: SparkSession) -> None:
    """Refuse tables that workers cannot reach, and workers that cannot run emberlake.

    Raises:
        Unsupported: the table is in memory.
        InvalidState: workers have another Python.
    """
    if not session.store.storage.traits.is_shared:
        raise Unsupported("Spark's workers cannot reach a table in memory")
    check_workers(spark)


def prepare_changes(
    located: LocatedRows,
    changes: DataFrame,
    actions: RowActions,
    *,
    keys: Sequence[str] = (),
    is_dry: bool = False,
) -> Prepared:
    """Write the files for changes of located rows; returns what is to be committed.

    Args:
        located: The rows that were read.
        changes: What happens to some of them; the docstring of the module describes it.
        actions: What the changes may do.
        keys: Columns of the table that identify rows in messages.
        is_dry: Whether nothing is written, only counted.
    """
    schema = located.store.schema
    columns = Columns(actions.fields(schema), "s")
    lacking = [
        n for n in (PLACE, ACTION, *(f.name for f in columns.fields)) if n not in changes.columns
    ]
    if lacking:
        raise InvalidInput(f"the changes lack the columns {listed(lacking)}")
    values = changes.select(*(backquoted(f.name) for f in columns.fields))
    check_values(values.schema, schema)
    named = zip(columns.fields, columns.names, strict=True)
    sent = [sql.col(backquoted(f.name)).alias(name) for f, name in named]
    action = sql.col(ACTION).cast("int").alias(CLAUSE)
    if located.has_keys:
        return _change_keys(
            located, changes.select(PLACE, action, *sent), columns, actions, is_dry=is_dry
        )
    place = (sql.col(f"{PLACE}.{part}").alias(part) for part in (FILE, POSITION))
    rows = with_units(located, changes.select(*place, action, *sent))
    update, delete, insert = actions.clauses(columns.fields)
    shown = keys or schema.field_names[:_SHOWN_COLUMNS]
    work = FileWork(
        (update, delete),
        (insert,) if actions.inserts else (),
        columns,
        located.store.env.now_ms(),
        keys=tuple(_column(schema, name) for name in shown),
    )
    return change_files(located, rows, work, is_dry=is_dry)


def _column(schema: TableSchema, name: str) -> Expression:
    field = schema.field_by_name[name]
    return Expression(TypedColumn(TARGET, field, (), field.type), name)


# --- tables with a primary key --------------------------------------------------------------------


def _change_keys(
    located: LocatedRows,
    changes: DataFrame,
    columns: Columns,
    actions: RowActions,
    *,
    is_dry: bool,
) -> Prepared:
    store = located.store
    old = [f.name for f in numbered(store.schema.fields, "t")]
    flat = changes.select(CLAUSE, *(sql.col(f"{PLACE}.{name}") for name in old), *columns.names)
    task = RecordTask(store, columns, actions, store.env.now_ms())
    with typed_errors(), fast_arrow(located.spark):
        records = flat.mapInArrow(task, records_schema(store.schema))
        return write_key_rows(
            located.session, located.snapshot, records, is_dry=is_dry, is_unique=False
        )


@dataclass(frozen=True)
class RecordTask:
    """Turns changes of rows that have a primary key into records."""

    store: TableStore
    columns: Columns
    actions: RowActions
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records, in the form that Spark takes."""
        limit_threads()
        with reported_errors():
            for table in gathered(batches):
                yield from self._records(table)

    def _records(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        fields = self.store.schema.fields
        values = self.columns.rows(table)
        *changing, insert = self.actions.clauses(self.columns.fields)
        records = Records()
        source = values if self.columns.fields else None
        writing = KeyWriting(self.store, Editor(tuple(changing), source, self.now_ms), records)
        chosen = table.column(CLAUSE).to_numpy().astype(np.int8)
        is_new = chosen == INSERT
        is_old = np.flatnonzero(~is_new)
        if len(is_old):
            names = [f.name for f in numbered(fields, "t")]
            stored = table.select(names).rename_columns([f.name for f in fields])
            old = align(stored.take(pa.array(is_old)), fields)
            writing.change(old, chosen[is_old], is_old)
        if is_new.any():
            writing.insert(inserted_rows(insert, values.filter(pa.array(is_new)), self.now_ms))
        yield from records.take(fields)
