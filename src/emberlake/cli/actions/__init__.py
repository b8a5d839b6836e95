"""What commands do. Actions work on tables and return reports; they print nothing.

A module of actions is loaded when it is first used. The engine takes half a second to load, and
``emberlake --help`` needs none of it.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emberlake.cli.actions import (
        alter,
        creation,
        databases,
        ingestion,
        inspection,
        maintenance,
        plan,
        reading,
        refs,
        tables,
    )
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(f"{__name__}.{name}")


__all__ = [
    "alter",
    "creation",
    "databases",
    "ingestion",
    "inspection",
    "maintenance",
    "plan",
    "reading",
    "refs",
    "tables",
]
