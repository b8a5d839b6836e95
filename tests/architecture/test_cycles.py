"""Imports make no circle, and facades show type checkers and editors what they hand out."""

import ast
import importlib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from architecture.test_layers import FACADES, Module, modules

NAMES = {module.name: module for module in modules()}
LOADABLE = NAMES.keys() - FACADES


def imported_modules(module: Module) -> Iterator[str]:
    """The modules of the package that a module names, those that only type checkers see too.

    So are those that it loads by their names, when they are needed.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in NAMES)
        elif isinstance(node, ast.ImportFrom) and node.module in NAMES:
            # Parts of a package are taken from it without what it gathers.
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from parts & set(NAMES)
            if parts - set(NAMES):
                yield node.module
        elif isinstance(node, ast.Constant) and module.name not in FACADES:
            yield from LOADABLE & {node.value}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph = {name: set(imported_modules(module)) for name, module in NAMES.items()}

    assert circle_in(graph) == []
    assert circle_in({**graph, "emberlake.errors": {"emberlake.table"}}) != []


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, module in NAMES.items():
        if name not in FACADES:
            targets = {package_of(target) for target in imported_modules(module)}
            graph.setdefault(package_of(name), set()).update(targets - {package_of(name)})

    assert circle_in(graph) == []


def test_nobody_imports_a_facade() -> None:
    """A facade is loaded on first use of a name, and gathers from above its own folder."""
    users = [n for n, module in NAMES.items() if FACADES & set(imported_modules(module))]

    assert users == []


@pytest.mark.parametrize("facade", sorted(FACADES))
def test_type_checkers_see_every_name_of_a_facade_at_its_home(facade: str) -> None:
    """What ``__getattr__`` gives is Any to them, unless an import tells more."""
    tree = NAMES[facade].tree
    seen = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    loaded = importlib.import_module(facade)

    assert [name for name in loaded.__all__ if name not in seen] == []
    assert {name: seen[name] for name in loaded._HOMES} == loaded._HOMES


def package_of(name: str) -> str:
    """The folder right below the package that a module is in, or is."""
    return ".".join(name.split(".")[:2])
