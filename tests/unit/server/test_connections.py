"""Clients that neither speak nor listen are not waited for without end."""

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from emberlake.server.connections import protocol

LARGE = b"x" * 16_000_000  # more than the system keeps for a client that does not read
HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer more than fits into what the system keeps."""
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": LARGE})


async def is_cut(sent: bytes, *, reads: bool) -> bool:
    """Whether a client that sends this is cut before it has its answer."""
    config = uvicorn.Config(answer, lifespan="off", log_config=None)
    config.load()
    kind, loop = protocol(0.1, 10 if reads else 0.1), asyncio.get_running_loop()
    state = ServerState()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    async with server:
        address = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*address, limit=1024)
        writer.write(sent)
        if not reads:
            await asyncio.sleep(0.4)
        count = 0
        try:
            while part := await asyncio.wait_for(reader.read(1_000_000), 5):
                count += len(part)
        except ConnectionResetError:
            count = 0
        writer.close()
    return count < len(LARGE)


@pytest.mark.parametrize(
    ("sent", "reads", "cut"),
    [(HEAD + b"\r\n", True, False), (HEAD + b"\r\n", False, True), (HEAD, False, True)],
    ids=["reads", "does not read", "does not end its head"],
)
def test_who_takes_too_long_is_cut(sent: bytes, reads: bool, cut: bool) -> None:
    assert asyncio.run(is_cut(sent, reads=reads)) is cut
