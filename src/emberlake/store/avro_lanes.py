"""Avro records, decoded side by side with NumPy.

Avro says nowhere how long a record is, so decoders go from one record to the next. But who knows
where records begin can decode all of them at once: a *lane* is a record with the place where its
next value begins, and every field is one step of all lanes. Where records begin is guessed by the
caller. The guess is proven afterwards: each lane must have ended exactly where the next one began,
which is what going from record to record would have found.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.store.avro_blocks import BROKEN, Broken, Container

Bytes: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.int64]
FindRecords: TypeAlias = Callable[[Bytes, int, int | None], Places | None]

_TAIL: Final = bytes(16)  # a number is looked at a little beyond the last record
_LAST_SHIFT: Final = 63


def decode_lanes(
    container: Container, schema: Any, record_type: pa.StructType, find: FindRecords
) -> pa.StructArray | None:
    """The records, or None when they are not as they were guessed to be.

    Args:
        container: the blocks of the records.
        schema: the writer's schema, with every named type where it is used.
        record_type: what to take; fields are found by name.
        find: guesses where records begin, from their bytes, their number and the branch of the
            root that they are, if the root is a union.
    """
    data = np.frombuffer(b"".join((*(block.data for block in container.blocks), _TAIL)), np.uint8)
    end = len(data) - len(_TAIL)
    branch = _only_branch(schema) if isinstance(schema, list) else None
    try:
        starts = find(data[:end], container.count, branch)
        if starts is None:
            return None
        lanes = Lanes(data, starts)
        records = _decode(lanes, schema, record_type)
        proven = np.array_equal(lanes.at, np.append(starts[1:], end))
        return records if proven and _are_first(starts, container) else None
    except (*BROKEN, pa.ArrowException, OverflowError, MemoryError):
        return None  # whoever decodes it record by record says what is wrong


class Lanes:
    """Places in the same bytes that move on together, value by value."""

    def __init__(self, data: Bytes, at: Places) -> None:
        self.data = data
        self.at = at

    def __len__(self) -> int:
        return len(self.at)

    def longs(self) -> Places:
        """The next ``int`` or ``long`` of every lane."""
        byte = self.data[self.at]
        self.at = self.at + 1
        value = (byte & 0x7F).astype(np.uint64)
        unfinished = np.flatnonzero(byte & 0x80)
        shift = 7
        while len(unfinished):
            if shift > _LAST_SHIFT:
                raise Broken("a number is too long")
            byte = self.data[self.at[unfinished]]
            self.at[unfinished] += 1
            value[unfinished] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            unfinished = unfinished[byte >= 0x80]
            shift += 7
        half = (value >> np.uint64(1)).view(np.int64)
        return half ^ -(value & np.uint64(1)).view(np.int64)

    def skip(self, lengths: Places) -> None:
        """Move on by so many bytes."""
        if len(lengths) and lengths.min() < 0:
            raise Broken("a length is negative")
        self.at = self.at + lengths
        if len(self.at) and self.at.max() > len(self.data):
            raise Broken("a value is longer than the file")

    def starts_with(self, expected: Bytes) -> npt.NDArray[np.bool_]:
        """Which lanes go on with these bytes; none moves."""
        places = self.at[:, None] + np.arange(len(expected))
        found: npt.NDArray[np.bool_] = (self.data[places] == expected).all(axis=1)
        return found

    def some(self, chosen: npt.NDArray[Any]) -> "Lanes":
        return Lanes(self.data, self.at[chosen])


def _are_first(starts: Places, container: Container) -> bool:
    """Whether every block begins with the record that its count says."""
    sizes = np.cumsum([0, *(len(block.data) for block in container.blocks)])[:-1]
    counts = np.cumsum([0, *(block.count for block in container.blocks)])[:-1]
    return np.array_equal(starts[counts], sizes)


def _only_branch(union: Sequence[Any]) -> int:
    """The one branch of a union that is not null."""
    branches = [number for number, branch in enumerate(union) if branch != "null"]
    if len(branches) != 1:
        raise Broken("a union of several types")
    return branches[0]


# A target of None decodes a value that nobody wants, to move on behind it.


def _decode(lanes: Lanes, schema: Any, target: pa.DataType | None) -> pa.Array | None:
    match schema:
        case "int" | "long":
            numbers = lanes.longs()
            return None if target is None else pa.array(numbers).cast(target)
        case "bytes" | "string":
            return _decode_bytes(lanes, target)
        case list():
            return _decode_union(lanes, schema, target)
        case {"type": "record", "fields": fields}:
            return _decode_record(lanes, fields, target)
        case {"type": "array", "items": items}:
            return _decode_array(lanes, items, target)
        case _:
            raise Broken(f"{schema} is no type that manifests use")


def _decode_bytes(lanes: Lanes, target: pa.DataType | None) -> pa.Array | None:
    lengths = lanes.longs()
    starts = lanes.at
    lanes.skip(lengths)
    if target is None:
        return None
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if len(lengths) and (lengths == lengths[0]).all():
        raw = lanes.data[starts[:, None] + np.arange(lengths[0])].reshape(-1)
    else:
        raw = lanes.data[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(raw)]
    array = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)
    return array if target == array.type else array.cast(target)  # to text: it must be UTF-8


def _decode_record(
    lanes: Lanes, fields: Sequence[Any], target: pa.StructType | None
) -> pa.Array | None:
    wanted = {} if target is None else {field.name: field.type for field in target}
    found = {f["name"]: _decode(lanes, f["type"], wanted.get(f["name"])) for f in fields}
    if target is None:
        return None
    children = [
        found[field.name] if field.name in found else pa.nulls(len(lanes), field.type)
        for field in target
    ]
    return pa.StructArray.from_arrays(children, fields=list(target))


def _decode_union(lanes: Lanes, union: Sequence[Any], target: pa.DataType | None) -> pa.Array | None:
    branch = _only_branch(union)
    branches = lanes.longs()
    if len(branches) and not 0 <= branches.min() <= branches.max() < len(union):
        raise Broken("a union has fewer branches")
    has_value = branches == branch
    if has_value.all():
        return _decode(lanes, union[branch], target)
    if not has_value.any():
        return None if target is None else pa.nulls(len(lanes), target)
    some = lanes.some(has_value)
    values = _decode(some, union[branch], target)
    lanes.at[has_value] = some.at
    if values is None:
        return None
    places = np.cumsum(has_value) - 1
    return values.take(pa.array(places, mask=~has_value))


def _decode_array(lanes: Lanes, items: Any, target: pa.DataType | None) -> pa.Array | None:
    """Arrays come in blocks of a count and so many items; a count of zero ends them."""
    inner = None if target is None else target.value_type
    sizes = np.zeros(len(lanes), np.int64)
    rounds: list[tuple[Places, pa.Array | None]] = []
    unread = np.arange(len(lanes))  # lanes whose next value is a count
    while len(unread):
        some = lanes.some(unread)
        left = some.longs()
        if len(left) and left.min() < 0:
            raise Broken("a block of items with its size")  # allowed, but no writer does it
        lanes.at[unread] = some.at
        unread, left = unread[left > 0], left[left > 0]
        sizes[unread] += left
        active = unread
        while len(active):
            some = lanes.some(active)
            rounds.append((active, _decode(some, items, inner)))
            lanes.at[active] = some.at
            left = left - 1
            active, left = active[left > 0], left[left > 0]
    if target is None:
        return None
    offsets = np.zeros(len(lanes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), _by_lane(rounds, inner), type=target)


def _by_lane(rounds: Sequence[tuple[Places, pa.Array | None]], inner: pa.DataType) -> pa.Array:
    """The items of all rounds, lane after lane."""
    if not rounds:
        return pa.array([], inner)
    owners = np.concatenate([owners for owners, _ in rounds])
    values = pa.concat_arrays([values for _, values in rounds])
    return values.take(pa.array(np.argsort(owners, kind="stable")))
