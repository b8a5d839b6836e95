"""Procedures that compact, expire and clean."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import parse_duration_ms
from emberlake.errors import EmberlakeError, InvalidInput, Unsupported
from emberlake.maintenance.check_report import ProblemKind
from emberlake.options import PARTITION_DEFAULT_NAME, TAG_CREATION, TableOptions
from emberlake.sql.commands.answers import rows_of, texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.procedures.arguments import (
    TABLE,
    Arguments,
    Procedure,
    chosen_names,
    done,
    moment_of,
    optional,
    options_of,
    table_name,
    table_of,
    words_of,
)
from emberlake.sql.commands.run_alter import partition_values
from emberlake.sql.lexer import Kind, Token, text_value, tokenize
from emberlake.sql.names import quoted
from emberlake.table import Table

_STRATEGIES: Final = ("full", "minor")
_ORPHAN_MODES: Final = ("distributed", "local")  # both are the same here
_ORPHANS: Final = (("deletedFileCount", pa.int64()), ("deletedFileTotalLenInBytes", pa.int64()))


# --- compaction -----------------------------------------------------------------------------------


def compact(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.compact``."""
    table = table_of(session, given)
    if given["buckets"] is not None:
        raise Unsupported("sys.compact: buckets is not supported; give partitions or where")
    strategy = (given["compact_strategy"] or "full").lower()
    if strategy not in _STRATEGIES:
        raise InvalidInput(f"compact_strategy is full or minor, not {strategy!r}")
    where = _chosen_partitions(table, given)
    if given["partition_idle_time"] is not None:
        idle = _idle_partitions(session, table, given)
        if not idle:
            return done()
        where = f"({idle}) AND ({where})" if where else idle
    # The table may leave compaction to a job like this one.
    table = table.copy({"write-only": "false", **options_of(given["options"])})
    order, columns = (given["order_strategy"] or "none").lower(), words_of(given["order_by"])
    if order != "none":
        table.sort_compact(columns, order, where)
    elif columns:
        raise InvalidInput("order_by needs an order_strategy: order, zorder or hilbert")
    else:
        table.compact(full=strategy == "full", where=where)
    return done()


def _idle_partitions(session: Session, table: Table, given: Arguments) -> str:
    """A condition for the partitions that nobody has written to for a while; empty: none."""
    if given["order_strategy"] is not None:
        raise InvalidInput("sys.compact sorts no partitions by partition_idle_time; leave one out")
    if not table.partition_keys:
        raise InvalidInput("partition_idle_time is for tables with partitions")
    before = time.time() * 1000 - parse_duration_ms(given["partition_idle_time"])
    found = [
        _partition_condition(table, partition.spec)
        for partition in session.catalog.list_partitions_paged(table.identifier).elements
        if (partition.last_file_creation_time or 0) <= before
    ]
    return " OR ".join(found)


def condition_of(text: str, names: Iterable[str] = ()) -> str:
    """A condition of Spark for the filters of tables: texts in single quotes, and columns by the
    names that the table gives them.
    """  # noqa: D205
    known = {name.lower(): name for name in names}
    tokens = (t for t in tokenize(text) if t.kind is not Kind.END)
    return " ".join(_token(t, known) for t in tokens)


def _token(token: Token, known: Mapping[str, str]) -> str:
    if token.kind is Kind.TEXT:
        return _literal(text_value(token))
    name = known.get(token.name.lower()) if token.is_name else None
    return token.text if name is None else quoted(name)


def partitions_condition(table: Table, text: str | None) -> str | None:
    """``day=2024-01-01,hour=1;day=2024-01-02`` as a condition on partition columns."""
    if text is None or not text.strip():
        return None
    specs = (partition_values(table, tuple(options_of(p).items())) for p in text.split(";"))
    return " OR ".join(_partition_condition(table, spec) for spec in specs)


def _partition_condition(table: Table, spec: Mapping[str, object]) -> str:
    null = table.options.value(PARTITION_DEFAULT_NAME)
    found = (
        f"{quoted(name)} IS NULL" if value == null else f"{quoted(name)} = {_literal(str(value))}"
        for name, value in spec.items()
    )
    return f"({' AND '.join(found)})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def compact_database(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.compact_database``."""
    is_database = chosen_names(given["including_databases"], None)
    is_table = chosen_names(given["including_tables"], given["excluding_tables"])
    options = {"write-only": "false", **options_of(given["options"])}
    good = bad = 0
    for database in filter(is_database, session.catalog.list_databases()):
        for name in session.catalog.list_tables(database):
            if not is_table(f"{database}.{name}"):
                continue
            try:
                session.catalog.get_table(f"`{database}`.`{name}`").copy(options).compact()
                good += 1
            except EmberlakeError:  # the others are compacted nevertheless, as in Java
                bad += 1
    answer = f"Compact database finished. Success: {good}, Failed: {bad}"
    return texts_of(("result",), [(answer,)])


