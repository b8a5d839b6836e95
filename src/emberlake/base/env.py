"""Time, ids and randomness come from here: tests are deterministic, and retries do not sleep."""

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return str(uuid.uuid4())


def _sleep_ms(milliseconds: float) -> None:
    time.sleep(milliseconds / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """The outside world, except for storage."""

    now_ms: Callable[[], int] = _now_ms
    new_id: Callable[[], str] = _new_id
    sleep_ms: Callable[[float], None] = _sleep_ms
    chance: Callable[[], float] = random.random

    def marked(self, mark: str) -> "Env":
        """The same world, but every id, and so every file name, begins with a mark."""
        new_id = self.new_id
        return replace(self, new_id=lambda: f"{mark}-{new_id()}")

    def local_now_ms(self) -> int:
        """The local wall clock as if it were UTC, as file creation times are stored."""
        instant = datetime.fromtimestamp(self.now_ms() / 1000, tz=UTC)
        offset = instant.astimezone().utcoffset()
        return self.now_ms() + (int(offset.total_seconds() * 1000) if offset else 0)


SYSTEM_ENV = Env()
