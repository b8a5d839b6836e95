"""Listing and ending uploads, at a server whose answers the test writes."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from emberlake.errors import StorageError, Unsupported
from emberlake.io import Storage, Upload, open_storage
from emberlake.io.object.config import parse_config
from emberlake.io.object.location import locate
from emberlake.io.object.uploads import _address

XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"
FOLDER = "s3://lake/db.db/t"


def page(*keys: str, more: tuple[str, str] | None = None) -> str:
    """A page of a listing; ``more`` are the markers of the next one."""
    uploads = "".join(
        f"<Upload><Key>{key}</Key><UploadId>id+{n}</UploadId>"
        "<Initiated>2026-01-02T03:04:05.000Z</Initiated></Upload>"
        for n, key in enumerate(keys)
    )
    rest = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
    if more:
        rest += f"<NextKeyMarker>{more[0]}</NextKeyMarker>"
        rest += f"<NextUploadIdMarker>{more[1]}</NextUploadIdMarker>"
    return (
        f'<?xml version="1.0"?><ListMultipartUploadsResult xmlns="{XMLNS}">{rest}{uploads}'
        "</ListMultipartUploadsResult>"
    )


def refusal(code: str) -> str:
    return f"<Error><Code>{code}</Code></Error>"


@dataclass
class Store:
    """Answers with what it was given, in turn, and the last again and again."""

    endpoint: str = ""
    answers: list[tuple[int, str]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def open(self, **options: object) -> Storage:
        given = {"s3.access-key": "key", "s3.secret-key": "hidden", **options}
        given = {name: value for name, value in given.items() if value is not None}
        return open_storage("s3://lake", {"s3.endpoint": self.endpoint, **given})[0]


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            store.requests.append(f"{self.command} {self.path}")
            store.headers.append({name.lower(): text for name, text in self.headers.items()})
            status, text = store.answers.pop(0) if len(store.answers) > 1 else store.answers[0]
            self.send_response(status)
            if status == 307:
                self.send_header("Location", f"{store.endpoint}/elsewhere")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            self.answer()

        def do_DELETE(self) -> None:
            self.answer()

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()


def test_pages_follow_one_another(store: Store) -> None:
    store.answers = [
        (200, page("db.db/t/a", "db.db/t/dt=1 &amp; 2/b", more=("db.db/t/b", "id/0"))),
        (200, page("db.db/t/c")),
    ]

    found = list(store.open().unfinished_uploads(FOLDER))

    begun = 1_767_323_045_000
    assert found == [
        Upload(f"{FOLDER}/a", "id+0", begun),
        Upload(f"{FOLDER}/dt=1 & 2/b", "id+1", begun),
        Upload(f"{FOLDER}/c", "id+0", begun),
    ]
    assert store.requests == [
        "GET /lake?prefix=db.db%2Ft%2F&uploads=",
        "GET /lake?key-marker=db.db%2Ft%2Fb&prefix=db.db%2Ft%2F&upload-id-marker=id%2F0&uploads=",
    ]


def test_a_store_that_refuses_its_own_marks_goes_on_by_keys(store: Store) -> None:
    """A page may end between two uploads of one file: they are all found, and each once."""
    refused = (400, refusal("InvalidArgument"))
    t = "db.db/t"
    store.answers = [
        (200, page(f"{t}/a", f"{t}/b", more=(f"{t}/b", "id+1"))),
        refused,
        (200, page("", f"{t}/b", f"{t}/b", f"{t}/c", f"{t}/d", more=(f"{t}/d", "id+4"))),
        (200, page("", "", "", "", f"{t}/d", f"{t}/e")),
    ]

    found = list(store.open().unfinished_uploads(FOLDER))

    assert [upload.path.rpartition("/")[2] + upload.id[-2:] for upload in found] == [
        *("a+0", "b+1", "b+2", "c+3", "d+4", "e+5")
    ]
    marks = [request.partition("?")[2].split("&")[0] for request in store.requests]
    assert marks[2:] == ["key-marker=db.db%2Ft%2Fa", "key-marker=db.db%2Ft%2Fc"]


def test_marks_that_are_refused_among_uploads_of_one_file_are_an_error(store: Store) -> None:
    more = ("db.db/t/a", "id+1")
    store.answers = [
        (200, page("db.db/t/a", "db.db/t/a", more=more)),
        (400, refusal("InvalidArgument")),
    ]

    listing = store.open().unfinished_uploads(FOLDER)

    assert len([next(listing), next(listing)]) == 2
    with pytest.raises(StorageError, match="InvalidArgument"):
        next(listing)


def test_uploads_of_others_are_left_out_where_a_store_ignores_the_prefix(store: Store) -> None:
    store.answers = [(200, page("db.db/t2/a", "db.db/t", "x", "db.db/t//a", "db.db/t/a", "/"))]

    found = store.open().unfinished_uploads(FOLDER)

    assert [upload.path for upload in found] == [f"{FOLDER}/a"]


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (501, refusal("NotImplemented")),
        (405, refusal("MethodNotAllowed")),
        (404, refusal("NoSuchKey")),
        (200, f'<ListBucketResult xmlns="{XMLNS}"/>'),
        (200, "<html><br>"),
        (200, page(more=("a", "b"))),
    ],
)
def test_a_store_that_lists_no_uploads_is_reported(store: Store, status: int, answer: str) -> None:
    store.answers = [(status, answer)]

    with pytest.raises(Unsupported, match="cannot list the unfinished uploads of s3://lake/"):
        list(store.open().unfinished_uploads(FOLDER))

    assert len(store.requests) <= 2


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "AccessDenied", "may not list the unfinished uploads of s3://lake/db.db/t at"),
        (403, "SignatureDoesNotMatch", "the secret key does not match"),
        (404, "NoSuchBucket", "there is no bucket lake"),
        (307, "TemporaryRedirect", "answered 307 TemporaryRedirect"),
    ],
)
def test_a_refusal_is_an_error_of_ours_without_secrets(
    store: Store, status: int, code: str, message: str
) -> None:
    store.answers = [(status, refusal(code))]

    with pytest.raises(StorageError, match=message) as raised:
        list(store.open().unfinished_uploads(FOLDER))

    assert "hidden" not in str(raised.value)
    assert not any("elsewhere" in request for request in store.requests)


def test_a_store_that_is_busy_is_asked_again(store: Store) -> None:
    store.answers = [(503, refusal("SlowDown")), (200, page("db.db/t/a"))]

    assert len(list(store.open().unfinished_uploads(FOLDER))) == 1
    assert len(store.requests) == 2


def test_a_store_that_does_not_answer_is_reported(store: Store) -> None:
    options = {"s3.endpoint": "http://127.0.0.1:1", "s3.access-key": "k", "s3.secret-key": "hidden"}
    storage, _ = open_storage("s3://lake", options)

    with pytest.raises(StorageError, match=r"cannot reach http://127\.0\.0\.1:1 to list the unfin"):
        list(storage.unfinished_uploads(FOLDER))


def test_uploads_are_ended_and_those_that_have_ended_are_no_error(store: Store) -> None:
    store.answers = [(204, ""), (404, refusal("NoSuchUpload"))]

    store.open().end_uploads([Upload(f"{FOLDER}/a b", "id+1", 0)])
    store.open().end_uploads([Upload(f"{FOLDER}/c", "id/2", 0)])

    assert store.requests == [
        "DELETE /lake/db.db/t/a%20b?uploadId=id%2B1",
        "DELETE /lake/db.db/t/c?uploadId=id%2F2",
    ]


def test_an_upload_that_may_not_be_ended_is_an_error(store: Store) -> None:
    store.answers = [(403, refusal("AccessDenied"))]

    with pytest.raises(StorageError, match=f"may not end the unfinished upload of {FOLDER}/a at"):
        store.open().end_uploads([Upload(f"{FOLDER}/a", "id", 0)])


def numbered_keys() -> Callable[[], dict[str, Any]]:
    asked: list[None] = []

    def provider() -> dict[str, Any]:
        asked.append(None)
        number = f"key{len(asked)}"
        return {"access_key_id": number, "secret_access_key": "hidden", "token": "a-token"}

    return provider


def test_a_provider_is_asked_once_and_again_when_its_keys_have_ended(store: Store) -> None:
    more = ("db.db/t/a", "id")
    store.answers = [(200, page(more=more)), (403, refusal("ExpiredToken")), (200, page())]
    keys = {"s3.access-key": None, "s3.secret-key": None}
    storage = store.open(**keys, **{"s3.credentials-provider": numbered_keys()})

    assert list(storage.unfinished_uploads(FOLDER)) == []

    used = [headers["authorization"].partition("/")[0][-4:] for headers in store.headers]
    assert used[-1] != used[-2]
    assert {headers["x-amz-security-token"] for headers in store.headers} == {"a-token"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: {"access_key_id": "key"}, "returned no usable credentials"),
        (lambda: 1 / 0, "credentials-provider function failed with ZeroDivisionError"),
    ],
)
def test_a_provider_that_gives_no_keys_is_reported(
    store: Store, given: Callable[[], Any], message: str
) -> None:
    keys = {"s3.access-key": None, "s3.secret-key": None}
    storage = store.open(**keys, **{"s3.credentials-provider": given})

    with pytest.raises(StorageError, match=message):
        list(storage.unfinished_uploads(FOLDER))

    assert store.requests == []


def test_anonymous_requests_are_not_signed(store: Store) -> None:
    store.answers = [(200, page())]
    keys = {"s3.access-key": None, "s3.secret-key": None}

    assert not [*store.open(**keys, **{"s3.anonymous": "true"}).unfinished_uploads(FOLDER)]

    assert "authorization" not in store.headers[0]


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("s3://lake/t", {"s3.credentials": "instance"}, r"give s3\.credentials-provider"),
        ("gs://lake/t", {"gs.token": "hidden"}, "on gcs; set a lifecycle rule"),
        (
            "oss://lake/t",
            {
                "fs.oss.endpoint": "oss-cn-hangzhou.aliyuncs.com",
                "fs.oss.accessKeyId": "key",
                "fs.oss.accessKeySecret": "hidden",
            },
            "on oss; set a lifecycle rule",
        ),
    ],
)
def test_what_cannot_be_listed_is_refused_before_any_request(
    path: str, options: dict[str, str], message: str
) -> None:
    storage, _ = open_storage(path, options)

    with pytest.raises(Unsupported, match=message):
        list(storage.unfinished_uploads(path))


def test_azure_drops_unfinished_uploads_by_itself() -> None:
    path = "abfss://c@account.dfs.core.windows.net/t"
    storage, _ = open_storage(path, {"azure.account-key": "aGlkZGVu"})

    assert list(storage.unfinished_uploads(path)) == []


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "https://s3.eu-west-1.amazonaws.com/lake/a%20b"),
        ({"s3.path.style.access": "false"}, "https://lake.s3.eu-west-1.amazonaws.com/a%20b"),
        ({"s3.endpoint": "http://host:9000"}, "http://host:9000/lake/a%20b"),
        (
            {"s3.endpoint": "https://host/gate", "s3.path.style.access": "false"},
            "https://lake.host/gate/a%20b",
        ),
    ],
)
def test_the_bucket_is_in_the_path_or_in_the_host(options: dict[str, str], address: str) -> None:
    keys = {"s3.access-key": "key", "s3.secret-key": "hidden", "s3.region": "eu-west-1"}
    location = locate("s3://lake/a b")

    assert _address(parse_config(location, {**keys, **options}, {}), location) == address
