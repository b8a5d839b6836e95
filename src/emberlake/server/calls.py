"""A request as endpoints see it, and the services that they answer it with."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from emberlake.base.env import Env
from emberlake.errors import InvalidInput, NoPermission
from emberlake.rest.errors import ErrorAnswer, ResourceType
from emberlake.server.access.grants import Principal, Resource
from emberlake.server.access.needs import ERROR_TYPES
from emberlake.server.access.principals import Principals
from emberlake.server.database.database import Database, Rows
from emberlake.server.heads import Heads
from emberlake.server.warehouses import Warehouse

PAGE: Final = 1000  # names on a page: by default, and at most
_CHUNK: Final = 1000


class Refused(Exception):
    """The request is answered with an error."""

    def __init__(
        self,
        code: int,
        message: str,
        resource_type: ResourceType | None = None,
        resource_name: str | None = None,
    ) -> None:
        super().__init__(message)
        self.answer = ErrorAnswer(code, message, resource_type, resource_name)


@dataclass(frozen=True, slots=True)
class Call:
    """One request, by somebody who is known, to one warehouse."""

    principal: Principal
    warehouse: Warehouse
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    request_id: str

    def check(self, is_allowed: bool, resource: Resource) -> None:  # noqa: FBT001
        """Refuse what the principal may not do."""
        if not is_allowed:
            raise forbidden(resource)


@dataclass(frozen=True)
class Services:
    """What endpoints work with."""

    database: Database
    heads: Heads
    principals: Principals
    env: Env
    vend: "Vending"
    keep_dropped_ms: int
    on_access_changed: Callable[[], None] = field(default=lambda: None)


class Vending(Protocol):
    """Hands out storage credentials for a table."""

    def is_enabled(self, warehouse: Warehouse) -> bool:
        """Whether clients are told to ask for credentials."""

    def credentials(
        self, warehouse: Warehouse, path: str, *, writes: bool, principal: str
    ) -> tuple[Mapping[str, str], int]:
        """The options of a storage that reach a path, and when they end.

        Raises:
            Unsupported: the storage of the warehouse has none to hand out.
        """


def forbidden(resource: Resource) -> Refused:
    """The answer to somebody who lacks a grant."""
    name = resource.name or resource.database or None
    what = f"{resource.kind} {'.'.join(filter(None, (resource.database, resource.name)))}".strip()
    error = NoPermission(f"you have no permission for this on {what}")
    return Refused(403, str(error), ERROR_TYPES[resource.kind], name)


def missing(resource: Resource) -> Refused:
    """The answer to a client that may learn only that the resource does not exist."""
    text = f"{resource.database}.{resource.name} does not exist"
    return Refused(404, text, ERROR_TYPES[resource.kind])


# --- pages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of a list is asked for."""

    size: int = PAGE
    after: str | None = None

    @staticmethod
    def of(query: Mapping[str, str]) -> "Paging":
        """The page that a query asks for; absent, zero and negative sizes are the default."""
        return Paging.given(query.get("maxResults"), query.get("pageToken"))

    @staticmethod
    def given(size: object, after: str | None) -> "Paging":
        try:
            number = int(str(size or 0))
        except ValueError:
            raise InvalidInput(f"maxResults is {size!r}, not a number") from None
        return Paging(min(number, PAGE) if number > 0 else PAGE, after or None)


def page_of_rows(
    read: Callable[[str, int], Rows], paging: Paging, accept: Callable[[tuple[Any, ...]], bool]
) -> tuple[list[tuple[Any, ...]], str | None]:
    """A page of rows whose first column is their name, in its order, and the token of the next.

    A full page has a token even when nothing follows.
    """
    found: list[tuple[Any, ...]] = []
    start = paging.after or ""
    while True:
        rows = read(start, _CHUNK)
        for row in rows:
            if accept(row):
                found.append(row)
                if len(found) == paging.size:
                    return found, str(row[0])
        if len(rows) < _CHUNK:
            return found, None
        start = rows[-1][0]


def page_of_names(names: list[str], paging: Paging) -> tuple[list[str], str | None]:
    """A page of names, which are sorted here."""
    following = sorted(name for name in names if paging.after is None or name > paging.after)
    page = following[: paging.size]
    return page, page[-1] if len(page) == paging.size else None


_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def name_matcher(pattern: str | None) -> Callable[[str], bool]:
    r"""Whether a name matches ``abc%`` (a prefix) or ``abc`` (the whole name); ``\`` escapes.

    Raises:
        InvalidInput: the pattern has a ``%`` elsewhere.
    """
    if not pattern:
        return lambda _: True
    plain = _ESCAPED.sub(lambda found: "\0" if found[1] == "%" else found[1], pattern)
    is_prefix = plain.endswith("%")
    text = plain.rstrip("%") if is_prefix else plain
    if "%" in text:
        raise InvalidInput(f"{pattern!r}: only prefix patterns are supported, such as 'abc%'")
    text = text.replace("\0", "%")
    return (lambda name: name.startswith(text)) if is_prefix else (lambda name: name == text)
