"""Convert columns from the type that they were written with to their current type.

Spec: "Schema evolution". A column of a file is found by its field id, at every level of ROW, and
read under its old name and type. A column that the file lacks is null; a column whose type has
changed is cast (see ``casts``). A ROW is null as a whole if the file has none of its wanted fields,
as in other engines.
"""

from dataclasses import replace

import pyarrow as pa

from emberlake.base.names import listed
from emberlake.errors import DataMismatch, InvalidState, Unsupported
from emberlake.predicates.expressions import And, Computed, Leaf, Or, Predicate, and_all
from emberlake.read.casts import cast_array, find_cast
from emberlake.spec.schema import TableSchema
from emberlake.spec.values import Value
from emberlake.spec.widening import is_widening
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    arrow_type,
)
from emberlake.types.data_types import INTEGER_BITS


def part_of_file(old: DataField, new: DataField) -> DataField | None:
    """What to read of a file's column for a requested column; None: nothing.

    Raises:
        Unsupported: the column has changed to a type that its old values cannot be cast to.
    """
    pruned = _prune(old.type, new.type, new.name)
    return None if pruned is None else replace(old, type=pruned)


def check_current(written: TableSchema, now: TableSchema) -> TableSchema:
    """Refuse to read a file with a schema that is older than the file and would cut its values off.

    That happens to a table object that was opened before somebody else widened a column.

    Returns:
        The schema of the file.

    Raises:
        InvalidState: names the columns.
    """
    if written.id <= now.id:
        return written
    stored = {field.id: field.type for field in written.fields}
    changed = [
        f"{field.name} from {field.type} to {stored[field.id]}"
        for field in now.fields
        if field.id in stored and _loses(stored[field.id], field.type)
    ]
    if changed:
        raise InvalidState(
            f"others have changed the type of {listed(changed)} since this table was opened: get "
            "it from the catalog again"
        )
    return written


def is_unchanged(old: DataType, new: DataType) -> bool:
    """Whether values of the old type are values of the new one, in Arrow too."""
    return _is_same(old, new) and bool(arrow_type(old) == arrow_type(new))


def evolved(
    column: pa.Array | pa.ChunkedArray, old: DataType, field: DataField
) -> pa.Array | pa.ChunkedArray:
    """Values that were written with an old type, as values of the current column.

    Raises:
        DataMismatch: a value cannot be cast.
    """
    try:
        if not isinstance(column, pa.ChunkedArray):
            return _convert(column, old, field.type)
        chunks = [_convert(chunk, old, field.type) for chunk in column.chunks]
    except DataMismatch as error:
        raise DataMismatch(f"column {field.name}: {error}") from error
    return pa.chunked_array(chunks, arrow_type(field.type))


def translate_predicate(
    predicate: Predicate, file_fields: tuple[DataField, ...]
) -> Predicate | None:
    """The strongest predicate on a file's own columns that every matching row satisfies.

    It may only be used to skip. A leaf is left out if the file lacks its column, or has it with a
    type whose values compare differently, so more rows can pass than the predicate itself allows.
    """
    match predicate:
        case Leaf():
            return _translate_leaf(predicate, file_fields)
        case And(children):
            return and_all(translate_predicate(child, file_fields) for child in children)
        case Or(children):
            sides = [translate_predicate(child, file_fields) for child in children]
            known = tuple(side for side in sides if side is not None)
            return Or(known) if len(known) == len(sides) else None
        case Computed():  # it needs the columns as they are now
            return None


# --- planning -------------------------------------------------------------------------------------


def _prune(old: DataType, new: DataType, name: str) -> DataType | None:
    """The part of a file's type that the requested type needs; None if it needs nothing of it."""
    match old, new:
        case RowType(), RowType():
            by_id = {field.id: field for field in old.fields}
            kept = []
            for field in new.fields:
                inner = by_id.get(field.id)
                if inner is None:
                    continue
                pruned = _prune(inner.type, field.type, f"{name}.{field.name}")
                if pruned is not None:
                    kept.append(replace(inner, type=pruned))
            return RowType(old.nullable, tuple(kept)) if kept else None
        case ArrayType(), ArrayType():
            element = _prune(old.element, new.element, f"{name}.element")
            return None if element is None else ArrayType(old.nullable, element)
        case MapType(), MapType():
            if not _is_same(old.key, new.key):
                raise Unsupported(_no_cast(name, old, new) + ": the keys of a map cannot change")
            value = _prune(old.value, new.value, f"{name}.value")
            return None if value is None else MapType(old.nullable, old.key, value)
        case _:
            if not _is_same(old, new) and find_cast(old, new) is None:
                raise Unsupported(_no_cast(name, old, new))
            return old


