"""A TCP proxy on loopback that holds back the first byte of every answer.

    python latency.py LISTEN_PORT TARGET_PORT MILLISECONDS

It knows nothing of HTTP: an answer is what comes from the server after something went to it. Two
threads for each connection copy bytes and do nothing else, so that it can keep up with a server on
the same machine; ``python bench --s3`` measures whether it does.
"""

import socket
import sys
import threading
import time
from contextlib import suppress

BLOCK = 1 << 20


class Connection:
    """A client's connection, and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, target: int, delay: float) -> None:
        self._client = client
        self._server = socket.create_connection(("127.0.0.1", target))
        self._delay = delay
        self._is_asked = False  # something went to the server since its last answer began
        for one in (self._client, self._server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._ask, daemon=True).start()
        threading.Thread(target=self._answer, daemon=True).start()

    def _ask(self) -> None:
        self._copy(self._client, self._server, is_answer=False)

    def _answer(self) -> None:
        self._copy(self._server, self._client, is_answer=True)

    def _copy(self, source: socket.socket, sink: socket.socket, *, is_answer: bool) -> None:
        block = memoryview(bytearray(BLOCK))
        with suppress(OSError):
            while count := source.recv_into(block):
                if not is_answer:
                    self._is_asked = True
                elif self._is_asked:
                    self._is_asked = False
                    time.sleep(self._delay)
                sink.sendall(block[:count])
        for one, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
            with suppress(OSError):  # it has ended
                one.shutdown(how)


def main(listen: int, target: int, milliseconds: float) -> None:
    with socket.create_server(("127.0.0.1", listen), backlog=256) as server:
        while True:
            Connection(server.accept()[0], target, milliseconds / 1000)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
