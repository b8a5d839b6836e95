"""Buckets: which there are, and what one of them is made of."""

from dataclasses import dataclass

from emberlake.ui.views.lsm import LsmTree
from emberlake.ui.views.sizes import SizeBar


@dataclass(frozen=True)
class BucketLine:
    """One bucket of a partition."""

    partition: str
    bucket: int
    rows: int
    size: int
    files: int


@dataclass(frozen=True)
class BucketList:
    """The largest buckets of a table, or of one of its partitions."""

    partition: str | None
    lines: tuple[BucketLine, ...]
    count: int
    most_bytes: int


@dataclass(frozen=True)
class BucketView:
    """One bucket; it is a tree only in tables with keys."""

    line: BucketLine
    tree: LsmTree | None
    sizes: tuple[SizeBar, ...]
