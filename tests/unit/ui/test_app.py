"""The pages as answers to requests, without a network."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from builders import COLUMNS, append, create_table, open_catalog
from emberlake import Schema, SchemaChange
from emberlake.io import MemoryStorage
from emberlake.store.manifests import forget_manifests
from emberlake.ui.app import build_app
from emberlake.ui.guard import SECURITY_HEADERS, Guard
from emberlake.ui.loading import HISTORY_PAGE
from emberlake.ui.pages import VIEWS

KEY, TOKEN, HOST = "key-of-the-test", "token-of-the-test", "127.0.0.1:8711"
COOKIE = f"emberlake-8711={KEY}"
EVIL = "<script>alert(1)</script>"
EVIL_OPTION = "x.<i>option"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str


class Site:
    """An application over a table in memory."""

    def __init__(self, *, allow_writes: bool = False) -> None:
        storage = MemoryStorage()
        self.table = create_table(
            storage, partition_keys=["day"], options={EVIL_OPTION: EVIL, "my.password": "hush-hush"}
        )
        append(self.table, [(1, EVIL), (2, "tue")])
        self.catalog = open_catalog(storage)
        guard = Guard("127.0.0.1", KEY, TOKEN)
        self.app = build_app(self.catalog, guard, allow_writes=allow_writes)

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, {"cookie": COOKIE, **headers})

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Reply:
        return self.ask("POST", path, {"cookie": COOKIE, **headers}, urlencode(form).encode())

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        given = {"host": HOST, **{k.replace("_", "-"): v for k, v in headers.items()}}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in given.items()],
            "scheme": "http",
            "server": ("127.0.0.1", 8711),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        start = sent[0]
        text = b"".join(m.get("body", b"") for m in sent[1:]).decode()
        return Reply(start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, text)


@pytest.fixture(scope="module")
def site() -> Site:
    return Site()


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_table_is_a_page(site: Site, view: str) -> None:
    reply = site.get(f"/table/db.t/{view}")

    assert reply.status == 200
    assert reply.text.startswith("<!doctype html>")
    assert "<h1>db.t</h1>" in reply.text


@pytest.mark.parametrize("path", ["/", "/database/db", "/tree/db", "/assets/style.css"])
def test_the_catalog_and_the_assets_are_there(site: Site, path: str) -> None:
    assert site.get(path).status == 200


@pytest.mark.parametrize(
    "path",
    [
        *(f"/table/db.t/{view}" for view in VIEWS),
        "/table/db.t/plan?" + urlencode({"filter": EVIL}),
        "/table/db.t/plan?" + urlencode({"filter": f"day = '{EVIL}'"}),
        "/table/" + "db.%3Cscript%3Ealert(1)%3C%2Fscript%3E" + "/overview",
        "/database/%3Cscript%3Ealert(1)",
        "/table/db.t/buckets?" + urlencode({"partition": EVIL, "inside": EVIL, "bucket": "0"}),
    ],
)
def test_text_of_tables_and_of_users_is_never_markup(site: Site, path: str) -> None:
    reply = site.get(path)

    assert "<script>alert" not in reply.text
    assert "<i>option" not in reply.text


def test_values_of_tables_are_shown_as_text(site: Site) -> None:
    assert "&lt;script&gt;alert(1)" in site.get("/table/db.t/rows").text


def test_secrets_in_options_are_hidden(site: Site) -> None:
    reply = site.get("/table/db.t/overview")

    assert "my.password" in reply.text
    assert "hush-hush" not in reply.text


def test_columns_without_comments_leave_the_room_to_their_names(site: Site) -> None:
    assert "<th>role</th></tr>" in site.get("/table/db.t/overview").text

    site.catalog.alter_table("db.t", SchemaChange.update_column_comment("day", "of the order"))

    page = site.get("/table/db.t/overview").text
    assert "<th>comment</th>" in page
    assert "<td>of the order</td>" in page


def test_every_answer_has_the_headers_that_protect_it(site: Site) -> None:
    for reply in (site.get("/"), site.get("/nowhere"), site.ask("GET", "/", {})):
        assert SECURITY_HEADERS.items() <= reply.headers.items()


def test_who_has_no_key_sees_nothing(site: Site) -> None:
    for headers in ({}, {"cookie": "emberlake-8711=wrong"}, {"cookie": f"emberlake-1={KEY}"}):
        for path in ("/", "/table/db.t/rows", "/?key=wrong", "/assets/style.css"):
            reply = site.ask("GET", path, headers)
            assert (reply.status, "printed" in reply.text) == (403, True)


def test_the_printed_address_gives_the_key_to_the_browser_and_hides_it(site: Site) -> None:
    reply = site.ask("GET", f"/?key={KEY}", {})

    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert reply.headers["set-cookie"].startswith(f"{COOKIE}; HttpOnly; Path=/; SameSite=lax")


def test_other_names_and_other_sites_are_refused_even_with_the_key(site: Site) -> None:
    assert site.get("/", host="evil.example:8711").status == 403
    assert site.get("/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403
    assert site.get("/", origin="http://evil.example").status == 403


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/table/db.nothing/overview", 404),
        ("/table/db.t/nothing", 404),
        ("/database/nothing", 404),
        ("/table/db.t$files/rows", 400),
        ("/table/x/rows", 400),
    ],
)
def test_what_cannot_be_shown_is_explained(site: Site, path: str, status: int) -> None:
    reply = site.get(path)
    part = site.get(path, hx_request="true")

    assert (reply.status, 'role="alert"' in reply.text) == (status, True)
    assert 'href="/database/db"' in reply.text  # the way on is there
    assert "no databases" not in reply.text
    assert (part.status, part.text.startswith('<p class="problem"')) == (200, True)


def test_only_assets_of_the_package_are_served(site: Site) -> None:
    assert site.get("/assets/../app.py").status == 404
    assert site.get("/assets/htmx-LICENSE.txt").status == 404


def test_a_filter_that_cannot_be_used_is_explained_in_place(site: Site) -> None:
    reply = site.get("/table/db.t/plan?filter=nothing+%3D+1", hx_request="true")

    assert reply.status == 200
    assert 'role="alert"' in reply.text
    assert "<!doctype" not in reply.text


def test_a_part_of_a_page_is_sent_to_scripts(site: Site) -> None:
    reply = site.get("/table/db.t/plan?filter=id+%3E+1", hx_request="true")

    assert "<!doctype" not in reply.text
    assert "<b>1</b> of 2 files are read" in reply.text


def test_a_branch_has_pages_of_its_own_and_the_histories_link_to_each_other() -> None:
    site = Site()
    site.table.create_tag("v1")
    site.table.create_branch("dev", "v1")
    append(site.table.copy({"branch": "dev"}), [(9, "wed")])

    main = site.get("/table/db.t/history").text
    branch = site.get("/table/db.t$branch_dev/history").text

    assert 'href="/table/db.t%24branch_dev/history">dev</a>' in main
    assert 'href="/table/db.t/history">main</a>' in branch
    assert "wed" in site.get("/table/db.t$branch_dev/rows").text


def test_older_snapshots_come_as_a_part() -> None:
    site = Site()
    for number in range(HISTORY_PAGE):
        append(site.table, [(number, "tue")])

    page = site.get("/table/db.t/history").text
    older = site.get("/table/db.t/history?before=2&part=versions", hx_request="true").text

    assert "before=2" in page
    assert (page.count('<li class="version">'), older.count('<li class="version">')) == (60, 1)
    assert "<!doctype" not in older


def test_a_damaged_table_can_still_be_checked_and_says_why_it_has_no_rows() -> None:
    site = Site()
    store = site.table.store
    for file in site.table.new_read_builder().explain().files:
        store.storage.delete(file.path)

    rows = site.get("/table/db.t/rows")
    store.storage.delete(store.layout.manifest(site.table.latest_snapshot().delta_manifest_list))
    forget_manifests()

    assert (rows.status, "does not exist" in rows.text) == (200, True)
    assert site.get("/table/db.t/overview").status != 200
    assert site.get("/table/db.t/check").status == 200
    assert "missing" in site.post("/table/db.t/check", {"token": TOKEN}, hx_request="true").text


def test_a_check_needs_a_form_of_ours_and_no_writes(site: Site) -> None:
    assert site.post("/table/db.t/check", {}).status == 403
    assert site.post("/table/db.t/check", {"token": "wrong"}).status == 403

    reply = site.post("/table/db.t/check", {"token": TOKEN, "data": "yes"}, hx_request="true")

    assert (reply.status, "Nothing is wrong" in reply.text) == (200, True)
    assert site.get("/table/db.t/check").status == 200


def test_a_check_shows_what_it_finds_and_works_without_scripts() -> None:
    site = Site()
    storage = site.table.store.storage
    file = site.table.new_read_builder().explain().files[0]
    storage.delete(file.path)

    reply = site.post("/table/db.t/check", {"token": TOKEN})

    assert reply.text.startswith("<!doctype html>")
    assert "missing" in reply.text


@pytest.mark.parametrize("path", ["compact", "tags"])
def test_nothing_is_written_unless_it_was_allowed(site: Site, path: str) -> None:
    reply = site.post(f"/table/db.t/{path}", {"token": TOKEN, "name": "v1"})

    assert (reply.status, "read-only" in reply.text) == (403, True)
    assert site.table.list_tags() == []
    assert "Compact" not in site.get("/table/db.t/overview").text


def test_with_writes_allowed_tags_come_and_go() -> None:
    site = Site(allow_writes=True)
    form = {"token": TOKEN, "name": "v1", "snapshot": "1"}

    created = site.post("/table/db.t/tags", form, hx_request="true")
    again = site.post("/table/db.t/tags", form, hx_request="true")

    assert "Created tag v1." in created.text
    assert "already exists" in again.text
    assert site.table.list_tags() == ["v1"]
    deleted = site.post("/table/db.t/tags", {**form, "delete": "yes"})
    assert "Deleted tag v1." in deleted.text
    assert site.table.list_tags() == []


def test_with_writes_allowed_a_table_is_compacted() -> None:
    site = Site(allow_writes=True)
    for number in range(6):
        append(site.table, [(number, "tue")])

    reply = site.post("/table/db.t/compact", {"token": TOKEN, "full": "yes"}, hx_request="true")

    assert "Compacted 7 files to 1" in reply.text
    again = site.post("/table/db.t/compact", {"token": TOKEN, "full": "yes"}, hx_request="true")
    assert "nothing to compact" in again.text


def test_even_allowed_writes_need_a_form_of_ours() -> None:
    site = Site(allow_writes=True)

    for form in ({"name": "v1"}, {"name": "v1", "token": KEY}, {"name": "x" * 20_000}):
        assert site.post("/table/db.t/tags", form).status == 403
    assert site.ask("GET", "/table/db.t/compact", {"cookie": COOKIE}).status != 200
    assert site.table.list_tags() == []


def test_a_table_that_cannot_be_read_does_not_hide_the_others() -> None:
    site = Site()
    storage = site.table.store.storage
    catalog = open_catalog(storage)
    broken = catalog.create_table("db.broken", Schema.from_pyarrow_schema(COLUMNS))
    storage.put(f"{broken.store.layout.root}/schema/schema-0", b"not a schema")

    reply = site.get("/database/db")

    assert "cannot be read" in reply.text
    assert 'href="/table/db.t/overview"' in reply.text
