"""The XML API of Google Cloud Storage in front of fake-gcs-server; see ``servers.fake_gcs``.

    python gcs_shim.py LISTEN_PORT TARGET_PORT

The client library speaks the XML API, and fake-gcs-server takes writes only by the JSON API. This
translates, and leaves every decision to the server: conditions, ranges, listings. Only the parts of
uploads wait here, in memory.
"""

import hashlib
import json
import re
import sys
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

CONDITION = "x-goog-if-generation-match"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wanted:
    """What a request is about."""

    bucket: str
    key: str
    query: Mapping[str, str]

    @staticmethod
    def of(path: str) -> "Wanted":
        url = urlsplit(path)
        bucket, _, key = url.path.lstrip("/").partition("/")
        query = parse_qs(url.query, keep_blank_values=True)
        return Wanted(unquote(bucket), unquote(key), {k: v[0] for k, v in query.items()})

    @property
    def objects(self) -> str:
        return f"/storage/v1/b/{quote(self.bucket)}/o"

    @property
    def object(self) -> str:
        return f"{self.objects}/{quote(self.key, safe='')}"


class Backend:
    """fake-gcs-server, with a connection for each thread."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._here = threading.local()

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        for is_last in (False, True):  # a connection that was kept may have been closed
            link = getattr(self._here, "link", None) or HTTPConnection("127.0.0.1", self._port)
            self._here.link = link
            try:
                link.request(method, path, body, headers)
                answer = link.getresponse()
                said = {name.lower(): value for name, value in answer.getheaders()}
                return answer.status, answer.read(), said
            except (HTTPException, ConnectionError):
                link.close()
                self._here.link = None
                if is_last:
                    raise
        raise AssertionError


class Shim(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    backend: Backend
    uploads: dict[str, dict[int, bytes]]

    def log_message(self, *_: object) -> None: ...

    def do_PUT(self) -> None:
        wanted, data = Wanted.of(self.path), self.received()
        source = self.headers.get("x-goog-copy-source")
        if "partNumber" in wanted.query:
            self.reply(self.take_part(wanted, data))
        elif source:
            found = Wanted.of("/" + source.lstrip("/"))
            status, data, _ = self.backend.ask("GET", f"{found.object}?alt=media")
            self.reply(self.store(wanted, data) if status == 200 else refusal(status, "NoSuchKey"))
        else:
            self.reply(self.store(wanted, data))

    def do_POST(self) -> None:
        wanted, data = Wanted.of(self.path), self.received()
        if "uploads" in wanted.query:
            name = uuid.uuid4().hex
            self.uploads[name] = {}
            self.reply(xml(f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"))
        else:
            self.reply(self.complete(wanted, data))

    def do_DELETE(self) -> None:
        wanted = Wanted.of(self.path)
        if "uploadId" in wanted.query:
            parts = self.uploads.pop(wanted.query["uploadId"], None)
            self.reply(refusal(404, "NoSuchUpload") if parts is None else Answer(204))
            return
        status, _, _ = self.backend.ask("DELETE", wanted.object)
        self.reply(Answer(204) if status in (200, 204) else refusal(status, "NoSuchKey"))

    def do_GET(self) -> None:
        wanted = Wanted.of(self.path)
        self.reply(self.read(wanted) if wanted.key else self.listing(wanted))

    def do_HEAD(self) -> None:
        self.do_GET()

    def take_part(self, wanted: Wanted, data: bytes) -> Answer:
        parts = self.uploads.get(wanted.query["uploadId"])
        if parts is None:
            return refusal(404, "NoSuchUpload")
        parts[int(wanted.query["partNumber"])] = data
        return Answer(200, headers={"ETag": f'"{hashlib.md5(data).hexdigest()}"'})

    def complete(self, wanted: Wanted, data: bytes) -> Answer:
        name = wanted.query.get("uploadId", "")
        if name not in self.uploads:
            return refusal(404, "NoSuchUpload")
        numbers = [int(found) for found in re.findall(rb"<PartNumber>(\d+)</PartNumber>", data)]
        answer = self.store(wanted, b"".join(self.uploads[name][number] for number in numbers))
        if answer.status != 200:
            return answer
        del self.uploads[name]
        mark = escape(answer.headers["ETag"])
        return xml(f"<CompleteMultipartUploadResult><ETag>{mark}</ETag>", answer.headers)

    def store(self, wanted: Wanted, data: bytes) -> Answer:
        query = {"uploadType": "media", "name": wanted.key}
        if CONDITION in self.headers:
            query["ifGenerationMatch"] = self.headers[CONDITION]
        path = f"/upload{wanted.objects}?{urlencode(query, quote_via=quote)}"
        status, said, _ = self.backend.ask("POST", path, data)
        if status != 200:
            return refusal(status, "PreconditionFailed" if status == 412 else "NoSuchBucket")
        return Answer(200, headers=marks(json.loads(said)))

    def read(self, wanted: Wanted) -> Answer:
        status, said, _ = self.backend.ask("GET", wanted.object)
        if status != 200:
            return refusal(status, "NoSuchKey")
        about = json.loads(said)
        headers = {**marks(about), "Last-Modified": http_time(about["updated"])}
        if self.command == "HEAD":
            return Answer(200, headers={**headers, "Content-Length": str(about["size"])})
        part = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
        status, data, got = self.backend.ask("GET", f"{wanted.object}?alt=media", **part)
        if "content-range" in got:
            headers["Content-Range"] = got["content-range"]
        return Answer(status, data, headers)

    def listing(self, wanted: Wanted) -> Answer:
        after = wanted.query.get("start-after")
        asked = {
            "prefix": wanted.query.get("prefix"),
            "delimiter": wanted.query.get("delimiter"),
            "pageToken": wanted.query.get("continuation-token"),
            "startOffset": after,
            "maxResults": wanted.query.get("max-keys") or "1000",
        }
        query = urlencode({k: v for k, v in asked.items() if v}, quote_via=quote)
        status, said, _ = self.backend.ask("GET", f"{wanted.objects}?{query}")
        if status != 200:
            return refusal(status, "NoSuchBucket")
        page = json.loads(said)
        # What begins at an offset includes it, what starts after a key does not.
        found = [listed(item) for item in page.get("items", []) if item["name"] != after]
        for prefix in page.get("prefixes", []):
            found.append(f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>")
        token = page.get("nextPageToken")
        found.append(f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>")
        if token:
            found.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        return xml(f"<ListBucketResult>{''.join(found)}")

    def received(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()


def xml(text: str, headers: Mapping[str, str] | None = None) -> Answer:
    """A document whose outermost element is closed here."""
    name = re.match(r"<(\w+)>", text)
    assert name is not None
    body = f"{text}</{name[1]}>".encode()
    return Answer(200, body, {**(headers or {}), "Content-Type": "application/xml"})


def refusal(status: int, code: str) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code></Error>".encode())


def marks(about: Mapping[str, Any]) -> dict[str, str]:
    return {"ETag": f'"{about["etag"]}"', "x-goog-generation": str(about["generation"])}


def listed(about: Mapping[str, Any]) -> str:
    fields = {"Key": about["name"], "LastModified": about["updated"], "Size": about["size"]}
    fields["ETag"] = f'"{about["etag"]}"'
    inner = "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in fields.items())
    return f"<Contents>{inner}</Contents>"


def http_time(text: str) -> str:
    return format_datetime(datetime.fromisoformat(text), usegmt=True)


def main(listen: int, target: int) -> None:
    Shim.backend, Shim.uploads = Backend(target), {}
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("127.0.0.1", listen), Shim).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
