"""Which columns a read hands out, and what must be read for them.

A projected name is a column, or a path into ROW columns (``"s.x"``), which comes out flat under
the joined name (``s_x``). A column whose own name has a dot wins over a path.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.errors import ColumnNotFound, InvalidInput
from emberlake.predicates import Predicate, leaves_of
from emberlake.spec.key_value import RowKind
from emberlake.types import DataField, RowType, arrow_schema

ROW_KIND: Final = "_row_kind"
_KIND_COLUMN: Final = pa.field(ROW_KIND, pa.string(), nullable=False)


@dataclass(frozen=True)
class Output:
    """One column that is handed out: where it comes from and what it is called."""

    path: tuple[str, ...]
    field: DataField


@dataclass(frozen=True)
class Projection:
    """The columns that are handed out, in order."""

    outputs: tuple[Output, ...]

    @property
    def fields(self) -> tuple[DataField, ...]:
        return tuple(output.field for output in self.outputs)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.fields)

    def read_fields(
        self, table_fields: Sequence[DataField], predicate: Predicate | None
    ) -> tuple[DataField, ...]:
        """The columns to read, each with just the nested fields that are needed."""
        paths: dict[str, list[tuple[str, ...]]] = {}
        for output in self.outputs:
            paths.setdefault(output.path[0], []).append(output.path[1:])
        for leaf in leaves_of(predicate) if predicate is not None else ():
            paths.setdefault(leaf.column.name, []).append(leaf.path)
        by_name = {f.name: f for f in table_fields}
        return tuple(_prune(by_name[name], inner) for name, inner in paths.items())

    def apply(self, rows: pa.Table) -> pa.Table:
        """The columns to hand out, from rows that hold ``read_fields``."""
        if rows.schema.equals(self.arrow_schema):
            return rows
        columns = [_extract(rows, output.path) for output in self.outputs]
        return pa.Table.from_arrays(columns, schema=self.arrow_schema)


@dataclass(frozen=True)
class Handout:
    """What comes out of a read: projected columns and, where it is asked for, the row kind."""

    projection: Projection
    with_kind: bool = False

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of what comes out."""
        schema = self.projection.arrow_schema
        return schema.insert(0, _KIND_COLUMN) if self.with_kind else schema

    def apply(self, rows: pa.Table, kinds: pa.ChunkedArray | None = None) -> pa.Table:
        """The columns to hand out; rows whose kinds are not given are inserts."""
        projected = self.projection.apply(rows)
        if not self.with_kind:
            return projected
        if kinds is None:
            symbols = pa.repeat(pa.scalar(RowKind.INSERT.symbol), rows.num_rows)
        else:
            symbols = _symbols().take(kinds)
        return projected.add_column(0, _KIND_COLUMN, symbols)


@cache
def _symbols() -> pa.ChunkedArray:
    # Made on first use: Arrow imports pandas, where it is installed, to make arrays of lists.
    return pa.chunked_array([[kind.symbol for kind in RowKind]])


def project_all(fields: Sequence[DataField]) -> Projection:
    """Every column as it is."""
    return Projection(tuple(Output((f.name,), f) for f in fields))


def project(fields: Sequence[DataField], names: Iterable[str]) -> Projection:
    """The named columns and nested fields.

    Raises:
        ColumnNotFound: naming every name that there is not.
    """
    if isinstance(names, str):
        raise InvalidInput(f"a projection is a list of columns, as in [{names!r}]")
    names = list(names)
    if not names:
        raise InvalidInput("a projection needs at least one column")
    paths = [_resolve(fields, name) for name in names]
    unknown = [name for name, found in zip(names, paths, strict=True) if found is None]
    if unknown:
        choices = ", ".join(f.name for f in fields)
        raise ColumnNotFound(f"no such columns: {', '.join(unknown)}; the table has {choices}")
    outputs: list[Output] = []
    taken: set[str] = set()
    for found in paths:
        assert found is not None
        path, field = found
        name = _free_name("_".join(path), taken)
        taken.add(name)
        outputs.append(Output(path, replace(field, name=name)))
    return Projection(tuple(outputs))


def _free_name(name: str, taken: set[str]) -> str:
    candidate, number = name, 0
    while candidate in taken:
        candidate = f"{name}_${number}"
        number += 1
    return candidate


def _resolve(fields: Sequence[DataField], name: str) -> tuple[tuple[str, ...], DataField] | None:
    for field in fields:
        if field.name == name:
            return (field.name,), field
    for field in fields:
        inner = name.removeprefix(f"{field.name}.")
        if inner != name and isinstance(field.type, RowType):
            found = _resolve(field.type.fields, inner)
            if found is not None:
                path, leaf = found
                nullable = field.type.nullable or leaf.type.nullable
                return (field.name, *path), replace(leaf, type=leaf.type.with_nullable(nullable))
    return None


def _prune(field: DataField, paths: Sequence[tuple[str, ...]]) -> DataField:
    if () in paths or not isinstance(field.type, RowType):
        return field
    wanted = [f for f in field.type.fields if any(path[0] == f.name for path in paths)]
    pruned = tuple(_prune(f, [p[1:] for p in paths if p[0] == f.name]) for f in wanted)
    return replace(field, type=RowType(field.type.nullable, pruned))


def _extract(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column
