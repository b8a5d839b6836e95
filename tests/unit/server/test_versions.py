"""Rollback, tags, branches, consumers and partitions, whose truth is in files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog_server import SCHEMA, Client, snapshot
from emberlake import CatalogFactory, Schema
from emberlake.server.takeover import register_warehouse

T = "/databases/db/tables/t"


def latest(client: Client, table: str = T) -> int:
    found: int = client.get(f"{table}/snapshot").json["snapshot"]["snapshot"]["id"]
    return found


def test_a_rollback_deletes_what_follows(client: Client, tmp_path: Path) -> None:
    client.table()
    client.commits(3)
    client.post(f"{T}/tags", {"tagName": "three"})

    body = {"instant": {"type": "snapshot", "snapshotId": 1}}
    assert client.post(f"{T}/rollback", body).status == 200

    assert latest(client) == 1
    assert client.get(f"{T}/tags").json["tags"] == []
    assert not (tmp_path / "lake/db.db/t/snapshot/snapshot-2").exists()
    other = snapshot(2, user="other")
    assert client.commit(other, baseSnapshotUuid="uuid-u-1").json == {"success": True}
    stale = snapshot(3)
    assert client.commit(stale, baseSnapshotUuid="uuid-u-2").json == {"success": False}


def test_a_rollback_can_insist_on_the_latest_snapshot(client: Client) -> None:
    client.table()
    client.commits(2)
    body = {"instant": {"type": "snapshot", "snapshotId": 1}, "fromSnapshot": 1}

    assert client.post(f"{T}/rollback", body).status == 500

    assert latest(client) == 2


@pytest.mark.parametrize(
    ("instant", "kind"),
    [
        ({"type": "snapshot", "snapshotId": 9}, "SNAPSHOT"),
        ({"type": "tag", "tagName": "nope"}, "TAG"),
    ],
)
def test_a_rollback_to_what_is_not_there_changes_nothing(
    client: Client, instant: dict[str, object], kind: str
) -> None:
    client.table()
    client.commits(1)

    assert client.post(f"{T}/rollback", {"instant": instant}).error[:2] == (404, kind)

    assert latest(client) == 1


def test_a_rollback_that_was_interrupted_leaves_no_gap(client: Client, tmp_path: Path) -> None:
    table_id = client.table()
    client.commits(3)
    folder = tmp_path / "lake/db.db/t/snapshot"
    services = client.server.services
    services.database.run("UPDATE branches SET pending_since = 1 WHERE table_id = ?", table_id)
    (folder / "snapshot-3").unlink()  # the server died here
    (folder / "LATEST").write_text("1")

    assert client.commit(snapshot(4)).json == {"success": False}
    assert latest(client) == 2
    assert client.commit(snapshot(3, user="other")).json == {"success": True}


def test_a_schema_is_rolled_back_unless_a_snapshot_needs_it(client: Client) -> None:
    client.table()
    for key in ("a", "b"):
        client.post(T, {"changes": [{"action": "setOption", "key": key, "value": "1"}]})
    client.commit(snapshot(1, schemaId=1))

    assert client.post(f"{T}/rollback-schema", {"schemaId": 0}).status == 400
    assert client.post(f"{T}/rollback-schema", {"schemaId": 1}).status == 200

    assert client.get(T).json["schemaId"] == 1
    assert client.post(f"{T}/rollback-schema", {"schemaId": 9}).status == 404


def test_tags_that_clients_write_as_files_are_there(client: Client, tmp_path: Path) -> None:
    client.table()
    client.commits(2)
    client.post(f"{T}/tags", {"tagName": "a", "snapshotId": 1, "timeRetained": "1 d"})
    folder = tmp_path / "lake/db.db/t/tag"
    (folder / "tag-b").write_text(json.dumps(snapshot(2)))

    assert client.get(f"{T}/tags").json == {"tags": ["a", "b"], "nextPageToken": None}
    assert client.get(f"{T}/tags", tagNamePrefix="a").json["tags"] == ["a"]
    assert client.get(f"{T}/tags/b").json["snapshot"]["id"] == 2
    assert client.get(f"{T}/tags/a").json["tagTimeRetained"] == "PT24H"
    assert client.post(f"{T}/tags", {"tagName": "a"}).error == (409, "TAG", "a")
    assert client.get(f"{T}/snapshots/a").json["snapshot"]["id"] == 1
    assert client.delete(f"{T}/tags/b").status == 200
    assert not (folder / "tag-b").exists()


def test_snapshots_are_listed_and_found_by_their_names(client: Client) -> None:
    client.table()
    client.commits(3)

    page = client.get(f"{T}/snapshots", maxResults=2).json

    assert [each["id"] for each in page["snapshots"]] == [1, 2]
    following = client.get(f"{T}/snapshots", pageToken=page["nextPageToken"]).json
    assert [each["id"] for each in following["snapshots"]] == [3]
    for version, number in (("EARLIEST", 1), ("LATEST", 3), ("2", 2)):
        assert client.get(f"{T}/snapshots/{version}").json["snapshot"]["id"] == number


def test_main_follows_a_branch(client: Client) -> None:
    client.table()
    client.commits(1)
    client.post(f"{T}/tags", {"tagName": "a"})
    client.post(f"{T}/branches", {"branch": "b", "fromTag": "a"})
    client.commit(snapshot(2, user="branch"), "db/tables/t%24branch_b")

    assert client.post(f"{T}/branches/b/forward", {}).status == 200

    assert client.get(f"{T}/snapshot").json["snapshot"]["snapshot"] == snapshot(2, user="branch")
    assert client.post(f"{T}/branches/b/rename", {"toBranch": "c"}).status == 200
    assert client.get(f"{T}/branches").json == {"branches": ["c"]}
    assert latest(client, f"{T}%24branch_c") == 2
    assert client.delete(f"{T}/branches/c").status == 200
    assert client.get("/databases/db/tables/t%24branch_c").status == 404


def test_a_branch_of_the_same_name_starts_over(client: Client) -> None:
    client.table()
    client.commits(1)
    client.post(f"{T}/branches", {"branch": "b"})
    client.commit(snapshot(1, user="old"), "db/tables/t%24branch_b")
    client.delete(f"{T}/branches/b")

    client.post(f"{T}/branches", {"branch": "b"})

    assert client.get(f"{T}%24branch_b/snapshot").error[:2] == (404, "SNAPSHOT")


def test_a_branch_that_a_client_made_by_files_is_taken_over_under_the_lock(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = client.table()
    client.commits(1)
    files = CatalogFactory.create({"warehouse": str(tmp_path / "lake")}).get_table("db.t")
    files.create_tag("a")
    files.create_branch("theirs", "a")
    services, seen = client.server.services, []
    add = services.heads.add_branch

    def watched(*arguments: Any) -> Any:
        with services.database.try_lock(identity) as is_free:
            seen.append(is_free)
        return add(*arguments)

    monkeypatch.setattr(services.heads, "add_branch", watched)

    assert client.get(f"{T}%24branch_theirs/snapshot").json["snapshot"]["snapshot"]["id"] == 1
    assert seen == [False]


def test_a_branch_of_the_same_name_has_no_partitions_that_are_done(client: Client) -> None:
    schema = {**SCHEMA, "primaryKeys": [], "partitionKeys": ["v"], "options": {"bucket": "-1"}}
    body = {"identifier": {"database": "db", "object": "p"}, "schema": schema}
    client.post("/databases/db/tables", body)
    table = "/databases/db/tables/p"
    for _ in range(2):
        assert client.post(f"{table}/branches", {"branch": "b"}).status == 200
        found = client.server.services.database.run("SELECT name FROM done_partitions")
        assert list(found) == []
        client.post(f"{table}%24branch_b/partitions/mark", {"specs": [{"v": "x"}]})
        client.delete(f"{table}/branches/b")


def test_consumers_are_set_and_forgotten(client: Client) -> None:
    client.table()

    client.post(f"{T}/consumers/reset", {"consumerId": "c", "nextSnapshotId": 3})

    expected = [{"consumerId": "c", "nextSnapshot": 3}]
    assert client.get(f"{T}/consumers").json["consumers"] == expected
    client.post(f"{T}/consumers/reset", {"consumerId": "c"})
    assert client.get(f"{T}/consumers").json["consumers"] == []
    body = {"consumerId": "../x", "nextSnapshotId": 3}
    assert client.post(f"{T}/consumers/reset", body).status == 400


def test_partitions_are_computed_from_the_manifests(client: Client, tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "lake")})
    columns = pa.schema([("a", pa.int64()), ("dt", pa.string())])
    table = catalog.create_table("db.p", Schema.from_pyarrow_schema(columns, partition_keys=["dt"]))
    table.append(pa.table({"a": [1, 2, 3], "dt": ["x", "x", "y"]}))
    services, (lake,) = client.server.services, client.server.settings.warehouses
    register_warehouse(services, lake)
    path = "/databases/db/tables/p/partitions"

    client.post(f"{path}/mark", {"specs": [{"dt": "y"}]})

    found = client.get(path).json["partitions"]
    rows = [(each["spec"], each["recordCount"], each["done"]) for each in found]
    assert rows == [({"dt": "x"}, 2, False), ({"dt": "y"}, 1, True)]
    assert len(client.get(path, partitionNamePattern="dt=x%").json["partitions"]) == 1
    named = client.post(f"{path}/list-by-names", {"specs": [{"dt": "y"}, {"dt": "z"}]}).json
    assert [each["spec"] for each in named["partitions"]] == [{"dt": "y"}]
    assert client.post(path, {"partitionSpecs": []}).status == 501


def test_partitions_of_a_table_with_query_auth_are_listed(client: Client) -> None:
    options = {"bucket": "-1", "query-auth.enabled": "true"}
    schema = {**SCHEMA, "primaryKeys": [], "partitionKeys": ["v"], "options": options}
    body = {"identifier": {"database": "db", "object": "p"}, "schema": schema}
    client.post("/databases/db/tables", body)

    found = client.get("/databases/db/tables/p/partitions")

    assert (found.status, found.json["partitions"]) == (200, [])
