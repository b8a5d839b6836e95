"""Opens the port of a server first, so that a port in use is reported before anything else."""

import socket
from typing import Final

from emberlake.errors import InvalidState

_BACKLOG: Final = 2048  # connections that wait until the server takes them
Listening = socket.socket


def listen(host: str, port: int) -> Listening:
    """Open the port of the server.

    Raises:
        InvalidState: the port cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise InvalidState(
            f"the server cannot listen on port {port} of {host}: "
            f"{error.strerror or error}; choose others with --port and --host, where --port 0 is "
            "a free one"
        ) from error
    return listening
