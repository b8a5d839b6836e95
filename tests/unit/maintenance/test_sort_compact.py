"""Sorted compaction: rows stay, their order changes, and filters on the columns skip more files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory, Table
from emberlake.compaction.curves import OrderKind, order_of
from emberlake.errors import ColumnNotFound, InvalidInput, Unsupported

SIDE = 64
GRID = np.random.default_rng(7).permutation(SIDE * SIDE)
ROWS = pa.table({"x": GRID % SIDE, "y": GRID // SIDE, "g": ["p"] * len(GRID)})
SMALL_FILES = {"target-file-row-num": "256", "file.block-size": "1 kb"}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


def written(catalog: Catalog, **layout: object) -> Table:
    table = catalog.create_table("db.t", ROWS.schema, **layout)
    table.append(ROWS)
    return table


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("x", "ascending"), ("y", "ascending")])


def files_read(table: Table, where: str) -> int:
    builder = table.new_read_builder().with_filter(where)
    return sum(len(split.files) for split in builder.new_scan().plan().splits())


@pytest.mark.parametrize("kind", OrderKind)
def test_rows_are_the_same_after_sorting(catalog: Catalog, kind: OrderKind) -> None:
    table = written(catalog)

    result = table.sort_compact(["x", "y"], kind)

    assert result.snapshot_id == 2
    assert in_order(table.to_arrow()) == in_order(ROWS)


def test_an_order_sorts_by_the_first_column_then_by_the_next(catalog: Catalog) -> None:
    table = written(catalog)

    table.sort_compact(["y", "x"], "order")

    assert table.to_arrow() == ROWS.sort_by([("y", "ascending"), ("x", "ascending")])


@pytest.mark.parametrize("kind", [OrderKind.ZORDER, OrderKind.HILBERT])
def test_a_curve_lets_filters_on_every_column_skip_files(catalog: Catalog, kind: OrderKind) -> None:
    table = written(catalog, options=SMALL_FILES)
    everything = files_read(table, "x >= 0")
    assert everything >= 8

    table.sort_compact(["x", "y"], kind)

    assert files_read(table, "x < 8") <= everything // 2
    assert files_read(table, "y < 8") <= everything // 2


def test_neighbours_on_the_hilbert_curve_are_neighbours_in_the_grid() -> None:
    order = order_of(ROWS, ["x", "y"], OrderKind.HILBERT)

    walked = ROWS.take(order)
    steps = np.abs(np.diff(walked["x"].to_numpy())) + np.abs(np.diff(walked["y"].to_numpy()))
    assert steps.max() == 1


def test_nulls_come_last() -> None:
    rows = pa.table({"a": [3, None, 1], "b": [1, 2, 3]})

    assert order_of(rows, ["a"], OrderKind.ZORDER).to_pylist() == [2, 0, 1]


def test_what_cannot_be_sorted_is_refused(catalog: Catalog) -> None:
    table = written(catalog, partition_keys=["g"])
    with pytest.raises(InvalidInput, match="by which columns"):
        table.sort_compact([])
    with pytest.raises(InvalidInput, match="there is no order 'spiral'"):
        table.sort_compact(["x"], "spiral")
    with pytest.raises(InvalidInput, match="cannot be sorted by g"):
        table.sort_compact(["g"])
    with pytest.raises(ColumnNotFound, match="no such columns: z"):
        table.sort_compact(["z"])

    keyed = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    with pytest.raises(Unsupported, match="only append tables"):
        catalog.create_table("db.k", keyed, primary_keys=["id"]).sort_compact(["id"])
