"""The shape of the package: who may import whom, and what lives in one place only."""

import ast
import json
import subprocess
import sys

import pytest

from architecture.modules import SOURCE, Module, modules

MAX_LINES = 450

# Imports go down only. Parts of one set are siblings that do not know each other.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "_version"}),
    frozenset({"base"}),
    frozenset({"types"}),
    frozenset({"options"}),
    frozenset({"spec"}),
    frozenset({"rest"}),
    frozenset({"predicates", "io"}),
    frozenset({"formats", "store", "wire", "merge"}),
    frozenset({"scan"}),
    frozenset({"read", "write", "commit"}),
    frozenset({"compaction", "expressions", "places"}),
    frozenset({"session"}),
    frozenset({"rowops", "maintenance"}),
    frozenset({"spark"}),
    frozenset({"inspect"}),
    frozenset({"table"}),
    frozenset({"catalog"}),
    frozenset({"jobs", "server"}),
    frozenset({"ui", "datasource"}),
    frozenset({"sql"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
TOP = len(LAYERS)  # facades: gather public names from everywhere, and load them on first use

# Library -> the only places that import it; no place means nowhere.
FENCES: dict[str, tuple[str, ...]] = {
    "pyspark": (
        "emberlake.spark",
        "emberlake.datasource",
        "emberlake.sql.on_spark",
        "pyspark_emberlake",
    ),
    "sqlglot": ("emberlake.sql",),
    "pyarrow.parquet": ("emberlake.formats",),
    "pyarrow.orc": ("emberlake.formats",),
    "typer": ("emberlake.cli",),
    "rich": ("emberlake.cli",),
    "prompt_toolkit": ("emberlake.cli.terminal", "emberlake.cli.history"),
    "pygments": ("emberlake.cli.terminal",),
    "IPython": (),  # a notebook hands itself to the extension
    "starlette": ("emberlake.ui",),
    "jinja2": ("emberlake.ui",),
    "fastavro": ("emberlake.store.avro_container", "emberlake.formats.avro"),
    "obstore": ("emberlake.io.object",),
    "uvicorn": ("emberlake.server.connections", "emberlake.ui.serving"),
    "uvloop": ("emberlake.server.serving",),
    "sqlite3": ("emberlake.server.database.sqlite",),
    "psycopg": (
        "emberlake.server.database.postgres",
        "emberlake.server.database.postgres_bulk",
        "emberlake.server.database.postgres_reads",
    ),
    "psycopg_pool": ("emberlake.server.database.postgres",),
    "jwt": ("emberlake.server.access.oidc",),
    "pypaimon": (),
    "pypaimon_rust": (),
    "pickle": (),  # nothing that comes from storage or another process is unpickled
    # Only catalogs have servers of their own; stores are asked by obstore, for all that it can.
    "http": ("emberlake.io.object.sending",),
    "urllib.request": ("emberlake.io.object.sending", "emberlake.io.rest.connections"),
    "urllib3": ("emberlake.io.rest.connections",),
    "requests": (),
    "httpx": (),
    "aiohttp": (),
    "socket": ("emberlake.server.listening",),
}

# The codecs of the format and of the REST protocol touch neither disk nor clock nor chance.
PURE = ("emberlake.spec", "emberlake.rest")
IMPURE = frozenset({"os", "pathlib", "shutil", "tempfile", "time", "random", "secrets", "uuid"})

EXTRAS = (
    "pyspark",
    "pandas",
    "polars",
    "duckdb",
    "obstore",
    "urllib3",
    "typer",
    "rich",
    "prompt_toolkit",
    "IPython",
    "starlette",
    "jinja2",
    "uvicorn",
    "psycopg",
    "jwt",
    "sqlglot",
    "pytest",
    "hypothesis",
)


def test_imports_go_down_only() -> None:
    wrong = [
        f"{module.at(line)} imports {name}"
        for module in package_modules()
        for line, name in module.imports
        if (target := part_of(name)) is not None
        and target != module.part
        and level_of(target) >= level_of(module.part)
    ]

    assert sorted(set(wrong)) == []


def test_every_part_has_a_layer_and_every_layer_its_parts() -> None:
    assert {module.part for module in package_modules()} == {*LEVEL, None}


def test_every_place_behind_a_fence_is_there() -> None:
    names = {module.name for module in modules()}

    assert [place for places in FENCES.values() for place in places if place not in names] == []


@pytest.mark.parametrize("library", FENCES)
def test_a_fenced_library_is_imported_in_its_place_only(library: str) -> None:
    wrong = [
        f"{module.at(line)} imports {name}"
        for module in modules()
        for line, name in module.imports_at_run_time
        if is_inside(name, library) and not is_inside_any(module.name, FENCES[library])
    ]

    assert wrong == []


def test_avro_files_are_touched_by_the_avro_modules_only() -> None:
    names = {"read_avro", "scan_avro", "write_avro", "sink_avro"}
    wrong = [
        module.at(node.lineno)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Attribute)
        and node.attr in names
        and not is_inside_any(module.name, FENCES["fastavro"])
    ]

    assert wrong == []


def test_the_codecs_of_the_format_are_pure() -> None:
    wrong = [
        f"{module.at(line)} imports {name}"
        for module in package_modules()
        for line, name in module.imports
        if is_inside_any(module.name, PURE) and name.split(".")[0] in IMPURE
    ]

    assert wrong == []


def test_no_function_hides_an_import_of_the_package() -> None:
    wrong = [
        module.at(node.lineno)
        for module in modules()
        for function in module.nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if imports_package(node)
    ]

    assert wrong == []


def test_private_names_stay_in_their_module() -> None:
    wrong = [
        f"{module.at(node.lineno)} takes {alias.name} from {node.module}"
        for module in package_modules()
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and imports_package(node)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.startswith("__")
    ]

    assert [problem for problem in wrong if "emberlake._version" not in problem] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [
        str(m.path.relative_to(SOURCE)) for m in modules() if not ast.get_docstring(m.tree)
    ] == []


def test_no_module_is_too_long_to_read() -> None:
    long = {m.name: m.line_count for m in modules() if m.line_count >= MAX_LINES}

    assert long == {}


def test_importing_emberlake_loads_no_extra() -> None:
    program = (
        "import json, sys, emberlake; "
        "[getattr(emberlake, name) for name in emberlake.__all__]; "  # they are loaded on first use
        "print(json.dumps(sorted(sys.modules)))"
    )

    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    ).stdout

    assert [name for name in EXTRAS if name in json.loads(output)] == []


def package_modules() -> tuple[Module, ...]:
    return tuple(module for module in modules() if is_inside(module.name, "emberlake"))


def part_of(name: str) -> str | None:
    """The part of the package that an imported name belongs to; None for other libraries."""
    package, _, below = name.partition(".")
    return below.split(".")[0] or None if package == "emberlake" else None


def level_of(part: str | None) -> int:
    return TOP if part is None else LEVEL.get(part, TOP)


def imports_package(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").split(".")[0] == "emberlake"
    return isinstance(node, ast.Import) and any(is_inside(a.name, "emberlake") for a in node.names)


def is_inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def is_inside_any(name: str, packages: tuple[str, ...]) -> bool:
    return any(is_inside(name, package) for package in packages)
