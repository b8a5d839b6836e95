"""Every public name of pypaimon, on the classes that its users hold, is here or in migration.md."""

import inspect
import json
import re
import subprocess

import pytest

import emberlake
from docs.pages import DOCS, section_of
from emberlake import catalog, errors
from emberlake.spec import instant, snapshot
from emberlake.table import managers
from interop.judges import PEERS_PYTHON

PAGE = DOCS / "migration.md"
SECTION = section_of(PAGE, "Names that are not there")
# A row of the table: class, names and why.
LISTED = {
    row[1]: set(re.findall(r"`(\w+)`", row[2]))
    for row in re.finditer(r"^\| `(\w+)` \| (.+?) \| .+ \|$", SECTION, re.MULTILINE)
}
OURS = {
    "catalog.filesystem_catalog.FileSystemCatalog": catalog.FileSystemCatalog,
    "catalog.catalog_factory.CatalogFactory": catalog.CatalogFactory,
    "catalog.database.Database": catalog.Database,
    "api.api_response.PagedList": catalog.PagedList,
    "api.api_response.Partition": catalog.Partition,
    "api.api_response.GetTagResponse": catalog.GetTagResponse,
    "common.identifier.Identifier": emberlake.Identifier,
    "table.file_store_table.FileStoreTable": emberlake.Table,
    "table.system.system_table.SystemTable": emberlake.SystemTable,
    "table.instant.Instant": instant.Instant,
    "snapshot.snapshot_manager.SnapshotManager": managers.SnapshotManager,
    "snapshot.snapshot.Snapshot": snapshot.Snapshot,
    "tag.tag.Tag": emberlake.Tag,
    "tag.tag_manager.TagManager": managers.TagManager,
    "branch.filesystem_branch_manager.FileSystemBranchManager": managers.BranchManager,
    "schema.schema_manager.SchemaManager": managers.SchemaManager,
}
MODULES = {"pypaimon": emberlake, "pypaimon.catalog.catalog_exception": errors}
# What a class has, what its instances get when they are made, and what a module has of its own.
PEER_NAMES = r"""
import importlib, inspect, json, re, sys

def names_of(cls):
    found = {*dir(cls), *getattr(cls, "__dataclass_fields__", ())}
    for base in cls.__mro__[:-1]:
        made = vars(base).get("__init__")
        if made and made.__code__.co_filename.endswith(".py"):
            found.update(re.findall(r"self\.(\w+)[^=\n(]*=[^=]", inspect.getsource(made)))
    return found

classes, modules = map(json.loads, sys.argv[1:])
names = {}
for path in classes:
    module, _, name = path.rpartition(".")
    names[path] = names_of(getattr(importlib.import_module("pypaimon." + module), name))
for path in modules:
    module = importlib.import_module(path)
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == path]
    names[path] = {*getattr(module, "__all__", ()), *(n for n in own if n != "__getattr__")}
print(json.dumps({path: sorted(found) for path, found in names.items()}))
"""


@pytest.fixture(scope="module")
def peer_names(pypaimon: object) -> dict[str, list[str]]:
    command = [str(PEERS_PYTHON), "-c", PEER_NAMES, json.dumps([*OURS]), json.dumps([*MODULES])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names: dict[str, list[str]] = json.loads(done.stdout)
    return names


def our_names(cls: type) -> set[str]:
    fields = getattr(cls, "__dataclass_fields__", ())
    return {*dir(cls), *fields, *re.findall(r"self\.(\w+) =", inspect.getsource(cls))}


@pytest.mark.interop
@pytest.mark.parametrize("path", OURS)
def test_a_method_is_here_or_listed_with_the_reason(
    path: str, peer_names: dict[str, list[str]]
) -> None:
    # Constants are in capitals; nobody calls them.
    theirs = {name for name in peer_names[path] if name[0].islower()}

    assert theirs - our_names(OURS[path]) == LISTED.get(path.rpartition(".")[2], set())


@pytest.mark.interop
@pytest.mark.parametrize("path", MODULES)
def test_an_exported_name_is_here_or_listed_with_the_reason(
    path: str, peer_names: dict[str, list[str]]
) -> None:
    listed = LISTED[path.rpartition(".")[2]]

    assert {name for name in peer_names[path] if not hasattr(MODULES[path], name)} == listed


def test_every_row_of_the_list_is_of_something_that_is_compared() -> None:
    assert set(LISTED) <= {path.rpartition(".")[2] for path in (*OURS, *MODULES)}
