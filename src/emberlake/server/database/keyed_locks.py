"""Locks of this process, by name."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class KeyedLocks:
    """One lock for each key that somebody holds or waits for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    @contextmanager
    def hold(self, key: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of a key; False if it is taken and the caller does not wait."""
        with self._guard:
            entry = self._entries.setdefault(key, _Entry())
            entry.users += 1
        is_held = entry.lock.acquire(blocking=wait)
        try:
            yield is_held
        finally:
            if is_held:
                entry.lock.release()
            with self._guard:
                entry.users -= 1
                if not entry.users:
                    del self._entries[key]
