"""Which messages a commit accepts: those of its table, written for its kind of commit. Pure."""

from collections.abc import Sequence
from typing import Final

from emberlake.errors import MessageMismatch
from emberlake.spec.schema import TableSchema
from emberlake.wire import CommitMessage, WriteMode

_REMEDY_APPEND: Final = (
    "commit them with new_commit() of the builder that overwrites, or with "
    "commit.overwrite(messages, partition), or write the data again with a builder that appends"
)
_REMEDY_OVERWRITE: Final = (
    "write the data with new_write() of the builder that overwrites, or call "
    "commit.overwrite(messages, partition) on the commit of a builder that appends"
)
_REMEDY_REPLACEMENT: Final = "write the data with new_write() of builder.overwrite(partition)"


def check_table(messages: Sequence[CommitMessage], table: str) -> None:
    """Refuse messages of another table or another branch."""
    others = sorted({message.table for message in messages} - {table})
    if others:
        raise MessageMismatch(
            f"messages written for {', '.join(others[:3])} are not for {table}; nothing was "
            "changed. Help: commit them to the table that they were written for"
        )


def check_appended(messages: Sequence[CommitMessage]) -> None:
    """Refuse messages of an overwrite: appended, their rows would count as the oldest."""
    if any(message.mode is WriteMode.OVERWRITE for message in messages):
        raise _mismatch(WriteMode.OVERWRITE, "this commit appends", _REMEDY_APPEND)


def check_overwritten(messages: Sequence[CommitMessage]) -> None:
    """Refuse messages of an append: this commit overwrites."""
    if any(message.mode is WriteMode.APPEND for message in messages):
        raise _mismatch(WriteMode.APPEND, "this commit overwrites", _REMEDY_OVERWRITE)


def check_replacing(messages: Sequence[CommitMessage], schema: TableSchema) -> None:
    """Refuse messages that cannot replace what is in the table.

    Messages of an append can, as long as they only add files. They cannot if the writer merged its
    rows with rows that are replaced, or left keys out of the index because it had them already:
    that index is replaced too.
    """
    if len({message.mode for message in messages}) > 1:
        raise MessageMismatch(
            "some of the messages were written for append, some for overwrite; nothing was "
            f"committed. Help: {_REMEDY_REPLACEMENT}, all of it"
        )
    if not any(message.mode is WriteMode.APPEND for message in messages):
        return
    why = _why_not(schema)
    if why is None and any(_changes_what_is_there(message) for message in messages):
        why = "they also change files that are there"
    if why is not None:
        raise _mismatch(
            WriteMode.APPEND,
            f"they cannot replace anything: {why}",
            _REMEDY_REPLACEMENT,
        )


def _why_not(schema: TableSchema) -> str | None:
    if schema.profile.compacts_on_write:
        return "in a table that compacts on write they are merged with what is there"
    if schema.profile.keeps_key_index:
        return "in a table with dynamic buckets they need the index of what is there"
    if schema.profile.crosses_partitions:
        return "their rows were put where the keys are now, in whatever partition"
    return None


def _changes_what_is_there(message: CommitMessage) -> bool:
    return bool(
        message.deleted_files
        or message.deleted_index_files
        or message.compact_before
        or message.compact_after
        or message.compact_new_index_files
        or message.vector_edits
        or message.compact_vector_edits
        # Columns of rows that are there go with the rows.
        or any(file.first_row_id is not None for file in message.new_files)
    )


def _mismatch(mode: WriteMode, but: str, remedy: str) -> MessageMismatch:
    return MessageMismatch(
        f"the messages were written for {mode}, but {but}; nothing was committed. Help: {remedy}"
    )