def _no_cast(name: str, old: DataType, new: DataType) -> str:
    return f"column {name} was written as {old} and cannot be read as {new}"


def _is_same(old: DataType, new: DataType) -> bool:
    """Whether values of both types are the same, names and nullability aside."""
    match old, new:
        case RowType(), RowType():
            return len(old.fields) == len(new.fields) and all(
                a.id == b.id and _is_same(a.type, b.type)
                for a, b in zip(old.fields, new.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return _is_same(old.element, new.element)
        case MapType(), MapType():
            return _is_same(old.key, new.key) and _is_same(old.value, new.value)
        case _:
            return old.with_nullable(True) == new.with_nullable(True)


def _loses(old: DataType, new: DataType) -> bool:
    """Whether the new type may lack values of the old one."""
    match old, new:
        case RowType(), RowType():
            by_id = {field.id: field.type for field in old.fields}
            return any(_loses(by_id[f.id], f.type) for f in new.fields if f.id in by_id)
        case ArrayType(), ArrayType():
            return _loses(old.element, new.element)
        case MapType(), MapType():
            return _loses(old.value, new.value)
        case _:
            return not is_widening(old, new)


# --- applying -------------------------------------------------------------------------------------


def _convert(array: pa.Array, old: DataType, new: DataType) -> pa.Array:
    if _is_same(old, new) and array.type == arrow_type(new):
        return array
    match old, new:
        case RowType(), RowType():
            return _convert_row(array, old, new)
        case ArrayType(), ArrayType():
            offsets, start, end = _offsets(array)
            values = _convert(array.values.slice(start, end - start), old.element, new.element)
            return pa.ListArray.from_arrays(
                offsets, values, type=arrow_type(new), mask=_null_mask(array)
            )
        case MapType(), MapType():
            offsets, start, end = _offsets(array)
            keys = _convert(array.keys.slice(start, end - start), old.key, new.key)
            items = _convert(array.items.slice(start, end - start), old.value, new.value)
            return pa.MapArray.from_arrays(
                offsets, keys, items, type=arrow_type(new), mask=_null_mask(array)
            )
        case _:
            return array if _is_same(old, new) else cast_array(array, old, new)


def _convert_row(array: pa.Array, old: RowType, new: RowType) -> pa.Array:
    index_by_id = {field.id: index for index, field in enumerate(old.fields)}
    children = []
    for field in new.fields:
        index = index_by_id.get(field.id)
        if index is None:
            children.append(pa.nulls(len(array), arrow_type(field.type)))
        else:
            children.append(_convert(array.field(index), old.fields[index].type, field.type))
    fields = list(arrow_type(new))
    return pa.StructArray.from_arrays(children, fields=fields, mask=_null_mask(array))


def _offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    """The offsets of a list or map, counted from 0, and the range of the values they cover."""
    offsets = array.offsets.to_numpy()
    return pa.array(offsets - offsets[0], pa.int32()), int(offsets[0]), int(offsets[-1])


def _null_mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


# --- predicates -----------------------------------------------------------------------------------


def _translate_leaf(leaf: Leaf, file_fields: tuple[DataField, ...]) -> Leaf | None:
    column = _find(file_fields, leaf.column.id)
    if column is None:
        return None
    path: list[str] = []
    old, new = column.type, leaf.column.type
    for name in leaf.path:
        if not (isinstance(old, RowType) and isinstance(new, RowType)):
            return None
        wanted = new.field(name)
        inner = None if wanted is None else _find(old.fields, wanted.id)
        if wanted is None or inner is None:
            return None
        path.append(inner.name)
        old, new = inner.type, wanted.type
    if not _compares_the_same(leaf.literals, old, new):
        return None
    return Leaf(column, leaf.op, leaf.literals, tuple(path))


def _find(fields: tuple[DataField, ...], field_id: int) -> DataField | None:
    return next((field for field in fields if field.id == field_id), None)


def _compares_the_same(literals: tuple[Value, ...], old: DataType, new: DataType) -> bool:
    """Whether a value in a file compares with the literals as its cast to the new type would."""
    if _is_same(old, new):
        return True
    if not (isinstance(old, AtomicType) and isinstance(new, AtomicType)):
        return False
    if old.root.is_integer and new.root.is_integer:
        limit = 1 << (INTEGER_BITS[old.root] - 1)
        return INTEGER_BITS[old.root] <= INTEGER_BITS[new.root] and all(
            literal is None or (isinstance(literal, int) and -limit <= literal < limit)
            for literal in literals
        )
    return False
