"""Tables whose rows Java updated, deleted, merged and compacted, read at every snapshot."""

import pyarrow as pa
import pytest

from canonical import canonical_rows
from emberlake import CatalogFactory, Table
from emberlake.errors import Unsupported
from emberlake.types import AtomicType, DataField, VectorType, nested_types
from golden.reads import Golden, GoldenRead, row_reads, settle

READS = row_reads()
WITH_OTHER_TYPES = ("de_blob", "de_blob_api", "de_vector", "variant_dml")


@pytest.mark.parametrize("read", READS, ids=str)
def test_changed_rows_are_read_as_java_reads_them(golden_rows: Golden, read: GoldenRead) -> None:
    columns = columns_of(golden_rows, read)

    table = read_table(golden_rows, read, columns)

    assert tuple(table.column_names) == ("_row_kind", *columns)
    kinds = table.column("_row_kind").to_pylist()
    rows = canonical_rows(table.drop_columns("_row_kind"), kinds=kinds)
    assert settle(read, rows) == expected(golden_rows, read, columns)


TRACKED = [read for read in READS if read.is_tracked]


@pytest.mark.parametrize("read", TRACKED[::4], ids=str)
def test_changed_rows_are_streamed_with_their_ids(golden_rows: Golden, read: GoldenRead) -> None:
    columns = columns_of(golden_rows, read)
    builder = open_table(golden_rows, read).new_read_builder().with_projection(columns)
    splits = builder.new_scan().plan().splits()

    batches = builder.new_read().to_arrow_batch_reader(splits)

    rows = [row[1:] for row in settle(read, canonical_rows(batches.read_all()))]
    assert rows == [row[1:] for row in expected(golden_rows, read, columns)]


@pytest.mark.parametrize("name", WITH_OTHER_TYPES)
def test_columns_of_types_that_are_not_supported_are_refused_by_name(
    golden_rows: Golden, name: str
) -> None:
    table = CatalogFactory.create({"warehouse": golden_rows.warehouse}).get_table(f"golden.{name}")
    refused = next(f.name for f in table.fields if not is_supported(f))

    with pytest.raises(Unsupported, match=f"cannot be read yet: {refused} "):
        table.to_arrow()


def columns_of(golden: Golden, read: GoldenRead) -> list[str]:
    """The columns of a read, without those whose types are not supported."""
    fields = {f.name: f for f in open_table(golden, read).fields}
    return [name for name in read.columns if name not in fields or is_supported(fields[name])]


def is_supported(field: DataField) -> bool:
    kinds = list(nested_types(field.type))
    has_opaque = any(isinstance(kind, AtomicType) and kind.root.is_opaque for kind in kinds)
    return not (has_opaque or any(isinstance(kind, VectorType) for kind in kinds))


def expected(golden: Golden, read: GoldenRead, columns: list[str]) -> list[list[object]]:
    places = [0, *(1 + read.columns.index(name) for name in columns)]
    return settle(read, [[row[place] for place in places] for row in golden.expected(read)])


def open_table(golden: Golden, read: GoldenRead) -> Table:
    options = dict(read.options)
    branch = options.pop("branch", None)
    name = f"golden.{read.table}" + (f"$branch_{branch}" if branch else "")
    return CatalogFactory.create({"warehouse": golden.warehouse}).get_table(name).copy(options)


def read_table(golden: Golden, read: GoldenRead, columns: list[str]) -> pa.Table:
    builder = open_table(golden, read).new_read_builder()
    if read.is_tracked or len(columns) < len(read.columns):
        builder = builder.with_projection(columns)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits(), with_row_kind=True)
