"""Which columns a read returns, and what must be read for them.

A projected name is a column, or a path into ROW columns (``"s.x"``), which comes out flat under
the joined name (``s_x``), or under a given name. A column whose own name has a dot wins over a
path. A read type keeps ROW columns as they are, with fewer fields.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidInput
from emberlake.predicates import Predicate, computed_of, leaves_of
from emberlake.predicates.builder import names_for
from emberlake.spec.key_value import KIND, RowKind
from emberlake.types import DataField, DataType, RowType, arrow_schema

_Column: TypeAlias = pa.Array | pa.ChunkedArray

ROW_KIND: Final = "_row_kind"
_KIND_COLUMN: Final = pa.field(ROW_KIND, pa.string(), nullable=False)


@dataclass(frozen=True)
class Output:
    """One output column: where it comes from and its name."""

    path: tuple[str, ...]
    field: DataField
    # Of a ROW that is returned with fewer fields: the paths of these inside it.
    parts: tuple[tuple[str, ...], ...] = ((),)


@dataclass(frozen=True)
class Projection:
    """The output columns, in order."""

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
        """The columns to read, each with only the nested fields that are needed."""
        paths: dict[str, list[tuple[str, ...]]] = {}
        for output in self.outputs:
            inside = paths.setdefault(output.path[0], [])
            inside += [(*output.path[1:], *part) for part in output.parts]
        if predicate is not None:
            for leaf in leaves_of(predicate):
                paths.setdefault(leaf.column.name, []).append(leaf.path)
            for column in (c for part in computed_of(predicate) for c in part.columns):
                paths.setdefault(column.name, []).append(())
        by_name = {f.name: f for f in table_fields}
        return tuple(_prune(by_name[name], inner) for name, inner in paths.items())

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns of the table that are needed."""
        return frozenset(output.path[0] for output in self.outputs)


@dataclass(frozen=True)
class OutputShape:
    """The output of a read: projected columns and, on request, the row kind."""

    projection: Projection
    with_kind: bool = False
    with_deletes: bool = False  # rows that are deleted by now, of tables that know of them

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the output."""
        schema = self.projection.arrow_schema
        return schema.insert(0, _KIND_COLUMN) if self.with_kind else schema

    def is_exactly(self, fields: Sequence[DataField]) -> bool:
        """Whether the output is these columns, unchanged, and no others."""
        outputs = self.projection.outputs
        return not self.with_kind and [(o.path, o.field.name) for o in outputs] == [
            ((f.name,), f.name) for f in fields
        ]

    def columns(self, inputs: Mapping[str, _Column], row_count: int) -> list[_Column]:
        """The output columns, from columns of the table; rows without a kind are inserts."""
        schema = self.projection.arrow_schema
        columns = [
            _with_fields(_extract(inputs[output.path[0]], output.path[1:]), field.type)
            for output, field in zip(self.projection.outputs, schema, strict=True)
        ]
        if not self.with_kind:
            return columns
        kinds = inputs.get(KIND)
        if kinds is None:
            return [pa.repeat(pa.scalar(RowKind.INSERT.symbol), row_count), *columns]
        return [_symbols().take(kinds), *columns]


@cache
def _symbols() -> pa.ChunkedArray:
    # Made on first use: Arrow imports pandas, where it is installed, to make arrays of lists.
    return pa.chunked_array([[kind.symbol for kind in RowKind]])


def project_all(fields: Sequence[DataField]) -> Projection:
    """Every column as it is."""
    return Projection(tuple(Output((f.name,), f) for f in fields))


def project(fields: Sequence[DataField], names: Iterable[str] | Mapping[str, str]) -> Projection:
    """The named columns and nested fields; a mapping gives each its output name.

    Raises:
        ColumnNotFound: names every column that does not exist.
    """
    if isinstance(names, str):
        raise InvalidInput(f"a projection is a list of columns, as in [{names!r}]")
    given = list(names) if isinstance(names, Mapping) else None
    names = list(names.values()) if isinstance(names, Mapping) else list(names)
    if not names:
        raise InvalidInput("a projection needs at least one column")
    found = [(name, _resolve(fields, name)) for name in names]
    _check_found(fields, [name for name, source in found if source is None])
    sources = [source for _, source in found if source is not None]
    if given is not None:
        named = zip(given, sources, strict=True)
        return Projection(tuple(Output(p, replace(f, name=name)) for name, (p, f) in named))
    outputs: list[Output] = []
    taken: set[str] = set()
    for path, field in sources:
        name = _free_name("_".join(path), taken)
        taken.add(name)
        outputs.append(Output(path, replace(field, name=name)))
    return Projection(tuple(outputs))


def project_type(fields: Sequence[DataField], read_type: Iterable[DataField]) -> Projection:
    """Columns given as fields: each with the type of its column, or a ROW with fewer fields.

    Raises:
        ColumnNotFound: names every column that does not exist.
        InvalidInput: a field does not have the type of its column.
    """
    asked = list(read_type)
    by_name = {f.name: f for f in fields}
    _check_found(fields, [f.name for f in asked if f.name not in by_name])
    if not asked:
        raise InvalidInput("a read type needs at least one column")
    outputs = []
    for field in asked:
        column = by_name[field.name]
        parts = tuple(_parts(column.type, field.type, field.name))
        kept = column if parts == ((),) else replace(column, type=_narrow(column.type, field.type))
        outputs.append(Output((column.name,), kept, parts))
    return Projection(tuple(outputs))


def _check_found(fields: Sequence[DataField], unknown: Sequence[str]) -> None:
    if unknown:
        names = [n for name in unknown for n in names_for(fields, tuple(name.split(".")))]
        known = choices(unknown, list(dict.fromkeys(names)), "the table has")
        raise ColumnNotFound(f"no such columns: {listed(unknown)}; {known}")


def _parts(found: DataType, asked: DataType, name: str) -> Iterator[tuple[str, ...]]:
    """The requested paths into a type; the empty path is all of it."""
    if found.with_nullable(True) == asked.with_nullable(True):
        yield ()
        return
    if not (isinstance(found, RowType) and isinstance(asked, RowType) and asked.fields):
        raise InvalidInput(f"column {name} is {found} and cannot be read as {asked}")
    for field in asked.fields:
        inner, path = found.field(field.name), f"{name}.{field.name}"
        if inner is None:
            raise ColumnNotFound(f"there is no field {path}: {name} is {found}")
        yield from ((field.name, *part) for part in _parts(inner.type, field.type, path))


def _narrow(found: DataType, asked: DataType) -> DataType:
    """A ROW with only the requested fields, in that order."""
    if not (isinstance(found, RowType) and isinstance(asked, RowType)):
        return found
    inner = [(found.field(f.name), f.type) for f in asked.fields]
    kept = [replace(f, type=_narrow(f.type, wanted)) for f, wanted in inner if f is not None]
    return RowType(found.nullable, tuple(kept))


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


def _extract(column: _Column, path: tuple[str, ...]) -> _Column:
    for name in path:
        column = pc.struct_field(column, name)
    return column


def _with_fields(column: _Column, wanted: pa.DataType) -> _Column:
    """A column of structs with only the wanted fields; any other column unchanged."""
    if column.type == wanted or not pa.types.is_struct(wanted):
        return column
    if isinstance(column, pa.Array):
        return _struct_with(column, wanted)
    return pa.chunked_array([_struct_with(chunk, wanted) for chunk in column.chunks], wanted)


def _struct_with(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted or not pa.types.is_struct(wanted):
        return array
    children = [_struct_with(array.field(field.name), field.type) for field in wanted]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
