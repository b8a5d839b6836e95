"""Filters on tables written by Java, whose statistics Java collected, keep the right rows."""

import pyarrow.compute as pc
import pytest

from emberlake import CatalogFactory, Table
from emberlake.errors import Unsupported
from emberlake.spec.row_tracking import readable_fields
from emberlake.spec.schema import TableSchema
from emberlake.spec.support import check_readable
from emberlake.types import AtomicType, DataField
from golden.reads import Golden, reads_of, row_reads

TABLES = sorted({r.table for r in reads_of("append_", "bucket", "types_", "pk_", "key_", "kinds_")})
ROW_TABLES = sorted({r.table for r in row_reads()})
COMPARE = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less_than": pc.less,
    "greater_or_equal": pc.greater_equal,
}


@pytest.mark.parametrize("name", TABLES)
def test_filters_keep_exactly_the_matching_rows(golden: Golden, name: str) -> None:
    check_filters(open_table(golden, name))


@pytest.mark.parametrize("name", ROW_TABLES)
def test_filters_see_the_newest_value_of_every_column(golden_rows: Golden, name: str) -> None:
    """Statistics and file indexes of columns that were rewritten since must not hide rows."""
    check_filters(open_table(golden_rows, name))


def open_table(golden: Golden, name: str) -> Table:
    return CatalogFactory.create({"warehouse": golden.warehouse}).get_table(f"golden.{name}")


def check_filters(table: Table) -> None:
    fields = [f for f in readable_fields(table.store.schema) if can_be_read(f)]
    builder = table.new_read_builder().with_projection([f.name for f in fields])
    everything = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    for at, field in enumerate(fields):
        if not isinstance(field.type, AtomicType):
            continue
        # With a column that the filter does not need, which is read of matching rows only.
        columns = [field.name, fields[at - 1].name] if len(fields) > 1 else [field.name]
        column = everything.column(field.name)
        values = column.drop_null().unique()
        for value in values.slice(len(values) // 2, 1):
            for operation, kernel in COMPARE.items():
                predicate = getattr(table.new_read_builder().new_predicate_builder(), operation)(
                    field.name, value
                )
                expected = pc.sum(kernel(column, value)).as_py() or 0

                assert count(table, predicate, columns) == expected, f"{predicate}"
        builder = table.new_read_builder().new_predicate_builder()
        assert count(table, builder.is_null(field.name), columns) == column.null_count


def can_be_read(field: DataField) -> bool:
    try:
        check_readable(TableSchema(0, (field,), 0), [field])
    except Unsupported:
        return False
    return True


def count(table: Table, predicate: object, columns: list[str]) -> int:
    builder = table.new_read_builder().with_filter(predicate).with_projection(columns)
    found: int = builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows
    return found
