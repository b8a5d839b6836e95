"""Who may do what. The table below is the whole truth, and docs/security.md shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog_server import Client, serving, snapshot
from emberlake.base.env import Env
from emberlake.rest.paths import Endpoint
from emberlake.server.access.grants import Access, Columns, Grant, Resource, ResourceKind
from emberlake.server.access.needs import NEEDS
from server_requests import BODIES, FUNCTION_BODY, TABLE_BODY, VIEW_BODY, path_of_request

E = Endpoint
ROOT = Path(__file__).parents[3]
K = ResourceKind
# role -> what it is granted
ROLES: dict[str, tuple[Grant, ...]] = {
    "nobody": (),
    "stranger": (Grant("stranger", Resource(K.DATABASE, "other"), Access.ALL),),
    "lister": (Grant("lister", Resource(K.DATABASE, "db"), Access.LIST),),
    "creator": (
        Grant("creator", Resource(K.DATABASE, "db"), Access.CREATETABLE),
        Grant("creator", Resource(K.DATABASE, "db"), Access.CREATEVIEW),
        Grant("creator", Resource(K.DATABASE, "db"), Access.CREATEFUNCTION),
        Grant("creator", Resource(K.CATALOG), Access.CREATEDATABASE),
    ),
    "reader": (Grant("reader", Resource(K.TABLE, "db", "t"), Access.SELECT),),
    "writer": (Grant("writer", Resource(K.TABLE, "db", "t"), Access.UPDATE),),
    "alterer": (Grant("alterer", Resource(K.TABLE, "db", "t"), Access.ALTER),),
    "dropper": (Grant("dropper", Resource(K.TABLE, "db", "t"), Access.DROP),),
    "granter": (Grant("granter", Resource(K.TABLE, "db", "t"), Access.GRANT),),
    "owner": (
        Grant("owner", Resource(K.DATABASE, "db"), Access.ALL),
        Grant("owner", Resource(K.DATABASE_ALL, "db"), Access.ALL),
    ),
    "steward": (Grant("steward", Resource(K.CATALOG_ALL), Access.ALL),),
}
_READS = (
    E.GET_SNAPSHOT, E.LIST_SNAPSHOTS, E.GET_SNAPSHOT_VERSION, E.GET_TOKEN, E.AUTHORIZE,
    E.LIST_PARTITIONS, E.LIST_PARTITIONS_BY_NAMES, E.LIST_PARTITIONS_BY_FILTER, E.LIST_BRANCHES,
    E.LIST_TAGS, E.GET_TAG, E.LIST_CONSUMERS,
)  # fmt: skip
_WRITES = (
    E.COMMIT, E.ROLLBACK, E.CREATE_PARTITIONS, E.DROP_PARTITIONS, E.MARK_PARTITIONS_DONE,
    E.CREATE_BRANCH, E.DROP_BRANCH, E.FORWARD_BRANCH, E.RENAME_BRANCH, E.CREATE_TAG, E.DELETE_TAG,
    E.RESET_CONSUMER,
)  # fmt: skip
_ALTERS = (E.ALTER_TABLE, E.ROLLBACK_SCHEMA, E.RENAME_TABLE)
_EVERYBODY = (
    E.LIST_DATABASES, E.LIST_TABLES_GLOBALLY, E.LIST_VIEWS_GLOBALLY, E.LIST_FUNCTIONS_GLOBALLY,
    E.LIST_PERMISSIONS, E.GET_TABLE_BY_ID,
)  # fmt: skip
_LISTS = (
    E.GET_DATABASE, E.LIST_TABLES, E.LIST_TABLE_DETAILS, E.LIST_VIEWS, E.LIST_VIEW_DETAILS,
    E.LIST_FUNCTIONS, E.LIST_FUNCTION_DETAILS,
)  # fmt: skip
_VIEWS = (
    E.GET_VIEW, E.ALTER_VIEW, E.DROP_VIEW, E.RENAME_VIEW,
    E.GET_FUNCTION, E.ALTER_FUNCTION, E.DROP_FUNCTION,
)  # fmt: skip
_GRANTS = (E.GRANT_PERMISSION, E.REVOKE_PERMISSION)
_IN_DB = tuple(role for role in ROLES if role not in ("nobody", "stranger"))
_ALL = ("owner", "steward")
# endpoint -> the roles that are not refused
ALLOWED: dict[Endpoint, tuple[str, ...]] = {
    **dict.fromkeys(_EVERYBODY, tuple(ROLES)),
    **dict.fromkeys(_LISTS, _IN_DB),
    E.CREATE_DATABASE: ("creator",),
    E.ALTER_DATABASE: _ALL,
    E.DROP_DATABASE: _ALL,
    **dict.fromkeys(
        (E.CREATE_TABLE, E.CREATE_VIEW, E.CREATE_FUNCTION, E.REGISTER_TABLE), ("creator", *_ALL)
    ),
    E.GET_TABLE: ("reader", "writer", "alterer", "dropper", "granter", *_ALL),
    **dict.fromkeys(_READS, ("reader", "writer", *_ALL)),
    **dict.fromkeys(_WRITES, ("writer", *_ALL)),
    **dict.fromkeys(_ALTERS, ("alterer", *_ALL)),
    E.REPLACE_TABLE: _ALL,  # its rows go, too
    E.DROP_TABLE: ("dropper", *_ALL),
    **dict.fromkeys(_VIEWS, _ALL),
    **dict.fromkeys(_GRANTS, ("granter", *_ALL)),
}
_DROPS = (E.DROP_DATABASE, E.DROP_TABLE, E.DROP_VIEW, E.DROP_FUNCTION)  # a test of their own


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """A client for each role, on one server."""
    with serving(tmp_path_factory.mktemp("access")) as admin:
        admin.database()
        admin.table()
        admin.post("/databases/db/views", VIEW_BODY)
        admin.post("/databases/db/functions", FUNCTION_BODY)
        principals, clients = admin.server.services.principals, {"admin": admin}
        for role, grants in ROLES.items():
            principals.create(role, is_admin=False, by="test")
            token, _ = principals.issue_token(role, by="test")
            clients[role] = admin.as_(token)
            for grant in grants:
                principals.grant("lake", grant, by="test")
        yield clients


def test_every_endpoint_has_a_row() -> None:
    assert set(ALLOWED) == set(Endpoint) == set(NEEDS)


def test_the_page_on_security_shows_who_could_do_what() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- who -->\n")[2].partition("<!-- end of who -->")[0]

    assert shown == table_of_access(), "put what table_of_access() returns between the marks"


def table_of_access() -> str:
    """The table above, as the page has it: requests that the same roles may make share a line."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for endpoint in Endpoint:
        groups.setdefault(ALLOWED[endpoint], []).append(endpoint.name.lower().replace("_", " "))
    lines = [
        f"| requests | {' | '.join(ROLES)} |",
        f"|---|{'---|' * len(ROLES)}",
        *(
            f"| {', '.join(requests)} | "
            + " | ".join("yes" if role in allowed else "" for role in ROLES)
            + " |"
            for allowed, requests in groups.items()
        ),
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("endpoint", [each for each in Endpoint if each not in _DROPS])
def test_who_may_do_it(roles: dict[str, Client], endpoint: Endpoint) -> None:
    # Nothing is to be done here, only allowed: the bodies are empty where that would do something.
    body = b"{}" if endpoint not in (E.RENAME_TABLE, E.RENAME_VIEW, *_GRANTS) else None

    found = {}
    for role in ROLES:
        path = path_of_request(endpoint)
        client = roles[role]
        if body is None:
            reply = client.post(path, BODIES[endpoint])
            undo_rename(roles["admin"], endpoint)
        else:
            reply = client.send(endpoint.method, path, body if endpoint.method == "POST" else b"")
        found[role] = reply.status != 403

    assert tuple(role for role, is_allowed in found.items() if is_allowed) == ALLOWED[endpoint]


def undo_rename(admin: Client, endpoint: Endpoint) -> None:
    if endpoint in (E.RENAME_TABLE, E.RENAME_VIEW):
        body = BODIES[endpoint]
        assert isinstance(body, dict)
        back = {"source": body["destination"], "destination": body["source"]}
        admin.post(path_of_request(endpoint), back)


@pytest.mark.parametrize(
    ("endpoint", "make", "body"),
    [
        (E.DROP_DATABASE, E.CREATE_DATABASE, {"name": "db"}),
        (E.DROP_TABLE, E.CREATE_TABLE, TABLE_BODY),
        (E.DROP_VIEW, E.CREATE_VIEW, VIEW_BODY),
        (E.DROP_FUNCTION, E.CREATE_FUNCTION, FUNCTION_BODY),
    ],
)  # fmt: skip
def test_who_may_drop_it(tmp_path: Path, endpoint: Endpoint, make: Endpoint, body: object) -> None:
    with serving(tmp_path) as admin:
        admin.database()
        principals, dropped = admin.server.services.principals, []
        for role, grants in ROLES.items():
            principals.create(role, is_admin=False, by="test")
            token, _ = principals.issue_token(role, by="test")
            admin.post(path_of_request(make), body)  # dropping it ends its grants
            for grant in grants:
                principals.grant("lake", grant, by="test")
            if admin.as_(token).delete(path_of_request(endpoint)).status == 200:
                dropped.append(role)

    assert tuple(dropped) == ALLOWED[endpoint]


def test_lists_show_what_one_may_see(roles: dict[str, Client]) -> None:
    assert roles["nobody"].get("/databases").json["databases"] == []
    assert roles["reader"].get("/databases").json["databases"] == ["db"]
    assert roles["reader"].get("/databases/db/tables").json["tables"] == ["t"]
    assert roles["creator"].get("/databases/db/tables").json["tables"] == []
    assert roles["lister"].get("/databases/db/tables").json["tables"] == ["t"]
    assert roles["stranger"].get("/tables").json["tables"] == []


def test_details_are_for_those_who_may_get_the_thing(roles: dict[str, Client]) -> None:
    for role, count in {"lister": 0, "creator": 0, "reader": 1, "owner": 1}.items():
        found = roles[role].get("/databases/db/table-details").json["tableDetails"]
        assert [each["name"] for each in found] == ["t"] * count, role
    for kind in ("view", "function"):
        for role, count in {"lister": 0, "owner": 1}.items():
            assert len(roles[role].get(f"/databases/db/{kind}s").json[f"{kind}s"]) == 1
            found = roles[role].get(f"/databases/db/{kind}-details").json[f"{kind}Details"]
            assert len(found) == count, (role, kind)


def test_nobody_learns_by_a_refusal_what_exists(roles: dict[str, Client]) -> None:
    for role in ("nobody", "stranger", "reader"):
        for name in ("secret", "nope"):
            assert roles[role].get(f"/databases/db/tables/{name}").error == (403, "TABLE", name)
    assert roles["nobody"].get("/databases/nope").error == (403, "DATABASE", "nope")
    # Who may take names may learn that one is free; otherwise CREATE IF NOT EXISTS could not work.
    assert roles["creator"].get("/databases/db/tables/nope").error == (404, "TABLE", "nope")
    assert roles["creator"].get("/databases/db/tables/t").error == (403, "TABLE", "t")


def test_the_creator_of_something_owns_it(roles: dict[str, Client]) -> None:
    creator = roles["creator"]

    creator.table("mine")

    assert creator.commit(snapshot(1), "db/tables/mine").json == {"success": True}
    assert creator.delete("/databases/db/tables/mine").status == 200
    assert roles["admin"].get("/permissions", table="mine").json["permissions"] == []


def test_grants_end_by_themselves_and_by_being_revoked(tmp_path: Path) -> None:
    now = [1_000_000]
    with serving(tmp_path, env=Env(now_ms=lambda: now[0])) as admin:
        admin.database().table()
        principals = admin.server.services.principals
        principals.create("ann", is_admin=False, by="test")
        token, _ = principals.issue_token("ann", by="test")
        ann = admin.as_(token)
        grant = {
            "resource": {"type": "TABLE", "database": "db", "table": "t"},
            "access": "SELECT",
            "principal": "ann",
            "expireTime": "1970-01-01T00:20:00Z",
        }

        assert admin.post("/permissions/grant", grant).status == 200
        assert ann.get("/databases/db/tables/t").status == 200
        now[0] = 1_200_001
        assert ann.get("/databases/db/tables/t").status == 403
        admin.post("/permissions/grant", {**grant, "expireTime": None})
        assert ann.get("/databases/db/tables/t").status == 200
        assert admin.post("/permissions/revoke", grant).status == 200
        assert ann.get("/databases/db/tables/t").status == 403
        assert admin.post("/permissions/revoke", grant).status == 404


@pytest.mark.parametrize("end", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon"])
def test_a_grant_ends_at_a_time_that_can_be_shown(roles: dict[str, Client], end: str) -> None:
    grant = {**BODIES[E.GRANT_PERMISSION], "expireTime": end}  # type: ignore[dict-item]

    assert roles["granter"].post("/permissions/grant", grant).error[0] == 400
    assert roles["admin"].get("/permissions").status == 200


def test_columns_are_granted_where_clients_ask_before_they_read(tmp_path: Path) -> None:
    with serving(tmp_path) as admin:
        admin.database().table("plain")
        admin.table("asked", **{"query-auth.enabled": "true"})
        principals = admin.server.services.principals
        principals.create("ann", is_admin=False, by="test")
        token, _ = principals.issue_token("ann", by="test")
        ann = admin.as_(token)
        for name in ("plain", "asked"):
            column = Grant(
                "ann", Resource(K.COLUMN, "db", name), Access.SELECT, Columns(frozenset("k"))
            )
            principals.grant("lake", column, by="test")

        assert ann.get("/databases/db/tables/plain").status == 403
        assert ann.get("/databases/db/tables/asked").status == 200
        details = ann.get("/databases/db/table-details").json["tableDetails"]
        assert [each["name"] for each in details] == ["asked"]
        assert ann.get("/databases/db/tables/asked/token").status == 403
        path = "/databases/db/tables/asked/auth"
        assert ann.post(path, {"select": ["k"]}).json == {"filter": None, "columnMasking": None}
        assert ann.post(path, {"select": ["k", "v"]}).error == (403, "TABLE", "asked")
        assert ann.post(path, {}).status == 403
        assert admin.post(path, {}).status == 200
