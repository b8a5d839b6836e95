"""Decode Avro records side by side with NumPy.

Avro does not store how long a record is, so decoders go from one record to the next. But if the
starts of all records are known, all of them can be decoded at once: a *lane* is a record with the
position of its next value, and every field is one step of all lanes. The caller guesses the starts.
The guess is proven afterwards: each lane must have ended exactly where the next one began, as it
would if records had been decoded one after the other.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.stride_tricks import sliding_window_view

from emberlake.base.arrow_arrays import numbers_array
from emberlake.base.avro_blocks import BAD_BYTES, Container

Bytes: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]
FindRecords: TypeAlias = Callable[[Bytes, int, int | None], Positions | None]

# Guesses may look beyond the last record; there, every number is zero.
_TAIL: Final = bytes(128)
_LAST_SHIFT: Final = 63


def decode_lanes(
    container: Container, schema: Any, record_type: pa.StructType, find: FindRecords
) -> pa.StructArray | None:
    """The records, or None if the guess was wrong.

    Args:
        container: the blocks of the records.
        schema: the writer's schema, with every named type where it is used.
        record_type: what to take; fields are found by name.
        find: guesses where records begin, from their bytes, their number and, if the root is a
            union, their branch of it.
    """
    data = np.frombuffer(b"".join((*(block.data for block in container.blocks), _TAIL)), np.uint8)
    end = len(data) - len(_TAIL)
    try:
        branch = _only_branch(schema) if isinstance(schema, list) else None
        starts = find(data, container.count, branch)
        if starts is None:
            return None
        lanes = Lanes(data, starts)
        records = _decode(lanes, schema, record_type)
        proven = np.array_equal(lanes.at, np.append(starts[1:], end))
        return records if proven and _are_first(starts, container) else None
    except (*BAD_BYTES, pa.ArrowException):
        return None  # decoding record by record will say what is wrong


class Lanes:
    """Positions in the same bytes that advance together, value by value."""

    def __init__(self, data: Bytes, at: Positions, ends: Positions | None = None) -> None:
        self.data = data
        self.at = at
        self._ends = ends

    @property
    def ends(self) -> Positions:
        """The positions of bytes that end a number, if they belong to one."""
        if self._ends is None:
            self._ends = np.flatnonzero(self.data < 0x80)
        return self._ends

    def __len__(self) -> int:
        return len(self.at)

    def longs(self) -> Positions:
        """The next ``int`` or ``long`` of every lane."""
        byte = self.data[self.at]
        self.at = self.at + 1
        value = (byte & 0x7F).astype(np.uint64)
        unfinished = np.flatnonzero(byte & 0x80)
        shift = 7
        while len(unfinished):
            if shift > _LAST_SHIFT:
                raise ValueError("a number is too long")
            byte = self.data[self.at[unfinished]]
            self.at[unfinished] += 1
            value[unfinished] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            unfinished = unfinished[byte >= 0x80]
            shift += 7
        half = (value >> np.uint64(1)).view(np.int64)
        return half ^ -(value & np.uint64(1)).view(np.int64)

    def skip(self, lengths: Positions) -> None:
        """Advance each lane by a number of bytes."""
        if len(lengths) and lengths.min() < 0:
            raise ValueError("a length is negative")
        self.at = self.at + lengths
        if len(self.at) and self.at.max() > len(self.data):
            raise ValueError("a value is longer than the file")

    def starts_with(self, expected: Bytes) -> npt.NDArray[np.bool_]:
        """Which lanes continue with these bytes; no lane advances."""
        windows = sliding_window_view(self.data, len(expected))[self.at]
        found: npt.NDArray[np.bool_] = (windows == expected).all(axis=1)
        return found

    def select(self, chosen: npt.NDArray[Any]) -> "Lanes":
        return Lanes(self.data, self.at[chosen], self._ends)


def _are_first(starts: Positions, container: Container) -> bool:
    """Whether every block begins with the record that the counts before it call for."""
    sizes = np.cumsum([0, *(len(block.data) for block in container.blocks)])[:-1]
    counts = np.cumsum([0, *(block.count for block in container.blocks)])[:-1]
    return np.array_equal(starts[counts], sizes)


def _only_branch(union: Sequence[Any]) -> int:
    """The one branch of a union that is not null."""
    branches = [number for number, branch in enumerate(union) if branch != "null"]
    if len(branches) != 1:
        raise ValueError("a union of several types")
    return branches[0]


# A target of None skips a value: it is decoded only to advance past it.


def _decode(lanes: Lanes, schema: Any, target: pa.DataType | None) -> pa.Array | None:
    match schema:
        case "int" | "long":
            numbers = lanes.longs()
            return None if target is None else numbers_array(numbers).cast(target)
        case "bytes" | "string":
            return _decode_bytes(lanes, target)
        case list():
            return _decode_union(lanes, schema, target)
        case {"type": "record", "fields": fields}:
            return _decode_record(lanes, fields, target)
        case {"type": "array", "items": items}:
            return _decode_array(lanes, items, target)
        case _:
            raise ValueError(f"{schema} is not a type that manifests use")


def _decode_bytes(lanes: Lanes, target: pa.DataType | None) -> pa.Array | None:
    lengths = lanes.longs()
    starts = lanes.at
    lanes.skip(lengths)
    if target is None:
        return None
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if len(lengths) and lengths[0] > 0 and (lengths == lengths[0]).all():
        raw = sliding_window_view(lanes.data, int(lengths[0]))[starts].reshape(-1)
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


def _decode_union(
    lanes: Lanes, union: Sequence[Any], target: pa.DataType | None
) -> pa.Array | None:
    branch = _only_branch(union)
    branches = lanes.longs()
    if len(branches) and not 0 <= branches.min() <= branches.max() < len(union):
        raise ValueError("a union has fewer branches")
    has_value = branches == branch
    if has_value.all():
        return _decode(lanes, union[branch], target)
    if not has_value.any():
        return None if target is None else pa.nulls(len(lanes), target)
    subset = lanes.select(has_value)
    values = _decode(subset, union[branch], target)
    lanes.at[has_value] = subset.at
    if values is None:
        return None
    return values.take(numbers_array(np.cumsum(has_value) - 1, is_null=~has_value))


# Arrays ------------------------------------------------------------------------------------------


def _decode_array(lanes: Lanes, items: Any, target: pa.DataType | None) -> pa.Array | None:
    """Arrays come in blocks of a count and that many items; a count of zero ends them."""
    inner = None if target is None else target.value_type
    sizes = np.zeros(len(lanes), np.int64)
    owners: list[Positions] = []
    parts: list[pa.Array | None] = []
    unread = np.arange(len(lanes))  # lanes whose next value is a count
    while True:
        subset = lanes.select(unread)
        counts = subset.longs()
        if counts.min(initial=0) < 0:
            raise ValueError("a count with a size")  # allowed, but no writer does it
        lanes.at[unread] = subset.at
        unread, counts = unread[counts > 0], counts[counts > 0]
        if not len(unread):
            break
        subset = lanes.select(unread)
        parts.append(_decode_items(subset, counts, items, inner))
        owners.append(np.repeat(unread, counts))
        lanes.at[unread] = subset.at
        sizes[unread] += counts
    if target is None:
        return None
    values = _by_owner(owners, parts) if parts else pa.nulls(0, inner)
    offsets = np.zeros(len(lanes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return pa.LargeListArray.from_arrays(numbers_array(offsets), values, type=target)


def _decode_items(
    lanes: Lanes, counts: Positions, items: Any, inner: pa.DataType | None
) -> pa.Array | None:
    """The items of one block of every lane, lane after lane."""
    values = None
    if inner is not None and items in _NUMBERS and counts.max() > _FEW_ITEMS:
        values = _decode_numbers(lanes, counts, inner, is_nullable=isinstance(items, list))
    elif inner is not None and items in ("bytes", "string"):
        values = _decode_same_texts(lanes, counts, inner)
    return _decode_rounds(lanes, counts, items, inner) if values is None else values


# Up to this many items, looking for the ends of all numbers is not worth it.
_FEW_ITEMS: Final = 4
_NUMBERS: Final = ("int", "long", ["null", "int"], ["null", "long"])


def _decode_numbers(
    lanes: Lanes, counts: Positions, inner: pa.DataType, *, is_nullable: bool
) -> pa.Array | None:
    """Items that are numbers, all at once: a byte below 0x80 ends one. None if one is null."""
    each = 2 if is_nullable else 1  # the branch of a union is a number, too
    first = np.searchsorted(lanes.ends, lanes.at)
    last = first + counts * each
    before = np.cumsum(counts) - counts
    numbers = np.repeat(first - before * each, counts) + np.arange(counts.sum()) * each
    # A number begins after the end of the one before it; the first comes after the count.
    if is_nullable and (lanes.data[lanes.ends[numbers - 1] + 1] != _SECOND_BRANCH).any():
        return None
    values = Lanes(lanes.data, lanes.ends[numbers + each - 2] + 1).longs()
    lanes.at = lanes.ends[last - 1] + 1
    return numbers_array(values).cast(inner)


_SECOND_BRANCH: Final = 2  # the number 1


def _decode_same_texts(lanes: Lanes, counts: Positions, inner: pa.DataType) -> pa.Array | None:
    """Texts that are the same in every lane, such as names of columns. None if they differ."""
    one = lanes.select(np.array([0]))
    count = int(counts[0])
    texts = _decode_rounds(one, counts[:1], "bytes", inner)
    assert texts is not None
    block = lanes.data[lanes.at[0] : one.at[0]]
    if (counts != count).any() or not lanes.starts_with(block).all():
        return None
    lanes.at = lanes.at + len(block)
    return texts.take(numbers_array(np.tile(np.arange(count), len(lanes))))


def _decode_rounds(
    lanes: Lanes, counts: Positions, items: Any, inner: pa.DataType | None
) -> pa.Array | None:
    """The first items of all lanes, then the second ones, and so on."""
    owners: list[Positions] = []
    parts: list[pa.Array | None] = []
    for number in range(int(counts.max())):
        active = np.flatnonzero(counts > number)
        subset = lanes.select(active)
        parts.append(_decode(subset, items, inner))
        owners.append(active)
        lanes.at[active] = subset.at
    return None if inner is None else _by_owner(owners, parts)


def _by_owner(owners: Sequence[Positions], parts: Sequence[pa.Array | None]) -> pa.Array:
    """The values of all parts, in the order of the lanes that they belong to."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(owners), kind="stable")
    return pa.concat_arrays(parts).take(numbers_array(order))
