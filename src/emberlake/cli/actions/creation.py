"""Create a table from typed columns, a schema file, or the columns of a data file."""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from emberlake.base.names import choices, listed
from emberlake.base.texts import count_text
from emberlake.catalog import Catalog, FileSystemCatalog
from emberlake.catalog.rules import plain_table
from emberlake.cli.actions.tables import kind_of
from emberlake.cli.choices import SourceFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Block, Done, Grid, Report, words
from emberlake.cli.session import Session
from emberlake.errors import (
    CorruptFile,
    EmberlakeError,
    FileNotFound,
    InvalidSchema,
    TableAlreadyExists,
)
from emberlake.formats.nested import map_leaf_types
from emberlake.io import MemoryStorage
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import Schema, TableSchema
from emberlake.types import DataField, from_arrow_schema, type_from_json
from emberlake.types.json import field_from_json

# The keys of schema files, and those that `table show --json` adds.
_SCHEMA_KEYS: Final = frozenset({"fields", "partitionKeys", "primaryKeys", "options", "comment"})
_OTHER_KEYS: Final = frozenset(
    {"version", "id", "highestFieldId", "timeMillis", "table", "path", "snapshot"}
)
_FORMATS: Final[Mapping[str, SourceFormat]] = {
    "parquet": SourceFormat.PARQUET,
    "orc": SourceFormat.ORC,
    "csv": SourceFormat.CSV,
    "json": SourceFormat.JSON,
    "jsonl": SourceFormat.JSON,
    "ndjson": SourceFormat.JSON,
}
_COMPRESSIONS: Final = (".gz", ".bz2", ".zst", ".lz4", ".snappy")


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A new table, as it was typed."""

    schema_file: Path | None = None
    source: Path | None = None
    source_format: SourceFormat | None = None
    columns: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str]
    comment: str | None = None


def create(
    session: Session,
    identifier: str,
    declared: Declaration,
    *,
    ignore_if_exists: bool,
    dry_run: bool,
) -> Report:
    """Create a table, or show what it would be; a dry run refuses what a real run would refuse."""
    target = plain_table(identifier, "created")
    schema = load_declared(declared)
    is_new = target.table not in session.catalog.list_tables(target.database)
    if not is_new and not ignore_if_exists:
        raise TableAlreadyExists(
            f"{target} already exists; drop it first or choose another name", identifier=target
        )
    with _typed(declared):
        checked = rehearse(session.catalog, target, schema)
    if not dry_run:
        session.catalog.create_table(target, schema, ignore_if_exists=ignore_if_exists)
    columns = count_text(len(schema.fields), "column")
    what = f"table {target}: {columns}, {kind_of(checked)}"
    blocks: list[Block] = [Done(_outcome(what, is_new=is_new, dry_run=dry_run))]
    if is_new:
        grid = [(f.name, str(f.type)) for f in checked.fields]
        blocks.append(Grid([words("column"), words("type", 14)], grid))
    document = {
        "table": str(target),
        "created": is_new and not dry_run,
        "dry_run": dry_run,
        "columns": {f.name: str(f.type) for f in checked.fields},
        "partitionKeys": list(checked.partition_keys),
        "primaryKeys": list(checked.primary_keys),
    }
    return Report(document, blocks)


def rehearse(catalog: Catalog, target: Identifier, schema: Schema) -> TableSchema:
    """The schema that a new table would get, found by creating it in a catalog in memory.

    Raises:
        InvalidSchema, InvalidOption, Unsupported: as the real catalog would.
    """
    rehearsal = FileSystemCatalog(MemoryStorage(), "/rehearsal", catalog.options)
    rehearsal.create_database(target.database)
    with warnings.catch_warnings(action="ignore"):  # the real catalog warns
        return rehearsal.create_table(target, schema).table_schema


@contextmanager
def _typed(declared: Declaration) -> Iterator[None]:
    """An invalid schema is a usage error, unless it comes from a schema file."""
    try:
        yield
    except InvalidSchema as error:
        if declared.schema_file is not None:
            raise
        raise UsageError(str(error)) from error


def _outcome(what: str, *, is_new: bool, dry_run: bool) -> str:
    if not is_new:
        return f"already exists: {what.partition(':')[0]}"
    return f"would create {what}" if dry_run else f"created {what}"


def load_declared(declared: Declaration) -> Schema:
    """The schema that was declared; flags are added to what a file says.

    Raises:
        UsageError: there is no source of columns, or several, or a key is not a column.
        InvalidSchema: a column cannot be read.
    """
    given = [
        flag
        for flag, value in (
            ("--schema", declared.schema_file),
            ("--from", declared.source),
            ("--column", declared.columns),
        )
        if value
    ]
    if len(given) != 1:
        raise UsageError(
            "give the columns in one way: --column 'NAME TYPE', --schema FILE or --from FILE"
            + (f"; given: {', '.join(given)}" if given else "")
        )
    if declared.schema_file is not None:
        schema = load_schema_file(declared.schema_file)
    elif declared.source is not None:
        schema = Schema(infer_columns(declared.source, declared.source_format))
    else:
        schema = Schema([parse_column(text) for text in declared.columns])
    check_key_flags(schema.fields, declared.primary_keys, declared.partition_keys)
    return Schema(
        schema.fields,
        declared.partition_keys or schema.partition_keys,
        declared.primary_keys or schema.primary_keys,
        {**schema.options, **declared.options},
        declared.comment or schema.comment,
    )


def check_key_flags(
    fields: Sequence[DataField], primary_keys: Sequence[str], partition_keys: Sequence[str]
) -> None:
    """Refuse typed keys that are not columns.

    Raises:
        UsageError: names the flag, and the existing columns.
    """
    names = [field.name for field in fields]
    for flag, keys in (("--primary-key", primary_keys), ("--partition-by", partition_keys)):
        unknown = [key for key in keys if key not in names]
        if unknown:
            raise UsageError(
                f"{flag} {','.join(unknown)}: there is no such column; "
                + choices(unknown, names, "columns are")
            )


def parse_column(text: str) -> DataField:
    """``'id BIGINT NOT NULL'`` as a column."""
    name, _, data_type = text.strip().partition(" ")
    if not name or not data_type.strip():
        raise UsageError(f"{text!r} is not a column: expected 'NAME TYPE', such as 'id BIGINT'")
    try:
        return DataField(0, name, type_from_json(_parsed(data_type.strip())))
    except InvalidSchema as error:
        raise UsageError(f"column {name}: {error}") from error


def _parsed(data_type: str) -> Any:
    """Nested types are given as JSON, as in schema files: ``{"type": "ARRAY", ...}``."""
    try:
        return json.loads(data_type) if data_type.startswith("{") else data_type
    except ValueError as error:
        raise UsageError(f"{data_type} is not JSON: {error}") from error


def load_schema_file(path: Path) -> Schema:
    """The schema in a JSON file: that of ``table show --json``, or a schema file of a table."""
    where = "stdin" if str(path) == "-" else str(path)
    try:
        value = json.loads(sys.stdin.read() if where == "stdin" else path.read_bytes())
    except FileNotFoundError as error:
        raise FileNotFound(where) from error
    except ValueError as error:
        raise InvalidSchema(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict) or not isinstance(value.get("fields"), list):
        raise InvalidSchema(
            f'{where} is not a schema: expected {{"fields": [{{"name": ..., "type": ...}}, ...]}}'
        )
    unknown = sorted(value.keys() - _SCHEMA_KEYS - _OTHER_KEYS)
    if unknown:
        raise InvalidSchema(
            f"{where}: unknown keys {listed(unknown)}; "
            + choices(unknown, sorted(_SCHEMA_KEYS), "a schema has")
        )
    try:
        fields = [field_from_json(_with_ids(field)) for field in value["fields"]]
    except EmberlakeError as error:
        raise InvalidSchema(f"{where}: {error}") from error
    return Schema(
        fields,
        value.get("partitionKeys"),
        value.get("primaryKeys"),
        value.get("options"),
        value.get("comment"),
    )


def _with_ids(value: Any) -> Any:
    """Add missing ids: a schema written by hand has none, and a new table assigns its own."""
    if isinstance(value, list):
        return [_with_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _with_ids(item) for key, item in value.items()}
    return {"id": 0, **inner} if "name" in inner else inner


def infer_columns(path: Path, source_format: SourceFormat | None) -> tuple[DataField, ...]:
    """The columns of a data file; those of CSV and JSON are inferred from its first rows."""
    if not path.exists():
        raise FileNotFound(str(path))
    found = source_format or format_of_name(path.name)
    if found is None:
        raise UsageError(
            f"the name of {path} does not show its format; give --source-format "
            f"{'|'.join(SourceFormat)}"
        )
    try:
        schema: pa.Schema = ds.dataset(str(path), format=found.value).schema
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(str(path), f"it is not {found.value}: {error}") from error
    untyped = [field.name for field in schema if pa.types.is_null(field.type)]
    if untyped:
        raise InvalidSchema(
            f"{path}: no value shows the type of {', '.join(untyped)}; use --column or --schema"
        )
    if found in (SourceFormat.CSV, SourceFormat.JSON):
        schema = pa.schema([f.with_type(map_leaf_types(f.type, _widest)) for f in schema])
    return from_arrow_schema(schema)


def _widest(kind: pa.DataType) -> pa.DataType:
    """The first rows may have less precise times than later ones, so allow for more digits."""
    return pa.timestamp("us", tz=kind.tz) if pa.types.is_timestamp(kind) else kind


def format_of_name(name: str) -> SourceFormat | None:
    """The format that a file's name shows; None if it shows none."""
    stem = name.lower()
    for compression in _COMPRESSIONS:
        stem = stem.removesuffix(compression)
    return _FORMATS.get(stem.rpartition(".")[2])
