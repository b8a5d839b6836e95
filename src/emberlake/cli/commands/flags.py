"""Options without a value."""

from typing import Any

import typer


def flag(*names: str, help: str, rich_help_panel: str | None = None) -> Any:  # noqa: A002
    """An option that is there or not; help shows no type for it."""
    return typer.Option(*names, help=help, rich_help_panel=rich_help_panel, metavar="")
