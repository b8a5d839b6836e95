"""TPC-H on emberlake's tables, beside plain Parquet files, by SQL.

    python bench --tpch --scale 1                            all queries, all ways
    python bench --tpch --scale 1 --ways duckdb local        some ways
    python bench --tpch --scale 1 --layout keys              lineitem and orders have a primary key,
                                                             and 5 % of their rows were updated

The ways are ``duckdb`` and ``spark`` on plain files, ``local`` (``catalog.sql``), ``lake``
(``lake.sql``) and ``attached`` (``spark.sql`` after ``attach``). Results must be equal to those on
plain files. ``tpchgen-cli`` makes the rows.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from emberlake import CatalogFactory, Schema
from tpch_queries import QUERIES

BUILD = Path(__file__).parents[1] / ".build" / "bench"
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
KEYS = {"lineitem": ["l_orderkey", "l_linenumber"], "orders": ["o_orderkey"]}
COMMENTS = {"lineitem": "l_comment", "orders": "o_comment"}
UPDATED = 20  # one of so many orders is updated
BASELINES = {"local": "duckdb", "lake": "spark", "attached": "spark"}
WAYS = ("duckdb", "local", "spark", "lake", "attached")

NUMBERS = (int, float, Decimal)

Run = Callable[[str], pa.Table]


# --- rows -----------------------------------------------------------------------------------------


def make_files(folder: Path, scale: str) -> Path:
    """Plain Parquet files, one for each table; made once."""
    files = folder / f"tpch-{scale}"
    if not files.exists():
        tool = shutil.which("tpchgen-cli") or str(Path(sys.executable).parent / "tpchgen-cli")
        unfinished = files.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [tool, "parquet", "-s", scale, "--output-dir", str(unfinished)]
        subprocess.run(command, check=True, capture_output=True)
        unfinished.rename(files)
    return files


def make_tables(files: Path, layout: str) -> Path:
    """A warehouse with the same rows; made once."""
    warehouse = files.with_name(f"{files.name}-{layout}")
    if warehouse.exists():
        return warehouse
    unfinished = warehouse.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    catalog = CatalogFactory.create({"warehouse": str(unfinished)})
    catalog.create_database("tpch")
    for name in TABLES:
        rows = ds.dataset(files / f"{name}.parquet")
        schema = pa.schema([plain_field(f) for f in rows.schema])
        if layout == "keys" and name in KEYS:
            make_updated(catalog, name, rows, schema)
            continue
        catalog.create_table(f"tpch.{name}", Schema.from_pyarrow_schema(schema))
        catalog.get_table(f"tpch.{name}").append(stream(rows, schema))
    unfinished.rename(warehouse)
    return warehouse


def make_updated(catalog: Any, name: str, rows: ds.Dataset, schema: pa.Schema) -> None:
    """A key table that was written with other comments first, and has the right ones now."""
    keys = KEYS[name]
    required = pa.schema([f.with_nullable(f.name not in keys) for f in schema])
    made = Schema.from_pyarrow_schema(required, primary_keys=keys, options={"bucket": "4"})
    catalog.create_table(f"tpch.{name}", made)
    table = catalog.get_table(f"tpch.{name}")
    table.append(stream(rows, required, lambda batch: with_old_comments(batch, name)))
    table.append(stream(rows, required, lambda batch: batch.filter(is_updated(batch, name))))


def with_old_comments(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    at = batch.schema.get_field_index(COMMENTS[name])
    comment = batch.column(at)
    changed = pc.if_else(is_updated(batch, name), pa.scalar("to be updated"), comment)
    return batch.set_column(at, batch.schema.field(at), changed)


def is_updated(batch: pa.RecordBatch, name: str) -> pa.Array:
    key = batch.column(KEYS[name][0])
    return pc.equal(pc.subtract(key, pc.multiply(pc.divide(key, UPDATED), UPDATED)), 1)


def plain_field(field: pa.Field) -> pa.Field:
    is_text = pa.types.is_string_view(field.type) or pa.types.is_large_string(field.type)
    return field.with_type(pa.string()) if is_text else field


def stream(
    rows: ds.Dataset,
    schema: pa.Schema,
    change: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> pa.RecordBatchReader:
    batches = (
        change(
            pa.RecordBatch.from_pydict(
                {f.name: b.column(f.name).cast(f.type) for f in schema}, schema=schema
            )
        )
        for b in rows.to_batches()
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


# --- ways -----------------------------------------------------------------------------------------


def open_ways(ways: Iterable[str], files: Path, warehouse: Path, master: str) -> dict[str, Run]:
    """How to run a query, by the name of the way."""
    runs: dict[str, Run] = {}
    if "duckdb" in ways:
        runs["duckdb"] = duckdb_on_files(files)
    if "local" in ways:
        runs["local"] = local_on_tables(warehouse)
    if {"spark", "lake", "attached"} & set(ways):
        found = spark_ways(files, warehouse, master)
        runs |= {way: found[way] for way in ways if way in found}
    return runs


def duckdb_on_files(files: Path) -> Run:
    import duckdb  # noqa: PLC0415 - a way that is not asked for need not be there
    import sqlglot  # noqa: PLC0415

    connection = duckdb.connect(":memory:")
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{files / name}.parquet'")
    own = {query: sqlglot.transpile(query, "spark", "duckdb")[0] for query in QUERIES.values()}
    return lambda query: connection.sql(own[query]).to_arrow_table()


def local_on_tables(warehouse: Path) -> Run:
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.sql("USE tpch")
    return lambda query: catalog.sql(query).to_arrow()


def spark_ways(files: Path, warehouse: Path, master: str) -> dict[str, Run]:
    from emberlake.spark import attach, session  # noqa: PLC0415

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.memory": "3g",  # query 21 needs more than the default of 1g
    }
    spark = session(master, **settings)
    plain = spark.newSession()
    for name in TABLES:
        plain.read.parquet(str(files / f"{name}.parquet")).createOrReplaceTempView(name)
    lake = attach(spark, {"warehouse": str(warehouse)})
    lake.sql("USE tpch")
    spark.sql("USE tpch")
    return {
        "spark": lambda query: plain.sql(query).toArrow(),
        "lake": lambda query: lake.sql(query).toArrow(),
        "attached": lambda query: spark.sql(query).toArrow(),
    }


# --- results --------------------------------------------------------------------------------------


def is_same(found: pa.Table, wanted: pa.Table) -> bool:
    """Whether two results have the same rows.

    DuckDB alone divides decimals as floating point numbers: there, six digits count.
    """
    rows = [sorted(map(as_row, table.to_pylist()), key=ordering) for table in (found, wanted)]
    return len(rows[0]) == len(rows[1]) and all(
        is_same_value(a, b) for pair in zip(*rows, strict=True) for a, b in zip(*pair, strict=True)
    )


def as_row(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())


def ordering(row: tuple[Any, ...]) -> str:
    return repr([round(float(v), 2) if isinstance(v, NUMBERS) else v for v in row])


def is_same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
    return bool(a == b)


def measure(
    runs: dict[str, Run], numbers: Sequence[int], repeat: int
) -> dict[str, dict[int, float]]:
    """The shortest time of each query; the ways take turns.

    Raises:
        AssertionError: two ways have other results.
    """
    seconds: dict[str, dict[int, float]] = {way: {} for way in runs}
    for number in numbers:
        results: dict[str, pa.Table] = {}
        for _ in range(repeat):
            for way, run in runs.items():
                start = time.perf_counter()
                results[way] = run(QUERIES[number])
                taken = time.perf_counter() - start
                seconds[way][number] = min(taken, seconds[way].get(number, taken))
        first, *others = results
        for way in others:
            message = f"query {number}: {way} has other rows than {first}"
            assert is_same(results[way], results[first]), message
        line = "  ".join(f"{way} {seconds[way][number]:7.3f}" for way in runs)
        print(f"q{number:02d}  {line}", flush=True)
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="bench --tpch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", default="1")
    parser.add_argument("--layout", choices=["append", "keys"], default="append")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument(
        "--queries", nargs="+", type=int, choices=list(QUERIES), default=list(QUERIES)
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=BUILD, help="where rows and tables are kept")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--out", type=Path, help="a JSON file for the times")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    files = make_files(given.folder, given.scale)
    warehouse = make_tables(files, given.layout)
    runs = open_ways(given.ways, files, warehouse, given.master)
    seconds = measure(runs, given.queries, given.repeat)
    totals = {way: sum(taken.values()) for way, taken in seconds.items()}
    for way, total in totals.items():
        base = totals.get(BASELINES.get(way, ""))
        ratio = "" if base is None else f", {total / base:.2f} x {BASELINES[way]}"
        print(f"{way}: {total:.2f} s{ratio}")
    if given.out is not None:
        with suppress(FileNotFoundError):
            given.out.unlink()
        given.out.write_text(json.dumps({"layout": given.layout, "seconds": seconds}, indent=1))


if __name__ == "__main__":
    main()
