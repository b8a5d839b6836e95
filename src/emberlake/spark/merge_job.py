"""Merge a DataFrame into a table: Spark joins the keys, and each file is changed by one task.

To find the rows that match, only the keys of the table and the columns of conditions are read.
Their places are sent to the tasks that own the files, with the values of the source that these
tasks need; the rows of the table are not moved. Everything that is written becomes one commit.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import NullType

from emberlake.base.names import backquoted
from emberlake.errors import DataMismatch, InvalidInput
from emberlake.expressions.typed import Apply, parts_of
from emberlake.expressions.typed import Column as TypedColumn
from emberlake.rowops.clauses import NO_CLAUSE, SOURCE
from emberlake.rowops.edits import Prepared
from emberlake.rowops.merge_builder import MergeBuilder, new_merge
from emberlake.rowops.merge_plan import KeyPair, MergePlan, On, Outline
from emberlake.session.write_session import WriteSession
from emberlake.spark.changes import check_reachable
from emberlake.spark.column_changes import uses_columns
from emberlake.spark.failures import typed_errors
from emberlake.spark.kept import kept
from emberlake.spark.located import POSITION
from emberlake.spark.merge_columns import ColumnMerge, known_keys
from emberlake.spark.merge_frames import MergeFrames
from emberlake.spark.merge_keys import merge_keys
from emberlake.spark.merge_tasks import CLAUSE, ID, Columns
from emberlake.spark.owner_task import UNIT, FileWork
from emberlake.spark.owners import NEW_UNIT, change_files
from emberlake.spark.replacing import replace_rows
from emberlake.spark.sessions import fast_arrow
from emberlake.spark.types import paimon_fields, to_spark_type
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.types import AtomicType, DataType, TypeRoot, arrow_schema

# Rows that an executor kept are lost with it; the merge is then computed again.
_LOST: Final = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_TRIES: Final = 3
_ZONE: Final = "spark.sql.session.timeZone"
_UTC: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
_MOST_SENT: Final = 4_000_000  # more pairs than this are not sent to every executor


@dataclass(repr=False)
class SparkMergeBuilder(MergeBuilder):
    """The builder of a merge that runs on Spark; its clauses are those of ``MergeBuilder``."""

    _df: DataFrame | None = None

    def _check_where(self, where: Any) -> None:
        if not isinstance(where, Column):
            super()._check_where(where)

    @property
    def _by_columns(self) -> bool:
        """Whether Spark evaluates the merge."""
        values = (value for c in self._clauses for value in (c.values or {}).values())
        return uses_columns([self._on, *(c.where for c in self._clauses), *values])

    def _check(self, schema: TableSchema) -> None:
        if self._by_columns:
            self._column_merge(schema).actions.check(schema)
        else:
            super()._check(schema)

    def _outline(self, current: WriteSession) -> Outline:
        with typed_errors():
            if self._by_columns:
                return self._column_merge(current.store.schema).outline()
            with closing(self._frames(current)) as frames:
                pruning = None if frames.plan.orphaned else frames.pruning()
                return Outline.of(frames.plan, pruning, frames.source.count())

    def _prepare(
        self, current: WriteSession, snapshot: Snapshot | None, *, is_dry: bool = False
    ) -> Prepared:
        for _ in range(_TRIES - 1):
            try:
                return self._try(current, snapshot, is_dry=is_dry)
            except PySparkException as error:
                if _LOST not in str(error):
                    raise
        return self._try(current, snapshot, is_dry=is_dry)

    def _try(self, current: WriteSession, snapshot: Snapshot | None, *, is_dry: bool) -> Prepared:
        if self._by_columns:
            merge = self._column_merge(current.store.schema)
            return merge.prepare(current, snapshot, is_dry=is_dry)
        with closing(self._frames(current)) as frames, typed_errors(), fast_arrow(frames.spark):
            if current.store.schema.profile.has_keys:
                return merge_keys(current, snapshot, frames, is_dry=is_dry)
            return _merge_files(current, snapshot, frames, is_dry=is_dry)

    def _plan(self, schema: TableSchema) -> MergePlan:
        plan = super()._plan(schema)
        assert self._df is not None
        check_zone(plan, self._df.sparkSession.conf.get(_ZONE) or "UTC")
        return plan

    def _keys(self, schema: TableSchema) -> Sequence[KeyPair]:
        return known_keys(self._on, self._scope(schema))

    def _column_merge(self, schema: TableSchema) -> ColumnMerge:
        assert self._df is not None
        return ColumnMerge(
            self._df,
            self._on,
            tuple(self._clauses),
            self._scope(schema),
            self._fields(schema),
            self._merges_schema,
        )

    def _frames(self, current: WriteSession) -> MergeFrames:
        store = current.store
        assert self._df is not None
        plan = self._plan(store.schema)
        return MergeFrames(store, plan, self._df, self._source_fields, store.env.now_ms())


def merge_on_spark(
    session: WriteSession, df: Any, on: On | Column, **options: Any
) -> SparkMergeBuilder:
    """Start a merge of a DataFrame into a table.

    Raises:
        InvalidInput: the source is not a batch DataFrame, or an argument is wrong.
        DataMismatch: the source has columns of the same name.
    """
    if not isinstance(df, DataFrame):
        raise InvalidInput(f"merge takes a Spark DataFrame, not {type(df).__name__}")
    if df.isStreaming:
        raise InvalidInput("a stream is merged batch by batch: use merge in foreachBatch")
    check_reachable(session, df.sparkSession)
    names = df.columns
    if len(set(names)) < len(names):
        raise DataMismatch("the source has several columns with the same name")
    df = _with_types(df, session.store.schema)
    rows = arrow_schema(paimon_fields(df.schema)).empty_table()
    builder = new_merge(session, rows, on, **options)  # type: ignore[arg-type]
    known = {f: getattr(builder, f) for f in builder.__dataclass_fields__}
    return SparkMergeBuilder(**known, _df=df)


def check_zone(plan: MergePlan, zone: str) -> None:
    """Refuse to turn moments of the source into times without a zone, or the other way round.

    Expressions convert them in UTC. In a session with another zone, that is neither what the
    DataFrame shows nor what Spark would do; an ordinary write refuses it as well.

    Raises:
        DataMismatch: names the column, and what to do.
    """
    if zone in _UTC:
        return
    on = plan.on
    values = [e for c in (*plan.for_table, *plan.new) for e in (*c.values.values(), c.where)]
    sides = [side for pair in on.keys for side in (pair.target, pair.source)]
    for expression in (*values, *sides, on.of_source, on.of_pairs):
        for part in parts_of(expression.typed) if expression is not None else ():
            column = part.args[0] if isinstance(part, Apply) and part.function == "CAST" else None
            if not isinstance(column, TypedColumn):
                continue
            is_ours = column.source == SOURCE or expression in sides
            if is_ours and {_has_zone(part.type), _has_zone(column.type)} == {True, False}:
                raise DataMismatch(
                    f"{column.field.name} is {column.type}, and is needed as {part.type}: only one "
                    f"of them has a time zone, and that of the session is {zone}. Cast the "
                    "DataFrame's column to timestamp_ntz or timestamp, as the table has it"
                )


def _has_zone(data_type: DataType | None) -> bool | None:
    """Whether the type has a time zone; None if its values are not dates or timestamps."""
    root = data_type.root if isinstance(data_type, AtomicType) else None
    if root is TypeRoot.TIMESTAMP_LTZ:
        return True
    return False if root in (TypeRoot.TIMESTAMP, TypeRoot.DATE) else None


def _with_types(df: DataFrame, schema: TableSchema) -> DataFrame:
    """The source; a column of untyped nulls gets the type of the table's column of that name."""
    for column in df.schema:
        known = schema.field_by_name.get(column.name)
        if isinstance(column.dataType, NullType) and known is not None:
            name = backquoted(column.name)
            df = df.withColumn(column.name, sql.col(name).cast(to_spark_type(known.type)))
    return df


