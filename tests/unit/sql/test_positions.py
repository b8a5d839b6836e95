"""Which columns take the values of INSERT without a list of columns."""

from pathlib import Path

import pytest

from emberlake.sql.names import TableName
from emberlake.sql.positions import columns_by_position
from emberlake.sql.statements import Insert, PartitionValue
from emberlake.table import Table
from unit.sql.commands.sessions import Lake


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Its partition columns are not its last ones."""
    lake = Lake(tmp_path)
    lake.sql("CREATE TABLE t (g STRING, id INT, h INT, v STRING) PARTITIONED BY (h, g)")
    return lake.catalog.get_table("db.t")


def places(
    table: Table,
    given: str,
    *partition: PartitionValue,
    overwrite: bool = False,
    is_dynamic: bool = False,
) -> str:
    insert = Insert(
        table=TableName(("t",)), query="", partition=partition or None, overwrite=overwrite
    )
    static = {part.column for part in partition if part.value is not None}
    found = columns_by_position(insert, table, static, given.split, is_dynamic=is_dynamic)
    return " ".join(found)


def test_partition_columns_without_a_value_come_last(table: Table) -> None:
    h, g = PartitionValue("h", None), PartitionValue("G", None)

    assert places(table, "a b c d", g, h) == "id v h g"
    assert places(table, "a b c", PartitionValue("h", "1"), g) == "id v g"
    assert places(table, "G ID H V", g, h) == "g id h v"  # it names the columns as the table does


def test_without_such_columns_the_order_is_that_of_the_table(table: Table) -> None:
    assert places(table, "a b c d") == "g id h v"
    assert places(table, "id v h g") == "g id h v"
    assert places(table, "a b", PartitionValue("g", "'x'"), PartitionValue("h", "1")) == "id v"


def test_a_dynamic_overwrite_takes_a_query_in_the_order_of_hive(table: Table) -> None:
    assert places(table, "id v h g", overwrite=True, is_dynamic=True) == "id v h g"
    assert places(table, "a b c d", overwrite=True, is_dynamic=True) == "g id h v"
    assert places(table, "id v h g", overwrite=True) == "g id h v"
