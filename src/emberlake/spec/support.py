"""Which tables emberlake can read and write so far.

Features of the format that emberlake does not implement are refused where they are used. Each
feature that becomes available removes one rule from the lists below.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from emberlake.base.names import listed
from emberlake.errors import Unsupported
from emberlake.options import (
    CHAIN_TABLE,
    COMMIT_CALLBACKS,
    FALLBACK_BRANCH,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    ICEBERG_STORAGE,
    IGNORE_DELETE,
    MANIFEST_FORMAT,
    PK_CLUSTERING,
    POSTPONE_MERGE_ON_READ,
    PRIMARY_BRANCH,
    QUERY_AUTH,
    RECORD_EXPIRE_TIME,
    SNAPSHOT_ORDERING,
    TYPE,
)
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, DataType, VectorType, nested_types

Rule: TypeAlias = Callable[[TableSchema], str | None]

FILE_FORMATS: Final = ("parquet", "orc", "avro", "lance")


def check_creatable(schema: TableSchema) -> None:
    """Refuse new tables that emberlake could never write.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, _WRITE_RULES, "created")
    _refuse_columns(schema.fields, "created")


def check_alterable(old: TableSchema, new: TableSchema) -> None:
    """Refuse changes after which emberlake could never write a table.

    Tables of other engines that it cannot write anyway can be changed, except for kinds that it
    does not know at all.

    Raises:
        Unsupported: says why.
    """
    _refuse(new, _KIND_RULES, "changed")
    known = _reasons(old, _WRITE_RULES)
    later = _reasons(new, _WRITE_RULES)
    _raise([reason for reason in later if reason not in known], "changed this way")
    own = {f.id: f.type for f in old.fields}
    _refuse_columns([f for f in new.fields if own.get(f.id) != f.type], "added")


def check_kind(schema: TableSchema) -> None:
    """Refuse what is not a table. A server keeps tables for other engines, whatever they can do.

    Raises:
        Unsupported: says what it is.
    """
    _refuse(schema, (_other_kind,), "kept by this server")


def check_unserved(schema: TableSchema) -> None:
    """Refuse what makes no sense without a server that keeps the table.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, (_query_auth,), "kept without a server")


def check_readable(schema: TableSchema, read_fields: Sequence[DataField] = ()) -> None:
    """Refuse to read a table, or some of its columns, that would be read wrongly.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, _READ_RULES, "read")
    _refuse_columns(read_fields, "read")


def check_writable(schema: TableSchema) -> None:
    """Refuse to write a table if other engines could then not read it correctly.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, _WRITE_RULES, "written")
    _refuse_columns(schema.fields, "written")


def check_compactable(schema: TableSchema) -> None:
    """Refuse to compact a table if other engines could then not read it correctly.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, _WRITE_RULES, "compacted")
    _refuse_columns(schema.fields, "compacted")


def _refuse(schema: TableSchema, rules: Iterable[Rule], what: str) -> None:
    _raise(_reasons(schema, rules), what)


def _reasons(schema: TableSchema, rules: Iterable[Rule]) -> list[str]:
    return [reason for rule in rules if (reason := rule(schema)) is not None]


def _raise(reasons: Iterable[str], what: str) -> None:
    text = "; ".join(reasons)
    if text:
        raise Unsupported(f"the table cannot be {what}: {text}")


def _refuse_columns(fields: Iterable[DataField], what: str) -> None:
    refused = [
        f"{f.name} {f.type}"
        for f in fields
        if any(_is_unsupported(inner) for inner in nested_types(f.type))
    ]
    if refused:
        raise Unsupported(f"columns of these types cannot be {what} yet: {listed(refused)}")


def _is_unsupported(data_type: DataType) -> bool:
    if isinstance(data_type, AtomicType):
        return data_type.root.is_opaque
    return isinstance(data_type, VectorType)


# --- rules ----------------------------------------------------------------------------------------


def _other_kind(schema: TableSchema) -> str | None:
    kind = schema.options.value(TYPE)
    return None if kind.lower() == "table" else f"it is a {kind}, not a table (option type)"


