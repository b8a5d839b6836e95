"""Operations on rows, each of them one commit.

Those that read rows to change them are loaded on first use: many programs only append.
"""

from typing import TYPE_CHECKING

from emberlake.base.lazy import lazy_modules

__all__ = ["change", "merge_builder", "shards"]

if TYPE_CHECKING:
    from emberlake.rowops import change, merge_builder, shards
else:
    __getattr__ = lazy_modules(__name__, __all__)
