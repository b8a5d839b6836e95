"""Load files into a table: the Spark pipeline as one command."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, Final

from emberlake.base.extras import load_extra
from emberlake.base.texts import count_text, seconds_text, size_text
from emberlake.catalog.target import dropped_unless_written
from emberlake.cli.actions.creation import check_key_flags
from emberlake.cli.actions.outcome import commit_document, commit_facts
from emberlake.cli.actions.partitions import check_partition_columns, partition_text
from emberlake.cli.actions.sifting import Load, first_misfit, load_sifted
from emberlake.cli.actions.sources import Source, find_source, iter_data_files
from emberlake.cli.actions.tables import kind_of
from emberlake.cli.actions.text_opening import check_delimiter, is_json_array
from emberlake.cli.choices import IngestMode, SourceFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.progress import Progress, progress
from emberlake.cli.report import Block, Done, Facts, Grid, Note, Report, words
from emberlake.cli.session import Session
from emberlake.errors import DatabaseNotFound, DataMismatch, InvalidInput, TableNotFound
from emberlake.options import DYNAMIC_PARTITION_OVERWRITE, PARTITION_DEFAULT_NAME
from emberlake.rowops.quarantine import FAIL, BadRowRule
from emberlake.rowops.schema_growth import growing
from emberlake.spec.identifier import Identifier
from emberlake.spec.new_table import build_table_schema
from emberlake.spec.schema import Schema, TableSchema
from emberlake.table import Table
from emberlake.table.table import table_of
from emberlake.table.write_builder import BatchWriteBuilder

_SHOWN_PARTITIONS: Final = 20


@dataclass(frozen=True, kw_only=True)
class IngestRequest:
    """The rows and the table, as they were typed."""

    sources: tuple[str, ...]
    into: str
    mode: IngestMode | None = None
    partition: Mapping[str, str] = field(default_factory=dict)
    source_format: SourceFormat | None = None
    source_options: Mapping[str, str] = field(default_factory=dict)
    create: bool = False
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    concurrency: int | None = None
    merge_schema: bool = False
    on_bad_rows: str = FAIL


@dataclass(frozen=True)
class Where:
    """Where Spark runs, and with which settings."""

    master: str
    settings: Mapping[str, str]


class Stages:
    """How long each part of the work took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage: it lasted since the end of the one before it."""
        now = perf_counter()
        self.seconds[stage] = now - self._since
        self._since = now


def ingest(
    session: Session, request: IngestRequest, where: Where, *, dry_run: bool, yes: bool
) -> Report:
    """Load files into a table in one commit."""
    source = find_source(request.sources, request.source_format)
    request = _recognised(request, source)
    rule = _rule_of(request)
    table = _find_table(session, request)
    if table is not None:
        mode = choose_mode(request, table.table_schema)
        if mode is IngestMode.OVERWRITE and not dry_run:
            session.confirm(f"This replaces {_replaced(request, table)}", yes=yes)
    if not rule.fails or (_is_array(request, source) and table is not None and not dry_run):
        return _sift(request, source, table, rule, dry_run=dry_run)
    load_extra("pyspark", extra="spark")
    local = load_extra("emberlake.spark.local", extra="spark")
    failures = load_extra("emberlake.spark.source_failures", extra="spark")
    stages = Stages()
    with (
        progress("starting Spark") as bar,
        local.local_session(where.master, where.settings, verbose=session.settings.debug) as spark,
        _located(request, source, table),
        failures.source_errors(),
    ):
        stages.lap("start")
        bar.name("looking at the source")
        rows = _read(spark, request, source, table)
        if table is not None and request.merge_schema:
            table = _growing(table, rows)
        schema = _new_schema(request, rows) if table is None else None
        stages.lap("read")
        if dry_run:
            return _plan(request, source, rows, table, schema)
        if schema is None:
            assert table is not None
            return _write(request, source, rows, table, bar, stages)
        with _created(session, request.into, schema) as new:
            return _write(request, source, rows, new, bar, stages)


def choose_mode(request: IngestRequest, schema: TableSchema) -> IngestMode:
    """The mode that was asked for, or the default of this kind of table.

    Raises:
        UsageError: the mode is for another kind of table, or --partition does not fit.
    """
    check_partition_columns(request.into, schema.partition_keys, request.partition)
    if request.mode is IngestMode.UPSERT and not schema.profile.has_keys:
        raise UsageError(f"{request.into} has no primary key to upsert by; use --mode append")
    if request.mode is IngestMode.APPEND and schema.profile.has_keys:
        raise UsageError(
            f"{request.into} has a primary key: a row replaces the row with its key; use --mode "
            "upsert"
        )
    return request.mode or (IngestMode.UPSERT if schema.profile.has_keys else IngestMode.APPEND)


def _find_table(session: Session, request: IngestRequest) -> Table | None:
    """The table to load into; None if it must be created."""
    try:
        table = session.table(request.into)
    except TableNotFound as error:
        if not request.create:
            if str(error).endswith("?"):  # a similar name is more likely meant than a new table
                raise
            raise TableNotFound(
                f"{request.into} does not exist; --create creates it with the columns of the "
                "source",
                identifier=error.identifier,
            ) from error
        _check_database(session, Identifier.parse(request.into).database)
        return None
    declared = [
        flag
        for flag, value in (
            ("--primary-key", request.primary_keys),
            ("--partition-by", request.partition_keys),
            ("--option", request.options),
        )
        if value
    ]
    if declared:
        raise UsageError(
            f"{request.into} exists: {', '.join(declared)} would change nothing; leave it out"
        )
    return table


def _check_database(session: Session, name: str) -> None:
    try:
        session.catalog.get_database(name)
    except DatabaseNotFound as error:
        raise UsageError(f"{error}; create it with: emberlake db create {name}") from error


def _read(spark: Any, request: IngestRequest, source: Source, table: Table | None) -> Any:
    sources = load_extra("emberlake.spark.sources", extra="spark")
    fields = None if table is None else table.fields
    # New columns need types; otherwise every column of a CSV file would be text.
    options = {
        **({"inferSchema": "true"} if request.merge_schema else {}),
        **request.source_options,
    }
    rows = sources.read_source(spark, source.paths, source.format.value, fields, options)
    given = {key: value for key, value in request.partition.items() if key not in rows.columns}
    if len(given) < len(request.partition) and request.mode is not IngestMode.OVERWRITE:
        own = ", ".join(key for key in request.partition if key not in given)
        raise UsageError(f"the source already has {own}; leave out --partition, or overwrite")
    return sources.with_constants(rows, given, fields)


def _new_schema(request: IngestRequest, rows: Any) -> Schema:
    types = load_extra("emberlake.spark.types", extra="spark")
    fields = types.paimon_fields(rows.schema)
    check_key_flags(fields, request.primary_keys, request.partition_keys)
    schema = Schema(
        fields,
        request.partition_keys or tuple(request.partition),
        request.primary_keys,
        request.options,
    )
    choose_mode(request, build_table_schema(schema, time_millis=0))
    return schema


@contextmanager
def _created(session: Session, identifier: str, schema: Schema) -> Iterator[Table]:
    """A new table, which is dropped again if nothing could be loaded into it."""
    table = session.catalog.create_table(identifier, schema)
    with dropped_unless_written(session.catalog, identifier, table):
        yield table


def _recognised(request: IngestRequest, source: Source) -> IngestRequest:
    """The load, with the option by which Spark reads JSON files that are one array."""
    if source.format is SourceFormat.CSV:
        for file in (file for root in source.roots for file in iter_data_files(root)):
            check_delimiter(file, request.source_options)
    if source.format is not SourceFormat.JSON or not source.roots:
        return request
    arrays = {is_json_array(file) for root in source.roots for file in iter_data_files(root)}
    if len(arrays) > 1:
        raise UsageError(
            "some of the files are JSON arrays and others have one object per line; load them in "
            "two steps"
        )
    options = {"multiLine": "true"} if True in arrays else {}
    return replace(request, source_options={**options, **request.source_options})


def _is_array(request: IngestRequest, source: Source) -> bool:
    """Whether the source is JSON arrays, which are held in memory as a whole, even by Spark.

    So starting Spark gains nothing, and Spark would read their paths as patterns.
    """
    has_arrays = request.source_options.get("multiLine") == "true"
    return has_arrays and bool(source.roots) and not request.merge_schema


def _rule_of(request: IngestRequest) -> BadRowRule:
    try:
        rule = BadRowRule.parse(request.on_bad_rows)
    except InvalidInput as error:
        raise UsageError(
            f"--on-bad-rows {request.on_bad_rows}: expected fail, skip, or a table that keeps them"
        ) from error
    if not rule.fails and request.merge_schema:
        raise UsageError(
            "--merge-schema adds columns for all rows, --on-bad-rows leaves some out: load in two "
            "steps"
        )
    return rule


@contextmanager
def _located(request: IngestRequest, source: Source, table: Table | None) -> Iterator[None]:
    """Spark names the file of a value that does not fit; this finds its line and column."""
    try:
        yield
    except DataMismatch as error:
        where = None if table is None else first_misfit(_load(request, source), table)
        if where is None:
            raise
        raise DataMismatch(f"{where}; --on-bad-rows skip or TABLE loads the others") from error


def _load(request: IngestRequest, source: Source) -> Load:
    options = {key: value for key, value in request.source_options.items() if key != "multiLine"}
    return Load(source, options, request.partition)


def _growing(table: Table, rows: Any) -> Table:
    """The table with the columns of the source, which it has when its rows are committed."""
    fields = load_extra("emberlake.spark.types", extra="spark").new_table_fields(rows.schema)
    return table_of(growing(table.store, fields))


def _sift(
    request: IngestRequest,
    source: Source,
    table: Table | None,
    rule: BadRowRule,
    *,
    dry_run: bool,
) -> Report:
    """Load without Spark, row by row where rows do not fit."""
    if table is None:
        raise UsageError(
            "--on-bad-rows needs a table that exists: its columns say which rows are bad; create "
            f"it with: emberlake table create {request.into} --from {request.sources[0]}"
        )
    if dry_run:
        raise UsageError("--dry-run reads no rows, so it cannot say which are bad")
    mode = choose_mode(request, table.table_schema)
    stages = Stages()
    with progress("loading") as bar:
        builder = _builder(request, table, mode)
        done = load_sifted(table, builder, _load(request, source), rule, bar)
    stages.lap("load")
    document = {
        "table": request.into,
        "mode": mode.value,
        "dry_run": False,
        "source": _source_document(source),
        **commit_document(done.result),
        "rows_rejected": done.rows_rejected,
        "quarantine": done.quarantine,
        "seconds": {stage: round(took, 3) for stage, took in stages.seconds.items()},
    }
    what = f"{count_text(done.result.rows_added, 'row')} into {request.into} ({mode.value})"
    blocks: list[Block] = [Done(f"loaded {what}")]
    if done.result.snapshot_id is not None:
        blocks.append(Facts([("source", _source_text(source)), *commit_facts(done.result)]))
    if done.rows_rejected:
        where = "left out" if done.quarantine is None else f"kept in {done.quarantine}"
        rows = count_text(done.rows_rejected, "bad row")
        blocks.append(Note(f"{rows} {where}; the first: {done.first}"))
    return Report(document, blocks)


def _builder(request: IngestRequest, table: Table, mode: IngestMode) -> BatchWriteBuilder:
    if mode is not IngestMode.OVERWRITE:
        return table.new_batch_write_builder()
    # A named partition is replaced even if the source has no rows for it. Without a name, only
    # partitions that the source has rows for are replaced, whatever the table's options say.
    target = table.copy({DYNAMIC_PARTITION_OVERWRITE.key: not request.partition})
    builder = target.new_batch_write_builder()
    builder.overwrite(dict(request.partition) or None)
    return builder


def _show_read(bar: Progress, total: int | None, done: int, rows: int) -> None:
    bar.advance_bytes(min(done, total) if total else done, total, rows)


def _write(
    request: IngestRequest, source: Source, rows: Any, table: Table, bar: Progress, stages: Stages
) -> Report:
    local = load_extra("emberlake.spark.local", extra="spark")
    mode = choose_mode(request, table.table_schema)
    builder = _builder(request, table, mode)
    bar.name("writing")
    read = partial(_show_read, bar, source.bytes)
    with builder.new_write() as write, local.watch_input(rows.sparkSession, read):
        result = write.write_spark(rows, concurrency=request.concurrency)
    seconds = {**stages.seconds, **result.seconds}
    document = {
        "table": request.into,
        "mode": mode.value,
        "dry_run": False,
        "source": _source_document(source),
        **commit_document(result),
        "seconds": {stage: round(took, 3) for stage, took in seconds.items()},
    }
    if result.snapshot_id is None:
        return Report(document, [Done(f"the source has no rows; {request.into} is unchanged")])
    times = ", ".join(f"{stage} {seconds_text(took)}" for stage, took in seconds.items())
    facts = [
        ("source", _source_text(source)),
        *commit_facts(result),
        ("time", f"{seconds_text(sum(seconds.values()))}: {times}"),
    ]
    what = f"{count_text(result.rows_added, 'row')} into {request.into} ({mode.value})"
    return Report(document, [Done(f"loaded {what}"), Facts(facts)])


# --- what would be done ---------------------------------------------------------------------------


def _plan(
    request: IngestRequest, source: Source, rows: Any, table: Table | None, new: Schema | None
) -> Report:
    schema = build_table_schema(new, time_millis=0) if new is not None else None
    if schema is None:
        assert table is not None
        schema = table.table_schema
    mode = choose_mode(request, schema)
    load_extra("emberlake.spark.alignment", extra="spark").check_alignment(rows.schema, schema)
    facts = [("source", _source_text(source)), ("into", f"{request.into}, {kind_of(schema)}")]
    replaced: list[str] = []
    if mode is IngestMode.OVERWRITE and table is not None:
        facts.append(("replaces", _replaced(request, table)))
        replaced = _touched(request, rows, schema)
    document = {
        "table": request.into,
        "mode": mode.value,
        "dry_run": True,
        "creates": table is None,
        "source": _source_document(source),
        "columns": {f.name: f.dataType.simpleString() for f in rows.schema},
        "replaced_partitions": replaced,
    }
    verb = "create and load" if table is None else "load"
    blocks: list[Block] = [Done(f"would {verb} {request.into} ({mode.value})"), Facts(facts)]
    columns = [(f.name, f.dataType.simpleString(), _type_in(schema, f.name)) for f in rows.schema]
    blocks.append(Grid([words("column"), words("in the source"), words("in the table")], columns))
    if replaced:
        shown = [(name,) for name in replaced[:_SHOWN_PARTITIONS]]
        blocks.append(Grid([words("replaced partition", 20)], shown))
        left = len(replaced) - _SHOWN_PARTITIONS
        blocks += [Note(f"... and {left:,} more; --json lists all")] if left > 0 else []
    return Report(document, blocks)


def _type_in(schema: TableSchema, name: str) -> str | None:
    found = schema.field_by_name.get(name)
    return None if found is None else str(found.type)


def _touched(request: IngestRequest, rows: Any, schema: TableSchema) -> list[str]:
    """The names of the partitions that the rows belong to."""
    if request.partition or not schema.partition_keys:
        return []
    keys = list(schema.partition_keys)
    found = rows.select([f"`{key}`" for key in keys]).distinct().collect()
    null = schema.options.value(PARTITION_DEFAULT_NAME)
    texts = [{key: null if row[key] is None else row[key] for key in keys} for row in found]
    return sorted(map(partition_text, texts))


def _replaced(request: IngestRequest, table: Table) -> str:
    snapshot = table.latest_snapshot()
    count = 0 if snapshot is None else snapshot.total_record_count
    all_rows = count_text(count, "row")
    if request.partition:
        return f"partition {partition_text(request.partition)} of {request.into}"
    if table.partition_keys:
        return (
            f"the partitions of {request.into} that the source has rows for (it holds {all_rows})"
        )
    return f"all {all_rows} of {request.into}"


def _source_text(source: Source) -> str:
    if source.files is None or source.bytes is None:
        return f"{count_text(len(source.paths), 'path')}, {source.format}"
    return f"{count_text(source.files, 'file')}, {source.format}, {size_text(source.bytes)}"


def _source_document(source: Source) -> dict[str, object]:
    return {
        "paths": list(source.paths),
        "format": source.format.value,
        "files": source.files,
        "bytes": source.bytes,
    }
