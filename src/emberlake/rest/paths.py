"""The endpoints of the protocol: which method and path asks for what.

Names in paths are form-encoded: a blank is ``+``, a slash ``%2F``. So a path is split at its
slashes before any of it is decoded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Final
from urllib.parse import quote_plus, unquote_plus

VERSION: Final = "v1"
CONFIG_PATH: Final = f"/{VERSION}/config"

_D: Final = "/databases/{database}"
_T: Final = f"{_D}/tables/{{table}}"


class Endpoint(Enum):
    """What a server is asked for: its method, and its path below ``/v1/<prefix>``."""

    LIST_DATABASES = "GET /databases"
    CREATE_DATABASE = "POST /databases"
    GET_DATABASE = f"GET {_D}"
    ALTER_DATABASE = f"POST {_D}"
    DROP_DATABASE = f"DELETE {_D}"
    LIST_TABLES = f"GET {_D}/tables"
    CREATE_TABLE = f"POST {_D}/tables"
    LIST_TABLE_DETAILS = f"GET {_D}/table-details"
    REGISTER_TABLE = f"POST {_D}/register"
    LIST_TABLES_GLOBALLY = "GET /tables"
    GET_TABLE_BY_ID = "GET /tables/id/{id}"
    RENAME_TABLE = "POST /tables/rename"
    GET_TABLE = f"GET {_T}"
    ALTER_TABLE = f"POST {_T}"
    DROP_TABLE = f"DELETE {_T}"
    REPLACE_TABLE = f"POST {_T}/replace"
    COMMIT = f"POST {_T}/commit"
    GET_SNAPSHOT = f"GET {_T}/snapshot"
    LIST_SNAPSHOTS = f"GET {_T}/snapshots"
    GET_SNAPSHOT_VERSION = f"GET {_T}/snapshots/{{version}}"
    ROLLBACK = f"POST {_T}/rollback"
    ROLLBACK_SCHEMA = f"POST {_T}/rollback-schema"
    GET_TOKEN = f"GET {_T}/token"
    AUTHORIZE = f"POST {_T}/auth"
    LIST_PARTITIONS = f"GET {_T}/partitions"
    CREATE_PARTITIONS = f"POST {_T}/partitions"
    DROP_PARTITIONS = f"POST {_T}/partitions/drop"
    MARK_PARTITIONS_DONE = f"POST {_T}/partitions/mark"
    LIST_PARTITIONS_BY_NAMES = f"POST {_T}/partitions/list-by-names"
    LIST_PARTITIONS_BY_FILTER = f"POST {_T}/partitions/list-by-filter"
    LIST_BRANCHES = f"GET {_T}/branches"
    CREATE_BRANCH = f"POST {_T}/branches"
    DROP_BRANCH = f"DELETE {_T}/branches/{{branch}}"
    FORWARD_BRANCH = f"POST {_T}/branches/{{branch}}/forward"
    RENAME_BRANCH = f"POST {_T}/branches/{{branch}}/rename"
    LIST_TAGS = f"GET {_T}/tags"
    CREATE_TAG = f"POST {_T}/tags"
    GET_TAG = f"GET {_T}/tags/{{tag}}"
    DELETE_TAG = f"DELETE {_T}/tags/{{tag}}"
    LIST_CONSUMERS = f"GET {_T}/consumers"
    RESET_CONSUMER = f"POST {_T}/consumers/reset"
    LIST_VIEWS = f"GET {_D}/views"
    CREATE_VIEW = f"POST {_D}/views"
    LIST_VIEW_DETAILS = f"GET {_D}/view-details"
    LIST_VIEWS_GLOBALLY = "GET /views"
    GET_VIEW = f"GET {_D}/views/{{view}}"
    ALTER_VIEW = f"POST {_D}/views/{{view}}"
    DROP_VIEW = f"DELETE {_D}/views/{{view}}"
    RENAME_VIEW = "POST /views/rename"
    LIST_FUNCTIONS = f"GET {_D}/functions"
    CREATE_FUNCTION = f"POST {_D}/functions"
    LIST_FUNCTION_DETAILS = f"GET {_D}/function-details"
    LIST_FUNCTIONS_GLOBALLY = "GET /functions"
    GET_FUNCTION = f"GET {_D}/functions/{{function}}"
    ALTER_FUNCTION = f"POST {_D}/functions/{{function}}"
    DROP_FUNCTION = f"DELETE {_D}/functions/{{function}}"
    LIST_PERMISSIONS = "GET /permissions"
    GRANT_PERMISSION = "POST /permissions/grant"
    REVOKE_PERMISSION = "POST /permissions/revoke"

    @property
    def method(self) -> str:
        return self.value.partition(" ")[0]

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path; those in braces stand for names."""
        return tuple(self.value.partition(" ")[2].split("/")[1:])


@dataclass(frozen=True, slots=True)
class Route:
    """An endpoint, and the names in its path, decoded: ``{"database": "db", "table": "t"}``."""

    endpoint: Endpoint
    names: Mapping[str, str]


def encode_name(name: str) -> str:
    """A name as a part of a path, in the spelling of Java's clients."""
    return quote_plus(name, safe="*").replace("~", "%7E")


def decode_name(part: str) -> str:
    """The name that a part of a path stands for."""
    return unquote_plus(part, errors="strict")


def path_of(endpoint: Endpoint, prefix: str, *names: str) -> str:
    """The path of an endpoint, with names for its parts in braces, in their order."""
    left = iter(names)
    parts = [encode_name(next(left)) if _is_name(part) else part for part in endpoint.segments]
    assert next(left, None) is None, f"{endpoint} has fewer names"
    base = [VERSION, encode_name(prefix)] if prefix else [VERSION]
    return "/" + "/".join((*base, *parts))


def find_route(method: str, segments: tuple[str, ...]) -> Route | None:
    """What is asked for by the parts of a path below ``/v1/<prefix>``, still encoded.

    None: no endpoint has such a path, or not with this method (see ``methods_of``).
    """
    for endpoint in _by_length().get(len(segments), ()):
        if endpoint.method == method and _fits(endpoint, segments):
            pairs = zip(endpoint.segments, segments, strict=True)
            return Route(endpoint, {k[1:-1]: decode_name(v) for k, v in pairs if _is_name(k)})
    return None


def methods_of(segments: tuple[str, ...]) -> tuple[str, ...]:
    """The methods that a path below ``/v1/<prefix>`` has; none if it is unknown."""
    found = {e.method for e in _by_length().get(len(segments), ()) if _fits(e, segments)}
    return tuple(sorted(found))


@cache
def _by_length() -> Mapping[int, tuple[Endpoint, ...]]:
    # Those with more fixed words come first: the `id` of `/tables/id/x` is not a name.
    ordered = sorted(Endpoint, key=lambda e: sum(map(_is_name, e.segments)))
    lengths = {len(e.segments) for e in ordered}
    return {n: tuple(e for e in ordered if len(e.segments) == n) for n in lengths}


def _fits(endpoint: Endpoint, segments: tuple[str, ...]) -> bool:
    pairs = zip(endpoint.segments, segments, strict=True)
    return all(bool(found) if _is_name(part) else part == found for part, found in pairs)


def _is_name(part: str) -> bool:
    return part.startswith("{")
