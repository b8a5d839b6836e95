"""How large files are: counts by steps of 1, 2 and 5."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

_BOUNDS: Final = np.array(
    [0, *(step * 10**power for power in range(18) for step in (1, 2, 5)), 2**62], np.int64
)


@dataclass(frozen=True)
class SizeBar:
    """Files whose size is at least ``low`` and less than ``high``."""

    low: int
    high: int
    files: int
    bytes: int
    share: float  # of the files of the fullest bar


def size_bars_of(sizes: npt.NDArray[np.int64]) -> tuple[SizeBar, ...]:
    """The bars from the smallest file to the largest, empty ones in between included."""
    if not len(sizes):
        return ()
    classes = np.searchsorted(_BOUNDS, sizes, side="right") - 1
    first = int(classes.min())
    counts = np.bincount(classes - first)
    totals = np.zeros(len(counts), np.int64)
    np.add.at(totals, classes - first, sizes)
    most = int(counts.max())
    return tuple(
        SizeBar(int(_BOUNDS[first + i]), int(_BOUNDS[first + i + 1]), count, total, count / most)
        for i, (count, total) in enumerate(zip(counts.tolist(), totals.tolist(), strict=True))
    )
