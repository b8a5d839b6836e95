"""Objects as seekable inputs, in few requests.

A small object is one request. Of a larger one the first request brings the end, where formats keep
their footers, and the size; the rest is fetched as it is asked for, with a read-ahead that grows
while a reader goes straight on.
"""

import io
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from emberlake.io.object.calls import Failed, ask, attempt
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.failures import typed
from emberlake.io.object.location import Cloud, Location
from emberlake.options import MEBIBYTE

SMALL_BYTES: Final = 4 * MEBIBYTE
_LEAST_BYTES: Final = 64 * 1024
_MOST_AHEAD_BYTES: Final = 8 * MEBIBYTE
_PAST_THE_END: Final = 416


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
    # Some stores answer with the whole object, at least where it is empty.
    whole = ask(config, location, "read", lambda obs, client: obs.get(client, location.key).bytes())
    return memoryview(whole)[offset : offset + length]


def open_input(config: StoreConfig, location: Location) -> Any:
    """A ``pyarrow.NativeFile`` of an object."""
    size, start, data = _read_end(config, location)
    if start == 0 and len(data) == size:
        return pa.BufferReader(pa.py_buffer(data))
    source = RangedInput(
        lambda offset, length: read_range(config, location, offset, length), size, (start, data)
    )
    return pa.PythonFile(source, mode="r")


def _read_end(config: StoreConfig, location: Location) -> tuple[int, int, memoryview]:
    """The size of an object, and its last bytes with their offset: all of a small one."""
    if config.cloud is Cloud.AZURE:  # it takes no ranges that count from the end
        return ask(config, location, "read", lambda obs, client: _read_small(obs, client, location))

    def fetch(obs: Any, client: Any) -> tuple[int, int, memoryview]:
        options = {"range": {"suffix": SMALL_BYTES}}
        found = obs.get(client, location.key, options=options)
        data = memoryview(found.bytes())
        return found.meta["size"], found.meta["size"] - len(data), data

    try:
        return attempt(config, location, fetch)
    except Failed as failed:
        if not failed.failure.is_of_range:
            raise typed(failed.failure, config, location, "read") from None
    # An empty object has no last bytes.
    return ask(config, location, "read", lambda obs, client: _read_small(obs, client, location))


def _read_small(obs: Any, client: Any, location: Location) -> tuple[int, int, memoryview]:
    found = obs.get(client, location.key)
    size = int(found.meta["size"])
    if size <= SMALL_BYTES:
        return size, 0, memoryview(found.bytes())
    return size, size, memoryview(b"")  # the body is not read


class RangedInput(io.RawIOBase):
    """A file that is fetched in pieces. It keeps two: the end, and the last one fetched."""

    def __init__(
        self,
        fetch: Callable[[int, int], memoryview],
        size: int,
        end: tuple[int, memoryview],
    ) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._end = end
        self._piece: tuple[int, memoryview] = (0, memoryview(b""))
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
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = max(starts[whence] + offset, 0)
        return self._position

    def read(self, size: int | None = -1, /) -> memoryview:
        left = max(self._size - self._position, 0)
        length = left if size is None or size < 0 else min(size, left)
        data = self._bytes_at(self._position, length)
        self._position += len(data)
        self._expected = self._position
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._end = self._piece = (0, memoryview(b""))
        super().close()

    def _bytes_at(self, start: int, length: int) -> memoryview:
        for offset, data in (self._piece, self._end):
            if offset <= start and start + length <= offset + len(data):
                return data[start - offset : start - offset + length]
        is_straight_on = start == self._expected
        self._ahead = min(max(2 * self._ahead, _LEAST_BYTES), _MOST_AHEAD_BYTES)
        if not is_straight_on:
            self._ahead = 0
        wanted = max(length + self._ahead, _LEAST_BYTES)
        self._piece = (start, self._fetch(start, min(wanted, self._size - start)))
        return self._piece[1][:length]
