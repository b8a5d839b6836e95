"""Every error that emberlake raises on purpose.

EmberlakeError
├── NotFound            DatabaseNotFound, TableNotFound, ColumnNotFound, SnapshotNotFound,
│                       TagNotFound, BranchNotFound, SchemaNotFound, FileNotFound, ViewNotFound,
│                       FunctionNotFound
├── AlreadyExists       DatabaseAlreadyExists, TableAlreadyExists, ColumnAlreadyExists,
│                       TagAlreadyExists, BranchAlreadyExists
├── InvalidInput        also a ValueError: InvalidIdentifier, InvalidSchema, InvalidOption,
│                       InvalidPredicate, InvalidExpression, InvalidSql, DataMismatch,
│                       MessageMismatch, DatabaseNotEmpty
├── InvalidState        also a RuntimeError: an object is used after it was closed or used up;
│                       IncompleteJob
├── Unsupported         also a RuntimeError: a feature of the format that is not implemented is
│                       refused, never guessed
├── CorruptFile         a file exists but does not hold what the format says
├── StorageError        the storage failed; whether the last write took effect may be unknown;
│                       CredentialsExpired; ServerError: the server of a catalog failed, with
│                       NotAuthenticated, NoPermission
├── CommitConflict      also a RuntimeError: a concurrent change makes this commit wrong;
│                       AlreadyCommitted, FilesMissing, SnapshotOverwritten
└── CommitUnknown       also a RuntimeError: the commit may or may not have happened

Programs written for pypaimon catch ValueError for tags, branches and snapshots that are missing or
already exist, and RuntimeError for changes that a table does not allow. The errors raised in these
cases have those types, too.

EmberlakeWarning is the only warning category: something works, but not as one would expect.
"""

from enum import StrEnum
from typing import Any


class EmberlakeError(Exception):
    """Root of all errors raised on purpose by emberlake."""


class EmberlakeWarning(UserWarning):
    """Something works, but not as one would expect."""


# These carry the name of what is missing or already exists; None where only the message has it.


class _OfDatabase(EmberlakeError):
    def __init__(self, message: str, *, database: str | None = None) -> None:
        super().__init__(message)
        self.database = database


class _OfTable(EmberlakeError):
    def __init__(self, message: str, *, identifier: Any = None) -> None:
        super().__init__(message)
        self.identifier = identifier  # an Identifier, which this layer does not know


class _OfColumn(EmberlakeError):
    def __init__(self, message: str, *, column: str | None = None) -> None:
        super().__init__(message)
        self.column = column


class _OfTag(EmberlakeError):
    def __init__(self, message: str, *, tag: str | None = None) -> None:
        super().__init__(message)
        self.tag = tag


class _OfBranch(EmberlakeError):
    def __init__(self, message: str, *, branch: str | None = None) -> None:
        super().__init__(message)
        self.branch = branch


class NotFound(EmberlakeError):
    """Something that was named does not exist."""


class DatabaseNotFound(NotFound, _OfDatabase):
    """The database does not exist."""


class TableNotFound(NotFound, _OfTable):
    """The table does not exist."""


class ColumnNotFound(NotFound, _OfColumn, ValueError, RuntimeError):
    """A column that was named does not exist."""


class SnapshotNotFound(NotFound, ValueError):
    """The snapshot does not exist or has expired."""


class TagNotFound(NotFound, _OfTag, ValueError):
    """The tag does not exist."""


class BranchNotFound(NotFound, _OfBranch, ValueError):
    """The branch does not exist."""


class SchemaNotFound(NotFound):
    """A schema version that a file refers to does not exist."""


class ViewNotFound(NotFound):
    """The view does not exist."""


class FunctionNotFound(NotFound):
    """The function does not exist."""


class FileNotFound(NotFound):
    """A file that the table refers to is missing."""

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(f"{path} does not exist{f': {detail}' if detail else ''}")
        self.path = path
        self.detail = detail

    def __reduce__(self) -> tuple[type["FileNotFound"], tuple[str, str]]:
        return type(self), (self.path, self.detail)


class AlreadyExists(EmberlakeError):
    """Something that should be created already exists."""


class DatabaseAlreadyExists(AlreadyExists, _OfDatabase):
    """The database already exists."""


class TableAlreadyExists(AlreadyExists, _OfTable):
    """The table already exists."""


class ColumnAlreadyExists(AlreadyExists, _OfColumn, ValueError, RuntimeError):
    """The column already exists."""


class TagAlreadyExists(AlreadyExists, _OfTag, ValueError):
    """The tag already exists."""


class BranchAlreadyExists(AlreadyExists, _OfBranch, ValueError):
    """The branch already exists."""


class InvalidInput(EmberlakeError, ValueError):
    """The caller's input cannot be used; nothing was written."""


class InvalidIdentifier(InvalidInput):
    """A database, table, branch or tag name that is not allowed."""


class InvalidSchema(InvalidInput, RuntimeError):
    """A schema, or a change of one, that the format does not allow."""


class DatabaseNotEmpty(InvalidInput, _OfDatabase):
    """The database has tables; it is dropped together with them only on request."""


class InvalidOption(InvalidInput, RuntimeError):
    """An option whose value cannot be used."""


class InvalidPredicate(InvalidInput):
    """A filter that does not fit the table."""


class InvalidExpression(InvalidInput):
    """An expression that cannot be parsed, or does not fit its columns; no row was read."""


