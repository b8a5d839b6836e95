"""Imports make no circle, and facades show type checkers and editors what they hand out."""

import ast
import importlib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from architecture.modules import FACADES, Module, modules


@cache
def by_name() -> dict[str, Module]:
    return {module.name: module for module in modules()}


@cache
def imported() -> dict[str, frozenset[str]]:
    """The modules of the package that each of its modules names."""
    return {name: frozenset(imported_modules(module)) for name, module in by_name().items()}


def imported_modules(module: Module) -> Iterator[str]:
    """Those that only type checkers see count, and those that are loaded by their names."""
    names = by_name().keys()
    loadable = names - FACADES
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module in names:
            # Parts of a package are taken from it without what it gathers.
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from parts & names
            if parts - names:
                yield node.module
        elif isinstance(node, ast.Constant) and module.name not in FACADES:
            yield from loadable & {node.value}


def circle_in(graph: Mapping[str, AbstractSet[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert circle_in(imported()) == []
    assert circle_in({**imported(), "emberlake.errors": {"emberlake.table"}}) != []


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for name, targets in imported().items():
        if name not in FACADES:
            packages = {package_of(target) for target in targets}
            graph.setdefault(package_of(name), set()).update(packages - {package_of(name)})

    assert circle_in(graph) == []


def test_nobody_imports_a_facade() -> None:
    """A facade is loaded on first use of a name, and gathers from above its own folder."""
    users = [name for name, targets in imported().items() if FACADES & targets]

    assert users == []


@pytest.mark.parametrize("facade", sorted(FACADES))
def test_type_checkers_see_every_name_of_a_facade_at_its_home(facade: str) -> None:
    """What ``__getattr__`` gives is Any to them, unless an import tells more."""
    seen = {
        alias.asname or alias.name: node.module
        for node in by_name()[facade].nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    loaded = importlib.import_module(facade)

    assert [name for name in loaded.__all__ if name not in seen] == []
    assert {name: seen[name] for name in loaded._HOMES} == loaded._HOMES


def package_of(name: str) -> str:
    """The folder right below the package that a module is in, or is."""
    return ".".join(name.split(".")[:2])
