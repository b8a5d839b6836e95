"""An HTTP proxy on loopback that delays, counts and breaks requests; see ``servers.proxy_of``.

    python fault_proxy.py LISTEN_PORT TARGET_PORT

It is controlled by plain GETs, which answer JSON:

    /__count    requests, sequential trips and a log, since the last call
    /__delay?30 milliseconds for each request
    /__clear    no delay, and no rules any more; answers those that there were
    /__rule?method=PUT&match=snapshot-&times=1&how=drop&when=after&seconds=30
        match   a regular expression for the path with its query
        when    before: the server never sees the request; after: its answer is lost
        how     drop: the connection is closed; hang: no answer for so many seconds; half: half of
                the answer, then closed; 403-ExpiredToken: an answer with that status and code
        times   how often
"""

import asyncio
import json
import re
import sys
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

LIMIT = 1 << 22
DEFAULTS = {
    "method": "",
    "match": "",
    "times": "1",
    "how": "drop",
    "when": "after",
    "seconds": "30",
}


@dataclass
class Counted:
    requests: int = 0
    trips: int = 0  # the longest chain of requests that waited for one another
    log: list[str] = field(default_factory=list)


@dataclass
class Proxy:
    target: int
    delay: float = 0.0
    counted: Counted = field(default_factory=Counted)
    answered: int = 0  # the length of the longest chain that has been answered
    rules: list[dict[str, str]] = field(default_factory=list)

    def control(self, path: str) -> object:
        url = urlsplit(path)
        if url.path == "/__rule":
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.rules.append({**DEFAULTS, **query})
        elif url.path == "/__delay":
            self.delay = float(url.query) / 1000
        elif url.path == "/__clear":
            rules, self.rules, self.delay = self.rules, [], 0.0
            return rules
        elif url.path == "/__count":
            answer, self.counted, self.answered = vars(self.counted), Counted(), 0
            return answer
        return self.rules

    def rule_for(self, method: str, path: str, when: str) -> dict[str, str] | None:
        for rule in self.rules:
            is_meant = rule["when"] == when and rule["method"] in ("", method)
            if is_meant and int(rule["times"]) > 0 and re.search(rule["match"], path):
                rule["times"] = str(int(rule["times"]) - 1)
                rule["fired"] = "yes"
                return rule
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
                if path.startswith("/__"):
                    await answer(writer, b"200 OK", json.dumps(self.control(path)).encode())
                    continue
                if upstream is None:
                    upstream = await asyncio.open_connection("127.0.0.1", self.target, limit=LIMIT)
                counted, depth = self.counted, self.answered + 1
                counted.requests += 1
                counted.trips = max(counted.trips, depth)
                counted.log.append(f"{method} {path}")
                is_open = await self.pass_on(method, path, head, (reader, writer), upstream)
                if counted is self.counted:
                    self.answered = max(self.answered, depth)
                if not is_open:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            if upstream is not None:
                upstream[1].close()

    async def pass_on(self, method, path, head, client, server) -> bool:
        """Whether the connections can be used again."""
        reader, writer = client
        up_reader, up_writer = server
        rule = self.rule_for(method, path, "before")
        if rule is not None:
            await copy(reader, None, body_size(head))
            await self.break_off(rule, writer)
            return False
        up_writer.write(head)
        if b"100-continue" in head.lower():
            writer.write(await up_reader.readuntil(b"\r\n\r\n"))
        await copy(reader, up_writer, body_size(head))
        await up_writer.drain()
        said = await up_reader.readuntil(b"\r\n\r\n")
        status = int(said.split(b" ", 2)[1])
        size = 0 if method == "HEAD" or status in (204, 304) else body_size(said)
        rule = self.rule_for(method, path, "after")
        if rule is not None:
            if rule["how"] == "half":
                writer.write(said)
                await copy(up_reader, writer, size // 2)
                await writer.drain()
            await self.break_off(rule, writer)
            return False
        await asyncio.sleep(self.delay)
        writer.write(said)
        await copy(up_reader, writer, size)
        await writer.drain()
        return b"\r\nconnection: close" not in said.lower()

    async def break_off(self, rule: dict[str, str], writer: asyncio.StreamWriter) -> None:
        status, _, code = rule["how"].partition("-")
        if rule["how"] == "hang":
            await asyncio.sleep(float(rule["seconds"]))
        elif status.isdecimal():
            body = f"<Error><Code>{code}</Code></Error>".encode() if code else b""
            await answer(writer, status.encode() + b" Broken", body)
            return
        writer.transport.abort()


async def answer(writer: asyncio.StreamWriter, status: bytes, body: bytes) -> None:
    writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    await writer.drain()


def body_size(head: bytes) -> int:
    """The length of the body that follows; -1 for one that comes in chunks."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
        if name.lower() == b"transfer-encoding" and b"chunked" in value.lower():
            return -1
    return 0


async def copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, size: int
) -> None:
    while size == -1:
        line = await reader.readuntil(b"\r\n")
        chunk = line + await reader.readexactly(int(line.split(b";")[0], 16) + 2)
        if writer is not None:
            writer.write(chunk)
            await writer.drain()
        if chunk.startswith(b"0\r\n"):
            return
    while size > 0:
        block = await reader.read(min(size, 1 << 20))
        if not block:
            raise ConnectionError
        size -= len(block)
        if writer is not None:
            writer.write(block)
            await writer.drain()


async def main(listen: int, target: int) -> None:
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", listen, limit=LIMIT)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
