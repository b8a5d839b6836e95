"""Tables, builders, splits and messages cross into another process and do their work there."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders import append, rows_of
from emberlake import CatalogFactory, Schema
from emberlake.table import Table

pytestmark = pytest.mark.thorough

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "warehouse")})
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS, partition_keys=["day"]))
    made = catalog.get_table("db.t")
    assert isinstance(made, Table)
    append(made, [*rows_of([1, 2, 3]), *rows_of([4], "tue")])
    return made


def run_there(program: str, *values: Any) -> Any:
    """Run a program in a fresh interpreter; it gets ``values`` and leaves ``result``."""
    wrapped = f"""
import pickle, sys
values = pickle.load(sys.stdin.buffer)
{program}
sys.stdout.buffer.write(pickle.dumps(result))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", wrapped],
        input=pickle.dumps(values),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def test_splits_and_a_builder_are_read_elsewhere(table: Table) -> None:
    builder = table.new_read_builder().with_filter("id > 1").with_projection(["id"])
    splits = builder.new_scan().plan().splits()

    found = run_there(
        "builder, splits = values\n"
        "result = [builder.new_read().to_arrow([s]).column('id').to_pylist() for s in splits]",
        builder,
        splits,
    )

    assert sorted(found) == [[2, 3], [4]]


def test_reads_scans_and_plans_cross_as_well(table: Table) -> None:
    builder = table.new_read_builder().with_limit(1)

    found = run_there(
        "read, scan, plan = values\n"
        "result = [read.to_arrow(p.splits()).num_rows for p in (plan, scan.plan())]",
        builder.new_read(),
        builder.new_scan(),
        builder.new_scan().plan(),
    )

    assert found == [1, 1]


def test_a_table_and_its_catalog_are_used_elsewhere(table: Table, tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "warehouse")})

    found = run_there(
        "table, catalog, then = values\n"
        "is_same = table == catalog.get_table('db.t')\n"
        "result = (repr(table), is_same, then.options['scan.snapshot-id'])",
        table,
        catalog,
        table.copy({"scan.snapshot-id": 1}),
    )

    assert found == (repr(table), True, "1")


def test_rows_are_written_elsewhere_and_committed_here(table: Table) -> None:
    messages = run_there(
        "import pyarrow as pa\n"
        "(builder,) = values\n"
        "with builder.new_write() as write:\n"
        "    write.write_arrow(pa.table({'id': [7], 'day': ['wed']}))\n"
        "    result = write.prepare_commit()",
        (builder := table.new_batch_write_builder()),
    )

    result = builder.new_commit().commit(messages)

    assert result.snapshot_id == 2
    reader = table.new_read_builder().with_filter("day = 'wed'")
    rows = reader.new_read().to_arrow(reader.new_scan().plan().splits())
    assert rows.to_pylist() == rows_of([7], "wed")


def test_a_predicate_crosses_and_still_knows_whole_files(table: Table) -> None:
    builder = table.new_read_builder()
    predicate = builder.new_predicate_builder().greater_than("id", 0)

    found = run_there(
        "predicate, table = values\n"
        "builder = table.new_read_builder().with_filter(predicate)\n"
        "splits = builder.new_scan().plan().splits()\n"
        "result = [split.is_exact for split in splits], splits[0].predicate == predicate",
        predicate,
        table,
    )

    assert found == ([(True,), (True,)], True)


def test_errors_cross_with_all_that_they_say(table: Table) -> None:
    text = run_there(
        "import pickle\n"
        "(table,) = values\n"
        "try:\n"
        "    table.copy({'scan.snapshot-id': 9})\n"
        "except Exception as error:\n"
        "    result = str(pickle.loads(pickle.dumps(error)))",
        table,
    )

    assert "snapshot 9" in text
