"""Tables written by Java Paimon come out of emberlake with exactly the rows that Java reads."""

import pyarrow as pa
import pytest

from canonical import canonical_rows
from emberlake import CatalogFactory, Table
from golden.reads import Golden, GoldenRead, reads_of, settle

READS = reads_of("append_", "bucket_of_", "bucketed_", "types_", "pk_", "key_", "kinds_")


@pytest.mark.parametrize("read", READS, ids=str)
def test_a_golden_table_is_read_row_for_row(golden: Golden, read: GoldenRead) -> None:
    table = read_table(golden, read)

    assert tuple(table.column_names) == ("_row_kind", *read.columns)
    kinds = table.column("_row_kind").to_pylist()
    rows = canonical_rows(table.drop_columns("_row_kind"), kinds=kinds)
    assert settle(read, rows) == golden.expected(read)


@pytest.mark.parametrize("read", READS, ids=str)
def test_a_golden_table_is_streamed_row_for_row(golden: Golden, read: GoldenRead) -> None:
    builder = open_table(golden, read).new_read_builder()
    splits = builder.new_scan().plan().splits()
    batches = builder.new_read().to_arrow_batch_reader(splits)

    rows = [row[1:] for row in settle(read, canonical_rows(batches.read_all()))]
    expected = (row for row in golden.expected(read) if row[0] in ("+I", "+U"))
    assert sorted(rows, key=repr) == sorted((row[1:] for row in expected), key=repr)


def open_table(golden: Golden, read: GoldenRead) -> Table:
    options = dict(read.options)
    branch = options.pop("branch", None)
    name = f"golden.{read.table}" + (f"$branch_{branch}" if branch else "")
    return CatalogFactory.create({"warehouse": golden.warehouse}).get_table(name).copy(options)


def read_table(golden: Golden, read: GoldenRead) -> pa.Table:
    builder = open_table(golden, read).new_read_builder()
    splits = builder.new_scan().plan().splits()
    return builder.new_read().to_arrow(splits, with_row_kind=True)
