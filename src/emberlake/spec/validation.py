"""Which schemas the format allows, and which tables emberlake can read and write so far.

``build_table_schema`` turns what a user declares into the first schema of a table, or refuses it
with one error that lists every problem. ``find_problems`` is the same list for any schema, so that
a change of a table is held to the same rules. Spec: "Schema files".

What is allowed but not implemented is refused where it is used, by ``check_readable`` and
``check_writable``: each feature that becomes available is one rule less in their lists.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from emberlake.errors import InvalidInput, InvalidOption, InvalidSchema, Unsupported
from emberlake.options import (
    BUCKET,
    BUCKET_FUNCTION,
    BUCKET_KEY,
    CHAIN_TABLE,
    CHANGELOG_PRODUCER,
    DATA_EVOLUTION,
    DELETION_VECTORS,
    EXTERNAL_PATHS,
    FILE_FORMAT,
    MERGE_ENGINE,
    POSTPONE_BUCKET,
    PRIMARY_KEY_NULLABLE,
    QUERY_AUTH,
    ROW_TRACKING,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    STATS_MODE,
    TARGET_FILE_ROWS,
    TYPE,
    UNAWARE_BUCKET,
    ChangelogProducer,
    MergeEngine,
    TableOptions,
    parse_bool,
    parse_words,
)
from emberlake.spec.bucket import check_bucket_key
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.values import cast_literal
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

KEY_PREFIX: Final = "_KEY_"
SYSTEM_NAMES: Final = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})
FILE_FORMATS: Final = ("parquet", "orc", "avro")

Check: TypeAlias = Callable[[TableSchema], Iterable[str]]
Rule: TypeAlias = Callable[[TableSchema], str | None]


def build_table_schema(schema: Schema, *, time_millis: int) -> TableSchema:
    """The first schema of a new table.

    Field ids are given out anew, primary key columns become NOT NULL, and keys that are given as
    options (``primary-key``, ``partition``) become the keys of the schema.

    Raises:
        InvalidSchema: lists everything that is wrong.
        Unsupported: the table is of a kind that emberlake does not know.
    """
    problems: list[str] = []
    raw = _text_options(schema.options, problems)
    partition_keys = _take_keys(raw, "partition", schema.partition_keys, problems)
    primary_keys = _take_keys(raw, "primary-key", schema.primary_keys, problems)
    options = _parse_options(raw, problems)
    fields = assign_field_ids(schema.fields, next_id=0)
    table_schema = TableSchema(
        id=0,
        fields=normalise_key_columns(fields, primary_keys, options),
        highest_field_id=_count_ids(schema.fields) - 1,
        partition_keys=partition_keys,
        primary_keys=primary_keys,
        options=options,
        comment=schema.comment,
        time_millis=time_millis,
    )
    problems.extend(find_problems(table_schema))
    if problems:
        raise InvalidSchema("the table cannot be created: " + "; ".join(problems))
    check_known_kind(table_schema)
    return table_schema


def find_problems(schema: TableSchema) -> list[str]:
    """Everything in a schema that the format does not allow."""
    return [problem for check in _CHECKS for problem in check(schema)]


def check_known_kind(schema: TableSchema) -> None:
    """Refuse tables of kinds that emberlake does not know at all, not even to create them."""
    _refuse(schema, (_other_kind, _chain_table, _query_auth, _unknown_format), "supported")


def check_readable(schema: TableSchema, read_fields: Sequence[DataField] = ()) -> None:
    """Refuse to read a table, or some of its columns, that would be read wrongly.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, _READ_RULES, "read")
    _refuse_columns(read_fields, "read")


def check_writable(schema: TableSchema) -> None:
    """Refuse to write a table that other engines would then not read as they should.

    Raises:
        Unsupported: says why.
    """
    _refuse(schema, _WRITE_RULES, "written")
    _refuse_columns(schema.fields, "written")


