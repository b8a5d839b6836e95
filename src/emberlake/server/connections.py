"""Connections of clients: those that send or read too slowly, or send too much, are cut.

By itself, uvicorn waits forever for the headers of a request, and keeps all that arrive. It also
keeps an answer for as long as the client does not read it.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_BYTES: Final = 64 * 1024  # of the line and the headers of a request


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds for the time and the size of headers, and for the time of answers."""

    head_seconds: float = 15.0
    answer_seconds: float = 150.0
    _timer: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None  # runs while the client does not read
    _head_bytes = 0
    _is_in_head = True

    def connection_made(self, transport: Any) -> None:
        """A client is there; its first request must follow soon."""
        super().connection_made(transport)
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        """Some bytes came; whatever they are, the head of a request must not grow forever."""
        if self._is_in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_in_head and self._head_bytes > _MOST_BYTES:
            self._cut()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._begin_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """All headers are there."""
        self._end_head()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        super().pause_writing()
        self._reading = self.loop.call_later(self.answer_seconds, self._cut)

    def resume_writing(self) -> None:
        """The client has read most of what there was."""
        self._end_reading()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._end_head()
        self._end_reading()
        super().connection_lost(exc)

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _begin_head(self) -> None:
        if self._timer is None:
            self._is_in_head, self._head_bytes = True, 0
            self._timer = self.loop.call_later(self.head_seconds, self._cut)

    def _end_head(self) -> None:
        self._is_in_head = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut(self) -> None:
        self._end_head()
        self._end_reading()
        self.transport.abort()  # a close, even one under way, waits for what nobody reads


def protocol(head_seconds: float, answer_seconds: float) -> type[BoundedProtocol]:
    """The protocol with other bounds for the times."""
    bounds = {"head_seconds": head_seconds, "answer_seconds": answer_seconds}
    return type("Protocol", (BoundedProtocol,), bounds)
