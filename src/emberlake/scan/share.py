"""The part of a scan that one of several readers has: a shard, or a slice of rows.

Together the shards of a scan give every row once. Rows of append tables are identified by where
they are stored: they are numbered across all files of the plan, including deleted ones. Rows of a
key must stay together to be merged, so key tables are cut by bucket, or by file if no two files
have the same key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

from emberlake.errors import InvalidInput, Unsupported
from emberlake.scan.splits import DataSplit


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``index`` of ``count`` equal parts."""

    index: int
    count: int

    def __post_init__(self) -> None:
        if not (_is_number(self.index) and _is_number(self.count) and self.index < self.count):
            raise InvalidInput(
                f"shard {self.index!r} of {self.count!r}: shards are numbered from 0 on, "
                "and there is at least one"
            )

    def range_of(self, total: int) -> "Slice | None":
        """The rows of this shard out of ``total`` rows; None if there are none for it."""
        size, rest = divmod(total, self.count)
        start = self.index * size + min(self.index, rest)
        end = start + size + (self.index < rest)
        return Slice(start, end) if start < end else None


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows from number ``start`` up to, but not including, number ``end``."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not (_is_number(self.start) and _is_number(self.end) and self.start < self.end):
            raise InvalidInput(
                f"rows {self.start!r} to {self.end!r}: a slice begins at 0 or later, "
                "and ends after it starts"
            )


Share: TypeAlias = Shard | Slice


def take_share(
    splits: Sequence[DataSplit], share: Share, *, is_keyed: bool, by_file: bool
) -> list[DataSplit]:
    """The splits of a share.

    Args:
        splits: All splits of the plan.
        share: Which part of them.
        is_keyed: Whether the table has a primary key.
        by_file: Whether no key is in two files of the table, so that files can be separated.

    Raises:
        Unsupported: a slice of a table with a primary key.
    """
    if is_keyed:
        if isinstance(share, Slice):
            raise Unsupported(
                "rows of a table with a primary key have no numbers to slice by; use with_shard()"
            )
        return list(_shard_of_keys(splits, share, by_file=by_file))
    rows = share
    if isinstance(share, Shard):
        whole = share.range_of(sum(count for split in splits for _, count in split.units))
        if whole is None:
            return []
        rows = whole
    assert isinstance(rows, Slice)
    return list(_slice_of_rows(splits, rows))


def _slice_of_rows(splits: Sequence[DataSplit], rows: Slice) -> Iterator[DataSplit]:
    before = 0
    for split in splits:
        ranges: dict[str, tuple[int, int]] = {}
        chosen: set[str] = set()
        for names, count in split.units:
            # A filter on row ids may have narrowed what is read of a file.
            first, end = split.ranges.get(names[0], (0, count))
            start, stop = max(first, rows.start - before), min(end, rows.end - before)
            before += count
            if start < stop:
                chosen.update(names)
                if (start, stop) != (0, count):
                    ranges[names[0]] = (start, stop)
        if chosen:
            yield replace(split.take([name in chosen for name in split.names]), ranges=ranges)
        if before >= rows.end:
            return


def _shard_of_keys(
    splits: Sequence[DataSplit], shard: Shard, *, by_file: bool
) -> Iterator[DataSplit]:
    for split in splits:
        if not (by_file and split.raw_convertible and split.before is None):
            if split.bucket % shard.count == shard.index:
                yield split
            continue
        names = split.entries.file_name.to_pylist()
        chosen = [_java_hash(name) % shard.count == shard.index for name in names]
        if any(chosen):
            yield split.take(chosen)


def _java_hash(text: str) -> int:
    """The absolute value of Java's ``String.hashCode``, by which other engines assign files."""
    code = reduce(lambda total, unit: (31 * total + unit) & 0xFFFFFFFF, _utf16(text), 0)
    return min(code, (1 << 32) - code)


def _utf16(text: str) -> memoryview:
    return memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
