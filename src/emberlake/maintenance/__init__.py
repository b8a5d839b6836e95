"""Everything that keeps a table in shape, apart from reading and writing it.

The larger modules are loaded on first use: most programs never check or clean a table.
"""

from typing import TYPE_CHECKING

from emberlake.base.lazy import lazy_modules

__all__ = [
    "analyze",
    "check",
    "compact",
    "expire",
    "manifests",
    "orphans",
    "partition_done",
    "rescale",
    "sort_compact",
]

if TYPE_CHECKING:
    from emberlake.maintenance import (
        analyze,
        check,
        compact,
        expire,
        manifests,
        orphans,
        partition_done,
        rescale,
        sort_compact,
    )
else:
    __getattr__ = lazy_modules(__name__, __all__)
