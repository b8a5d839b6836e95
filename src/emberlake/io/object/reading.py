"""Objects as seekable inputs, in few requests.

A small object takes one request. For a larger one the first request fetches the size and the end,
where formats keep their footers. A reader that knows which parts it will need says so, and gets
them side by side. For other readers the rest is fetched on demand, with a read-ahead that grows
while the reader goes straight on.
"""

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Self

import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.requests import begin_data
from emberlake.io.object.calls import Failed, ask, attempt
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.failures import typed
from emberlake.io.object.location import Cloud, Location
from emberlake.io.storage import SMALL_BYTES, Part, Range

END_BYTES: Final = 64 * 1024
AHEAD_BYTES: Final = 64 * MEBIBYTE  # of parts that are fetched before their turn
_MOST_STRAIGHT_ON: Final = 8 * MEBIBYTE
_PIECE_BYTES: Final = 8 * MEBIBYTE  # of one request
_GAP_BYTES: Final = MEBIBYTE  # fetched with its neighbours, to save one more request
_PAST_THE_END: Final = 416

Fetch = Callable[[int, int], memoryview]
_End = tuple[int, int, memoryview]  # the size, and the last bytes with their offset


def read_range(config: StoreConfig, location: Location, offset: int, length: int) -> memoryview:
    """Bytes of an object; fewer at its end."""

    def fetch(obs: Any, client: Any) -> Any:
        return obs.get_range(client, location.key, start=offset, length=length)

    try:
        return memoryview(attempt(config, location, fetch))
    except Failed as failed:
        if failed.failure.status == _PAST_THE_END:
            return memoryview(b"")
        if not failed.failure.is_of_range:
            raise typed(failed.failure, config, location, "read") from None
    # Some stores answer with the whole object, at least if it is empty.
    whole = ask(config, location, "read", lambda obs, client: obs.get(client, location.key).bytes())
    return memoryview(whole)[offset : offset + length]


def open_input(config: StoreConfig, location: Location, size: int | None = None) -> Any:
    """A ``pyarrow.NativeFile`` of an object.

    If its size is said to be large, nothing is read until somebody asks for it.
    """
    fetch = partial(read_range, config, location)
    if size is not None and size > SMALL_BYTES:
        return ObjectFile(RangedInput(fetch, partial(_read_end, config, location, size), size))
    end = _read_end(config, location, size)
    if end[1] == 0 and len(end[2]) == end[0]:
        return pa.BufferReader(pa.py_buffer(end[2]))
    return ObjectFile(RangedInput(fetch, lambda: end))


def _read_end(config: StoreConfig, location: Location, size: int | None) -> _End:
    """The size of an object, and its last bytes with their offset; a small one is read whole.

    Args:
        config: how to reach the store.
        location: the object.
        size: its expected size, if that is known.
    """
    if size is not None and size <= SMALL_BYTES:
        return ask(config, location, "read", lambda obs, client: _read_all(obs, client, location))
    if size is None and config.cloud is Cloud.AZURE:  # it accepts no ranges that count from the end
        return ask(config, location, "read", lambda obs, client: _read_small(obs, client, location))
    wanted: Any = {"suffix": SMALL_BYTES} if size is None else (size - END_BYTES, size)

    def fetch(obs: Any, client: Any) -> _End:
        found = obs.get(client, location.key, options={"range": wanted})
        start, _ = found.range
        return found.meta["size"], start, memoryview(found.bytes())

    try:
        return attempt(config, location, fetch)
    except Failed as failed:
        if not failed.failure.is_of_range:
            raise typed(failed.failure, config, location, "read") from None
    if size is not None:  # it is shorter than it should be
        return _read_end(config, location, None)
    # An empty object has no last bytes.
    return ask(config, location, "read", lambda obs, client: _read_small(obs, client, location))


def _read_all(obs: Any, client: Any, location: Location) -> _End:
    found = obs.get(client, location.key)
    return int(found.meta["size"]), 0, memoryview(found.bytes())


def _read_small(obs: Any, client: Any, location: Location) -> _End:
    found = obs.get(client, location.key)
    size = int(found.meta["size"])
    if size <= SMALL_BYTES:
        return size, 0, memoryview(found.bytes())
    return size, size, memoryview(b"")  # the body is not read


class ObjectFile(pa.PythonFile):  # type: ignore[misc]
    """An object as Arrow reads it. Parts of it can be fetched ahead."""

    _ranged: "RangedInput"

    def __new__(cls, ranged: "RangedInput") -> Self:
        file: Self = super().__new__(cls, ranged, mode="r")
        file._ranged = ranged
        return file

    def __init__(self, ranged: "RangedInput") -> None:
        """Nothing to do: ``__new__`` passes Arrow its arguments."""

    def size(self) -> int:
        return self._ranged.size

    def each_part(self, parts: Sequence[Part]) -> Iterator[int]:
        return self._ranged.each_part(parts)


