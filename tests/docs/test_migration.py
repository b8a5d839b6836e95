"""What migration.md says of pypaimon is there: its calls by name, and ours beside them."""

import json
import re
import subprocess
from functools import cache
from typing import Any

import pytest

import emberlake
import emberlake.spark
from docs.pages import DOCS, prose_of, section_of
from docs.test_reference import CLASSES
from docs.test_reference import PAGE as REFERENCE
from emberlake.predicates import Leaf
from emberlake.scan.splits import DataSplit
from emberlake.table.stream_read import StreamingTableScan
from interop.judges import PEERS_PYTHON

PAGE = DOCS / "migration.md"
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| (.*?) ?\|$", prose_of(PAGE), re.MULTILINE)
CALL = re.compile(r"(\w+)\(")
SNAPSHOT_CALLS = {"at_or_before", "latest", "load"}  # of what snapshot_manager() gives
# Calls of rows that are read, and of other libraries.
OUR_OTHERS = {"from_pylist", "get_field"}
PEER_NAMES = """
import inspect, json, sys
import pypaimon.catalog.catalog, pypaimon.common.predicate_builder, pypaimon.read.read_builder
import pypaimon.read.stream_read_builder, pypaimon.read.streaming_table_scan
import pypaimon.read.table_read, pypaimon.read.table_scan, pypaimon.read.plan
import pypaimon.schema.schema_change, pypaimon.snapshot.snapshot_manager
import pypaimon.table.file_store_table, pypaimon.write.commit_message_serializer
import pypaimon.write.table_commit, pypaimon.write.table_write, pypaimon.write.write_builder
from pypaimon import CatalogFactory

names = set(dir(CatalogFactory))
for module in [m for name, m in sorted(sys.modules.items()) if name.startswith("pypaimon.")]:
    names.update(vars(module))
    for value in list(vars(module).values()):
        if inspect.isclass(value) and value.__module__.startswith("pypaimon"):
            names.update(dir(value))
with open(pypaimon.__path__[0] + "/ray/ray_paimon.py") as ray:
    names.update(line.split("(")[0][4:] for line in ray if line.startswith("def "))
methods = {}
for module in [m for name, m in sorted(sys.modules.items()) if name.startswith("pypaimon.")]:
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            found = inspect.getmembers(value, inspect.isroutine)
            methods[name] = [method for method, _ in found if not method.startswith("_")]
print(json.dumps({"names": sorted(names), "methods": methods}))
"""
# Our classes for those of pypaimon whose objects programs hold, where they have another name.
COUNTERPARTS: dict[str, type] = {
    **{cls.__name__: cls for cls in CLASSES},
    "AsyncStreamingTableScan": StreamingTableScan,
    "DataSplit": DataSplit,
    "AtomicType": emberlake.AtomicType,
    "RowType": emberlake.RowType,
    "DataField": emberlake.DataField,
    "Predicate": Leaf,
}
NOT_COMPARED = {
    "Catalog",
    "CatalogFactory",
    "Identifier",
    "Table",
}  # not all of them is meant to be ours


def calls_of(column: int) -> set[str]:
    return {name for row in ROWS for name in CALL.findall(row[column])}


def test_our_calls_are_there() -> None:
    ours = {*emberlake.__all__, *emberlake.spark.__all__, *SNAPSHOT_CALLS, *OUR_OTHERS}
    ours.update(name for cls in CLASSES for name in dir(cls))

    assert calls_of(1) - ours == set()


@pytest.mark.parametrize("name", sorted(SNAPSHOT_CALLS))
def test_calls_on_snapshots_are_in_the_reference(name: str) -> None:
    assert f"`{name}(" in section_of(REFERENCE, "Table")


@pytest.mark.interop
@pytest.mark.usefixtures("pypaimon")  # says what is missing where it is not installed
def test_the_calls_of_pypaimon_are_there() -> None:
    assert calls_of(0) - set(peer()["names"]) == set()


@pytest.mark.interop
@pytest.mark.usefixtures("pypaimon")
def test_what_pypaimon_has_on_what_programs_hold_is_ours_or_on_the_page() -> None:
    text = prose_of(PAGE)
    methods = peer()["methods"]
    compared = COUNTERPARTS.keys() & methods.keys() - NOT_COMPARED

    missing = {
        f"{name}.{method}"
        for name in compared
        for method in methods[name]
        if not hasattr(COUNTERPARTS[name], method) and not re.search(rf"\b{method}\b", text)
    }

    assert missing == set()
    assert {"ReadBuilder", "TableScan", "TableRead", "TableWrite", "DataSplit"} <= compared


@cache
def peer() -> dict[str, Any]:
    done = subprocess.run(
        [str(PEERS_PYTHON), "-c", PEER_NAMES], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_row_has_three_columns() -> None:
    assert len(ROWS) > 40
