"""Tables written by Java Paimon come out of emberlake with exactly the rows that Java reads."""

import pyarrow as pa
import pytest

from canonical import canonical_rows
from emberlake import CatalogFactory
from emberlake.errors import Unsupported
from golden.reads import Golden, GoldenRead, reads_of, settle

NOT_YET = frozenset({"append_row_tracking", "append_data_evolution"})

READS = reads_of("append_", "bucket_of_", "bucketed_", "types_")


@pytest.mark.parametrize("read", [r for r in READS if r.table not in NOT_YET], ids=str)
def test_a_golden_table_is_read_row_for_row(golden: Golden, read: GoldenRead) -> None:
    table = read_table(golden, read)

    assert tuple(table.column_names) == read.columns
    assert settle(read, canonical_rows(table)) == golden.expected(read)


@pytest.mark.parametrize("read", [r for r in READS if r.table in NOT_YET], ids=str)
def test_what_is_not_supported_is_refused(golden: Golden, read: GoldenRead) -> None:
    with pytest.raises(Unsupported):
        read_table(golden, read)


def read_table(golden: Golden, read: GoldenRead) -> pa.Table:
    options = dict(read.options)
    branch = options.pop("branch", None)
    name = f"golden.{read.table}" + (f"$branch_{branch}" if branch else "")
    table = CatalogFactory.create({"warehouse": golden.warehouse}).get_table(name).copy(options)
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())
