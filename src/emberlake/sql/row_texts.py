"""Facts about the rows of a table that follow from the text of DELETE, UPDATE and MERGE."""

from itertools import pairwise
from typing import Final

from emberlake.errors import InvalidSql, Unsupported
from emberlake.options import MergeEngine
from emberlake.rowops.change import check_changes
from emberlake.session.write_session import WriteSession
from emberlake.spec.row_tracking import HIDDEN_NAMES
from emberlake.sql.lexer import tokenize
from emberlake.sql.names import TableName, quoted
from emberlake.sql.postponed import with_buckets
from emberlake.table import Table

_VARYING: Final = frozenset(
    {"RAND", "RANDOM", "RANDN", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE"}
    | {"MONOTONICALLY_INCREASING_ID", "SPARK_PARTITION_ID", "INPUT_FILE_NAME"}
)


def write_session(table: Table) -> WriteSession:
    """A write that makes one commit."""
    builder = table.new_batch_write_builder()
    return with_buckets(WriteSession(builder.store, builder.commit_user))


def named(table: TableName, alias: str | None) -> str:
    """A table as part of FROM."""
    return str(table) if alias is None else f"{table} AS {quoted(alias)}"


def needed_columns(table: Table, text: str) -> list[str] | None:
    """The columns to read if hidden ones are named; None: those of the table."""
    hidden = [name for name in HIDDEN_NAMES if name.lower() in words_in(text)]
    if not hidden or not table.store.schema.profile.tracks_rows:
        return None
    return [*table.field_names, *hidden]


def keeps_values(table: Table) -> bool:
    """Whether a NULL that is written leaves the value that a row has."""
    return table.store.schema.profile.merge_engine is MergeEngine.PARTIAL_UPDATE


def words_in(text: str) -> set[str]:
    """All names and words of a text, in lower case."""
    return {token.name.lower() for token in tokenize(text) if token.is_name}


def last_name(text: str) -> int:
    """The number of the last token of the name that a text begins with."""
    tokens, at = tokenize(text), 0
    while tokens[at + 1].is_symbol(".") and tokens[at + 2].is_name:
        at += 2
    return at


def refuse_varying(condition: str) -> None:
    """Refuse conditions that may change when they are evaluated again."""
    tokens = tokenize(condition)
    for token, after in pairwise(tokens):
        if token.word in _VARYING and after.is_symbol("("):
            raise InvalidSql(
                f"[INVALID_NON_DETERMINISTIC_EXPRESSIONS] {token.text}() returns another value "
                "each time; write it to a table first"
            )


def is_about_partitions(where: str | None, table: Table) -> bool:
    """Whether a condition is the same for all rows of a partition."""
    if where is None:
        return True
    words = words_in(where)
    others = {f.name.lower() for f in table.fields if f.name not in table.partition_keys}
    hidden = {name.lower() for name in HIDDEN_NAMES}
    return not words & (others | hidden | {"select"})


def takes_deletes(table: Table) -> bool:
    """Whether a record can delete a row; some merge engines ignore or refuse such records."""
    try:
        check_changes(table.store.schema, updates=False, deletes=True, assigned=frozenset())
    except Unsupported:
        return not table.is_primary_key_table  # the change itself says why it is refused
    return True
