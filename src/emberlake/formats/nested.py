"""Change the primitive parts of Arrow columns, at any depth of lists, maps and structs."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def map_leaf_types(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with every primitive type in it changed; names and metadata stay."""

    def field(inner: pa.Field) -> pa.Field:
        return inner.with_type(map_leaf_types(inner.type, change))

    if pa.types.is_struct(kind):
        return pa.struct([field(inner) for inner in kind])
    if pa.types.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(field(kind.value_field))
    return change(kind)


def map_leaves(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The array with every primitive array in it changed; the nesting around them is shared."""
    kind = array.type
    if pa.types.is_struct(kind):
        children = [map_leaves(array.field(i), change) for i in range(len(kind))]
        fields = [f.with_type(child.type) for f, child in zip(kind, children, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if pa.types.is_map(kind):
        keys, items = map_leaves(array.keys, change), map_leaves(array.items, change)
        target = pa.map_(kind.key_field.with_type(keys.type), kind.item_field.with_type(items.type))
        return relabelled(array, target, entries_of(target, keys, items))
    if pa.types.is_list(kind):
        values = map_leaves(array.values, change)
        return relabelled(array, pa.list_(kind.value_field.with_type(values.type)), values)
    return change(array)


def relabelled(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """A list or map array with the same nulls and offsets around other values."""
    # The values are complete rather than a slice, so the offsets still point into them.
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def entries_of(target: pa.DataType, keys: pa.Array, items: pa.Array) -> pa.Array:
    """The key-value pairs of a map array."""
    return pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])


def has_required_fields(kind: pa.DataType) -> bool:
    """Whether a struct somewhere in the type has fields that cannot be null."""
    if pa.types.is_struct(kind):
        return any(not inner.nullable or has_required_fields(inner.type) for inner in kind)
    if pa.types.is_map(kind):
        return has_required_fields(kind.item_type)
    return pa.types.is_list(kind) and has_required_fields(kind.value_type)


def without_hidden_nulls(array: pa.Array, hidden: pa.Array | None = None) -> pa.Array:
    """The array with some value in required fields of structs that are null.

    Nobody can see these values; but Arrow's Parquet writer takes a null there for a null of the
    field itself, and refuses it. Nulls that can be seen stay, so that it still does.

    Args:
        array: A column, or a part of one.
        hidden: Where the array lies in structs that are null; None: nowhere.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        absent = array.is_null() if hidden is None else pc.or_(array.is_null(), hidden)
        children = [
            without_hidden_nulls(child if inner.nullable else _shown(child, absent), absent)
            for inner, child in zip(kind, _children(array), strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        return relabelled(
            array, kind, entries_of(kind, array.keys, without_hidden_nulls(array.items))
        )
    if pa.types.is_list(kind):
        return relabelled(array, kind, without_hidden_nulls(array.values))
    return array


def _shown(array: pa.Array, absent: pa.Array) -> pa.Array:
    """The array without nulls, if all of them are where nobody sees them."""
    is_seen = array.null_count and pc.any(pc.and_not(array.is_null(), absent)).as_py()
    return array if is_seen else _without_validity(array)


def _without_validity(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    kind = array.type
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(_children(array), fields=list(kind))
    buffers, values = array.buffers(), None
    if pa.types.is_map(kind):
        buffers, values = buffers[:2], [entries_of(kind, array.keys, array.items)]
    elif pa.types.is_list(kind):
        buffers, values = buffers[:2], [array.values]
    return pa.Array.from_buffers(kind, len(array), [None, *buffers[1:]], 0, array.offset, values)


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(i) for i in range(array.type.num_fields)]
