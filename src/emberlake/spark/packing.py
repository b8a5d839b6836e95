"""Assigns splits to partitions of a DataFrame: in order, by weight."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from emberlake.options import SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE, TableOptions
from emberlake.scan.splits import DataSplit

# A small read is divided into about this many partitions, if it has enough splits: how many tasks a
# cluster runs at once is not known here, and a task costs little.
_WANTED_PARTITIONS: Final = 32


def weight_of(split: DataSplit, options: TableOptions) -> int:
    """The bytes of a split; a small file counts as the cost of opening it."""
    states = [split] if split.before is None else [split, split.before]
    open_cost = options.value(SPLIT_OPEN_FILE_COST)
    return sum(int(np.maximum(s.entries.file_size, open_cost).sum()) for s in states)


def pack_partitions(weights: Sequence[int], options: TableOptions) -> list[int]:
    """The partition of each split; each is filled up to ``source.split.target-size``."""
    target = min(
        options.value(SPLIT_TARGET_SIZE),
        max(options.value(SPLIT_OPEN_FILE_COST), sum(weights) // _WANTED_PARTITIONS),
    )
    return _packed(weights, target)


def spread_partitions(weights: Sequence[int], count: int) -> list[int]:
    """The partition of each split: at most ``count``, with the heaviest as light as possible."""
    low, high = max(weights, default=0), sum(weights)
    while low < high:
        middle = (low + high) // 2
        if _packed(weights, middle)[-1] < count:
            high = middle
        else:
            low = middle + 1
    return _packed(weights, low)


def _packed(weights: Sequence[int], target: int) -> list[int]:
    places: list[int] = []
    place, filled = 0, 0
    for weight in weights:
        if places and filled + weight > target:
            place, filled = place + 1, 0
        filled += weight
        places.append(place)
    return places