def compact_manifest(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.compact_manifest``."""
    table = table_of(session, given).copy(dict(options_of(given["options"])))
    if not given["dry_run"]:
        table.compact_manifests()
    return done()


def rescale(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rescale``."""
    table = table_of(session, given)
    table.rescale(given["bucket_num"], _chosen_partitions(table, given))
    return done()


def _chosen_partitions(table: Table, given: Arguments) -> str | None:
    """The condition on partitions that ``partitions`` or ``where`` says."""
    if given["partitions"] and given["where"]:
        raise InvalidInput("give partitions or where, not both")
    said = given["where"]
    return (
        condition_of(said, table.field_names)
        if said
        else partitions_condition(table, given["partitions"])
    )


# --- expiry and cleaning --------------------------------------------------------------------------


def expire_snapshots(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.expire_snapshots``."""
    table = table_of(session, given).copy(dict(options_of(given["options"])))
    result = table.expire_snapshots(
        retain_max=given["retain_max"],
        retain_min=given["retain_min"],
        older_than=moment_of(given["older_than"]),
        max_deletes=given["max_deletes"],
    )
    return rows_of((("deleted_snapshots_count", pa.int32()),), [(len(result.snapshots),)])


def remove_orphan_files(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.remove_orphan_files``."""
    mode = (given["mode"] or _ORPHAN_MODES[0]).lower()
    if mode not in _ORPHAN_MODES:
        raise InvalidInput(f"mode is {' or '.join(_ORPHAN_MODES)}, not {mode!r}")
    count = size = 0
    for table in _tables(session, given["table"]):
        result = table.remove_orphan_files(
            older_than=moment_of(given["older_than"]), dry_run=bool(given["dry_run"])
        )
        count, size = count + len(result.paths), size + result.bytes
    return rows_of(_ORPHANS, [(count, size)])


def _tables(session: Session, text: str) -> Iterable[Table]:
    """One table, or all of a database: ``db.*``."""
    if not text.strip().endswith(".*"):
        return [session.table(table_name(text))]
    database = table_name(text.strip().removesuffix(".*")).last
    catalog = session.catalog
    return [catalog.get_table(f"`{database}`.`{name}`") for name in catalog.list_tables(database)]


def purge_files(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.purge_files``."""
    table = table_of(session, given)
    table.new_batch_write_builder().new_commit().truncate_table()
    table.expire_snapshots(retain_max=1, retain_min=1)
    return texts_of(("result",), [("Success",)])


def remove_unexisting_files(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.remove_unexisting_files``."""
    table = table_of(session, given)
    report = table.check(read_data=False)
    missing = [p.path for p in report.problems if p.kind is ProblemKind.MISSING]
    if missing and not given["dry_run"]:
        raise Unsupported(
            f"{len(missing)} files of {table.identifier} are missing, the first is {missing[0]}; "
            "emberlake does not remove them from the table: roll back to a snapshot that is whole"
        )
    return texts_of(("fileName",), [(path,) for path in missing])


def rewrite_file_index(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.rewrite_file_index``."""
    table = table_of(session, given)
    if any(key.startswith("file-index.") for key in table.options):
        raise Unsupported("emberlake writes no file indexes; Java's connector does")
    columns = (("written_partitions", pa.int32()), ("written_indexes", pa.int32()))
    return rows_of(columns, [(0, 0)])


def trigger_tag_automatic_creation(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.trigger_tag_automatic_creation``."""
    table = table_of(session, given)
    mode = TableOptions(table.options).value(TAG_CREATION)
    if mode != TAG_CREATION.default:
        raise Unsupported(
            f"{TAG_CREATION.key}={mode}: emberlake creates no tags by itself; call sys.create_tag"
        )
    return done()


MAINTENANCE: Final = (
    Procedure(
        "compact",
        (
            TABLE,
            optional("partitions"),
            optional("compact_strategy"),
            optional("order_strategy"),
            optional("order_by"),
            optional("where"),
            optional("options"),
            optional("partition_idle_time"),
            optional("buckets"),
        ),
        compact,
    ),
    Procedure(
        "compact_database",
        (
            optional("including_databases"),
            optional("including_tables"),
            optional("excluding_tables"),
            optional("options"),
        ),
        compact_database,
    ),
    Procedure(
        "compact_manifest",
        (TABLE, optional("options"), optional("dry_run", bool)),
        compact_manifest,
    ),
    Procedure(
        "rescale",
        (
            TABLE,
            optional("bucket_num", int),
            optional("partitions"),
            optional("where"),
            optional("scan_parallelism", int),
            optional("sink_parallelism", int),
        ),
        rescale,
    ),
    Procedure(
        "expire_snapshots",
        (
            TABLE,
            optional("retain_max", int),
            optional("retain_min", int),
            optional("older_than"),
            optional("max_deletes", int),
            optional("options"),
        ),
        expire_snapshots,
    ),
    Procedure(
        "remove_orphan_files",
        (
            TABLE,
            optional("older_than"),
            optional("dry_run", bool),
            optional("parallelism", int),
            optional("mode"),
        ),
        remove_orphan_files,
    ),
    Procedure("purge_files", (TABLE,), purge_files),
    Procedure(
        "remove_unexisting_files",
        (TABLE, optional("dry_run", bool), optional("parallelism", int)),
        remove_unexisting_files,
    ),
    Procedure("rewrite_file_index", (TABLE, optional("where")), rewrite_file_index),
    Procedure("trigger_tag_automatic_creation", (TABLE,), trigger_tag_automatic_creation),
)
