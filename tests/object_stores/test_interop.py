"""Tables on an S3 server, written and read in turn by all engines."""

import uuid
from collections.abc import Sequence

import pytest

from emberlake import Table
from interop.engines import READERS, WRITERS, arrow_rows, canonical, create, open_table
from interop.judges import Warehouse, java_on_stores, peer
from servers import REGION, Server

pytestmark = pytest.mark.interop

COLUMNS = {"id": "BIGINT NOT NULL", "day": "STRING", "v": "DOUBLE"}
PYTHON = ("emberlake", "pypaimon", "rust")
SHAPES = {
    "append": ((), ("day",), {}),
    "key": (("id",), (), {"bucket": "2"}),
}


@pytest.fixture
def warehouse(s3: Server) -> Warehouse:
    # Java has a name of its own for the region, and does without none.
    options = {**s3.options, "s3.endpoint.region": REGION}
    return Warehouse(f"{s3.root}/{uuid.uuid4()}/wh", options)


def check_turns(
    table: Table, warehouse: Warehouse, engines: Sequence[str], *, has_keys: bool
) -> None:
    """Each engine writes in turn, and after each turn all of them read the same rows."""
    model = []
    for turn, writer in enumerate([*engines, *reversed(engines)]):
        ids = range(turn * 2, turn * 2 + 4)  # of a key table, half of them are there
        new = [[i, f"d{i % 2}", turn + i / 2] for i in ids]
        model = [row for row in model if not (has_keys and row[0] in ids)] + new
        WRITERS[writer](warehouse, arrow_rows(table, new))

        expected = canonical(table, model)
        found = {name: READERS[name](warehouse) for name in engines}
        assert found == dict.fromkeys(engines, expected), f"after turn {turn}, of {writer}"
    assert open_table(warehouse).check().problems == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_python_engines_write_and_read_a_table_in_turn(shape: str, warehouse: Warehouse) -> None:
    keys, partitions, options = SHAPES[shape]
    table = create(warehouse, COLUMNS, keys, partitions, **options)

    check_turns(table, warehouse, PYTHON, has_keys=bool(keys))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_that_pypaimon_created_is_read_and_written(
    shape: str, warehouse: Warehouse
) -> None:
    keys, partitions, options = SHAPES[shape]
    elsewhere = Warehouse(f"{warehouse.path}-ours", warehouse.options)
    schema = arrow_rows(create(elsewhere, COLUMNS, keys, partitions, **options), []).schema
    peer("pypaimon").create_table(
        warehouse, "db.t", schema, partition_keys=partitions, primary_keys=keys, options=options
    )

    check_turns(open_table(warehouse), warehouse, ("pypaimon", "emberlake"), has_keys=bool(keys))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_all_engines_write_and_read_a_table_in_turn(shape: str, warehouse: Warehouse) -> None:
    java_on_stores()
    keys, partitions, options = SHAPES[shape]
    table = create(warehouse, COLUMNS, keys, partitions, **options)

    check_turns(table, warehouse, (*PYTHON, "java"), has_keys=bool(keys))
