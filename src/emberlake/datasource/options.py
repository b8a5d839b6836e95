"""Checks the options of the data source: unknown options are refused by name.

Spark passes the keys in lower case, the table's name as ``path``, and options of a query (its
checkpoint, its name) together with ours. All options that belong neither to the source nor to the
catalog are table options, for this read or write only.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeVar

from emberlake.base.option_texts import parse_bool, parse_size, parse_words
from emberlake.catalog import Catalog, CatalogFactory
from emberlake.catalog.target import TargetRules, open_target
from emberlake.errors import InvalidInput, InvalidOption, SnapshotNotFound, Unsupported
from emberlake.io.object.spellings import is_secret_option, is_store_option
from emberlake.options import (
    KNOWN_KEYS,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    unknown_option,
)
from emberlake.rest.option_names import is_rest_option, is_secret_rest_option
from emberlake.spec.schema import TableSchema
from emberlake.store.table_store import TableStore
from emberlake.table import Table
from emberlake.types import DataField

_T = TypeVar("_T")


class Use(StrEnum):
    """What Spark uses the source for."""

    BATCH_READ = "batch reads"
    BATCH_WRITE = "batch writes"
    STREAM_READ = "stream reads"
    STREAM_WRITE = "stream writes"


_READS: Final = frozenset({Use.BATCH_READ, Use.STREAM_READ})
_WRITES: Final = frozenset({Use.BATCH_WRITE, Use.STREAM_WRITE})
_ALL: Final = frozenset(Use)

PATH: Final = "path"
COLUMNS: Final = "columns"
FILTER: Final = "filter"
ROW_KIND: Final = "row-kind"
MAX_FILES: Final = "max-files-per-trigger"
MAX_ROWS: Final = "max-rows-per-trigger"
MAX_BYTES: Final = "max-bytes-per-trigger"
CONSUMER_ID: Final = "consumer-id"
COMMIT_USER: Final = "commit-user"
CHECKPOINT: Final = "checkpointlocation"
MERGE_SCHEMA: Final = "mergeschema"  # Spark's own spelling is mergeSchema
CREATE: Final = "create"
PRIMARY_KEYS: Final = "primary-keys"
PARTITION_BY: Final = "partition-by"
ON_BAD_ROWS: Final = "on-bad-rows"
_SNAPSHOT_ID: Final = "snapshot-id"
_TAG: Final = "tag"
_TIMESTAMP: Final = "timestamp"

SOURCE_OPTIONS: Final[Mapping[str, frozenset[Use]]] = {
    PATH: _ALL,
    COLUMNS: _READS,
    FILTER: frozenset({Use.BATCH_READ}),
    ROW_KIND: _READS,
    _SNAPSHOT_ID: _READS,
    _TAG: frozenset({Use.BATCH_READ}),
    _TIMESTAMP: _READS,
    MAX_FILES: frozenset({Use.STREAM_READ}),
    MAX_ROWS: frozenset({Use.STREAM_READ}),
    MAX_BYTES: frozenset({Use.STREAM_READ}),
    CONSUMER_ID: frozenset({Use.STREAM_READ}),
    COMMIT_USER: frozenset({Use.STREAM_WRITE}),
    MERGE_SCHEMA: _WRITES,
    CREATE: _WRITES,
    PRIMARY_KEYS: _WRITES,
    PARTITION_BY: _WRITES,
    ON_BAD_ROWS: _WRITES,
}
# Options that Spark passes to every sink of a query.
_QUERY_OPTIONS: Final[Mapping[str, frozenset[Use]]] = {
    CHECKPOINT: frozenset({Use.STREAM_WRITE}),
    "queryname": frozenset({Use.STREAM_WRITE}),
}
CATALOG_OPTIONS: Final = ("metastore", "warehouse")  # and those of REST catalogs and stores
# What Delta Lake calls it, and what to write here.
_IN_DELTA: Final = {
    "versionasof": "the option snapshot-id chooses a snapshot",
    "timestampasof": "the option timestamp travels in time",
    "overwriteschema": "mergeSchema adds columns; others are changed by alter_table",
    "replacewhere": "mode overwrite replaces the partitions that the data touches; "
    "write_paimon(..., static_partition={...}) names them",
}
# Names whose values Spark hides wherever it shows options (the default of spark.redaction.regex).
_REDACTED: Final = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
_FOLDER: Final = re.compile(r"(.+)/([^/]+)\.db/([^/]+)/?")  # of a table
# Options that Spark adds when it asks for the columns of a table in its own catalog.
_CATALOG_TABLE: Final = ("owner", "provider")
_NO_CATALOG_TABLE: Final = (
    "CREATE TABLE ... USING emberlake does not work, nor does saveAsTable before "
    "emberlake.spark.attach, because Spark does not pass the options of its own tables to the "
    "source: use CREATE TEMPORARY VIEW ... USING emberlake "
    "OPTIONS (path 'db.t', warehouse '...'), format(\"emberlake\") with load and save, "
    'read_paimon and write_paimon, or lake.sql("CREATE TABLE ...") of emberlake.spark.attach'
)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much one micro-batch of a stream reads; None means no limit."""

    files: int | None = None
    rows: int | None = None
    size: int | None = None

    @property
    def is_unbounded(self) -> bool:
        return self.files is None and self.rows is None and self.size is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one read or write."""

    identifier: str
    catalog: Mapping[str, object] = field(repr=False)  # may hold tokens, and keys of object stores
    table: Mapping[str, str]  # table options, for this use only
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    with_kind: bool = False
    limits: ReadLimits = ReadLimits()
    consumer_id: str | None = None
    commit_user: str | None = None
    checkpoint: str | None = None
    merge_schema: bool = False
    create: bool = False
    primary_keys: tuple[str, ...] | None = None
    partition_by: tuple[str, ...] | None = None
    on_bad_rows: str | None = None

    def open_target(self, fields: Sequence[DataField]) -> Table:
        """The table to write to, created or grown to these columns if the options say so.

        Raises:
            TableNotFound: it does not exist, and is not to be created.
            InvalidInput: options contradict each other, or the table.
        """
        rules = TargetRules.of(
            create=self.create,
            primary_keys=self.primary_keys,
            partition_by=self.partition_by,
            table_options=self.table if self.create and self.table else None,
            merge_schema=self.merge_schema,
        )
        with open_target(self._catalog(), self.identifier, fields, rules) as table:
            assert table is not None  # only the mode ignore leaves a table alone
            has = table.options
            own = {key: text for key, text in self.table.items() if has.get(key) != text}
            return table.copy(own) if own else table

    def open_table(self) -> Table:
        """The table as it is now, or at the snapshot that the options name.

        Raises:
            NotFound: there is no such table, snapshot or tag.
        """
        return self._open(self.table)

    def open_stream(self) -> TableStore:
        """The table as it is now, with the options that say where its stream starts.

        A stream may start at a snapshot that has expired, or does not exist yet.
        """
        start = {key: value for key, value in self.table.items() if key.startswith("scan.")}
        store = self._open({k: v for k, v in self.table.items() if k not in start}).store
        return store.with_schema(store.schema.with_options(start))

    def open_schema(self) -> TableSchema:
        """The schema of a read; Spark asks for it before it says whether it is a stream."""
        try:
            return self.open_table().table_schema
        except SnapshotNotFound:  # fine for a stream; a batch fails when it is planned
            return self.open_stream().schema

    def _catalog(self) -> Catalog:
        if not any(key in self.catalog for key in CATALOG_OPTIONS):
            raise InvalidOption(_no_warehouse(self.identifier))
        return CatalogFactory.create(self.catalog)

    def _open(self, options: Mapping[str, str]) -> Table:
        table = self._catalog().get_table(self.identifier)
        if not isinstance(table, Table):
            raise InvalidInput(f"{self.identifier} is a system table; read it without Spark")
        return table.copy(options) if options else table


def parse_options(raw: Mapping[str, str], *uses: Use) -> SourceOptions:
    """The options for a use, or for one of several as long as Spark does not say which.

    Raises:
        InvalidOption: names every option that is unknown, is for another use, or is invalid.
        Unsupported: the options belong to a table to be created in Spark's catalog.
    """
    if all(key in raw for key in _CATALOG_TABLE):
        raise Unsupported(_NO_CATALOG_TABLE)
    _check_keys(raw, frozenset(uses))
    if not raw.get(PATH, "").strip():
        raise InvalidOption(_no_table(raw, frozenset(uses)))
    columns = _parsed(raw, COLUMNS, parse_words)
    if columns == ():
        raise InvalidOption(f"{COLUMNS} names no column; leave it out to read all")
    return SourceOptions(
        identifier=raw[PATH].strip(),
        catalog={key: text for key, text in raw.items() if _is_of_catalog(key)},
        table=_table_options(raw),
        columns=columns,
        filter=raw.get(FILTER),
        with_kind=bool(_parsed(raw, ROW_KIND, parse_bool)),
        limits=ReadLimits(
            _parsed(raw, MAX_FILES, _positive),
            _parsed(raw, MAX_ROWS, _positive),
            _parsed(raw, MAX_BYTES, _positive_size),
        ),
        consumer_id=raw.get(CONSUMER_ID),
        commit_user=raw.get(COMMIT_USER),
        checkpoint=raw.get(CHECKPOINT),
        merge_schema=bool(_parsed(raw, MERGE_SCHEMA, parse_bool)),
        create=bool(_parsed(raw, CREATE, parse_bool)),
        primary_keys=_parsed(raw, PRIMARY_KEYS, parse_words),
        partition_by=_parsed(raw, PARTITION_BY, parse_words),
        on_bad_rows=raw.get(ON_BAD_ROWS),
    )


def parse_bound_options(
    raw: Mapping[str, str], identifier: str, catalog: Mapping[str, object], *uses: Use
) -> SourceOptions:
    """The options of a use of a table whose name and catalog are known.

    Raises:
        InvalidOption: as ``parse_options``, and where options name a table or a catalog.
    """
    placed = sorted(key for key in raw if key == PATH or _is_of_catalog(key))
    if placed:
        raise InvalidOption(
            f"{', '.join(placed)}: the name stands for {identifier} of the lake that is attached; "
            'format("emberlake") with load and save reads and writes other tables'
        )
    return replace(parse_options({**raw, PATH: identifier}, *uses), catalog=dict(catalog))


def _no_table(raw: Mapping[str, str], uses: frozenset[Use]) -> str:
    """What to write instead of a use that names no table, word for word."""
    if uses != {Use.BATCH_WRITE}:
        calls = 'load("db.t"), start("db.t"), or the option path'
        return f"the table is missing: {calls}; {_NO_CATALOG_TABLE}"
    place = raw.get("warehouse", "...")
    return (
        'the table is missing: save("db.t"). Spark does not tell a source the name that '
        "saveAsTable or CREATE TABLE ... AS gives. After "
        f'lake = emberlake.spark.attach(spark, {{"warehouse": "{place}"}}), saveAsTable works, '
        'and so does lake.sql("CREATE TABLE ... AS ..."). Or write '
        f'write_paimon(df, "db.t", {{"warehouse": "{place}"}}, create=True), or '
        f'df.write.format("emberlake").option("warehouse", "{place}").option("create", "true")'
        '.mode("append").save("db.t")'
    )


def _no_warehouse(path: str) -> str:
    """What to write instead of a table without a catalog, or instead of its folder."""
    folder = _FOLDER.fullmatch(path)
    if folder is not None:
        warehouse, name = folder[1], f"{folder[2]}.{folder[3]}"
    else:
        warehouse, name = "/data/lake", "db.t" if "/" in path else path
    return (
        f'the option warehouse is missing: option("warehouse", "{warehouse}") with load or '
        f'save("{name}"). After emberlake.spark.attach, names need no options: '
        f'spark.table("{name}"), saveAsTable("{name}")'
    )


def _check_keys(raw: Mapping[str, str], uses: frozenset[Use]) -> None:
    problems = [problem for key in sorted(raw) if (problem := _problem(key, uses)) is not None]
    if problems:
        raise InvalidOption("; ".join(problems))


def _problem(key: str, uses: frozenset[Use]) -> str | None:
    is_secret = is_secret_option(key) or is_secret_rest_option(key)
    if is_secret and not _REDACTED.search(key):
        return (
            f"option {key} is a secret that Spark would show in its plans, since it does not know "
            "the name for one: set it in the environment, name a function that returns it "
            "(credentials-provider=module:function), or use read_paimon and write_paimon"
        )
    if _is_of_catalog(key) or key in KNOWN_KEYS:
        return None
    if key == "paths":
        return "load() takes the name of one table"
    allowed = SOURCE_OPTIONS.get(key) or _QUERY_OPTIONS.get(key)
    if allowed is not None:
        if allowed & uses:
            return None
        return f"option {key} is for {_listed(allowed)}, not for {_listed(uses)}"
    if key in _IN_DELTA:
        return f"unknown option {key}: {_IN_DELTA[key]}"
    choices = [k for k, allowed in SOURCE_OPTIONS.items() if allowed & uses and k != PATH]
    choices += CATALOG_OPTIONS
    problem = unknown_option(key, [*choices, *KNOWN_KEYS])
    if problem.endswith("?"):
        return problem
    return f"{problem}: there are {', '.join(choices)}, and the options of tables and object stores"


def _is_of_catalog(key: str) -> bool:
    return key in CATALOG_OPTIONS or is_store_option(key) or is_rest_option(key)


def _listed(uses: frozenset[Use]) -> str:
    return " and ".join(sorted(uses))


def _table_options(raw: Mapping[str, str]) -> dict[str, str]:
    options = {key: raw[key] for key in raw if key in KNOWN_KEYS}
    for key in (_SNAPSHOT_ID, _TAG, _TIMESTAMP):
        if key not in raw:
            continue
        name = _full_name(key, raw[key])
        if name in options:
            raise InvalidOption(f"set either {key} or {name}, not both")
        options[name] = raw[key].strip()
    return options


def _full_name(key: str, value: str) -> str:
    if key == _TIMESTAMP:
        is_number = value.strip().isascii() and value.strip().isdecimal()
        return SCAN_TIMESTAMP_MILLIS.key if is_number else SCAN_TIMESTAMP.key
    return {_SNAPSHOT_ID: SCAN_SNAPSHOT_ID.key, _TAG: SCAN_TAG_NAME.key}[key]


def _parsed(raw: Mapping[str, str], key: str, parse: Callable[[str], _T]) -> _T | None:
    text = raw.get(key)
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidOption(f"{key}={text!r}: {error}") from error


def _positive(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("expected a number of 1 or more")
    return int(text)


def _positive_size(text: str) -> int:
    size = parse_size(text)
    if size < 1:
        raise ValueError("expected a size of 1 byte or more")
    return size
