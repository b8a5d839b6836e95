"""Load optional libraries on demand. If one is missing, the error says how to install it."""

import importlib
from typing import Any, Final

from emberlake.errors import Unsupported

# Modules of higher layers that lower layers may load. The key is a word that stands for the module.
_OFFERED: Final[dict[str, str]] = {}


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


def offer(what: str, module: str) -> None:
    """Let lower layers load a module of a higher one by a word. Only the package calls this."""
    _OFFERED[what] = module


def load_offered(what: str, *, extra: str) -> Any:
    """A module of a higher layer that was offered, or an error that says what to install."""
    try:
        return importlib.import_module(_OFFERED[what])
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"{error.name} is not installed; in a checkout of emberlake, install it with: "
            f"pip install '.[{extra}]'"
        ) from error
