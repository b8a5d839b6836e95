"""Locks of this process, by name."""

import threading
from collections.abc import Iterator, Sequence
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
    def hold(self, key: str) -> Iterator[None]:
        """Hold the lock of a key."""
        with self._guard:
            entry = self._entries.setdefault(key, _Entry())
            entry.users += 1
        entry.lock.acquire()
        try:
            yield
        finally:
            self._release(key)

    @contextmanager
    def hold_free(self, keys: Sequence[str]) -> Iterator[frozenset[str]]:
        """Hold the locks of those keys that nobody holds or waits for."""
        with self._guard:
            held = frozenset(key for key in keys if key not in self._entries)
            for key in held:
                entry = self._entries[key] = _Entry(users=1)
                entry.lock.acquire()
        try:
            yield held
        finally:
            for key in held:
                self._release(key)

    def _release(self, key: str) -> None:
        with self._guard:
            entry = self._entries[key]
            entry.lock.release()
            entry.users -= 1
            if not entry.users:
                del self._entries[key]
