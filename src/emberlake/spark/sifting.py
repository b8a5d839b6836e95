"""Rows that do not fit, on Spark: tasks keep them apart, and quarantine is committed first.

A task writes the rows that fit to the table, and the others to files of the quarantine table. The
driver commits the quarantine, then the table: whatever fails in between, a row is in one of the two
or the write has failed as a whole and is run again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from pyspark.sql.functions import col

from emberlake.base.names import with_article
from emberlake.rowops.quarantine import BadRowRule, Origin, quarantine_of, quarantined
from emberlake.rowops.text_values import is_read_from_text, read_texts
from emberlake.session.write_session import WriteSession
from emberlake.spark.types import to_spark_type
from emberlake.spec.schema import TableSchema
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage
from emberlake.write.bad_rows import BadCells, BadRows
from emberlake.write.rows_writer import RowsWriter
from emberlake.write.sifting import SiftingWriter

_SHOWN: Final = 40  # characters of a text in a reason
# Rows as given, rows in the types of the table, and what is known to be wrong with them.
Sifted = tuple[pa.Table, pa.Table, Sequence[BadCells]]


@dataclass(frozen=True, slots=True)
class Sifting:
    """How tasks treat rows that do not fit; it is sent to them.

    Args:
        table: The name of the table that is written to.
        quarantine: The write to the table that keeps bad rows; None: they are left out.
        texts: The columns that Spark has read from text; their texts come as well, at the end.
        reads_texts: Whether tasks read text as values, where Spark has not.
    """

    table: str
    quarantine: WriteSession | None = None
    texts: tuple[str, ...] = ()
    reads_texts: bool = False

    @property
    def stores(self) -> tuple[TableStore, ...]:
        """The table that keeps bad rows, if there is one."""
        return () if self.quarantine is None else (self.quarantine.store,)

    def divided(
        self, messages: Sequence[CommitMessage]
    ) -> tuple[list[CommitMessage], list[CommitMessage]]:
        """The messages of the table, and those of the quarantine."""
        roots = {store.layout.metadata_root for store in self.stores}
        kept = [message for message in messages if message.table in roots]
        return [message for message in messages if message.table not in roots], kept


def sifting_of(
    rule: BadRowRule, store: TableStore, commit_user: str, *, reads_texts: bool = False
) -> Sifting | None:
    """What tasks do with rows that do not fit a table; None: they fail."""
    if rule.fails:
        return None
    kept = None
    if rule.quarantine is not None:
        kept = WriteSession(quarantine_of(store, rule.quarantine), commit_user)
    return Sifting(str(store.identity.identifier), kept, reads_texts=reads_texts)


# --- texts ----------------------------------------------------------------------------------------


def read_text_columns(df: DataFrame, schema: TableSchema) -> tuple[DataFrame, tuple[str, ...]]:
    """The DataFrame with text as the values that the table wants, and its texts at the end.

    Returns:
        The DataFrame, and the names of the columns that were text. Text that cannot be read as a
        value is null.
    """
    names = df.columns
    texts = tuple(
        column.name
        for column in df.schema
        if type(column.dataType) is spark.StringType
        and names.count(column.name) == 1
        and column.name in schema.field_by_name
        and is_read_from_text(schema.field_by_name[column.name].type)
    )
    if not texts:
        return df, ()
    numbered = df.toDF(*map(str, range(len(names))))  # names may mean something to Spark
    values = [
        col(str(at)).try_cast(to_spark_type(schema.field_by_name[name].type)).alias(str(at))
        if name in texts
        else col(str(at))
        for at, name in enumerate(names)
    ]
    kept = [col(str(names.index(name))).alias(f"text {name}") for name in texts]
    both = numbered.select(*values, *kept)
    return both.toDF(*names, *(_text_name(name) for name in texts)), texts


def without_texts(schema: spark.StructType, sifting: Sifting | None) -> spark.StructType:
    """The columns of a DataFrame without the texts that ``read_text_columns`` has added."""
    added = 0 if sifting is None else len(sifting.texts)
    return spark.StructType(schema.fields[: len(schema.fields) - added])


def _text_name(name: str) -> str:
    return f"\N{NULL}{name}"  # no column of a DataFrame has such a name


def _known_texts(table: pa.Table, texts: Sequence[str], schema: TableSchema) -> Sifted:
    """Separate the values and texts that ``read_text_columns`` has joined."""
    rows = table.select([name for name in table.column_names if not name.startswith("\N{NULL}")])
    given, known = rows, []
    for name in texts:
        text, value = table.column(_text_name(name)), table.column(name)
        given = given.set_column(given.column_names.index(name), name, text)
        lost = pc.and_(value.is_null(), text.is_valid())
        if pc.any(lost).as_py():
            shown = pc.utf8_slice_codeunits(text.filter(lost).combine_chunks(), 0, _SHOWN)
            wanted = schema.field_by_name[name].type.with_nullable(True)
            why = pc.binary_join_element_wise(
                "'", shown, f"' is not {with_article(str(wanted))}", ""
            )
            known.append(BadCells.where(name, lost, why))
    return given, rows, known


# --- tasks ----------------------------------------------------------------------------------------


class TaskSifter:
    """In a task: writes rows that fit to one writer and the others to quarantine.

    Args:
        writer: Of the table.
        schema: Of the table.
        sifting: What to do with bad rows.
        job: What quarantined rows say about the job that rejected them.
        place: The table that keeps bad rows, as this task may create files in it.
    """

    def __init__(
        self,
        writer: RowsWriter,
        schema: TableSchema,
        sifting: Sifting,
        job: str,
        place: Callable[[TableStore], TableStore],
    ) -> None:
        self._schema = schema
        self._sifting = sifting
        self._job = job
        self._place = place
        self._quarantine: RowsWriter | None = None
        self._writer = SiftingWriter(writer, schema, self._reject)

    @property
    def rows_rejected(self) -> int:
        return self._writer.rows_rejected

    def write(self, table: pa.Table) -> None:
        """Write rows."""
        if self._sifting.reads_texts:
            self._writer.write_known(table, *read_texts(table, self._schema))
        else:
            self._writer.write_known(*_known_texts(table, self._sifting.texts, self._schema))

    def prepare(self) -> list[CommitMessage]:
        """The messages of both tables."""
        kept = [] if self._quarantine is None else self._quarantine.prepare()
        return [*self._writer.prepare(), *kept]

    def close(self) -> None:
        """Release both writers; files that were not handed over are deleted."""
        self._writer.close()
        if self._quarantine is not None:
            self._quarantine.close()

    def _reject(self, rows: pa.Table, bad: BadRows) -> None:
        session = self._sifting.quarantine
        if session is None:
            return
        if self._quarantine is None:
            self._quarantine = replace(session, store=self._place(session.store)).new_writer()
        origin = Origin(self._sifting.table, self._job, session.store.env.now_ms())
        self._quarantine.write(quarantined(rows, bad, origin))
