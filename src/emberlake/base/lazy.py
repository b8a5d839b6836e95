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


class LazyModule:
    """Stands for a module that is loaded when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(importlib.import_module(self._name), attribute)
