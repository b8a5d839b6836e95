"""Filters on tables written by Java, whose statistics Java collected, keep the right rows."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from emberlake import CatalogFactory, Table
from emberlake.types import AtomicType
from golden.reads import Golden, reads_of

TABLES = sorted({r.table for r in reads_of("append_", "bucket", "types_", "pk_", "key_", "kinds_")})
REFUSED = {"append_row_tracking", "append_data_evolution"}
COMPARE = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less_than": pc.less,
    "greater_or_equal": pc.greater_equal,
}


@pytest.mark.parametrize("name", [t for t in TABLES if t not in REFUSED])
def test_filters_keep_exactly_the_matching_rows(golden: Golden, name: str) -> None:
    table = CatalogFactory.create({"warehouse": golden.warehouse}).get_table(f"golden.{name}")
    everything = read(table, None)
    for field in table.fields:
        if not isinstance(field.type, AtomicType):
            continue
        column = everything.column(field.name)
        values = column.drop_null().unique()
        for value in values.slice(len(values) // 2, 1):
            for operation, kernel in COMPARE.items():
                predicate = getattr(table.new_read_builder().new_predicate_builder(), operation)(
                    field.name, value
                )
                expected = pc.sum(kernel(column, value)).as_py() or 0

                assert read(table, predicate).num_rows == expected, f"{predicate}"
        builder = table.new_read_builder().new_predicate_builder()
        assert read(table, builder.is_null(field.name)).num_rows == column.null_count


def read(table: Table, predicate: object) -> pa.Table:
    builder = table.new_read_builder().with_filter(predicate)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())
