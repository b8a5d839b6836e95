"""The pages as an application: addresses, and what they answer. It decides nothing by itself."""

import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from emberlake.base.texts import count_text
from emberlake.catalog import Catalog
from emberlake.errors import CommitConflict, EmberlakeError, InvalidInput, NotFound
from emberlake.table import Table
from emberlake.ui.contents import (
    Values,
    database_values,
    table_of,
    tree_values,
    view_values,
)
from emberlake.ui.guard import SECURITY_HEADERS, Guard
from emberlake.ui.pages import VIEWS, Site, asset, render

ASSETS: Final = ("style.css", "htmx.min.js", "icon.svg")
_MAX_FORM: Final = 10_000
Answer = Callable[[Request], Response]
Form = Mapping[str, str]


class Status(IntEnum):
    """How a request went."""

    OK = 200
    SEE_OTHER = 303
    BAD_REQUEST = 400
    FORBIDDEN = 403
    NOT_FOUND = 404
    FAILED = 500


@dataclass(frozen=True)
class Pages:
    """What the server can show, and do if writes are allowed."""

    catalog: Catalog
    guard: Guard
    site: Site

    def app(self) -> ASGIApp:
        """The application, guarded."""
        table = "/table/{identifier}"
        routes = [
            Route("/", self._safely(self.home)),
            Route("/assets/{name}", self.asset),
            Route("/database/{name}", self._safely(self.database)),
            Route("/tree/{name}", self._safely(self.tree)),
            Route(f"{table}/check", self._form(self.check), methods=["POST"]),
            Route(f"{table}/compact", self._write(self.compact), methods=["POST"]),
            Route(f"{table}/tags", self._write(self.tag), methods=["POST"]),
            Route(table + "/{view}", self._safely(self.table)),
        ]
        return _Guarded(Starlette(routes=routes), self.guard)

    # --- reading ----------------------------------------------------------------------------------

    def home(self, request: Request) -> Response:
        del request
        return self._page("home.html", tree_values(self.catalog))

    def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("there is no such file", Status.NOT_FOUND)
        return Response(asset(name), media_type=mimetypes.guess_type(name)[0])

    def database(self, request: Request) -> Response:
        return self._page(
            "database.html", database_values(self.catalog, request.path_params["name"])
        )

    def tree(self, request: Request) -> Response:
        return self._page("parts/tree.html", tree_values(self.catalog, request.path_params["name"]))

    def table(self, request: Request) -> Response:
        view = request.path_params["view"]
        if view not in VIEWS:
            raise NotFound(f"there is no page {view}")
        table = table_of(self.catalog, request.path_params["identifier"])
        query = dict(request.query_params)
        values = view_values(table, view, query)
        if "hx-request" in request.headers:
            part = {"plan": "parts/planned.html", "history": "parts/versions.html"}.get(view)
            if part is not None:
                return self._page(part, values)
        return self._page("table.html", {**self._around(table), **values})

    # --- forms ------------------------------------------------------------------------------------

    def check(self, table: Table, form: Form) -> Values:
        report = table.check(read_data="data" in form)
        return {"part": "checked", "check": report}

    def compact(self, table: Table, form: Form) -> Values:
        result = table.compact(full="full" in form)
        if result.snapshot_id is None:
            return {"part": "written", "written": "There is nothing to compact."}
        return {
            "part": "written",
            "written": f"Compacted {count_text(result.files_deleted, 'file')} to "
            f"{result.files_added:,}, in snapshot {result.snapshot_id}.",
        }

    def tag(self, table: Table, form: Form) -> Values:
        name, snapshot = form.get("name", "").strip(), form.get("snapshot", "").strip()
        if "delete" in form:
            is_deleted = table.delete_tag(name)
            said = f"Deleted tag {name}." if is_deleted else f"There is no tag {name}."
        else:
            table.create_tag(name, int(snapshot) if snapshot.isdecimal() else None)
            said = f"Created tag {name}."
        return {"part": "written", "written": said}

    # --- plumbing ---------------------------------------------------------------------------------

    def _around(self, table: Table) -> Values:
        identifier = table.identifier
        values = tree_values(self.catalog, identifier.get_database_name())
        return {**values, "current_table": str(identifier), "identifier": str(identifier)}

    def _page(self, template: str, values: Values, status: int = Status.OK) -> Response:
        return HTMLResponse(render(template, self.site, **values), status)

    def _safely(self, answer: Answer) -> Answer:
        """Turn errors of the engine into pages."""

        def answered(request: Request) -> Response:
            try:
                return answer(request)
            except EmberlakeError as error:
                if "hx-request" in request.headers:  # a script puts it where the answer belongs
                    return self._page("parts/problem.html", {"problem": str(error)})
                return self._failure(error)

        return answered

    def _failure(self, error: EmberlakeError) -> Response:
        status, title = Status.FAILED, "It cannot be shown"
        if isinstance(error, NotFound):
            status, title = Status.NOT_FOUND, "Not found"
        elif isinstance(error, InvalidInput):
            status = Status.BAD_REQUEST
        try:
            around = tree_values(self.catalog)
        except EmberlakeError:  # that may be what has failed
            around = {"databases": None, "current_database": None, "current_table": None}
        return self._page("failure.html", {**around, "title": title, "problem": str(error)}, status)

    def _write(
        self, act: Callable[[Table, Form], Values]
    ) -> Callable[[Request], Awaitable[Response]]:
        if self.site.allow_writes:
            return self._form(act)

        async def refuse(request: Request) -> Response:
            del request
            said = "Nothing was changed: this server is read-only. Start it with --allow-writes."
            return PlainTextResponse(said, Status.FORBIDDEN)

        return refuse

    def _form(
        self, act: Callable[[Table, Form], Values]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Act on a form that one of our pages has sent; the answer is a part, or a page."""

        def acted(request: Request, form: Form) -> Response:
            table = table_of(self.catalog, request.path_params["identifier"])
            values: Values
            try:
                values = act(table, form)
            except (EmberlakeError, ValueError) as error:
                again = " Try again." if isinstance(error, CommitConflict) else ""
                values = {"part": "written", "problem": f"{error}{again}", "written": ""}
            if "hx-request" in request.headers:
                return self._page(f"parts/{values['part']}.html", values)
            around = self._around(table)
            if values["part"] == "checked":
                shown = {**view_values(table, "check", {}), **values}
                return self._page("table.html", {**around, **shown})
            return self._page("written.html", {**around, **values})

        async def answered(request: Request) -> Response:
            form = await _form_of(request)
            if not self.guard.knows_token(form.get("token")):
                said = "Nothing was done: the form is old, or not from one of this server's pages."
                return PlainTextResponse(said, Status.FORBIDDEN)
            return await run_in_threadpool(self._safely(lambda r: acted(r, form)), request)

        return answered


async def _form_of(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


@dataclass(frozen=True)
class _Guarded:
    """Lets the guard look at every request before anything else does."""

    inner: ASGIApp
    guard: Guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no others: no lifespan, no web sockets
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(k.encode(), v.encode()) for k, v in SECURITY_HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        answer = self._before(Request(scope))
        await (answer or self.inner)(scope, receive, secured)

    def _before(self, request: Request) -> Response | None:
        """The answer to a request that gets no further."""
        why = self.guard.refusal(request.method, request.headers)
        if why is not None:
            return PlainTextResponse(why, Status.FORBIDDEN)
        cookie = f"emberlake-{request.url.port or 80}"  # cookies are shared by all ports
        if self.guard.knows_key(request.query_params.get("key")):
            answer: Response = RedirectResponse("/", Status.SEE_OTHER)
            answer.set_cookie(cookie, self.guard.key, httponly=True, samesite="lax")
            return answer
        if not self.guard.knows_key(request.cookies.get(cookie)):
            said = "Open the address that `emberlake ui` has printed: it has the key."
            return PlainTextResponse(said, Status.FORBIDDEN)
        return None


def build_app(catalog: Catalog, guard: Guard, *, allow_writes: bool = False) -> Any:
    """The application for a catalog."""
    return Pages(catalog, guard, Site(allow_writes=allow_writes, token=guard.form_token)).app()
