"""What migration.md says of pypaimon is there: its calls by name, and ours beside them."""

import json
import re
import subprocess

import pytest

import emberlake
import emberlake.spark
from docs.pages import DOCS, prose_of, section_of
from docs.test_reference import CLASSES
from docs.test_reference import PAGE as REFERENCE
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
print(json.dumps(sorted(names)))
"""


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
    done = subprocess.run(
        [str(PEERS_PYTHON), "-c", PEER_NAMES], capture_output=True, text=True, check=True
    )

    assert calls_of(0) - set(json.loads(done.stdout)) == set()


def test_every_row_has_three_columns() -> None:
    assert len(ROWS) > 40