class RangedInput(io.RawIOBase):
    """A file that is fetched in pieces.

    It keeps the end, the piece that was fetched last, and the announced parts until their turn is
    over.

    Args:
        fetch: gets some bytes at an offset.
        read_end: gets the size and the last bytes, once they are needed.
        said_size: the expected size; callers that must be sure ask for ``size``.
    """

    def __init__(
        self, fetch: Fetch, read_end: Callable[[], _End], said_size: int | None = None
    ) -> None:
        super().__init__()
        self._fetch = fetch
        self._read_end = read_end
        self._said_size = said_size
        self._found_end: _End | None = None
        self._last: tuple[int, memoryview] = (0, memoryview(b""))  # the last piece on demand
        self._pieces: list[_Piece] = []  # of the parts that were begun, in order
        self._position = 0
        self._expected = 0  # where the next read begins, if the reader goes straight on
        self._ahead = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        match whence:
            case io.SEEK_SET:
                start = 0
            case io.SEEK_CUR:
                start = self._position
            case _:
                start = self._length
        self._position = max(start + offset, 0)
        return self._position

    @property
    def size(self) -> int:
        """The size of the object. To find it, the end of the object is read."""
        return self._end[0]

    def each_part(self, parts: Sequence[Part]) -> Iterator[int]:
        """The numbers of the parts, in order. When a number comes, its ranges have been fetched.

        The parts that follow are fetched meanwhile, as long as they do not take too much memory.
        """
        waiting = deque(enumerate(parts))
        begun: deque[tuple[int, list[_Piece]]] = deque()
        try:
            while waiting or begun:
                while waiting and (not begun or _held(self._pieces) < AHEAD_BYTES):
                    number, ranges = waiting.popleft()
                    begun.append((number, [_Piece(*one, self._fetch) for one in pieces_of(ranges)]))
                    self._pieces = [piece for _, pieces in begun for piece in pieces]
                yield begun[0][0]
                begun.popleft()
                self._pieces = [piece for _, pieces in begun for piece in pieces]
        finally:
            for piece in self._pieces:
                piece.is_wanted = False
            self._pieces = []

    def read(self, size: int | None = -1, /) -> memoryview:
        if size is None or size < 0:
            size = max(self._length - self._position, 0)
        data = self._bytes_at(self._position, size)
        self._position += len(data)
        self._expected = self._position
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._last = (0, memoryview(b""))
        self._found_end = (0, 0, memoryview(b""))
        self._pieces = []
        super().close()

    @property
    def _length(self) -> int:
        if self._found_end is None and self._said_size is not None:
            return self._said_size
        return self.size

    @property
    def _end(self) -> _End:
        if self._found_end is None:
            self._found_end = self._read_end()
        return self._found_end

    def _bytes_at(self, start: int, length: int) -> memoryview:
        found = self._fetched_ahead(start, length)
        if found is not None:
            return found
        length = max(min(length, self._length - start), 0)
        is_end = start >= self._length - END_BYTES or self._found_end is not None
        for offset, data in (self._last, *([self._end[1:]] if is_end else [])):
            if offset <= start and start + length <= offset + len(data):
                return data[start - offset : start - offset + length]
        is_straight_on = start == self._expected
        self._ahead = min(max(2 * self._ahead, END_BYTES), _MOST_STRAIGHT_ON)
        if not is_straight_on:
            self._ahead = 0
        wanted = max(length + self._ahead, END_BYTES)
        self._last = (start, self._fetch(start, min(wanted, self._length - start)))
        return self._last[1][:length]

    def _fetched_ahead(self, start: int, length: int) -> memoryview | None:
        """Bytes from the parts that were begun; None if the parts do not hold all of them."""
        stop = start + length
        covering: list[_Piece] = []
        for piece in self._pieces:
            if piece.start <= start < piece.stop or (covering and piece.start == covering[-1].stop):
                covering.append(piece)
                if stop <= piece.stop:
                    views = [one.bytes_of(start, stop) for one in covering]
                    # Readers mostly ask for a range they announced: one piece, if it fits.
                    return views[0] if len(views) == 1 else memoryview(b"".join(views))
        return None


def pieces_of(ranges: Iterable[Range]) -> list[Range]:
    """The pieces to fetch for some ranges, with one request each.

    Ranges that lie close together are fetched together, up to a size; larger ranges are cut. If a
    range is small enough it is never cut, so its bytes need not be put together again.
    """
    out: list[Range] = []
    for start, stop in sorted(ranges):
        begin = start
        if out:
            first, last = out[-1]
            if start - last <= _GAP_BYTES and max(stop, last) - first <= _PIECE_BYTES:
                out[-1] = (first, max(stop, last))
                continue
            begin = max(start, last)
        while stop - begin > _PIECE_BYTES:
            out.append((begin, begin + _PIECE_BYTES))
            begin += _PIECE_BYTES
        if begin < stop:
            out.append((begin, stop))
    return out


class _Piece:
    """A range that is being fetched."""

    def __init__(self, start: int, stop: int, fetch: Fetch) -> None:
        self.start = start
        self.stop = stop
        self.is_wanted = True
        self._data = begin_data(partial(self._get, fetch))

    def _get(self, fetch: Fetch) -> memoryview:
        return fetch(self.start, self.stop - self.start) if self.is_wanted else memoryview(b"")

    def bytes_of(self, start: int, stop: int) -> memoryview:
        """The bytes of a range that lie in this piece."""
        return self._data()[max(start - self.start, 0) : stop - self.start]


def _held(pieces: Iterable[_Piece]) -> int:
    return sum(piece.stop - piece.start for piece in pieces)
