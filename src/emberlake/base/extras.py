"""Load optional libraries on demand. If one is missing, the error says how to install it."""

import importlib
from typing import Any

from emberlake.errors import Unsupported


def load_extra(module: str, *, extra: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".", maxsplit=1)[0]:
            raise
        # Install from the folder, not by name: no package index has emberlake yet.
        raise Unsupported(
            f"{module} is not installed; in a checkout of emberlake, install it with: "
            f"pip install '.[{extra}]'"
        ) from error
