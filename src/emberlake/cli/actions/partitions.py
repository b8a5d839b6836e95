"""Partitions as they are typed and shown: ``dt=2026-06-26/hour=3``."""

from collections.abc import Iterable, Mapping, Sequence

from emberlake.base.names import choices, listed
from emberlake.cli.failures import UsageError
from emberlake.errors import InvalidInput
from emberlake.spec.partition_match import AnyPartitionMatch, PartitionMatch, partitions_of
from emberlake.table import Table


def parse_partition(text: str) -> dict[str, str]:
    """``dt=2026-06-26/hour=3`` as values by column.

    Raises:
        UsageError: it is not a partition.
    """
    spec: dict[str, str] = {}
    for part in text.split("/"):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise UsageError(f"{text!r} is not a partition: expected column=value/column=value")
        spec[key] = value
    return spec


def partition_text(spec: Mapping[str, object]) -> str:
    """Values by column as ``dt=2026-06-26/hour=3``."""
    return "/".join(f"{key}={value}" for key, value in spec.items())


def check_partition_columns(
    identifier: str, partition_keys: Sequence[str], named: Iterable[str]
) -> None:
    """Refuse columns that a table is not partitioned by.

    Raises:
        UsageError: names them, and the columns that it is partitioned by.
    """
    unknown = [key for key in named if key not in partition_keys]
    if unknown:
        there_are = choices(unknown, partition_keys, "it is partitioned by")
        raise UsageError(
            f"{identifier} is not partitioned by {listed(unknown)}; "
            + (there_are if partition_keys else "it has no partitions")
        )


def match_typed(
    table: Table, identifier: str, specs: Sequence[Mapping[str, str]]
) -> AnyPartitionMatch:
    """Matches the partitions that were typed, with the same casts as the commit that deletes them.

    Raises:
        UsageError: a column is not a partition column, or a value does not fit its type.
    """
    for spec in specs:
        check_partition_columns(identifier, table.partition_keys, spec)
    return AnyPartitionMatch(tuple(_match(table, spec) for spec in specs))


def _match(table: Table, spec: Mapping[str, str]) -> PartitionMatch:
    try:
        return partitions_of(table.table_schema, spec)
    except InvalidInput as error:
        problem = str(error).removeprefix(f"partition {dict(spec)}: ")
        raise UsageError(f"partition {partition_text(spec)}: {problem}") from error