def assign_field_ids(fields: Iterable[DataField], *, next_id: int) -> tuple[DataField, ...]:
    """The same columns with ids from ``next_id`` on, in the order in which Paimon numbers them."""
    ids = iter(range(next_id, 2**31))
    return tuple(replace(f, id=next(ids), type=_number(f.type, ids)) for f in fields)


def normalise_key_columns(
    fields: tuple[DataField, ...], primary_keys: Sequence[str], options: TableOptions
) -> tuple[DataField, ...]:
    """The same columns with the nullability that primary key columns have."""
    nullable = options.value(PRIMARY_KEY_NULLABLE)
    return tuple(
        replace(f, type=f.type.with_nullable(nullable)) if f.name in primary_keys else f
        for f in fields
    )


# --- from what users declare ----------------------------------------------------------------------


def _text_options(options: Mapping[str, object], problems: list[str]) -> dict[str, str]:
    texts = {}
    for key, value in options.items():
        if isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            texts[key] = str(value)
        else:
            problems.append(f"option {key} is a {type(value).__name__}, not a text")
    for option in (BUCKET_KEY, SEQUENCE_FIELD):
        if option.key in texts:  # engines split these at the comma and do not trim the parts
            texts[option.key] = ",".join(parse_words(texts[option.key]))
    return texts


def _take_keys(
    raw: dict[str, str], option: str, declared: tuple[str, ...], problems: list[str]
) -> tuple[str, ...]:
    given = raw.pop(option, None)
    if given is None:
        return declared
    keys = parse_words(given)
    if declared and keys != declared:
        problems.append(f"the option {option} and the schema name different keys")
    return keys


def _parse_options(raw: dict[str, str], problems: list[str]) -> TableOptions:
    good = {}
    for key, value in raw.items():
        try:
            TableOptions({key: value})
        except InvalidOption as error:
            problems.append(str(error).removeprefix("options that cannot be read: "))
        else:
            good[key] = value
    return TableOptions(good)


def _number(data_type: DataType, ids: Iterator[int]) -> DataType:
    match data_type:
        case RowType(nullable=nullable, fields=fields):
            numbered = []
            for field in fields:
                inner = _number(field.type, ids)  # what is inside a field is numbered before it
                numbered.append(replace(field, id=next(ids), type=inner))
            return RowType(nullable, tuple(numbered))
        case ArrayType(nullable=nullable, element=element):
            return ArrayType(nullable, _number(element, ids))
        case MultisetType(nullable=nullable, element=element):
            return MultisetType(nullable, _number(element, ids))
        case MapType(nullable=nullable, key=key, value=value):
            return MapType(nullable, _number(key, ids), _number(value, ids))
        case _:
            return data_type


def _count_ids(fields: Iterable[DataField]) -> int:
    return sum(1 + sum(1 for _ in _nested_rows_fields(f.type)) for f in fields)


def _nested_types(data_type: DataType) -> Iterator[DataType]:
    """A type and all types inside it."""
    yield data_type
    match data_type:
        case RowType(fields=fields):
            for field in fields:
                yield from _nested_types(field.type)
        case ArrayType(element=element) | MultisetType(element=element):
            yield from _nested_types(element)
        case VectorType(element=element):
            yield from _nested_types(element)
        case MapType(key=key, value=value):
            yield from _nested_types(key)
            yield from _nested_types(value)
        case _:
            return


def _nested_rows_fields(data_type: DataType) -> Iterator[DataField]:
    for inner in _nested_types(data_type):
        if isinstance(inner, RowType):
            yield from inner.fields


# --- columns and keys -----------------------------------------------------------------------------

_NO_KEY_ROOTS: Final = frozenset(
    {TypeRoot.VARIANT, TypeRoot.BLOB, TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY}
)


def _check_columns(schema: TableSchema) -> Iterator[str]:
    if not schema.fields:
        yield "it has no columns"
    yield from _check_names("column", [f.name for f in schema.fields])
    for field in schema.fields:
        if field.name in SYSTEM_NAMES or field.name.startswith(KEY_PREFIX):
            yield f"column {field.name} has a name that the format keeps for itself"
        for inner in _nested_types(field.type):
            if isinstance(inner, RowType):
                if not inner.fields:
                    yield f"column {field.name} holds a ROW without fields"
                names = [f.name for f in inner.fields]
                yield from (f"column {field.name}: {p}" for p in _check_names("field", names))