def _merge_files(
    session: WriteSession, snapshot: Snapshot | None, frames: MergeFrames, *, is_dry: bool
) -> Prepared:
    """Change the files of an append table, and write the new rows.

    Raises:
        DataMismatch: several rows of the source would change the same row.
    """
    plan = frames.plan
    located = frames.located(session, snapshot)
    used = (clause.columns(SOURCE) for clause in (*plan.matched, *plan.new))
    tests = (clause.tested(SOURCE) for clause in plan.new)
    names = frozenset().union(*used, *tests)
    columns = frames.columns.of(names)
    work = FileWork(
        plan.for_table,
        plan.new,
        columns,
        frames.now_ms,
        plan.orphaned,
        tuple(pair.target for pair in plan.on.keys),
    )
    replaced = None if is_dry else replace_rows(located, frames, work)
    if replaced is not None:
        return replaced
    hits = frames.hits(located)
    has_values = bool(plan.new or columns.fields)
    sent = frames.columns.only(names)
    with _with_values(frames, hits, columns, sent) if has_values else nullcontext(hits) as pairs:
        # If rows that match nothing change too, a match that no clause changes still counts.
        changes = pairs if plan.orphaned else pairs.filter(sql.col(CLAUSE) != NO_CLAUSE)
        return change_files(located, changes.drop(ID), work, is_dry=is_dry)


@contextmanager
def _with_values(
    frames: MergeFrames, hits: DataFrame, columns: Columns, sent: Sequence[str]
) -> Iterator[DataFrame]:
    """The pairs with values of the source, and the rows of the source that are in no pair.

    This is a second step, because all these columns, unlike keys, may be too large to broadcast.
    """
    source = frames.source if frames.plan.new else frames.used
    is_new = sql.col(UNIT).isNull()
    used = frozenset().union(*(clause.columns(SOURCE) for clause in frames.plan.matched))
    values = [
        # Values that only new rows need are not sent with the others.
        (sql.col(old) if field.name in used else sql.when(is_new, sql.col(old))).alias(new)
        for old, new, field in zip(sent, columns.names, columns.fields, strict=True)
    ]
    unit = sql.coalesce(UNIT, sql.lit(NEW_UNIT)).alias(UNIT)
    with kept(hits) as found:
        few = sql.broadcast(found) if found.count() <= _MOST_SENT else found
        pairs = source.join(few, ID, "left" if frames.plan.new else "inner")
        yield pairs.fillna({CLAUSE: 0}).select(unit, POSITION, CLAUSE, *values)
