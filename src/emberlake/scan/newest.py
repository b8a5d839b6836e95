"""Which records of a key table are its rows: decided by metadata, so that nobody has to merge.

If the newest record of a key is its row, a record is a row unless another file has a newer one with
its key. Most files are old, and few are newer than others that share keys with them. Whoever knows
the keys and sequence numbers in these few can read all files side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.merge.plan import plan_merge
from emberlake.options import RECORD_EXPIRE_TIME, MergeEngine
from emberlake.scan.runs import KeyRange, find_sections, key_ranges
from emberlake.scan.splits import DataSplit
from emberlake.spec.key_value import key_fields
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, TypeRoot

_MOST_FILES: Final = 256  # that share keys: each is compared with each
# Types of keys that are equal in every engine exactly if their values are.
_ROOTS: Final = frozenset(
    {TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INT, TypeRoot.BIGINT, TypeRoot.VARCHAR}
    | {TypeRoot.DATE, TypeRoot.DECIMAL, TypeRoot.BOOLEAN}
)


def keeps_newest(schema: TableSchema) -> bool:
    """Whether the record with the highest sequence number is the row of its key.

    The primary key tells keys apart, in the whole table and in any engine.
    """
    if not schema.profile.has_keys or schema.profile.has_deletion_vectors:
        return False
    if schema.partition_keys_outside_key:
        return False  # each partition has its own rows, and its own numbers, for the same keys
    plan = plan_merge(schema, schema.fields)
    return (
        plan.engine is MergeEngine.DEDUPLICATE
        and not (plan.sequences or plan.ignore_delete)
        and schema.options.value(RECORD_EXPIRE_TIME) is None
        and all(_is_comparable(schema.field_by_name[name]) for name in schema.primary_keys)
    )


def _is_comparable(field: DataField) -> bool:
    # For joins, a null equals nothing.
    kind = field.type
    return isinstance(kind, AtomicType) and kind.root in _ROOTS and not kind.nullable


@dataclass(frozen=True)
class KeyFiles:
    """The files of a split of a key table: positions in it.

    Args:
        alone: No other file has a key of theirs, so every record that adds a row is one.
        layered: Their records are rows unless a file of ``newer`` replaces them.
        newer: Those of ``layered`` that may replace records of others: records of the same key with
            a higher sequence number.
        merged: All others.
    """

    alone: tuple[int, ...] = ()
    layered: tuple[int, ...] = ()
    newer: tuple[int, ...] = ()
    merged: tuple[int, ...] = ()


def find_key_files(schema: TableSchema, split: DataSplit) -> KeyFiles:
    """What has to be known to tell which records of a split are rows."""
    entries = split.entries
    if split.raw_convertible:
        return KeyFiles(alone=tuple(range(len(entries))))
    types = [field.type for field in key_fields(schema)]
    files = [
        _File(*bounds)
        for bounds in zip(
            key_ranges(types, entries.min_key, entries.max_key),
            entries.min_sequence_number.tolist(),
            entries.max_sequence_number.tolist(),
            strict=True,
        )
    ]
    is_possible = keeps_newest(schema)
    alone: list[int] = []
    layered: list[int] = []
    newer: list[int] = []
    merged: list[int] = []
    for section in find_sections([file.keys for file in files]):
        members = [file for run in section for file in run]
        if len(section) == 1:
            alone += members
        elif is_possible and (replacing := _replacing(files, members)) is not None:
            layered += members
            newer += replacing
        else:
            merged += members
    return KeyFiles(*(tuple(sorted(found)) for found in (alone, layered, newer, merged)))


@dataclass(frozen=True, slots=True)
class _File:
    keys: KeyRange
    least: int  # sequence number
    most: int

    def shares_keys(self, other: "_File") -> bool:
        """Whether a key can be in both."""
        return self.keys[0] <= other.keys[1] and other.keys[0] <= self.keys[1]


def _replacing(files: Sequence[_File], members: Sequence[int]) -> list[int] | None:
    """The members of a section that are newer than another with which they share keys.

    None: of two files that share keys, neither is newer.
    """
    if len(members) > _MOST_FILES:
        return None
    ordered = sorted(members, key=lambda number: files[number].least)
    found = []
    for place, number in enumerate(ordered):
        file = files[number]
        older = [files[other] for other in ordered[:place] if files[other].shares_keys(file)]
        if any(other.most >= file.least for other in older):
            return None
        if older:
            found.append(number)
    return found