def _check_names(what: str, names: Sequence[str]) -> Iterator[str]:
    if not all(name.strip() for name in names):
        yield f"a {what} has no name"
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{what} {name} appears {count} times"


def _check_keys(schema: TableSchema) -> Iterator[str]:
    for what, keys in (
        ("partition column", schema.partition_keys),
        ("primary key column", schema.primary_keys),
    ):
        yield from (f"{what} {key} is given twice" for key in _repeated(keys))
        for key in keys:
            field = _column(schema, key)
            if field is None:
                yield f"{what} {key} is not a column of the table{_choices(schema)}"
            elif not _can_be_key(field.type):
                yield f"{what} {key} cannot be of type {field.type}"
    if schema.primary_keys and not schema.trimmed_primary_keys:
        yield (
            "the primary key has only partition columns, so that every partition could hold just "
            "one row: add a column to the key"
        )
    if schema.options.value(PRIMARY_KEY_NULLABLE) and not schema.primary_keys:
        yield f"{PRIMARY_KEY_NULLABLE.key} needs a primary key"


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _column(schema: TableSchema, name: str) -> DataField | None:
    return next((f for f in schema.fields if f.name == name), None)


def _choices(schema: TableSchema) -> str:
    return f" (columns: {', '.join(f.name for f in schema.fields)})" if schema.fields else ""


