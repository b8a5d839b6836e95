"""Modules that are loaded when they are first used."""

import importlib
from collections.abc import Callable, Collection
from types import ModuleType


def lazy_modules(package: str, names: Collection[str]) -> Callable[[str], ModuleType]:
    """A ``__getattr__`` for a package, which loads the named modules on first use."""

    def load(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return load
