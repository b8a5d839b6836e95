"""Procedures about partitions."""

from datetime import datetime
from typing import Final

import pyarrow as pa

from emberlake.base.option_texts import parse_duration
from emberlake.errors import InvalidInput, Unsupported
from emberlake.maintenance.expire_partitions import PartitionExpiry, not_written_since
from emberlake.options import (
    PARTITION_EXPIRY_MAX,
    PARTITION_EXPIRY_STRATEGY,
    PARTITION_LIFETIME,
    PARTITION_TIME_FORMATTER,
    PARTITION_TIME_PATTERN,
    TableOptions,
)
from emberlake.sql.commands.answers import texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.procedures.arguments import (
    TABLE,
    Arguments,
    Procedure,
    done,
    optional,
    options_of,
    required,
    table_of,
)
from emberlake.sql.commands.run_alter import partition_values

_BY_UPDATE: Final = "update-time"
_STRATEGIES: Final = (PARTITION_EXPIRY_STRATEGY.default, _BY_UPDATE)


def expire_partitions(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.expire_partitions``."""
    table = table_of(session, given)
    said = TableOptions({**table.options, **options_of(given["options"])})
    strategy = given["expire_strategy"] or said.value(PARTITION_EXPIRY_STRATEGY)
    if strategy not in _STRATEGIES:
        raise Unsupported(f"expire_strategy is {' or '.join(_STRATEGIES)}, not {strategy!r}")
    lifetime = said.value(PARTITION_LIFETIME)
    if given["expiration_time"]:
        lifetime = parse_duration(given["expiration_time"])
    if lifetime is None or not table.partition_keys:
        raise InvalidInput(
            "sys.expire_partitions needs a partitioned table and an expiration_time, such as '7 d'"
        )
    listed = session.catalog.list_partitions_paged(table.identifier).elements
    now = datetime.now()  # noqa: DTZ005 - values of partitions are in local time, as in Java
    if strategy == _BY_UPDATE:
        expired = not_written_since(listed, now - lifetime)
    else:
        expiry = PartitionExpiry(
            lifetime,
            given["timestamp_formatter"] or said.value(PARTITION_TIME_FORMATTER),
            given["timestamp_pattern"] or said.value(PARTITION_TIME_PATTERN),
        )
        expired = expiry.expired(listed, now)
    expired = expired[: given["max_expires"] or said.value(PARTITION_EXPIRY_MAX)]
    if not expired:
        return texts_of(("expired_partitions",), [("No expired partitions.",)])
    session.catalog.drop_partitions(table.identifier, [p.spec for p in expired])
    shown = [(", ".join(f"{name}={text}" for name, text in p.spec.items()),) for p in expired]
    return texts_of(("expired_partitions",), shown)


def mark_partition_done(session: Session, given: Arguments) -> pa.Table:
    """Carry out ``sys.mark_partition_done``."""
    table = table_of(session, given)
    specs = [
        partition_values(table, tuple(options_of(part).items()))
        for part in given["partitions"].split(";")
        if part.strip()
    ]
    if any(set(spec) != set(table.partition_keys) for spec in specs):
        raise InvalidInput(
            f"give a value for every partition column: {', '.join(table.partition_keys)}"
        )
    table.mark_partitions_done([{k: str(spec[k]) for k in table.partition_keys} for spec in specs])
    return done()


PARTITIONS: Final = (
    Procedure(
        "expire_partitions",
        (
            TABLE,
            optional("expiration_time"),
            optional("timestamp_formatter"),
            optional("timestamp_pattern"),
            optional("expire_strategy"),
            optional("max_expires", int),
            optional("options"),
        ),
        expire_partitions,
    ),
    Procedure("mark_partition_done", (TABLE, required("partitions")), mark_partition_done),
)