def _chain_table(schema: TableSchema) -> str | None:
    return "it is a chain table" if schema.options.value(CHAIN_TABLE) else None


def _query_auth(schema: TableSchema) -> str | None:
    if not schema.options.value(QUERY_AUTH):
        return None
    return f"a server would have to decide who sees which rows ({QUERY_AUTH.key})"


def _unknown_format(schema: TableSchema) -> str | None:
    levels = schema.options.value(FILE_FORMAT_PER_LEVEL)
    for key, name in (
        (FILE_FORMAT.key, schema.options.value(FILE_FORMAT)),
        *((f"{FILE_FORMAT_PER_LEVEL.key}: {level}", name) for level, name in levels.items()),
    ):
        if name not in FILE_FORMATS:
            return f"{key}={name} is not one of {', '.join(FILE_FORMATS)}"
    return None


def _ignored_moves(schema: TableSchema) -> str | None:
    ignoring = next((o for o in IGNORE_DELETE if schema.options.is_set(o)), None)
    if ignoring is None or not (schema.profile.moves_rows and schema.options.value(ignoring)):
        return None
    return (
        f"{ignoring.key}=true: with bucket=-1 and a primary key that lacks the partition column "
        f"{', '.join(schema.partition_keys_outside_key)}, a row that moves to another partition is "
        "deleted where it was, which would be ignored. Unset the option, or set a number of buckets"
    )


def _fallback_branch(schema: TableSchema) -> str | None:
    given = [o.key for o in (FALLBACK_BRANCH, PRIMARY_BRANCH) if schema.options.value(o)]
    return f"{given[0]}: reading two branches as one is not implemented" if given else None


def _shredded_map(schema: TableSchema) -> str | None:
    for key, value in schema.options.items():
        if key.endswith(".map.storage-layout") and value.lower() != "default":
            return f"{key}={value} is not implemented"
    return None


def _manifest_format(schema: TableSchema) -> str | None:
    name = schema.options.value(MANIFEST_FORMAT)
    is_known = name == MANIFEST_FORMAT.default
    return None if is_known else f"{MANIFEST_FORMAT.key}={name} is not implemented"


def _key_order(schema: TableSchema) -> str | None:
    for option in (PK_CLUSTERING, SNAPSHOT_ORDERING):
        if schema.options.value(option):
            return f"{option.key} is not implemented"
    return None


def _expiring_rows(schema: TableSchema) -> str | None:
    expires = schema.profile.has_keys and schema.options.is_set(RECORD_EXPIRE_TIME)
    return f"{RECORD_EXPIRE_TIME.key} is not implemented" if expires else None


def _postponed_rows(schema: TableSchema) -> str | None:
    merges = schema.options.value(POSTPONE_MERGE_ON_READ)
    return f"{POSTPONE_MERGE_ON_READ.key} is not implemented" if merges else None


def _iceberg(schema: TableSchema) -> str | None:
    if schema.options.value(ICEBERG_STORAGE) == ICEBERG_STORAGE.default:
        return None
    return f"{ICEBERG_STORAGE.key}: keeping Iceberg metadata up to date is not implemented"


def _commit_callbacks(schema: TableSchema) -> str | None:
    if not schema.options.value(COMMIT_CALLBACKS):
        return None
    return f"{COMMIT_CALLBACKS.key}: these are classes that only Java can run"


_KIND_RULES: Final[tuple[Rule, ...]] = (
    _other_kind,
    _chain_table,
    _unknown_format,
)

_READ_RULES: Final[tuple[Rule, ...]] = (
    _other_kind,
    _chain_table,
    _fallback_branch,
    _shredded_map,
    _manifest_format,
    _key_order,
    _expiring_rows,
    _postponed_rows,
)

_WRITE_RULES: Final[tuple[Rule, ...]] = (
    *_READ_RULES,
    _ignored_moves,
    _unknown_format,
    _iceberg,
    _commit_callbacks,
)
