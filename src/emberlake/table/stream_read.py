"""Streaming reads: a builder, and a scan that follows the table."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Self

from emberlake.errors import InvalidInput
from emberlake.expressions.query_auth import authorized
from emberlake.scan.stream import StreamScan
from emberlake.spec.support import check_readable
from emberlake.table.read_builder import Plan, ReadBuilder
from emberlake.table.table_read import TableRead


@dataclass
class StreamReadBuilder(ReadBuilder):
    """Describes a streaming read: which rows, which columns, as which consumer."""

    _poll_interval_ms: int = field(default=1000, repr=False)
    _include_row_kind: bool = field(default=False, repr=False)
    _consumer_id: str | None = field(default=None, repr=False)
    _bucket_filter: Callable[[int], bool] | None = field(default=None, repr=False)

    def with_limit(self, limit: int | None) -> Self:
        """A stream has no end: there is no limit to set."""
        if limit is not None:
            raise InvalidInput("a stream has no limit; stop reading when you have enough")
        return self

    def with_poll_interval_ms(self, poll_interval_ms: int) -> Self:
        """How long to wait before looking for a new snapshot again."""
        if poll_interval_ms < 0:
            raise InvalidInput(f"an interval is a number of milliseconds, not {poll_interval_ms}")
        self._poll_interval_ms = poll_interval_ms
        return self

    def with_include_row_kind(self, include: bool = True) -> Self:  # noqa: FBT001, FBT002
        """Return the row kind (``+I``, ``-U``, ``+U``, ``-D``) in a first column ``_row_kind``.

        Without it, changes that remove a row are left out.
        """
        self._include_row_kind = include
        return self

    def with_consumer_id(self, consumer_id: str) -> Self:
        """Store the progress of this reader in the table; it overrides the starting position."""
        self._consumer_id = consumer_id
        return self

    def with_bucket_filter(self, bucket_filter: Callable[[int], bool]) -> Self:
        """Read only some buckets: several readers can share a table."""
        self._bucket_filter = bucket_filter
        return self

    def with_buckets(self, bucket_ids: Iterable[int]) -> Self:
        """Read only these buckets."""
        return self.with_bucket_filter(frozenset(bucket_ids).__contains__)

    def new_streaming_scan(self) -> "StreamingTableScan":
        """The half that finds what is new."""
        check_readable(self.store.schema)
        scan = StreamScan(self.store, self._predicate, self._bucket_filter, self._consumer_id)
        return StreamingTableScan(scan, self._poll_interval_ms, self._columns)

    def new_read(self) -> TableRead:
        """The half that reads it."""
        return TableRead(replace(self._new_reader(), with_kind=self._include_row_kind))


@dataclass(frozen=True)
class StreamingTableScan:
    """Finds the state of a table, then its changes, in the order of its snapshots."""

    _scan: StreamScan = field(repr=False)
    poll_interval_ms: int = 1000
    _columns: frozenset[str] = field(default=frozenset(), repr=False)

    def plan(self) -> Plan | None:
        """What to read next; None if there is nothing new yet."""
        self._scan.store = authorized(self._scan.store, self._columns)
        plan = self._scan.plan()
        return None if plan is None else Plan(plan)

    def checkpoint(self) -> int | None:
        """The position of the scan: the next snapshot."""
        return self._scan.checkpoint()

    def restore(self, next_snapshot: int | None) -> None:
        """Continue from a checkpoint."""
        self._scan.restore(next_snapshot)

    def notify_checkpoint_complete(self, next_snapshot: int | None) -> None:
        """Confirm that all plans before a checkpoint are processed: the consumer moves on."""
        self._scan.notify_checkpoint_complete(next_snapshot)

    def stream_sync(self) -> Iterator[Plan]:
        """Plans without end; asking for the next one confirms that the one before is processed."""
        while True:
            plan = self.plan()
            if plan is None:
                self._scan.store.env.sleep_ms(self.poll_interval_ms)
                continue
            yield plan
            self.notify_checkpoint_complete(self.checkpoint())

    async def stream(self) -> AsyncIterator[Plan]:
        """The same for an event loop, which is not blocked while there is nothing new."""
        # Loading it takes longer than a whole plan; a program with an event loop has loaded it.
        import asyncio  # noqa: PLC0415

        while True:
            plan = await asyncio.to_thread(self.plan)
            if plan is None:
                await asyncio.sleep(self.poll_interval_ms / 1000)
                continue
            yield plan
            await asyncio.to_thread(self.notify_checkpoint_complete, self.checkpoint())
