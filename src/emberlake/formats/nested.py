"""Change the primitive parts of Arrow columns, at any depth of lists, maps and structs."""

from collections.abc import Callable

import pyarrow as pa


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
