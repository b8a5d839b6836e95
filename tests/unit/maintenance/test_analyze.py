"""Statistics of tables: what they say, and that they change no row."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Schema, Table
from emberlake.errors import ColumnNotFound, Unsupported

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("day", pa.date32()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    schema = Schema.from_pyarrow_schema(COLUMNS, primary_keys=["id"], options={"bucket": "1"})
    catalog.create_table("db.t", schema)
    table = catalog.get_table("db.t")
    for names in (["a", "bb", None], ["a", "ccc", "dd"]):
        rows: dict[str, list[Any]] = {
            "id": [1, 2, 3],
            "name": names,
            "price": [Decimal("1.50"), Decimal("-2.00"), None],
            "day": [0, 19723, 5],
            "tags": [["x"], [], None],
        }
        table.append(pa.table(rows, COLUMNS))
    return table


def statistics(catalog: Catalog) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = catalog.get_table("db.t$statistics").to_arrow().to_pylist()
    return found


def test_rows_are_counted_after_merging_and_no_row_changes(catalog: Catalog, table: Table) -> None:
    before = table.to_arrow()

    assert statistics(catalog) == []
    table.analyze()

    (found,) = statistics(catalog)
    assert (found["snapshot_id"], found["mergedRecordCount"], found["colstat"]) == (2, 3, "{ }")
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.id, latest.commit_kind.value) == (3, "ANALYZE")
    assert table.to_arrow() == before
    assert table.check().ok


def test_columns_are_described(catalog: Catalog, table: Table) -> None:
    table.analyze(["id", "name", "price", "day"])

    (found,) = statistics(catalog)
    columns = json.loads(found["colstat"])
    assert columns["name"] == {
        "colId": 1,
        "distinctCount": 3,
        "nullCount": 0,
        "avgLen": 2,
        "maxLen": 3,
    }
    assert columns["price"]["min"] == "-2.00"
    assert (columns["day"]["min"], columns["day"]["max"]) == ("0", "19723")
    assert (columns["id"]["distinctCount"], columns["price"]["nullCount"]) == (3, 1)


def test_statistics_stay_until_the_schema_changes(catalog: Catalog, table: Table) -> None:
    table.analyze()
    table.append(table.to_arrow())
    assert len(statistics(catalog)) == 1

    catalog.sql("ALTER TABLE db.t ADD COLUMN more INT")
    catalog.sql("INSERT INTO db.t (id) VALUES (9)")

    assert statistics(catalog) == []


def test_what_has_no_statistics_is_refused(table: Table) -> None:
    with pytest.raises(Unsupported, match="tags"):
        table.analyze(["tags"])
    with pytest.raises(ColumnNotFound, match="nope"):
        table.analyze(["nope"])


def test_many_distinct_values_are_estimated_in_bounded_memory(catalog: Catalog) -> None:
    rows = pa.table({"n": pa.array(range(200_000), pa.int64())})
    catalog.create_table("db.t", Schema.from_pyarrow_schema(rows.schema))
    table = catalog.get_table("db.t")
    table.append(rows)

    table.analyze(["n"])

    (found,) = statistics(catalog)
    count = json.loads(found["colstat"])["n"]["distinctCount"]
    assert count == pytest.approx(200_000, rel=0.02)
