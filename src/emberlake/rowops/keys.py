"""Operations that find rows by their primary key. No row is read: a new record replaces it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from emberlake.commit.change import CommitResult
from emberlake.errors import InvalidInput, Unsupported
from emberlake.merge.plan import plan_merge
from emberlake.options import ROWKIND_FIELD, MergeEngine
from emberlake.rowops.write import write_rows
from emberlake.session.write_session import WriteSession
from emberlake.spec.key_value import RowKind
from emberlake.spec.schema import TableSchema
from emberlake.write.pandas_data import is_pandas


def delete_keys(session: WriteSession, data: object) -> CommitResult:
    """Delete the rows that have these keys; unknown keys delete nothing.

    Args:
        session: The write.
        data: The keys, and what else orders or places a record; other columns are ignored.

    Raises:
        Unsupported: the table has no primary key, or deletes remove no rows of it.
    """
    check_deletes(session.store.schema)
    rows = _only(data, session.store.schema.field_names)
    return write_rows(session, rows, RowKind.DELETE.symbol)


def check_upsert(schema: TableSchema, on: Sequence[str] | None) -> None:
    """Refuse tables in which a new row does not replace the one with its key.

    Args:
        schema: The table.
        on: The columns that tell rows apart, if they are named; for such a table, its key.

    Raises:
        Unsupported: the table has no primary key, or keeps the rows that it has.
        InvalidInput: ``on`` is not the primary key.
    """
    keys = schema.primary_keys
    if not keys:
        raise Unsupported(
            "the table has no primary key: name the columns that tell rows apart, as in "
            'on=["id"]; append() adds rows'
        )
    if isinstance(on, str):
        raise InvalidInput(f"`on` is a list of columns, as in [{on!r}]")
    if schema.profile.merge_engine is MergeEngine.FIRST_ROW:
        raise Unsupported(
            "a first-row table keeps the row that it has; append() adds those with new keys"
        )
    if on is not None and set(on) != set(keys):
        raise InvalidInput(
            f"rows of this table are told apart by its primary key {', '.join(keys)}, not by "
            f"{', '.join(on)}"
        )


def check_deletes(schema: TableSchema) -> None:
    """Refuse tables in which a record that deletes does not remove the row of its key.

    Raises:
        Unsupported: says why.
    """
    if not schema.profile.has_keys:
        raise Unsupported("delete_keys needs a table with a primary key")
    plan = plan_merge(schema, schema.fields)
    if plan.ignore_delete:
        raise Unsupported("the table ignores deletes (ignore-delete=true)")
    if schema.options.value(ROWKIND_FIELD):
        raise Unsupported(
            f"the column {schema.options.value(ROWKIND_FIELD)} tells what a row does; append() "
            "rows that have -D there"
        )
    if plan.engine is not MergeEngine.DEDUPLICATE and not plan.remove_on_delete:
        raise Unsupported(
            f"a delete does not remove rows of a table with merge-engine={plan.engine}; set "
            "partial-update.remove-record-on-delete or aggregation.remove-record-on-delete, where "
            "the engine has it, or write the whole row to take back with row_kind='-D'"
        )


def _only(data: Any, names: Sequence[str]) -> object:
    """The data with these columns alone, those of them that it has."""
    if is_pandas(data):
        return data[[name for name in names if name in data.columns]]
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.select([name for name in names if name in data.schema.names])
    if hasattr(data, "__arrow_c_stream__"):
        return _only(pa.table(data), names)
    return data
