"""Remembers values up to a number of bytes: what every cache of this process is made of.

A bound on the number of values bounds nothing: one may take a kilobyte, the next a megabyte. So
whoever keeps a value says what it takes, and the cache adds what itself and the key take.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

_SLOT_BYTES: Final = 220  # the place in the dictionary, and what ties key and value together


class ByteCache:
    """The least recently used values go when all together take too many bytes.

    Args:
        limit: How many bytes to hold at most, asked for when the first value is kept.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._ask_limit = limit
        self._limit: int | None = None
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], tuple[Any, int]] = OrderedDict()
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What the cache takes, with keys and values."""
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
        """Remember a value that takes so many bytes, unless it alone is too large."""
        size += _SLOT_BYTES + sys.getsizeof(key) + sum(map(sys.getsizeof, key))
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

    def clear(self) -> None:
        """Forget everything; the limit is asked for again."""
        with self._lock:
            self._kept.clear()
            self._held_bytes = 0
            self._limit = None

    def __len__(self) -> int:
        return len(self._kept)
