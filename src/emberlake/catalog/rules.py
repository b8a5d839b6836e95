"""The rules of every catalog: what may be created and altered, and the text of its errors.

Pure decisions. The catalog itself decides where to store databases and schemas.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from emberlake.base.names import did_you_mean, listed
from emberlake.errors import (
    BranchNotFound,
    ColumnAlreadyExists,
    ColumnNotFound,
    CommitConflict,
    ConflictReason,
    DatabaseAlreadyExists,
    DatabaseNotEmpty,
    DatabaseNotFound,
    EmberlakeWarning,
    InvalidIdentifier,
    InvalidInput,
    InvalidOption,
    InvalidSchema,
    InvalidState,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
    with_context,
)
from emberlake.merge.plan import check_functions, check_merge_options
from emberlake.options import TYPE
from emberlake.spec import support
from emberlake.spec.identifier import Identifier
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.option_spelling import misspelled
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.spec.schema_evolution import apply_changes

_TABLE_DEFAULT: Final = "table-default."
_ALTER_ATTEMPTS: Final = 100


# --- schemas --------------------------------------------------------------------------------------


def first_schema(
    identifier: Identifier,
    schema: Schema,
    catalog_options: Mapping[str, str],
    time_millis: int,
    *,
    for_others: bool = False,
) -> TableSchema:
    """The first schema of a new table, unless anything about it is wrong.

    It includes the options that the catalog gives to new tables (``table-default.<key>``). With
    ``for_others`` the table may need what only other engines have.
    """
    with about(identifier):
        declared = _with_defaults(schema, catalog_options)
        first = build_table_schema(declared, time_millis=time_millis, for_others=for_others)
        _refuse_merging("created", check_merge_options(first))
        if not for_others:
            check_functions(first)
            _warn_of_spelling(identifier, schema.options)
    return first


def check_replaceable(identifier: Identifier, old: TableSchema, new: TableSchema) -> None:
    """Refuse a new schema that could not read the metadata of the table.

    Manifests hold values of partition columns, and the old snapshots keep their manifests.
    """
    before, after = ([f.type for f in s.partition_fields] for s in (old, new))
    if before != after:
        raise InvalidSchema(
            f"{identifier} cannot be replaced by a table with other partition columns; drop it, "
            "and create it again"
        )


def _warn_of_spelling(identifier: Identifier, keys: Iterable[str]) -> None:
    for message in misspelled(keys):
        warnings.warn(f"{identifier}: {message}", EmberlakeWarning, stacklevel=4)


def as_changes(changes: Any) -> list[SchemaChange]:
    """The changes of a schema that ``alter_table`` was given: one, or several."""
    if isinstance(changes, SchemaChange):
        return [changes]
    if isinstance(changes, str) or not all(isinstance(one, SchemaChange) for one in changes):
        raise InvalidInput(
            "a schema is changed by a list such as [SchemaChange.add_column('tax', 'DOUBLE')], not "
            f"by {changes!r}; catalog.sql takes ALTER TABLE"
        )
    return list(changes)


def altered_schema(
    identifier: Identifier,
    current: TableSchema,
    changes: Sequence[SchemaChange],
    *,
    has_snapshots: bool,
    time_millis: int,
    for_others: bool = False,
) -> TableSchema:
    """The next schema of a table; the current one if the changes have no effect."""
    with about(identifier):
        changed = apply_changes(
            current,
            changes,
            has_snapshots=has_snapshots,
            time_millis=time_millis,
            for_others=for_others,
        )
        known = set(check_merge_options(current))  # accepted by other engines
        problems = check_merge_options(changed)
        _refuse_merging("changed", [p for p in problems if p not in known])
        if not for_others:
            check_functions(changed, current)
            _warn_of_spelling(identifier, set(changed.options) - set(current.options))
    return changed


def alter_until_published(identifier: Identifier, attempt: Callable[[], bool]) -> None:
    """Try to publish the next schema, again whenever somebody else was faster.

    Args:
        identifier: The table.
        attempt: Starts from the newest schema, so that changes of others are kept; returns False
            if somebody else has published the next one.
    """
    if not any(attempt() for _ in range(_ALTER_ATTEMPTS)):
        raise CommitConflict(
            ConflictReason.RETRIES_EXHAUSTED,
            f"{identifier} got another schema in each of {_ALTER_ATTEMPTS} attempts",
            "alter the table again when fewer others are altering it",
        )


def check_no_snapshots(identifier: Identifier, ids: Sequence[int], folder: str) -> None:
    """Refuse to create a table over old snapshots: its readers would see data of a deleted table.

    Args:
        identifier: The table to create.
        ids: The snapshots that exist without a schema.
        folder: Where they are.
    """
    if ids:
        raise InvalidInput(
            f"{identifier} cannot be created: {folder} has snapshots but no schema; "
            "move or delete that folder"
        )


def check_not_dropped(identifier: Identifier, *, is_dropped: bool) -> None:
    """Refuse to create a table while a drop would delete its files."""
    if is_dropped:
        raise InvalidState(
            f"{identifier} cannot be created: another table of that name is being dropped; wait "
            "until it is gone. Only if that was interrupted drop it again, which deletes what is "
            "left"
        )


def check_unserved(identifier: Identifier, schema: TableSchema) -> None:
    """Refuse a table that only the server of a catalog can keep."""
    with about(identifier):
        support.check_unserved(schema)


def check_kind(identifier: Identifier, schema: TableSchema) -> None:
    """Refuse objects that are stored like tables but are not tables."""
    kind = schema.options.value(TYPE)
    if kind.lower() != TYPE.default:
        raise Unsupported(f"{identifier} has the type {kind}; emberlake only reads tables")


def _with_defaults(schema: Schema, catalog_options: Mapping[str, str]) -> Schema:
    placed = [key for key in ("path", "branch") if key in schema.options]
    if placed:
        raise InvalidOption(
            f"the option {placed[0]!r} cannot be set; the catalog decides where a table is"
        )
    defaults = {
        key.removeprefix(_TABLE_DEFAULT): value
        for key, value in catalog_options.items()
        if key.startswith(_TABLE_DEFAULT)
    }
    options = {**defaults, **schema.options}
    return Schema(
        schema.fields, schema.partition_keys, schema.primary_keys, options, schema.comment
    )


@contextmanager
def about(identifier: Identifier) -> Iterator[None]:
    """Add the name of the table to errors about the caller's input."""
    try:
        yield
    except (InvalidInput, ColumnNotFound, ColumnAlreadyExists, Unsupported) as error:
        raise with_context(error, str(identifier)) from error


