"""The modules of the package, parsed once for all tests of its shape."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from effort import made_to_stay

SOURCE = Path(__file__).parents[2] / "src"
# They are loaded on first use of a name, and gather from above their own folder.
FACADES = frozenset({"emberlake", "emberlake.spark"})


@dataclass(frozen=True)
class Module:
    """One source file of the package."""

    path: Path
    name: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]  # all of the tree
    line_count: int

    @property
    def part(self) -> str | None:
        """The folder or module right below `emberlake`; None for facades."""
        if self.name in FACADES:
            return None
        _, _, below = self.name.partition(".")
        return below.split(".")[0] or None

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """Line and dotted name of everything that is imported, at any depth of the code."""
        return tuple(imports_of(self.nodes))

    @cached_property
    def imports_at_run_time(self) -> tuple[tuple[int, str], ...]:
        """The same without what only type checkers see."""
        hidden = {
            id(below)
            for node in self.nodes
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for below in ast.walk(node)
        }
        return tuple(imports_of(node for node in self.nodes if id(node) not in hidden))

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(SOURCE)}:{line}"


@cache
def modules() -> tuple[Module, ...]:
    with made_to_stay():
        return tuple(parse(path) for path in sorted(SOURCE.rglob("*.py")))


def parse(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(SOURCE).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    tree = ast.parse(text)
    return Module(path, name, tree, tuple(ast.walk(tree)), text.count("\n"))


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
