"""A cache bounded by bytes. Every cache of this process is built on it.

A bound on the number of values would not bound memory: one value may take a kilobyte, the next a
megabyte. So the caller states the size of a value, and the cache adds the size of the key and of
its own entry.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

_ENTRY_BYTES: Final = 220  # the dictionary entry, and the links between key and value


class ByteCache:
    """Drops the least recently used values when all values together take too many bytes.

    Args:
        limit: Returns the largest number of bytes to hold; called when the first value is kept.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._ask_limit = limit
        self._limit: int | None = None
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], tuple[Any, int]] = OrderedDict()
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """The bytes that the cache takes, including keys and values."""
        return self._held_bytes

    def find(self, key: tuple[object, ...]) -> Any:
        """The value of a key, or None."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            return kept[0]

    def keep(self, key: tuple[object, ...], value: object, size: int) -> None:
        """Remember a value that takes ``size`` bytes, unless it alone is too large."""
        size += _ENTRY_BYTES + sys.getsizeof(key) + sum(map(sys.getsizeof, key))
        with self._lock:
            if self._limit is None:
                self._limit = self._ask_limit()
            if key in self._kept or size > self._limit:
                return
            self._kept[key] = (value, size)
            self._held_bytes += size
            while self._held_bytes > self._limit:
                _, (_, freed) = self._kept.popitem(last=False)
                self._held_bytes -= freed

    def replace(self, key: tuple[object, ...], value: object, size: int) -> None:
        """Remember a value, replacing the one that the key has."""
        with self._lock:
            _, freed = self._kept.pop(key, (None, 0))
            self._held_bytes -= freed
        self.keep(key, value, size)

    def clear(self) -> None:
        """Forget everything, including the limit."""
        with self._lock:
            self._kept.clear()
            self._held_bytes = 0
            self._limit = None

    def __len__(self) -> int:
        return len(self._kept)
