"""Partitions named by a user: some or all partition columns with a value each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from emberlake.base.names import choices
from emberlake.errors import InvalidInput
from emberlake.options import PARTITION_DEFAULT_NAME
from emberlake.spec.binary_row import decode_row
from emberlake.spec.literals import cast_literal
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import Value
from emberlake.types import DataField


class Partitions(Protocol):
    """Tells which serialized partitions are meant."""

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The partition columns of the table."""

    def __call__(self, partition: bytes, /) -> bool: ...


@dataclass(frozen=True)
class PartitionMatch:
    """Matches serialized partitions that have the given values; no values match all partitions."""

    fields: tuple[DataField, ...]
    values: tuple[tuple[int, Value], ...]  # (position of the partition column, value)

    def __call__(self, partition: bytes) -> bool:
        if not self.values:
            return True
        row = decode_row([f.type for f in self.fields], partition)
        return all(row[index] == value for index, value in self.values)


@dataclass(frozen=True)
class AnyPartitionMatch:
    """Matches serialized partitions that fit at least one of several descriptions."""

    matches: tuple[PartitionMatch, ...]

    def __call__(self, partition: bytes) -> bool:
        return any(match(partition) for match in self.matches)


def partitions_of(schema: TableSchema, literals: Mapping[str, object]) -> PartitionMatch:
    """Match the partitions of a table by some of their values; no values match all partitions."""
    return match_partition(
        schema.partition_fields,
        literals,
        default_name=schema.options.value(PARTITION_DEFAULT_NAME),
    )


def match_partition(
    fields: Sequence[DataField], literals: Mapping[str, object], *, default_name: str
) -> PartitionMatch:
    """Match partitions by literals, each cast to its column's type.

    Raises:
        InvalidInput: names every key that is not a partition column and every literal that does
            not fit its column.
    """
    if not isinstance(literals, Mapping):
        shown = '{"day": "2026-06-26"}'
        raise InvalidInput(
            f"a partition is a dictionary of columns and values, such as {shown}, not {literals!r}"
        )
    names = [f.name for f in fields]
    problems: list[str] = []
    values: list[tuple[int, Value]] = []
    for name, literal in literals.items():
        if name not in names:
            problems.append(
                f"{name} is not a partition column ({choices(name, names, 'the table has')})"
            )
            continue
        index = names.index(name)
        is_default = isinstance(literal, str) and literal == default_name
        try:
            value = None if is_default else cast_literal(fields[index].type, literal)
        except InvalidInput as error:
            problems.append(f"{name}: {error}")
            continue
        values.append((index, value))
    if problems:
        raise InvalidInput(f"partition {dict(literals)}: " + "; ".join(problems))
    return PartitionMatch(tuple(fields), tuple(values))
