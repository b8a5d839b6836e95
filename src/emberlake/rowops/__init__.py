"""Operations on rows, each of them one commit.

They are loaded on first use: many programs only read.
"""

from typing import TYPE_CHECKING

from emberlake.base.lazy import lazy_modules

__all__ = ["change", "keys", "merge_builder", "shards", "short_writes"]

if TYPE_CHECKING:
    from emberlake.rowops import change, keys, merge_builder, shards, short_writes
else:
    __getattr__ = lazy_modules(__name__, __all__)
