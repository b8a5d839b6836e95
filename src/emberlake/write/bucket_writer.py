"""What writes the rows of one bucket; each kind of table has its own."""

from concurrent.futures import Executor
from typing import Protocol

import pyarrow as pa

from emberlake.write.rolling import Written


class BucketWriter(Protocol):
    """Writes the rows of one bucket of one partition."""

    @property
    def next_sequence(self) -> int: ...

    @property
    def buffered_bytes(self) -> int: ...

    @property
    def has_open_file(self) -> bool: ...

    @property
    def is_due(self) -> bool:
        """Whether the buffer must be flushed even if there is room."""

    def add(self, table: pa.Table) -> None: ...

    def flush(self, pool: Executor | None = None) -> None: ...

    def close_file(self) -> None: ...

    def take_written(self) -> Written: ...

    def abort(self) -> None: ...
