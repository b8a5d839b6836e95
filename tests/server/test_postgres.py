"""The server on PostgreSQL: the same answers as on SQLite, from two servers at once."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from catalog_server import Client, serving, snapshot
from emberlake.errors import StorageError
from emberlake.rest.paths import Endpoint
from emberlake.server.access.grants import Access, Grant, Resource, ResourceKind
from server_requests import path_of_request

pytestmark = pytest.mark.thorough
T = "/databases/db/tables/t"


@pytest.fixture
def pair(tmp_path: Path, postgres_database: str) -> Iterator[tuple[Client, Client]]:
    """Two servers of one warehouse and one database."""
    with ExitStack() as stack:
        one, two = (
            stack.enter_context(serving(tmp_path, database=postgres_database)) for _ in range(2)
        )
        yield one.database(), two


def test_what_one_server_does_the_other_sees(pair: tuple[Client, Client]) -> None:
    one, two = pair

    table_id = one.table()
    assert two.commit(snapshot(1), tableId=table_id).json == {"success": True}
    assert one.commit(snapshot(1)).json == {"success": True}
    assert one.commit(snapshot(1, user="other")).json == {"success": False}
    assert one.commit(snapshot(2)).json == {"success": True}
    two.post(T, {"changes": [{"action": "setOption", "key": "a", "value": "b"}]})

    assert two.get(f"{T}/snapshot").json["snapshot"]["snapshot"]["id"] == 2
    assert one.get(T).json["schema"]["options"]["a"] == "b"
    two.delete(T)
    assert one.get(T).error == (404, "TABLE", "t")


def test_servers_that_start_together_make_one_administrator(
    tmp_path: Path, postgres_database: str
) -> None:
    failures: list[BaseException] = []

    def start() -> None:
        try:
            with serving(tmp_path, database=postgres_database):
                pass
        except BaseException as error:  # noqa: BLE001 - a thread must not fail in silence
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []


def test_names_are_listed_in_the_order_of_their_bytes(pair: tuple[Client, Client]) -> None:
    one, _ = pair
    for name in ("b", "A", "a", "B", "_", "é"):
        one.table(name)

    first = one.get("/databases/db/tables", maxResults=3).json
    second = one.get("/databases/db/tables", maxResults=9, pageToken=first["nextPageToken"]).json

    assert first["tables"] + second["tables"] == ["A", "B", "_", "a", "b", "é"]


def test_a_token_that_one_server_revokes_ends_on_the_other(pair: tuple[Client, Client]) -> None:
    one, two = pair
    one.table()
    principals = one.server.services.principals
    principals.create("ann", is_admin=False, by="test")
    token, identity = principals.issue_token("ann", by="test")
    grant = Grant("ann", Resource(ResourceKind.TABLE, "db", "t"), Access.SELECT)
    principals.grant("lake", grant, by="test")

    assert two.as_(token).get(T).status == 200
    principals.revoke_token(identity)
    assert two.as_(token).get(T).status == 401


@pytest.mark.parametrize("endpoint", [each for each in Endpoint if each.method == "POST"])
def test_characters_that_cannot_be_stored_are_bad_requests(
    postgres_one: Client, endpoint: Endpoint
) -> None:
    text = "a\u0000b"
    body = {
        "name": "new",
        "options": {"k": text},
        "updates": {"k": text},
        "changes": [{"action": "updateComment", "comment": text}],
        "consumerId": text,
        "principal": text,
        "resource": {"type": "DATABASE", "database": text},
        "access": "ALL",
        "specs": [{"a": text}],
        "identifier": {"database": "db", "object": "new"},
        "schema": {"fields": [], "query": text, "comment": text},
        "definitions": {"x": {"a": text}},
    }

    reply = postgres_one.post(path_of_request(endpoint), body)

    assert reply.status in (200, 400, 404, 409, 501), reply.body


@pytest.fixture(scope="module")
def postgres_one(tmp_path_factory: pytest.TempPathFactory, postgres: str) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("lake"), database=postgres) as client:
        client.database().table()
        yield client


def test_a_database_that_is_gone_is_unavailable(
    tmp_path: Path, postgres: str, postgres_database: str
) -> None:
    name = postgres_database.rpartition("/")[2]
    with serving(tmp_path, database=postgres_database) as client:
        client.database().table()
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")  # type: ignore[call-overload]
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )

        reply = client.get("/databases")

        assert reply.status == 503
        assert json.loads(reply.body)["code"] == 503
        assert reply.headers["retry-after"] == "1"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")  # type: ignore[call-overload]
        assert client.get(T).status == 200


def test_a_database_that_cannot_store_every_text_is_refused(tmp_path: Path, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")

    with (
        pytest.raises(StorageError, match=r"LATIN1.*ENCODING 'UTF8'"),
        serving(tmp_path, database=postgres.rpartition("/")[0] + "/latin"),
    ):
        pass


def test_statements_that_read_a_whole_table_are_not_compiled(postgres_one: Client) -> None:
    database = postgres_one.server.services.database

    with database.transaction() as session:
        plan = session.run("EXPLAIN ANALYZE SELECT id FROM dropped WHERE catalog = ?", "lake")

    assert any("Seq Scan" in line for (line,) in plan)
    assert not any("JIT" in line for (line,) in plan)


def test_locks_of_a_machine_that_is_gone_are_held_for_seconds_only(postgres_one: Client) -> None:
    database = postgres_one.server.services.database

    with database.transaction() as session:
        idle, interval, count = (
            int(
                session.run(
                    f"SELECT setting FROM pg_settings WHERE name = 'tcp_keepalives_{each}'"
                )[0][0]
            )
            for each in ("idle", "interval", "count")
        )

    assert 0 < idle + interval * count <= 60
