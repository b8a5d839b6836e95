"""Databases and tables: names in the database, schemas and snapshots in files."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog_server import SCHEMA, Client, Reply, serving, snapshot
from emberlake import CatalogFactory, Schema
from emberlake.base.env import Env
from emberlake.errors import NotFound, StorageError, TableAlreadyExists
from emberlake.server.access.grants import Access, Grant, Resource, ResourceKind
from emberlake.server.endpoints import creation
from emberlake.server.endpoints.dropping import list_dropped, purge, settle_dropped
from emberlake.server.endpoints.restoring import restore
from emberlake.server.takeover import register_warehouse, release_warehouse
from emberlake.server.warehouses import open_warehouse

T = "/databases/db/tables/t"


def create(name: str, **schema: object) -> dict[str, object]:
    return {"identifier": {"database": "db", "object": name}, "schema": {**SCHEMA, **schema}}


def test_a_table_is_what_was_asked_for(client: Client, tmp_path: Path) -> None:
    client.post("/databases/db/tables", create("t", comment="c é 表"))

    found = client.get(T).json

    assert {k: found[k] for k in ("database", "name", "isExternal", "schemaId")} == {
        "database": "db",
        "name": "t",
        "isExternal": False,
        "schemaId": 0,
    }
    assert found["path"] == f"file://{tmp_path}/lake/db.db/t"
    assert found["schema"] == {**SCHEMA, "comment": "c é 表"}
    assert found["owner"] == found["createdBy"] == "admin"
    assert client.get(f"/tables/id/{found['id']}").json == found


def test_the_folder_is_a_filesystem_warehouse(client: Client, tmp_path: Path) -> None:
    client.table()

    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})

    assert catalog.list_databases() == ["db"]
    assert catalog.list_tables("db") == ["t"]
    assert catalog.get_table("db.t").field_names == ["k", "v"]


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("a b", "a+b"), ("é", "%C3%A9"), ("t+u", "t%2Bu"), ("k~l", "k%7El"), ("s*t", "s*t")],
)
def test_names_are_form_encoded(client: Client, name: str, encoded: str) -> None:
    client.post("/databases/db/tables", create(name))

    assert client.get(f"/databases/db/tables/{encoded}").json["name"] == name


def test_missing_things_are_distinguished(client: Client) -> None:
    client.table()

    assert client.get("/databases/nope").error == (404, "DATABASE", "nope")
    assert client.get("/databases/nope/tables").error == (404, "DATABASE", "nope")
    assert client.get("/databases/db/tables/nope").error == (404, "TABLE", "nope")
    assert client.get("/databases/db/tables/t%24branch_b").error == (404, "TABLE", "t$branch_b")
    assert client.get(f"{T}/snapshot").error == (404, "SNAPSHOT", "t")
    assert client.get(f"{T}/snapshots/7").error == (404, "SNAPSHOT", "7")
    assert client.get(f"{T}/tags/x").error == (404, "TAG", "x")
    assert client.delete(f"{T}/branches/x").error == (404, "BRANCH", "x")
    assert client.get("/databases/db/views/v").error == (404, "VIEW", "v")
    assert client.get("/databases/db/functions/f").error == (404, "FUNCTION", "f")
    body = {"branch": "b", "fromTag": "nope"}
    assert client.post(f"{T}/branches", body).error == (404, "TAG", "nope")
    body = {"identifier": {"database": "nope", "object": "t"}, "schema": SCHEMA}
    assert client.post("/databases/nope/tables", body).error == (404, "DATABASE", "nope")


def test_taken_names_are_distinguished(client: Client) -> None:
    client.table()
    view = {
        "identifier": {"database": "db", "object": "v"},
        "schema": {"fields": [], "query": "SELECT 1", "dialects": {}, "options": {}},
    }
    client.post("/databases/db/views", view)

    assert client.post("/databases", {"name": "db", "options": None}).error == (
        409,
        "DATABASE",
        "db",
    )
    assert client.post("/databases/db/tables", create("t")).error == (409, "TABLE", "t")
    assert client.post("/databases/db/tables", create("v")).error == (409, "TABLE", "v")
    assert client.post("/databases/db/views", view).error == (409, "VIEW", "v")


def test_changes_are_made_together_or_not_at_all(client: Client, tmp_path: Path) -> None:
    client.table()
    add = {"action": "addColumn", "fieldNames": ["x"], "dataType": "INT"}
    drop = {"action": "dropColumn", "fieldNames": ["nope"]}

    assert client.post(T, {"changes": [add, drop]}).error == (404, "COLUMN", "nope")
    assert client.get(T).json["schemaId"] == 0
    assert client.post(T, {"changes": [add]}).status == 200
    assert client.get(T).json["schemaId"] == 1
    assert client.post(T, {"changes": [add]}).error == (409, "COLUMN", "x")
    written = json.loads((tmp_path / "lake/db.db/t/schema/schema-1").read_text())
    assert [field["name"] for field in written["fields"]] == ["k", "v", "x"]


def test_a_schema_file_without_its_row_is_found_by_the_next_change(
    client: Client, tmp_path: Path
) -> None:
    client.table()
    folder = tmp_path / "lake/db.db/t/schema"
    left = json.loads((folder / "schema-0").read_text())
    left["id"], left["options"] = 1, {**left["options"], "a": "b"}
    (folder / "schema-1").write_text(json.dumps(left))

    client.post(T, {"changes": [{"action": "setOption", "key": "c", "value": "d"}]})

    found = client.get(T).json
    assert found["schemaId"] == 2
    assert found["schema"]["options"] == {"bucket": "1", "a": "b", "c": "d"}


def test_a_replaced_table_has_other_columns_no_rows_and_its_history(
    client: Client, tmp_path: Path
) -> None:
    files = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    plain: dict[str, Any] = {"primaryKeys": [], "options": {"bucket": "-1"}}
    first, second = ([{"id": 0, "name": name, "type": "INT"}] for name in "ab")
    client.post("/databases/db/tables", create("t", **plain, fields=first))
    files.get_table("db.t").append(pa.table({"a": pa.array([1, 2], pa.int32())}))

    replaced = {**SCHEMA, **plain, "fields": second}
    assert client.post(f"{T}/replace", {"schema": replaced}).status == 200

    found = client.get(T).json
    assert (found["schemaId"], found["schema"]["fields"][0]["name"]) == (1, "b")
    latest = client.get(f"{T}/snapshot").json["snapshot"]
    assert (latest["snapshot"]["id"], latest["recordCount"]) == (2, 0)
    assert files.get_table("db.t").to_arrow().to_pydict() == {"b": []}
    assert files.get_table("db.t").copy({"scan.snapshot-id": "1"}).field_names == ["a"]
    partitioned = {"schema": {**replaced, "partitionKeys": ["b"]}}
    assert client.post(f"{T}/replace", partitioned).error[0] == 400
    assert client.post("/databases/db/tables/no/replace", {"schema": replaced}).error[0] == 404


def test_renaming_moves_no_file_and_takes_grants_along(client: Client) -> None:
    client.table()
    client.commits(1)
    path = client.get(T).json["path"]
    body = {
        "source": {"database": "db", "object": "t"},
        "destination": {"database": "db", "object": "u"},
    }

    assert client.post("/tables/rename", body).status == 200

    assert client.get(T).error == (404, "TABLE", "t")
    assert client.get("/databases/db/tables/u").json["path"] == path
    grants = client.get("/permissions", table="u").json["permissions"]
    assert [grant["resource"]["table"] for grant in grants] == ["u"]


# --- pages and patterns ---------------------------------------------------------------------------


def test_a_full_page_has_a_token_even_when_nothing_follows(client: Client) -> None:
    for name in ("c", "a", "b", "d"):
        client.table(name)

    first = client.get("/databases/db/tables", maxResults=2).json
    second = client.get("/databases/db/tables", maxResults=2, pageToken=first["nextPageToken"]).json
    third = client.get("/databases/db/tables", maxResults=2, pageToken=second["nextPageToken"]).json

    assert first == {"tables": ["a", "b"], "nextPageToken": "b"}
    assert second == {"tables": ["c", "d"], "nextPageToken": "d"}
    assert third == {"tables": [], "nextPageToken": None}
    everything = {"tables": ["a", "b", "c", "d"], "nextPageToken": None}
    assert client.get("/databases/db/tables", maxResults=0).json == everything
    assert client.get("/databases/db/tables", maxResults=-3).json == everything
    assert client.get("/databases/db/tables", maxResults="x").error[0] == 400


def test_only_prefixes_are_patterns(client: Client) -> None:
    for name in ("ab", "ac", "b"):
        client.table(name)

    assert client.get("/databases/db/tables", tableNamePattern="a%").json["tables"] == ["ab", "ac"]
    assert client.get("/databases/db/tables", tableNamePattern="ab").json["tables"] == ["ab"]
    for pattern in ("%b", "a%b"):
        assert client.get("/databases/db/tables", tableNamePattern=pattern).error[0] == 400


def test_tables_of_all_databases_are_listed_a_page_at_a_time(client: Client) -> None:
    client.database("a.b")
    for database, name in (("db", "t"), ("a.b", "x"), ("a.b", "y")):
        client.table(name, database)

    first = client.get("/tables", maxResults=2).json
    second = client.get("/tables", maxResults=2, pageToken=first["nextPageToken"]).json

    pairs = [(each["database"], each["object"]) for each in first["tables"] + second["tables"]]
    assert pairs == [("a.b", "x"), ("a.b", "y"), ("db", "t")]


# --- external tables ------------------------------------------------------------------------------


def test_an_external_table_is_as_its_files_say(client: Client, tmp_path: Path) -> None:
    outside = tmp_path / "outside/t"
    client.post("/databases/db/tables", create("t", options={"path": str(outside)}))
    (outside / "snapshot").mkdir()
    (outside / "snapshot/snapshot-1").write_text(json.dumps(snapshot(1)))  # as Java does it

    latest = client.get(f"{T}/snapshot").json["snapshot"]["snapshot"]

    assert latest == snapshot(1)
    assert client.get(T).json["isExternal"] is True
    assert "path" not in client.get(T).json["schema"]["options"]
    assert client.commit(snapshot(2)).json == {"success": True}
    client.delete(T)
    assert (outside / "snapshot/snapshot-2").exists()


def test_a_registered_folder_keeps_its_schema_and_its_snapshots(
    client: Client, tmp_path: Path
) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "other")})
    catalog.create_database("d")
    columns = pa.schema([("a", pa.int64())])
    table = catalog.create_table("d.t", Schema.from_pyarrow_schema(columns))
    table.append(pa.table({"a": [1, 2, 3]}))
    folder = tmp_path / "other/d.db/t"
    body = {"identifier": {"database": "db", "object": "t"}, "path": f"file://{folder}"}

    assert client.post("/databases/db/register", body).status == 200

    found = client.get(f"{T}/snapshot").json["snapshot"]
    assert (found["recordCount"], found["fileCount"]) == (3, 1)
    body["identifier"] = {"database": "db", "object": "again"}
    assert client.post("/databases/db/register", body).error[0] == 409
    body["path"] = str(folder / "bucket-0")
    assert client.post("/databases/db/register", body).error[0] == 400
    body["path"] = str(tmp_path / "nowhere")
    assert client.post("/databases/db/register", body).error[0] == 404


def test_a_folder_is_the_same_however_it_is_spelled(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    lake = open_warehouse("lake", str(tmp_path / "lake"), {}, (str(outside),))
    with serving(tmp_path, warehouses=(lake,)) as admin:
        admin.database().table()
        principals, clients = admin.server.services.principals, []
        for name in ("ann", "bob"):
            principals.create(name, is_admin=False, by="test")
            grant = Grant(name, Resource(ResourceKind.DATABASE, "db"), Access.CREATETABLE)
            principals.grant("lake", grant, by="test")
            clients.append(admin.as_(principals.issue_token(name, by="test")[0]))
        ann, bob = clients
        folder = str(outside / "of/ann")
        assert ann.post("/databases/db/tables", create("a", options={"path": folder})).status == 200
        (outside / "to_a").symlink_to(folder)
        (outside / "to_t").symlink_to(tmp_path / "lake/db.db/t")

        def register(path: str) -> int:
            body = {"identifier": {"database": "db", "object": "b"}, "path": path}
            return bob.post("/databases/db/register", body).status

        assert register(f"{outside}/of//ann") == 400
        assert register(f"file://{outside}//of/ann/") == 400
        assert register(f"{outside}/to_a") == 409
        assert register(f"{outside}/to_t") == 403


# --- dropping and restoring -----------------------------------------------------------------------


def test_a_dropped_table_can_be_restored_with_its_history(client: Client, tmp_path: Path) -> None:
    client.table()
    client.commits(2)
    services, (lake,) = client.server.services, client.server.settings.warehouses

    assert client.delete(T).status == 200

    assert client.get(T).error == (404, "TABLE", "t")
    filesystem = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    assert filesystem.list_tables("db") == []
    (dropped,) = list_dropped(services, lake)
    assert restore(services, lake, dropped["id"], None) == "db.t"
    assert client.get(f"{T}/snapshot").json["snapshot"]["snapshot"]["id"] == 2
    assert filesystem.list_tables("db") == ["t"]


def test_a_table_that_is_restored_keeps_its_folder(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.table()
    client.commits(1)
    client.delete(T)
    services, (lake,) = client.server.services, client.server.settings.warehouses
    (dropped,) = list_dropped(services, lake)
    others: list[threading.Thread] = []
    move = lake.storage.move_folder

    def meanwhile(source: str, target: str) -> None:
        move(source, target)
        monkeypatch.undo()
        for other in (lambda: settle_dropped(services, lake), lambda: purge(services, lake)):
            others.append(threading.Thread(target=other))
            others[-1].start()
        time.sleep(0.05)  # until they wait

    monkeypatch.setattr(type(lake.storage), "move_folder", lambda _, *paths: meanwhile(*paths))
    restore(services, lake, dropped["id"], None)
    for other in others:
        other.join()

    assert len(others) == 2
    assert (tmp_path / "lake/db.db/t/snapshot/snapshot-1").exists()
    assert client.get(f"{T}/snapshot").json["snapshot"]["snapshot"]["id"] == 1


def test_a_table_whose_files_are_being_deleted_cannot_be_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000]
    with serving(tmp_path, env=Env(now_ms=lambda: now[0]), keep_dropped_ms=1000) as client:
        client.database().table()
        client.delete(T)
        services, (lake,) = client.server.services, client.server.settings.warehouses
        (dropped,) = list_dropped(services, lake)
        now[0] += 1001

        def fail(*_: object) -> None:
            raise StorageError("the disk is away")

        with monkeypatch.context() as patch:
            patch.setattr(type(lake.storage), "delete_folder", fail)
            with pytest.raises(StorageError):
                purge(services, lake)

        assert list_dropped(services, lake) == []
        with pytest.raises(NotFound):
            restore(services, lake, dropped["id"], None)
        assert purge(services, lake) == 1
        assert [*(tmp_path / "lake/.dropped").rglob("schema-*")] == []


def test_a_table_is_not_restored_under_a_name_that_is_taken(client: Client) -> None:
    client.table()
    client.delete(T)
    services, (lake,) = client.server.services, client.server.settings.warehouses
    (dropped,) = list_dropped(services, lake)
    client.table()

    with pytest.raises(TableAlreadyExists, match="another name"):
        restore(services, lake, dropped["id"], None)

    assert [each["id"] for each in list_dropped(services, lake)] == [dropped["id"]]
    assert restore(services, lake, dropped["id"], "old") == "db.old"
    assert client.get("/databases/db/tables").json["tables"] == ["old", "t"]


def test_a_table_of_the_same_name_never_inherits_old_files(client: Client) -> None:
    first = client.table()
    client.commits(1)
    client.delete(T)

    second = client.table()

    assert second != first
    assert client.get(f"{T}/snapshot").error == (404, "SNAPSHOT", "t")
    assert client.commit(snapshot(1), tableId=first).error == (404, "TABLE", "t")
    assert client.commit(snapshot(1), tableId=second).json == {"success": True}


def test_files_of_dropped_tables_are_deleted_after_a_time(tmp_path: Path) -> None:
    now = [1_000_000]
    env = Env(now_ms=lambda: now[0])
    with serving(tmp_path, env=env, keep_dropped_ms=1000) as client:
        client.database().table()
        client.delete(T)
        services, (lake,) = client.server.services, client.server.settings.warehouses

        assert purge(services, lake) == 0
        now[0] += 1001
        assert purge(services, lake) == 1

        assert list_dropped(services, lake) == []
        assert [*(tmp_path / "lake/.dropped").rglob("schema-*")] == []


def test_dropping_a_database_drops_all_in_it(client: Client, tmp_path: Path) -> None:
    client.table()
    client.table("u")

    assert client.delete("/databases/db").status == 200

    assert client.get("/databases").json["databases"] == []
    assert not (tmp_path / "lake/db.db").exists()
    services, (lake,) = client.server.services, client.server.settings.warehouses
    assert {each["table"] for each in list_dropped(services, lake)} == {"db.t", "db.u"}


def test_a_table_that_was_renamed_meanwhile_is_not_changed_by_its_old_name(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.table()
    services = client.server.services
    lock, other = services.database.lock, threading.Lock()

    def rename(old: str, new: str) -> Reply:
        names = [{"database": "db", "object": name} for name in (old, new)]
        return client.post("/tables/rename", {"source": names[0], "destination": names[1]})

    @contextmanager
    def after_another_rename(key: str) -> Iterator[None]:
        if other.acquire(blocking=False):  # only the first one has somebody before it
            rows = "UPDATE tables SET name = 'other' WHERE id = ?"
            services.database.run(rows, key)
        with lock(key):
            yield

    monkeypatch.setattr(services.database, "lock", after_another_rename)

    assert client.delete(T).error == (404, "TABLE", "t")
    assert rename("other", "t").status == 200
    other.release()
    assert rename("t", "u").error[0] == 404
    assert client.get("/databases/db/tables").json["tables"] == ["other"]


def test_a_database_is_dropped_though_somebody_drops_its_tables_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.table()
    run = client.server.services.database.run

    def forget_then(sql: str, *arguments: object, **more: Any) -> Any:
        rows = run(sql, *arguments, **more)
        if sql.startswith("SELECT name FROM tables"):
            run("DELETE FROM tables")
        return rows

    monkeypatch.setattr(client.server.services.database, "run", forget_then)

    assert client.delete("/databases/db").status == 200


# --- creating -------------------------------------------------------------------------------------


def test_a_folder_that_somebody_else_fills_is_left_alone(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    first_schema = creation.rules.first_schema

    def after_another(*arguments: Any, **more: Any) -> Any:
        made = first_schema(*arguments, **more)
        claim = creation._claim_folder

        def claim_then(*place: Any) -> str:
            folder = claim(*place)
            files.create_table("db.t", pa.schema([("a", pa.int64())]))
            return folder

        monkeypatch.setattr(creation, "_claim_folder", claim_then)
        return made

    monkeypatch.setattr(creation.rules, "first_schema", after_another)

    assert client.post("/databases/db/tables", create("t")).error == (409, "TABLE", "t")

    monkeypatch.undo()
    assert files.get_table("db.t").field_names == ["a"]
    services, (lake,) = client.server.services, client.server.settings.warehouses
    assert register_warehouse(services, lake).tables == ("db.t",)


def test_a_table_that_another_server_takes_for_given_up_is_not_half_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000_000]
    with serving(tmp_path, env=Env(now_ms=lambda: now[0])) as client:
        client.database()
        services, (lake,) = client.server.services, client.server.settings.warehouses
        add_rows = creation._add_rows

        def late(*arguments: Any, **more: Any) -> None:
            now[0] += 2 * 3_600_000  # as on a server whose clock is wrong
            purge(services, lake)
            now[0] -= 2 * 3_600_000
            add_rows(*arguments, **more)

        monkeypatch.setattr(creation, "_add_rows", late)
        assert client.post("/databases/db/tables", create("t")).error[0] == 503
        monkeypatch.undo()

        assert client.get(T).status == 404
        client.table()
        assert register_warehouse(services, lake).tables == ()


@pytest.mark.parametrize("key", ["s3.secret-key", "fs.oss.accessKeySecret", "token"])
def test_no_option_that_readers_see_is_a_secret(client: Client, key: str) -> None:
    client.table()
    replies = [
        client.post("/databases/db/tables", create("u", options={key: "hunter2"})),
        client.post(T, {"changes": [{"action": "setOption", "key": key, "value": "hunter2"}]}),
        client.post("/databases", {"name": "d", "options": {key: "hunter2"}}),
        client.post("/databases/db", {"removals": [], "updates": {key: "hunter2"}}),
    ]

    assert [reply.error[0] for reply in replies] == [400] * 4
    assert all(key in reply.json["message"] for reply in replies)
    assert all(b"hunter2" not in reply.body for reply in replies)


# --- taking over a filesystem warehouse -----------------------------------------------------------


def test_a_warehouse_is_taken_over_and_given_back_without_moving_a_byte(tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    catalog.create_database("shop")
    columns = pa.schema([("a", pa.int64())])
    table = catalog.create_table("shop.t", Schema.from_pyarrow_schema(columns))
    table.append(pa.table({"a": [1, 2]}))
    table.create_tag("first")
    table.create_branch("b", "first")

    def files() -> dict[str, int]:
        found = (tmp_path / "lake/shop.db").rglob("*")
        return {str(path): path.stat().st_mtime_ns for path in found if path.is_file()}

    before = files()
    with serving(tmp_path) as client:
        services, (lake,) = client.server.services, client.server.settings.warehouses
        done = register_warehouse(services, lake)

        assert done.tables == ("shop.t",)
        assert register_warehouse(services, lake).known == 1
        found = client.get("/databases/shop/tables/t/snapshot").json["snapshot"]
        assert found["recordCount"] == 2
        branch = client.get("/databases/shop/tables/t%24branch_b/snapshot").json["snapshot"]
        assert branch["recordCount"] == 2
        assert release_warehouse(services, lake, move=False).tables == 1
        assert client.get("/databases").json["databases"] == []
    assert files() == before
    assert catalog.get_table("shop.t").to_arrow().num_rows == 2


def test_what_was_dropped_before_a_warehouse_is_given_back_is_deleted_by_nobody(
    tmp_path: Path,
) -> None:
    now = [1_000_000]
    with serving(tmp_path, env=Env(now_ms=lambda: now[0]), keep_dropped_ms=1000) as client:
        services, (lake,) = client.server.services, client.server.settings.warehouses
        client.database().table()
        client.delete(T)
        # As on an object store, which cannot move folders.
        ((kept,),) = services.database.run("SELECT kept_at FROM dropped")
        lake.storage.move_folder(kept, f"{lake.location}/db.db/t")
        services.database.run("UPDATE dropped SET kept_at = NULL")
        assert client.table("u") != client.table()  # not in the folder of the dropped one
        assert client.get(T).json["path"] != f"file://{lake.location}/db.db/t"
        client.delete(T)
        client.delete("/databases/db/tables/u")

        done = release_warehouse(services, lake, move=False)

        assert f"dropped table db.t, whose files are at {lake.location}/db.db/t" in done.forgotten
        files = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
        assert files.list_tables("db") == ["t"]
        now[0] += 10_000_000
        assert purge(services, lake) == 0
        assert files.list_tables("db") == ["t"]


def test_a_renamed_table_is_given_back_by_its_new_name_on_request(
    client: Client, tmp_path: Path
) -> None:
    client.table("a")
    client.table("b")
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):  # they swap names
        names = ({"database": "db", "object": old}, {"database": "db", "object": new})
        client.post("/tables/rename", dict(zip(("source", "destination"), names, strict=True)))
    services, (lake,) = client.server.services, client.server.settings.warehouses

    with pytest.raises(RuntimeError, match="--move"):
        release_warehouse(services, lake, move=False)
    done = release_warehouse(services, lake, move=True)

    assert len(done.moved) == 2
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    assert catalog.list_tables("db") == ["a", "b"]
