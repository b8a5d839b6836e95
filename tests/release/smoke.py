"""Uses an installed emberlake; run in an environment that has nothing else of the repository."""

import importlib
import subprocess
import sys
import tempfile

import pyarrow as pa

from emberlake import CatalogFactory

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"], "n": [1.5, None]})


def use_core(warehouse: str) -> None:
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("d")
    for kind in ("parquet", "orc", "avro"):
        options = {"bucket": "2", "file.format": kind}
        table = catalog.create_table(f"d.{kind}", ROWS.schema, primary_keys=["id"], options=options)
        table.upsert(ROWS)
        table.upsert(ROWS.slice(1))
        table.delete_keys(pa.table({"id": [1]}))
        table.compact(full=True)
        assert table.to_arrow(filter="id > 0 AND upper(v) = 'B'").num_rows == 1
        assert table.check().ok
    vectors = {"deletion-vectors.enabled": "true"}
    table = catalog.create_table("d.plain", ROWS.schema, options=vectors)
    table.append(ROWS)
    table.delete("id = 1")
    table.merge(ROWS, ["id"]).when_not_matched_insert_all().execute()
    assert sorted(pa.table(table)["id"].to_pylist()) == [1, 2]


def use_extras(warehouse: str) -> None:
    orders = CatalogFactory.create({"warehouse": warehouse}).get_table("d.plain")
    duckdb, polars, pandas = (importlib.import_module(n) for n in ("duckdb", "polars", "pandas"))
    assert duckdb.sql("SELECT sum(id) FROM orders").fetchall() == [(3,)]
    assert polars.DataFrame(orders).height == len(orders.to_polars()) == 2
    assert len(orders.to_pandas()) == 2
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(orders)) == 2
    program = [sys.executable, "-m", "emberlake", "--warehouse", warehouse]
    read = subprocess.run([*program, "read", "d.plain"], check=True, capture_output=True, text=True)
    assert "a" in read.stdout
    page = f"{warehouse}/report.html"
    subprocess.run([*program, "report", "d.plain", "--out", page], check=True, capture_output=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        use_core(folder)
        if "extras" in sys.argv:
            use_extras(folder)
    sys.stdout.write(f"fine: {sys.argv[1:]}\n")
