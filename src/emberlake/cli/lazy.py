"""Modules that are loaded when one of their names is first used.

The engine takes half a second to load; help and completion need nothing of it. Commands say

    if TYPE_CHECKING:
        from emberlake.cli.actions import tables
    else:
        tables = LazyModule("emberlake.cli.actions.tables")

so that type checkers see the module and ``emberlake --help`` does not pay for it.
"""

import importlib
from typing import Any


class LazyModule:
    """Stands for a module, and loads it on first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
