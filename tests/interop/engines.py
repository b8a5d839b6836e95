"""All engines side by side, on one primary-key table: who reads it, who writes it, who compacts it.

Rows go in as Arrow and come out in canonical form and order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, Table
from emberlake.types import DataType, arrow_schema
from interop.judges import Place, catalog_options, java_judge, peer

NAME = "db.t"


class Write(Protocol):
    """Writes rows, all of one kind, in one commit."""

    def __call__(self, warehouse: Place, rows: pa.Table, row_kind: str = "+I") -> None: ...


def create(
    warehouse: Place,
    columns: Mapping[str, str | DataType],
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
    **options: str,
) -> Table:
    catalog = CatalogFactory.create(catalog_options(warehouse))
    catalog.create_database("db", True)
    types = [AtomicType(t) if isinstance(t, str) else t for t in columns.values()]
    fields = [DataField(i, n, t) for i, (n, t) in enumerate(zip(columns, types, strict=True))]
    catalog.create_table(NAME, Schema(fields, partition_keys, primary_keys, options), False)
    return catalog.get_table(NAME)


def open_table(warehouse: Place) -> Table:
    return CatalogFactory.create(catalog_options(warehouse)).get_table(NAME)


def arrow_rows(table: Table, rows: Sequence[Sequence[Any]]) -> pa.Table:
    # Without field ids and the like: peers take rows of the plain types.
    schema = pa.schema([(f.name, f.type) for f in arrow_schema(tuple(table.fields))])
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def canonical(table: Table, rows: Sequence[Sequence[Any]]) -> list[Row]:
    return sorted_rows(canonical_rows(arrow_rows(table, rows)))


# --- who does what --------------------------------------------------------------------------------


def _read_ours(warehouse: Place) -> list[Row]:
    builder = open_table(warehouse).new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted_rows(canonical_rows(rows))


def _read_java(warehouse: Place) -> list[Row]:
    """A row that is there may be an insert or, to Java, what came of an update."""
    rows = java_judge().rows(warehouse, NAME)
    assert {row[0] for row in rows} <= {"+I", "+U"}
    return sorted_rows(["+I", *row[1:]] for row in rows)


READERS: dict[str, Callable[[Place], list[Row]]] = {
    "emberlake": _read_ours,
    "java": _read_java,
    "pypaimon": lambda warehouse: peer("pypaimon").rows(warehouse, NAME),
    "rust": lambda warehouse: peer("rust").rows(warehouse, NAME),
}
OTHERS = tuple(name for name in READERS if name != "emberlake")


def _write_ours(warehouse: Place, rows: pa.Table, row_kind: str = "+I") -> None:
    builder = open_table(warehouse).new_batch_write_builder()
    with builder.new_write() as writing, builder.new_commit() as commit:
        # Tables without keys take no kinds.
        writing.write_arrow(rows, row_kind=None if row_kind == "+I" else row_kind)
        commit.commit(writing.prepare_commit())


def _write_java(warehouse: Place, rows: pa.Table, row_kind: str = "+I") -> None:
    java_judge().write(warehouse, NAME, rows, row_kind=row_kind)


def _write_pypaimon(warehouse: Place, rows: pa.Table, row_kind: str = "+I") -> None:
    assert row_kind == "+I"
    peer("pypaimon").write(warehouse, NAME, rows)


def _write_rust(warehouse: Place, rows: pa.Table, row_kind: str = "+I") -> None:
    assert row_kind == "+I"
    peer("rust").write(warehouse, NAME, rows)


WRITERS: dict[str, Write] = {
    "emberlake": _write_ours,
    "java": _write_java,
    "pypaimon": _write_pypaimon,
    "rust": _write_rust,
}
# Who takes rows of other kinds than inserts here.
DELETERS = ("emberlake", "java")


def _compact_ours(warehouse: Place, *, full: bool) -> None:
    open_table(warehouse).compact(full=full)


def _compact_java(warehouse: Place, *, full: bool) -> None:
    java_judge().compact(warehouse, NAME, full=full)


COMPACTORS: dict[str, Callable[..., None]] = {"emberlake": _compact_ours, "java": _compact_java}