class InvalidSql(InvalidInput):
    """A statement that cannot be parsed, or that means nothing."""


class DataMismatch(InvalidInput):
    """Data that does not fit the table; the message lists every difference."""


class MessageMismatch(InvalidInput):
    """Commit messages of another table, or written for another kind of commit."""


class InvalidState(EmberlakeError, RuntimeError):
    """An object is used after it was closed or used up."""


class IncompleteJob(InvalidState):
    """Not every task of a Spark job reported what it wrote; nothing was committed or deleted."""


class Unsupported(EmberlakeError, RuntimeError):
    """A feature of the format that emberlake does not implement.

    It is not a NotImplementedError: PySpark takes that to mean a reader without partitions.
    """


class CorruptFile(EmberlakeError):
    """A file does not hold what the format says it holds."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} is corrupt: {problem}")
        self.path = path
        self.problem = problem

    def __reduce__(self) -> tuple[type["CorruptFile"], tuple[str, str]]:
        return type(self), (self.path, self.problem)


class StorageError(EmberlakeError):
    """The storage failed. The effect of a failed write is unknown, unless ``had_no_effect``."""

    def __init__(self, message: str, *, had_no_effect: bool = False) -> None:
        super().__init__(message)
        self.had_no_effect = had_no_effect


class CredentialsExpired(StorageError):
    """The store no longer accepts the credentials; new ones are needed."""


class ServerError(StorageError):
    """The server of a catalog failed or cannot be reached, or its answer makes no sense.

    ``code`` is the number of the error in its answer; None if there was no answer.
    """

    def __init__(
        self, message: str, *, had_no_effect: bool = False, code: int | None = None
    ) -> None:
        super().__init__(message, had_no_effect=had_no_effect)
        self.code = code


class NotAuthenticated(ServerError):
    """The server of a catalog does not know the caller: the token is missing, wrong or expired."""


class NoPermission(ServerError):
    """The server of a catalog does not allow it."""


class ConflictReason(StrEnum):
    """Why a commit cannot be applied on top of what others committed meanwhile."""

    FILE_DELETED_ELSEWHERE = "a file to delete is no longer in the table"
    FILE_ADDED_TWICE = "a file to add is already in the table"
    BUCKET_COUNT_CHANGED = "the number of buckets of a partition changed"
    KEY_RANGES_OVERLAP = "files of one level overlap in their key ranges"
    BUCKET_COMPACTED_ELSEWHERE = "a bucket was compacted meanwhile"
    KEY_INDEX_CHANGED = "the key index of a bucket changed"
    DELETION_VECTOR_CHANGED = "the deletion vector of a file changed"
    ROW_RANGE_CHANGED = "the files that hold the rows changed"
    COLUMN_CHANGED = "the same columns of the same rows were written meanwhile"
    SEQUENCE_NUMBERS_TAKEN = "rows of another writer have the same sequence numbers, or later ones"
    ROWS_CHANGED_ELSEWHERE = "rows were added or changed meanwhile"
    SCHEMA_CHANGED = "the schema changed"
    RETRIES_EXHAUSTED = "other writers won every attempt"
    ALREADY_COMMITTED = "these messages were already committed"
    FILES_MISSING = "files of the messages are missing"
    SNAPSHOT_OVERWRITTEN = "another engine replaced the snapshot of this commit"


class CommitConflict(EmberlakeError, RuntimeError):
    """A concurrent change makes this commit wrong; the table is unchanged by it.

    A commit of several snapshots can fail after the first. The message then says which snapshot
    stands, and the data must not be written again.
    """

    def __init__(self, reason: ConflictReason, detail: str, remedy: str) -> None:
        super().__init__(f"{reason.value}: {detail}. Help: {remedy}")
        self.reason = reason
        self.detail = detail
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["CommitConflict"], tuple[ConflictReason, str, str]]:
        return type(self), (self.reason, self.detail, self.remedy)


class AlreadyCommitted(CommitConflict):
    """The same messages, or the same stream identifier, are already in the table."""


class FilesMissing(CommitConflict):
    """Files of the messages were deleted before the commit; the table is unchanged by it."""


class SnapshotOverwritten(CommitConflict):
    """Another engine replaced the snapshot of this commit: its rows are lost, its files stay."""


class CommitUnknown(EmberlakeError, RuntimeError):
    """The commit may or may not have happened; look for its commit user and identifier."""


def with_context(error: EmberlakeError, context: str) -> EmberlakeError:
    """The same error with its context, such as a table, in front of its message."""
    explained = type(error)(f"{context}: {error}")
    vars(explained).update(vars(error))
    return explained


# The names of these errors in pypaimon.
CatalogException = EmberlakeError
IllegalArgumentError = InvalidInput
IllegalStateError = InvalidState
DatabaseNotExistException = DatabaseNotFound
DatabaseAlreadyExistException = DatabaseAlreadyExists
DatabaseNotEmptyException = DatabaseNotEmpty
TableNotExistException = TableNotFound
TableAlreadyExistException = TableAlreadyExists
ColumnNotExistException = ColumnNotFound
ColumnAlreadyExistException = ColumnAlreadyExists
ViewNotExistException = ViewNotFound
FunctionNotExistException = FunctionNotFound
DatabaseNoPermissionException = NoPermission
TableNoPermissionException = NoPermission
TagNotExistException = TagNotFound
TagAlreadyExistException = TagAlreadyExists
BranchNotExistException = BranchNotFound
BranchAlreadyExistException = BranchAlreadyExists