def _can_be_key(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root not in _NO_KEY_ROOTS


# --- buckets --------------------------------------------------------------------------------------


def _check_bucket(schema: TableSchema) -> Iterator[str]:
    bucket = schema.options.value(BUCKET)
    has_key = bool(schema.primary_keys)
    if bucket == UNAWARE_BUCKET:
        if schema.options.is_set(BUCKET_KEY):
            yield "bucket-key needs a number of buckets: set bucket to 1 or more, or remove it"
        return
    if bucket < 1 and not (bucket == POSTPONE_BUCKET and has_key):
        kinds = "1 or more, -1 or -2" if has_key else "1 or more, or -1"
        yield f"bucket={bucket}: expected {kinds}"
        return
    if not has_key and not schema.options.value(BUCKET_KEY):
        yield f"bucket={bucket} needs bucket-key: the columns that decide a row's bucket"
        return
    yield from _check_bucket_key(schema)


def _check_bucket_key(schema: TableSchema) -> Iterator[str]:
    keys = schema.options.value(BUCKET_KEY)
    yield from (f"bucket-key names {key} twice" for key in _repeated(keys))
    for key in keys:
        if _column(schema, key) is None:
            yield f"bucket-key {key} is not a column of the table{_choices(schema)}"
        elif key in schema.partition_keys:
            yield f"bucket-key {key} is a partition column, which cannot decide the bucket"
        elif schema.primary_keys and key not in schema.primary_keys:
            yield f"bucket-key {key} is not in the primary key, so a key could be in two buckets"
    columns = [_column(schema, key) for key in schema.bucket_keys]
    types = [column.type for column in columns if column is not None]
    if types and len(types) == len(columns):
        problem = check_bucket_key(schema.options.value(BUCKET_FUNCTION), types)
        if problem is not None:
            yield problem


# --- options against the kind of table ------------------------------------------------------------

_AGGREGATE: Final = "aggregate-function"
_SEQUENCE_GROUP: Final = "sequence-group"
_DEFAULT_AGGREGATE: Final = "fields.default-aggregate-function"
_IGNORE_DELETE: Final = "ignore-delete"
_REMOVE_ON_DELETE: Final = "partial-update.remove-record-on-delete"
_REMOVE_ON_GROUP: Final = "partial-update.remove-record-on-sequence-group"
_CLUSTERING_OVERRIDE: Final = "pk-clustering-override"
_AGGREGATES: Final = frozenset(
    {
        "bool_and",
        "bool_or",
        "collect",
        "first_non_null_value",
        "first_not_null_value",
        "first_value",
        "hll_sketch",
        "last_non_null_value",
        "last_value",
        "listagg",
        "max",
        "merge_map",
        "merge_map_with_keytime",
        "min",
        "nested_partial_update",
        "nested_update",
        "primary-key",
        "product",
        "rbm32",
        "rbm64",
        "sum",
        "theta_sketch",
    }
)


def _check_without_key(schema: TableSchema) -> Iterator[str]:
    if schema.primary_keys:
        return
    options = schema.options
    if options.value(CHANGELOG_PRODUCER) is not ChangelogProducer.NONE:
        yield f"{CHANGELOG_PRODUCER.key} needs a primary key"
    if options.value(MERGE_ENGINE) is not MergeEngine.DEDUPLICATE:
        yield f"{MERGE_ENGINE.key} needs a primary key"
    for key in options:
        is_for_keys = key in (SEQUENCE_FIELD.key, ROWKIND_FIELD.key, _DEFAULT_AGGREGATE)
        if is_for_keys or _ends_with(key, _AGGREGATE, _SEQUENCE_GROUP):
            yield f"{key} needs a primary key"


def _check_merge_engine(schema: TableSchema) -> Iterator[str]:
    if not schema.primary_keys:
        return
    options = schema.options
    engine, producer = options.value(MERGE_ENGINE), options.value(CHANGELOG_PRODUCER)
    if engine is MergeEngine.FIRST_ROW:
        if producer not in (ChangelogProducer.NONE, ChangelogProducer.LOOKUP):
            yield f"merge engine first-row does not go with changelog producer {producer}"
        if options.value(SEQUENCE_FIELD):
            yield "merge engine first-row does not go with sequence.field"
        if options.value(DELETION_VECTORS) and not _flag(options, _CLUSTERING_OVERRIDE):
            yield "merge engine first-row does not go with deletion vectors, it deletes nothing"
    if options.value(DELETION_VECTORS) and producer is ChangelogProducer.FULL_COMPACTION:
        yield f"deletion vectors do not go with changelog producer {producer}"
    if engine is MergeEngine.PARTIAL_UPDATE:
        yield from _check_partial_update(schema)
    for key, name in options.items():
        is_aggregate = key == _DEFAULT_AGGREGATE or _ends_with(key, _AGGREGATE)
        if is_aggregate and name not in _AGGREGATES:
            yield f"{key}={name}: expected one of {', '.join(sorted(_AGGREGATES))}"


def _check_partial_update(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    groups = _sequence_groups(options)
    yield from _check_sequence_groups(schema, groups)
    if _flag(options, _IGNORE_DELETE):
        for other in (_REMOVE_ON_DELETE, _REMOVE_ON_GROUP):
            if options.get(other, "false").lower() != "false":
                yield f"{_IGNORE_DELETE} and {other} exclude each other"
    if groups and _flag(options, _REMOVE_ON_DELETE):
        yield f"{_REMOVE_ON_DELETE} and sequence groups exclude each other"
    ordering_names = {name for ordering, _ in groups.values() for name in ordering}
    for name in parse_words(options.get(_REMOVE_ON_GROUP, "")):
        if name not in ordering_names:
            yield f"{_REMOVE_ON_GROUP} names {name}, which orders no sequence group"


_Groups: TypeAlias = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]  # ordered by, members


def _check_sequence_groups(schema: TableSchema, groups: _Groups) -> Iterator[str]:
    seen: set[str] = set()
    for key, (ordering, members) in groups.items():
        for name in (*ordering, *members):
            if _column(schema, name) is None:
                yield f"{key} names {name}, which is not a column of the table"
            elif name in schema.primary_keys:
                yield f"{key} names {name}, which is in the primary key"
        for name in members:
            if name in seen:
                yield f"{key} names {name}, which is in another sequence group"
            seen.add(name)


def _sequence_groups(options: TableOptions) -> _Groups:
    return {
        key: (
            parse_words(key.removeprefix("fields.").removesuffix(f".{_SEQUENCE_GROUP}")),
            parse_words(value),
        )
        for key, value in options.items()
        if _ends_with(key, _SEQUENCE_GROUP)
    }


def _check_sequence(schema: TableSchema) -> Iterator[str]:
    names = schema.options.value(SEQUENCE_FIELD)
    yield from (f"sequence.field names {name} twice" for name in _repeated(names))
    for name in names:
        if _column(schema, name) is None:
            yield f"sequence.field {name} is not a column of the table{_choices(schema)}"
        if f"fields.{name}.{_AGGREGATE}" in schema.options:
            yield f"sequence.field {name} cannot be aggregated"
    missing = [key for key in schema.partition_keys if key not in schema.primary_keys]
    if names and schema.primary_keys and missing:
        yield (
            f"sequence.field needs a primary key with all partition columns, {', '.join(missing)} "
            "is missing"
        )
    rowkind = schema.options.value(ROWKIND_FIELD)
    if rowkind is not None:
        column = _column(schema, rowkind)
        if column is None:
            yield f"rowkind.field {rowkind} is not a column of the table{_choices(schema)}"
        elif not (isinstance(column.type, AtomicType) and column.type.root.is_text):
            yield f"rowkind.field {rowkind} is of type {column.type}, not a text"


def _check_row_tracking(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    if options.value(ROW_TRACKING):
        if schema.primary_keys:
            yield f"{ROW_TRACKING.key} does not go with a primary key"
        if options.value(BUCKET) != UNAWARE_BUCKET:
            yield f"{ROW_TRACKING.key} does not go with buckets: remove the option bucket"
    if options.value(DATA_EVOLUTION):
        if not options.value(ROW_TRACKING):
            yield f"{DATA_EVOLUTION.key} needs {ROW_TRACKING.key}"
        if _flag(options, "clustering.incremental"):
            yield f"{DATA_EVOLUTION.key} does not go with clustering.incremental"
    blobs = [f.name for f in schema.fields if _holds(f.type, TypeRoot.BLOB)]
    if blobs and not schema.primary_keys and not options.value(DATA_EVOLUTION):
        yield f"column {', '.join(blobs)} of type BLOB needs {DATA_EVOLUTION.key}"
    if blobs and len(blobs) == len(schema.fields):
        yield "a table with BLOB columns needs others too"


def _check_clustering(schema: TableSchema) -> Iterator[str]:
    if _flag(schema.options, "clustering.incremental") and schema.primary_keys:
        yield "clustering.incremental does not go with a primary key"
    if _flag(schema.options, "sequence.snapshot-ordering") and not schema.primary_keys:
        yield "sequence.snapshot-ordering needs a primary key"


# --- options of single columns, formats, numbers --------------------------------------------------

_STATS_MODE: Final = re.compile(r"none|counts|full|truncate\(\s*[1-9][0-9]*\s*\)", re.IGNORECASE)
_FILE_INDEX: Final = re.compile(r"file-index\.[^.]+\.columns")
_DEFAULT_VALUE: Final = "default-value"


def _check_column_options(schema: TableSchema) -> Iterator[str]:
    names = [f.name for f in schema.fields]
    for key, value in schema.options.items():
        if key.startswith("fields.") and key != _DEFAULT_AGGREGATE:
            yield from _check_column_key(key, names)
        if key.startswith("fields.") and key.endswith(".stats-mode"):
            yield from _check_stats_mode(key, value)
        if _FILE_INDEX.fullmatch(key):
            for word in parse_words(value):
                if word.partition("[")[0] not in names:
                    yield f"{key} names {word}, which is not a column of the table"
    yield from _check_stats_mode(STATS_MODE.key, schema.options.value(STATS_MODE))


def _check_column_key(key: str, names: list[str]) -> Iterator[str]:
    rest = key.removeprefix("fields.")
    if any(rest.startswith(f"{name}.") for name in names):
        return
    words = rest.partition(".")[0].split(",")  # sequence groups are ordered by several columns
    unknown = [word for word in words if word.strip() not in names]
    if unknown:
        yield f"option {key}: {', '.join(unknown)} is not a column of the table"


def _check_stats_mode(key: str, value: str) -> Iterator[str]:
    if _STATS_MODE.fullmatch(value.strip()) is None:
        yield f"{key}={value}: expected none, counts, full or truncate(<length>)"


def _check_default_values(schema: TableSchema) -> Iterator[str]:
    for field in schema.fields:
        option = f"fields.{field.name}.{_DEFAULT_VALUE}"
        for text in (field.default_value, schema.options.get(option)):
            # Defaults of nested types are written in a notation that only writers need.
            if text is None or not isinstance(field.type, AtomicType):
                continue
            try:
                cast_literal(field.type, text)
            except InvalidInput as error:
                yield f"the default value of column {field.name} does not fit its type: {error}"


def _check_formats(schema: TableSchema) -> Iterator[str]:
    levels = schema.options.get("file.format.per.level", "")
    formats = {schema.options.value(FILE_FORMAT)}
    for word in parse_words(levels):
        level, _, name = word.partition(":")
        if not level.strip().isdigit() or not name.strip():
            yield f"file.format.per.level={levels}: expected pairs such as 0:avro"
        formats.add(name.strip().lower())
    for field in schema.fields:
        yield from _check_column_format(field, formats)


def _check_column_format(field: DataField, formats: set[str]) -> Iterator[str]:
    for inner in _nested_types(field.type):
        if not isinstance(inner, AtomicType):
            continue
        if "avro" in formats and inner.root.is_timestamp and inner.precision > 6:
            yield f"column {field.name}: Avro files keep timestamps up to a precision of 6"
        if inner.root in (TypeRoot.GEOMETRY, TypeRoot.GEOGRAPHY) and formats != {"parquet"}:
            yield f"column {field.name}: only Parquet files keep {inner.root}"


def _check_numbers(schema: TableSchema) -> Iterator[str]:
    if schema.options.value(TARGET_FILE_ROWS) < 1:
        yield f"{TARGET_FILE_ROWS.key} must be 1 or more"
    for kind in ("snapshot", "changelog"):
        low_key, high_key = f"{kind}.num-retained.min", f"{kind}.num-retained.max"
        low, high = (_whole_number(schema.options.get(key)) for key in (low_key, high_key))
        for key, number in ((low_key, low), (high_key, high)):
            if key in schema.options and (number is None or number < 1):
                yield f"{key} must be a number of 1 or more"
        if low is not None and high is not None and low > high:
            yield f"{low_key} must not be larger than {high_key}"


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None


def _flag(options: TableOptions, key: str) -> bool:
    """An option that emberlake does not act on otherwise; what is not true is false."""
    try:
        return parse_bool(options.get(key, "false"))
    except ValueError:
        return False


def _ends_with(key: str, *suffixes: str) -> bool:
    return key.startswith("fields.") and key.endswith(tuple(f".{s}" for s in suffixes))


def _holds(data_type: DataType, *roots: TypeRoot) -> bool:
    return any(isinstance(t, AtomicType) and t.root in roots for t in _nested_types(data_type))


_CHECKS: Final[tuple[Check, ...]] = (
    _check_columns,
    _check_keys,
    _check_bucket,
    _check_without_key,
    _check_merge_engine,
    _check_sequence,
    _check_row_tracking,
    _check_clustering,
    _check_column_options,
    _check_default_values,
    _check_formats,
    _check_numbers,
)


# --- what is implemented --------------------------------------------------------------------------


def _refuse(schema: TableSchema, rules: Iterable[Rule], what: str) -> None:
    reasons = [reason for rule in rules if (reason := rule(schema)) is not None]
    if reasons:
        raise Unsupported(f"the table cannot be {what}: " + "; ".join(reasons))


_UNSUPPORTED_ROOTS: Final = (
    TypeRoot.VARIANT,
    TypeRoot.BLOB,
    TypeRoot.GEOMETRY,
    TypeRoot.GEOGRAPHY,
)


def _refuse_columns(fields: Iterable[DataField], what: str) -> None:
    refused = [
        f"{f.name} {f.type}"
        for f in fields
        if _holds(f.type, *_UNSUPPORTED_ROOTS)
        or any(isinstance(t, VectorType) for t in _nested_types(f.type))
    ]
    if refused:
        raise Unsupported(f"columns of these types cannot be {what} yet: {', '.join(refused)}")


def _other_kind(schema: TableSchema) -> str | None:
    kind = schema.options.value(TYPE)
    return None if kind.lower() == "table" else f"it is a {kind}, not a table (option type)"


def _chain_table(schema: TableSchema) -> str | None:
    return "it is a chain table" if schema.options.value(CHAIN_TABLE) else None


def _query_auth(schema: TableSchema) -> str | None:
    if not schema.options.value(QUERY_AUTH):
        return None
    return "a server decides who sees which rows (query-auth.enabled)"


def _unknown_format(schema: TableSchema) -> str | None:
    name = schema.options.value(FILE_FORMAT)
    if name in FILE_FORMATS:
        return None
    return f"file.format={name} is not one of {', '.join(FILE_FORMATS)}"


def _primary_key(schema: TableSchema) -> str | None:
    return "tables with a primary key are not implemented yet" if schema.primary_keys else None


def _row_tracking(schema: TableSchema) -> str | None:
    on = schema.options.value(ROW_TRACKING) or schema.options.value(DATA_EVOLUTION)
    return "row tracking and data evolution are not implemented yet" if on else None


def _fallback_branch(schema: TableSchema) -> str | None:
    keys = [k for k in ("scan.fallback-branch", "scan.primary-branch") if schema.options.get(k)]
    return f"{keys[0]}: reading two branches as one is not implemented" if keys else None


def _shredded_map(schema: TableSchema) -> str | None:
    for key, value in schema.options.items():
        if key.endswith(".map.storage-layout") and value.lower() != "default":
            return f"{key}={value} is not implemented"
    return None


def _manifest_format(schema: TableSchema) -> str | None:
    name = schema.options.get("manifest.format", "avro")
    return None if name.lower() == "avro" else f"manifest.format={name} is not implemented"


def _key_order(schema: TableSchema) -> str | None:
    for key in (_CLUSTERING_OVERRIDE, "sequence.snapshot-ordering"):
        if _flag(schema.options, key):
            return f"{key} is not implemented"
    return None


def _expiring_rows(schema: TableSchema) -> str | None:
    key = "record-level.expire-time"
    return f"{key} is not implemented" if schema.primary_keys and key in schema.options else None


def _external_paths(schema: TableSchema) -> str | None:
    if not schema.options.value(EXTERNAL_PATHS):
        return None
    return f"{EXTERNAL_PATHS.key}: writing outside of the table's folder is not implemented"


def _iceberg(schema: TableSchema) -> str | None:
    storage = schema.options.get("metadata.iceberg.storage", "disabled")
    if storage.lower() == "disabled":
        return None
    return "metadata.iceberg.storage: keeping Iceberg metadata up to date is not implemented"


def _commit_callbacks(schema: TableSchema) -> str | None:
    if not parse_words(schema.options.get("commit.callbacks", "")):
        return None
    return "commit.callbacks: these are classes that only Java can run"


_READ_RULES: Final[tuple[Rule, ...]] = (
    _other_kind,
    _chain_table,
    _query_auth,
    _primary_key,
    _row_tracking,
    _fallback_branch,
    _shredded_map,
    _manifest_format,
    _key_order,
    _expiring_rows,
)
_WRITE_RULES: Final[tuple[Rule, ...]] = (
    *_READ_RULES,
    _unknown_format,
    _external_paths,
    _iceberg,
    _commit_callbacks,
)