def _refuse_merging(what: str, problems: Sequence[str]) -> None:
    if problems:
        raise InvalidSchema(f"the table cannot be {what}: " + "; ".join(problems))


# --- names ----------------------------------------------------------------------------------------


def as_identifier(identifier: str | Identifier) -> Identifier:
    """The given identifier, parsed if it is text."""
    return identifier if isinstance(identifier, Identifier) else Identifier.parse(identifier)


def plain_table(identifier: str | Identifier, action: str) -> Identifier:
    """The identifier of a table itself; branches and system tables are refused."""
    identifier = as_identifier(identifier)
    if identifier.branch is not None or identifier.system_table is not None:
        raise InvalidIdentifier(f"{identifier} cannot be {action}: give a table, without a $ part")
    return identifier


# --- errors ---------------------------------------------------------------------------------------


def database_not_found(name: str, catalog: str, databases: Collection[str]) -> DatabaseNotFound:
    """The error for a database that does not exist."""
    return DatabaseNotFound(
        f"database {name!r} does not exist in {catalog}"
        + did_you_mean([name], databases, before="; "),
        database=name,
    )


@contextmanager
def naming_the_remedy() -> Iterator[None]:
    """While a table is created: errors about a missing database say how to create it."""
    try:
        yield
    except DatabaseNotFound as error:
        raise DatabaseNotFound(
            f"{error}; create_database({error.database!r}) creates it", database=error.database
        ) from None


def database_exists(name: str, catalog: str) -> DatabaseAlreadyExists:
    """The error for a database that already exists."""
    return DatabaseAlreadyExists(f"database {name!r} already exists in {catalog}", database=name)


def database_not_empty(name: str, content: Sequence[str]) -> DatabaseNotEmpty:
    """The error for a database that cannot be dropped because it is not empty."""
    return DatabaseNotEmpty(
        f"database {name!r} holds {listed(content, 5)}; "
        "drop its tables first, or drop it with cascade=True",
        database=name,
    )


def table_exists(identifier: Identifier) -> TableAlreadyExists:
    """The error for a table that already exists."""
    return TableAlreadyExists(
        f"{identifier} already exists; drop it first or choose another name", identifier=identifier
    )


def table_not_found(identifier: Identifier, catalog: str, names: Collection[str]) -> TableNotFound:
    """The error for a table that does not exist, with similar names."""
    return TableNotFound(
        f"{identifier} does not exist in {catalog}"
        + did_you_mean([identifier.table], names, before="; "),
        identifier=identifier,
    )


def table_without_database(
    identifier: Identifier, catalog: str, databases: Collection[str]
) -> TableNotFound:
    """The error for a table whose database does not exist."""
    return TableNotFound(
        f"{identifier} does not exist: there is no database {identifier.database!r} in {catalog}"
        + did_you_mean([identifier.database], databases, before="; "),
        identifier=identifier,
    )


def branch_not_found(identifier: Identifier, branches: Sequence[str]) -> BranchNotFound:
    """The error for a branch that a table does not have."""
    name = identifier.branch or ""
    return BranchNotFound(
        f"{identifier.database}.{identifier.table} has no branch {name!r}"
        + did_you_mean([name], branches, before="; "),
        branch=name,
    )
