"""What commands do. Actions work on tables and return reports; they print nothing.

A module of actions is loaded when it is first used. The engine takes half a second to load, and
``emberlake --help`` needs none of it.
"""

from typing import TYPE_CHECKING

from emberlake.base.lazy import lazy_modules

__all__ = [
    "alter",
    "changes",
    "creation",
    "databases",
    "ingestion",
    "inspection",
    "maintenance",
    "pictures",
    "plan",
    "prompting",
    "reading",
    "refs",
    "script_text",
    "serving",
    "serving_access",
    "statements",
    "tables",
]

if TYPE_CHECKING:
    from emberlake.cli.actions import (
        alter,
        changes,
        creation,
        databases,
        ingestion,
        inspection,
        maintenance,
        pictures,
        plan,
        prompting,
        reading,
        refs,
        script_text,
        serving,
        serving_access,
        statements,
        tables,
    )
else:
    __getattr__ = lazy_modules(__name__, __all__)
