"""An HTTP proxy on loopback that delays, counts and breaks requests; see ``servers.proxy_of``.

    python fault_proxy.py LISTEN_PORT TARGET_PORT

It is controlled by plain GETs, which answer JSON:

    /__count    requests, sequential trips, the most under way at once and a log, since the last
                call
    /__aside?match=...  requests for which nobody waits: they are in the log alone
    /__delay?30 milliseconds for each request
    /__rules    the rules; one that has broken a request says how many as "fired"
    /__clear    no delay, and no rules any more; answers those that there were
    /__seed?1   decides what chance will do
    /__held     the requests that a rule makes wait, and /__release lets them go on
    /__rule?method=PUT&match=snapshot-&times=1&how=drop&when=after&seconds=30
        match   a regular expression for the path with its query
        when    before: the server never sees the request; after: its answer is lost
        how     drop: the connection is closed; hang: no answer for so many seconds; half: half of
                the answer, then closed; 403-ExpiredToken: an answer with that status and code;
                hold: it waits for /__release, then it is passed on (only with when=before);
                slow: the same after so many seconds; wait: the same, or when the rules are cleared
        times   how often
        life    if given, only requests whose access key has been used more often than this
        skip    how many that match are let through first
        body    of an answer with a status, instead of one with the code
        chance  for how many of those that match, as a fraction
"""

import asyncio
import json
import random
import re
import sys
from collections import Counter
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
    "life": "-1",
    "chance": "1",
    "skip": "0",
    "body": "",
}


@dataclass
class Counted:
    requests: int = 0
    trips: int = 0  # the longest chain of requests that waited for one another
    most: int = 0  # requests that were under way at once
    log: list[str] = field(default_factory=list)


@dataclass
class Proxy:
    target: int
    delay: float = 0.0
    counted: Counted = field(default_factory=Counted)
    answered: int = 0  # the length of the longest chain that has been answered
    open: int = 0  # requests that are under way
    aside: str = "$^"
    held: list[str] = field(default_factory=list)
    rules: list[dict[str, str]] = field(default_factory=list)
    keys: Counter[str] = field(default_factory=Counter)  # how often each was used
    release: asyncio.Event = field(default_factory=asyncio.Event)
    dice: random.Random = field(default_factory=lambda: random.Random(1))

    def control(self, path: str) -> object:
        url = urlsplit(path)
        if url.path == "/__rule":
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.rules.append({**DEFAULTS, **query})
        elif url.path == "/__seed":
            self.dice = random.Random(int(url.query))
        elif url.path == "/__delay":
            self.delay = float(url.query) / 1000
        elif url.path == "/__clear":
            rules, self.rules, self.delay = self.rules, [], 0.0
            return rules
        elif url.path == "/__aside":
            self.aside = parse_qs(url.query)["match"][0]
        elif url.path == "/__held":
            return self.held
        elif url.path == "/__release":
            self.release.set()
            self.release = asyncio.Event()
        elif url.path == "/__count":
            answer, self.counted, self.answered = vars(self.counted), Counted(), 0
            return answer
        return self.rules

    def rule_for(self, method: str, path: str, when: str, uses: int = 0) -> dict[str, str] | None:
        for rule in self.rules:
            is_meant = rule["when"] == when and rule["method"] in ("", method)
            is_meant = is_meant and uses > int(rule["life"])
            if not (is_meant and int(rule["times"]) > 0 and re.search(rule["match"], path)):
                continue
            if int(rule["skip"]) > 0:
                rule["skip"] = str(int(rule["skip"]) - 1)
                continue
            if self.dice.random() < float(rule["chance"]):
                rule["times"] = str(int(rule["times"]) - 1)
                rule["fired"] = str(int(rule.get("fired", "0")) + 1)
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
                counted.log.append(f"{method} {path}")
                is_aside = re.search(self.aside, f"{method} {path}") is not None
                if not is_aside:
                    self.open += 1
                    counted.requests += 1
                    counted.trips = max(counted.trips, depth)
                    counted.most = max(counted.most, self.open)
                try:
                    is_open = await self.pass_on(method, path, head, (reader, writer), upstream)
                finally:
                    self.open -= not is_aside
                if counted is self.counted and not is_aside:
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
        key = access_key(head)
        self.keys[key] += 1
        rule = self.rule_for(method, path, "before", self.keys[key])
        if rule is not None and rule["how"] == "hold":
            self.held.append(path)
            await self.release.wait()
            self.held.remove(path)
        elif rule is not None and rule["how"] == "wait":
            await self.hold(rule, path)
        elif rule is not None and rule["how"] == "slow":
            await asyncio.sleep(float(rule["seconds"]))
        elif rule is not None:
            await copy(reader, None, body_size(head))
            await self.break_off(rule, writer, is_head=method == "HEAD")
            return False
        up_writer.write(head)
        if b"100-continue" in head.lower():
            writer.write(await up_reader.readuntil(b"\r\n\r\n"))
        await copy(reader, up_writer, body_size(head))
        await up_writer.drain()
        said = await up_reader.readuntil(b"\r\n\r\n")
        status = int(said.split(b" ", 2)[1])
        size = 0 if method == "HEAD" or status in (204, 304) else body_size(said)
        is_last = b"\r\nconnection: close" in said.lower() or said.startswith(b"HTTP/1.0")
        is_endless = is_last and b"\r\ncontent-length:" not in said.lower()
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
        if is_endless and size == 0:  # it ends with the connection
            writer.write(await up_reader.read())
        await copy(up_reader, writer, size)
        await writer.drain()
        return not is_last

    async def hold(self, rule: dict[str, str], path: str) -> None:
        self.held.append(path)
        for _ in range(int(float(rule["seconds"]) * 100)):
            if rule not in self.rules:
                break
            await asyncio.sleep(0.01)
        self.held.remove(path)

    async def break_off(
        self, rule: dict[str, str], writer: asyncio.StreamWriter, *, is_head: bool = False
    ) -> None:
        status, _, code = rule["how"].partition("-")
        if rule["how"] == "hang":
            await asyncio.sleep(float(rule["seconds"]))
        elif status.isdecimal():
            text = rule["body"] or (f"<Error><Code>{code}</Code></Error>" if code else "")
            body = b"" if is_head else text.encode()
            await answer(writer, status.encode() + b" Broken", body)
            return
        writer.transport.abort()


async def answer(writer: asyncio.StreamWriter, status: bytes, body: bytes) -> None:
    writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    await writer.drain()


def access_key(head: bytes) -> str:
    """Who signed a request."""
    found = re.search(rb"Credential=([^/]+)/", head)
    return found[1].decode() if found else ""


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
