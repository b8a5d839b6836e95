"""The table that a write goes to: opened, or created from the data's columns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum

from emberlake.catalog.catalog import Catalog
from emberlake.catalog.rules import as_identifier, check_replaceable, first_schema
from emberlake.errors import (
    DatabaseNotFound,
    InvalidIdentifier,
    InvalidInput,
    NotFound,
    TableAlreadyExists,
    TableNotFound,
    Unsupported,
)
from emberlake.options import MergeEngine
from emberlake.spec.identifier import Identifier
from emberlake.spec.replacement import OVERWRITES
from emberlake.spec.schema import Schema, TableSchema
from emberlake.store.new_schema import NewSchema
from emberlake.table import Table
from emberlake.table.table import table_of
from emberlake.types import DataField


class WriteMode(StrEnum):
    """What a write does with the rows, and what it does if the table exists or is missing."""

    APPEND = "append"  # adds rows; in tables with a key, they replace or merge
    UPSERT = "upsert"  # the same, for tables with a key only
    OVERWRITE = "overwrite"  # replaces rows
    ERROR = "error"  # creates the table; it must not exist
    IGNORE = "ignore"  # creates the table; if it exists, nothing happens

    @property
    def creates(self) -> bool:
        """Whether the mode itself asks for the table to be created."""
        return self in (WriteMode.ERROR, WriteMode.IGNORE)


@dataclass(frozen=True, kw_only=True)
class TargetRules:
    """What a caller requires of the table to write to.

    Args:
        mode: What happens to the rows, and what happens if the table exists or is missing.
        overwrite: What an overwrite replaces: False, True, or one of ``OVERWRITES``.
        create: Whether a missing table is created, with its database.
        primary_keys: The key of a new table.
        partition_by: The partition columns of a new table.
        table_options: The options of a new table.
        merge_schema: Whether the write adds the columns of the data to the table.
    """

    mode: WriteMode = WriteMode.APPEND
    overwrite: bool | str = False
    create: bool = False
    primary_keys: tuple[str, ...] | None = None
    partition_by: tuple[str, ...] | None = None
    table_options: Mapping[str, str] | None = None
    merge_schema: bool = False

    @staticmethod
    def of(
        mode: str = WriteMode.APPEND,
        *,
        overwrite: bool | str = False,
        create: bool = False,
        primary_keys: Sequence[str] | None = None,
        partition_by: Sequence[str] | None = None,
        table_options: Mapping[str, object] | None = None,
        merge_schema: bool = False,
    ) -> "TargetRules":
        """The rules for the arguments of a write.

        Raises:
            InvalidInput: lists everything that is unknown or contradictory.
        """
        problems = list(_problems(mode, overwrite))
        chosen = WriteMode(_ALIASES.get(mode, mode)) if not problems else WriteMode.APPEND
        described = {
            "primary_keys": primary_keys,
            "partition_by": partition_by,
            "table_options": table_options,
        }
        given = [name for name, value in described.items() if value is not None]
        if given and not (create or chosen.creates or problems):
            problems.append(f"{', '.join(given)} describe a new table: add create=True")
        problems += [
            f"{name} is a list of columns, as in [{value!r}]"
            for name, value in list(described.items())[:2]
            if isinstance(value, str)
        ]
        if chosen is WriteMode.UPSERT and create and not primary_keys:
            problems.append("mode='upsert' needs primary_keys for the table that it creates")
        if problems:
            raise InvalidInput("; ".join(problems))
        options = None if table_options is None else {k: str(v) for k, v in table_options.items()}
        return TargetRules(
            mode=WriteMode.OVERWRITE if overwrite else chosen,
            overwrite=overwrite or chosen is WriteMode.OVERWRITE,
            create=create or chosen.creates,
            primary_keys=None if primary_keys is None else tuple(primary_keys),
            partition_by=None if partition_by is None else tuple(partition_by),
            table_options=options,
            merge_schema=merge_schema,
        )


# Spark's own names of modes.
_ALIASES: dict[str, str] = {"errorifexists": "error"}


def _problems(mode: str, overwrite: bool | str) -> Iterator[str]:  # noqa: FBT001
    modes = [*WriteMode]
    if mode not in modes and mode not in _ALIASES:
        yield f"mode={mode!r} is not one of {', '.join(modes)}"
    elif overwrite and mode not in (WriteMode.APPEND, WriteMode.OVERWRITE):
        yield (
            f"mode={mode!r} contradicts overwrite={overwrite!r}: an overwrite is mode='overwrite', "
            "and overwrite= says what it replaces"
        )
    if not isinstance(overwrite, bool) and overwrite not in OVERWRITES:
        words = ", ".join(map(repr, OVERWRITES))
        yield f"overwrite={overwrite!r} is not one of True, False, {words}"


@contextmanager
def open_target(
    catalog: Catalog,
    identifier: str | Identifier,
    fields: Sequence[DataField],
    rules: TargetRules,
) -> Iterator[Table | None]:
    """The table to write to; None if the mode says to leave it alone.

    A table that was created here is dropped again if the write fails and nobody has written to it.

    Args:
        catalog: Where the table is, or will be.
        identifier: ``"db.t"``.
        fields: The columns of the data.
        rules: What the caller asks for.

    Raises:
        TableNotFound: it does not exist, and should not be created.
        TableAlreadyExists: it exists, and the mode is ``error``.
        InvalidInput: it exists with another key or other partitions.
        Unsupported: its rows cannot be upserted.
    """
    written, identifier = identifier, as_identifier(identifier)
    found = _find(catalog, identifier)
    if isinstance(found, NotFound):
        if not rules.create:
            raise TableNotFound(
                f"{found}; create=True creates it from the columns of the data",
                identifier=identifier,
            ) from found
        _check_parts(written, identifier)
        created = _create(catalog, identifier, fields, rules)
        if created is not None:
            with dropped_unless_written(catalog, identifier, created):
                yield created
            return
        found = _found(catalog, identifier)  # somebody else was faster
    if rules.mode is WriteMode.ERROR:
        raise TableAlreadyExists(
            f"{identifier} already exists, and mode='error' creates it; mode='append' adds rows",
            identifier=identifier,
        )
    if rules.mode is WriteMode.IGNORE:
        yield None
        return
    _check_described(identifier, found.table_schema, rules)
    _check_upsert(identifier, found.table_schema, rules)
    yield found


def _find(catalog: Catalog, identifier: Identifier) -> Table | NotFound:
    try:
        return _found(catalog, identifier)
    except (TableNotFound, DatabaseNotFound) as error:
        return error


def _found(catalog: Catalog, identifier: Identifier) -> Table:
    found = catalog.get_table(identifier)
    if not isinstance(found, Table):
        raise InvalidInput(f"{identifier} is a system table; it cannot be written to")
    return found


def _check_parts(written: str | Identifier, identifier: Identifier) -> None:
    """``catalog.database.table`` would be a table named ``database.table``, which nobody wants."""
    if isinstance(written, str) and "." in identifier.table and "`" not in written:
        raise InvalidIdentifier(
            f"{written} has more than two parts, but a name is database.table; for a table with a "
            f"dot in its name, write `{identifier.database}`.`{identifier.table}`"
        )


def _create(
    catalog: Catalog, identifier: Identifier, fields: Sequence[DataField], rules: TargetRules
) -> Table | None:
    """The new table; None if there is one by now."""
    if identifier.branch is not None:
        raise InvalidInput(f"{identifier}: a branch is created by create_branch of its table")
    schema = Schema(
        tuple(fields),
        list(rules.partition_by or ()),
        list(rules.primary_keys or ()),
        dict(rules.table_options or {}),
    )
    catalog.create_database(identifier.database, ignore_if_exists=True)
    try:
        return catalog.create_table(identifier, schema)
    except TableAlreadyExists:
        return None


@contextmanager
def dropped_unless_written(
    catalog: Catalog, identifier: str | Identifier, table: Table
) -> Iterator[None]:
    """Drop a table that was just created if the block fails and nobody has written to it."""
    try:
        yield
    except BaseException:
        if table.latest_snapshot() is None:
            catalog.drop_table(identifier, ignore_if_not_exists=True)
        raise


def replaced(catalog: Catalog, identifier: Identifier, schema: Schema) -> Table:
    """A table as it will be once the catalog has given it another schema; nothing changes here.

    What is written for it can be committed after that, unless others have changed the schema.

    Raises:
        TableNotFound: there is no table to replace.
        InvalidSchema: columns, keys or options are not valid, or the partition columns differ.
    """
    store = catalog.get_table(identifier).store
    latest = store.schemas.latest()
    if latest is None:
        raise TableNotFound(f"{identifier} has no schema any more", identifier=identifier)
    first = first_schema(identifier, schema, catalog.options, store.env.now_ms())
    check_replaceable(identifier, latest, first)
    future = replace(first, id=latest.id + 1)
    return table_of(replace(store, schema=future, new_schema=NewSchema(latest, (), future)))


def _check_described(identifier: Identifier, schema: TableSchema, rules: TargetRules) -> None:
    """Refuse a description that the existing table contradicts."""
    facts = (
        ("primary_keys", rules.primary_keys, schema.primary_keys),
        ("partition_by", rules.partition_by, schema.partition_keys),
    )
    wrong = [
        f"{name}={list(asked)!r}, but it has {list(has)!r}"
        for name, asked, has in facts
        if asked is not None and set(asked) != set(has)
    ]
    if wrong:
        raise InvalidInput(f"{identifier} exists, and is another table: {'; '.join(wrong)}")


def _check_upsert(identifier: Identifier, schema: TableSchema, rules: TargetRules) -> None:
    if rules.mode is not WriteMode.UPSERT:
        return
    if not schema.profile.has_keys:
        raise Unsupported(
            f"{identifier} has no primary key to upsert by: mode='append' adds rows, and merge() "
            "matches them by other columns"
        )
    if schema.profile.merge_engine is MergeEngine.FIRST_ROW:
        raise Unsupported(
            f"{identifier} keeps the row that it has (merge-engine=first-row): mode='append' adds "
            "rows with new keys"
        )
