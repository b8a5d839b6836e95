"""Whether a snapshot becomes the next one: the checks, in their order."""

import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from catalog_server import Client, snapshot
from emberlake.errors import EmberlakeError, InvalidInput, StorageError
from emberlake.io import RoutedStorage
from emberlake.server import commits
from emberlake.server.commits import Commit, Verdict, judge
from emberlake.server.heads import Heads, snapshot_text


def commit_of(number: int, **more: Any) -> Commit:
    return Commit.from_json({"tableId": None, "snapshot": snapshot(number), **more})


@pytest.mark.parametrize(
    ("commit", "head", "verdict"),
    [
        (commit_of(1), None, Verdict.NEXT),
        (commit_of(2), None, Verdict.LOST),
        (commit_of(2), snapshot(1), Verdict.NEXT),
        (commit_of(2), snapshot(2), Verdict.REPEATED),
        (commit_of(2), snapshot(2, user="other"), Verdict.LOST),
        (commit_of(2), snapshot(5), Verdict.OLDER),
        (commit_of(4), snapshot(2), Verdict.LOST),
        (commit_of(2, baseSnapshotUuid="uuid-u-1"), snapshot(1), Verdict.NEXT),
        (commit_of(2, baseSnapshotUuid="another"), snapshot(1), Verdict.LOST),
        (commit_of(2, baseSnapshotUuid=None), snapshot(1), Verdict.LOST),
        (commit_of(1, baseSnapshotUuid=None), None, Verdict.NEXT),
        (commit_of(2, baseSnapshotUuid=None), snapshot(1, uuid=None), Verdict.NEXT),
    ],
)
def test_a_commit_is_compared_with_the_latest_snapshot(
    commit: Commit, head: dict[str, Any] | None, verdict: Verdict
) -> None:
    assert judge(commit, head) is verdict


@pytest.mark.parametrize("key", ["id", "schemaId", "commitUser", "commitKind", "baseManifestList"])
def test_a_snapshot_without_what_readers_need_is_refused(key: str) -> None:
    broken = {k: v for k, v in snapshot(1).items() if k != key}

    with pytest.raises(InvalidInput, match=key):
        Commit.from_json({"tableId": None, "snapshot": broken})


@pytest.mark.parametrize("name", ["../../x", "a/b"])
def test_names_of_manifest_lists_lead_nowhere_else(name: str) -> None:
    with pytest.raises(InvalidInput):
        Commit.from_json({"tableId": None, "snapshot": snapshot(1, deltaManifestList=name)})


def files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "lake/db.db/t/snapshot").glob("[!.]*"))


def test_a_commit_writes_the_snapshot_file_and_both_hints(client: Client, tmp_path: Path) -> None:
    client.table()

    client.commits(2)

    assert files(tmp_path) == ["EARLIEST", "LATEST", "snapshot-1", "snapshot-2"]
    assert (tmp_path / "lake/db.db/t/snapshot/LATEST").read_text() == "2"


def test_what_came_is_given_back_field_for_field(client: Client, tmp_path: Path) -> None:
    client.table()
    came = snapshot(1, somethingNew={"a": [1, None]}, changelogManifestList=None, logOffsets={})

    client.commit(came)

    assert client.get("/databases/db/tables/t/snapshot").json["snapshot"]["snapshot"] == came
    assert json.loads((tmp_path / "lake/db.db/t/snapshot/snapshot-1").read_text()) == came


def test_the_same_commit_again_is_a_success_even_when_others_followed(client: Client) -> None:
    client.table()
    client.commits(3)

    assert client.commit(snapshot(3)).json == {"success": True}
    assert client.commit(snapshot(1)).json == {"success": True}
    assert client.commit(snapshot(1, user="other")).json == {"success": False}


def test_the_id_of_another_table_is_a_table_that_does_not_exist(client: Client) -> None:
    client.table()

    reply = client.commit(snapshot(1), tableId="of-an-earlier-table")

    assert reply.error == (404, "TABLE", "t")


def test_a_schema_that_nobody_wrote_is_refused(client: Client) -> None:
    client.table()

    assert client.commit(snapshot(1, schemaId=7)).error[0] == 400


def test_a_server_that_died_after_the_file_has_committed(client: Client, tmp_path: Path) -> None:
    client.table()
    client.commits(1)
    left = tmp_path / "lake/db.db/t/snapshot/snapshot-2"
    left.write_text(json.dumps(snapshot(2)))  # its row was never written

    latest = client.get("/databases/db/tables/t/snapshot").json["snapshot"]["snapshot"]

    assert latest == snapshot(2)
    assert client.commit(snapshot(2, user="other")).json == {"success": False}
    assert client.commit(snapshot(3)).json == {"success": True}


def test_a_row_that_fell_back_to_an_expired_snapshot_is_behind(
    client: Client, tmp_path: Path
) -> None:
    client.table()
    client.commits(4)
    client.server.services.database.run(
        "UPDATE branches SET snapshot_id = 1, snapshot = ?", json.dumps(snapshot(1))
    )  # as after a power failure: rows are not waited for
    for number in (1, 2, 3):
        (tmp_path / f"lake/db.db/t/snapshot/snapshot-{number}").unlink()

    assert client.commit(snapshot(2, "late")).json == {"success": False}

    assert files(tmp_path) == ["EARLIEST", "LATEST", "snapshot-4"]
    latest = client.get("/databases/db/tables/t/snapshot").json["snapshot"]["snapshot"]
    assert latest == snapshot(4)


def test_a_lost_answer_of_the_disk_is_not_a_lost_commit(client: Client, tmp_path: Path) -> None:
    client.table()
    left = tmp_path / "lake/db.db/t/snapshot/snapshot-1"
    left.parent.mkdir()
    left.write_text(json.dumps(snapshot(1)))

    assert client.commit(snapshot(1)).json == {"success": True}


def test_branches_have_heads_of_their_own(client: Client, tmp_path: Path) -> None:
    client.table()
    client.commits(1)
    assert client.post("/databases/db/tables/t/tags", {"tagName": "first"}).status == 200
    body = {"branch": "b", "fromTag": "first"}
    assert client.post("/databases/db/tables/t/branches", body).status == 200

    reply = client.commit(snapshot(2), "db/tables/t%24branch_b")

    assert reply.json == {"success": True}
    assert (tmp_path / "lake/db.db/t/branch/branch-b/snapshot/snapshot-2").exists()
    main = client.get("/databases/db/tables/t/snapshot").json["snapshot"]["snapshot"]
    assert main["id"] == 1
    found = client.get("/databases/db/tables/t%24branch_b").json
    assert found["name"] == "t$branch_b"
    assert found["path"] == client.get("/databases/db/tables/t").json["path"]


# --- commits that come together -------------------------------------------------------------------


def commit_to(table: str, new: dict[str, Any], **more: Any) -> tuple[str, object]:
    body = {"tableId": None, "snapshot": new, "statistics": [], **more}
    return f"/databases/db/tables/{table}/commit", body


def test_commits_to_many_tables_are_made_together(client: Client, tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(12)]
    for name in names:
        client.table(name)
    asked: list[int] = []
    advance = Heads.advance

    def count(self: Heads, advances: Any) -> None:
        asked.append(len(advances))
        advance(self, advances)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Heads, "advance", count)
        for number in (1, 2, 3):
            replies = client.post_together([commit_to(each, snapshot(number)) for each in names])

            assert [reply.json for reply in replies] == [{"success": True}] * len(names)
    assert sum(asked) == 36
    assert max(asked) > 1
    for name in names:
        folder = tmp_path / f"lake/db.db/{name}/snapshot"
        assert (folder / "LATEST").read_text() == "3"
        found = client.get(f"/databases/db/tables/{name}/snapshot").json["snapshot"]["snapshot"]
        assert found == json.loads((folder / "snapshot-3").read_text()) == snapshot(3)


def test_what_fails_in_a_batch_fails_alone(client: Client, tmp_path: Path) -> None:
    names = ["first", "good", "behind", "taken", "wrong", "gone", "another"]
    for name in names:
        client.table(name)
    for name, number in (("behind", 1), ("taken", 1)):  # files that others left there
        folder = tmp_path / f"lake/db.db/{name}/snapshot"
        folder.mkdir()
        (folder / f"snapshot-{number}").write_text(json.dumps(snapshot(number, "other")))
    shutil.rmtree(tmp_path / "lake/db.db/gone")
    (tmp_path / "lake/db.db/gone").write_text("a file where a folder should be")
    requests = [
        commit_to("first", snapshot(1)),  # begins alone; all others wait for the next batch
        commit_to("good", snapshot(1)),
        commit_to("behind", snapshot(2)),
        commit_to("taken", snapshot(1)),
        commit_to("wrong", {"id": 1}),
        commit_to("gone", snapshot(1)),
        commit_to("another", snapshot(1), tableId="of-another-table"),
        commit_to("good", snapshot(1, "rival")),
        commit_to("good", snapshot(1)),
    ]

    replies = client.post_together(requests)

    assert [(reply.status, reply.json.get("success")) for reply in replies] == [
        (200, True),
        (200, True),
        (200, True),
        (200, False),
        (400, None),
        (503, None),
        (404, None),
        (200, False),
        (200, True),
    ]
    assert client.get("/databases/db/tables/taken/snapshot").json["snapshot"]["snapshot"] == (
        snapshot(1, "other")
    )


def test_a_failure_of_the_program_in_a_batch_is_that_of_one_commit(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("first", "second", "good", "odd")  # the first begins alone; the others go together
    for name in names:
        client.table(name)
    compare = commits.judge

    def fail_for_one(commit: Commit, head: Any) -> Any:
        if commit.request.snapshot.commit_user == "odd":
            raise RecursionError
        return compare(commit, head)

    monkeypatch.setattr(commits, "judge", fail_for_one)
    requests = [commit_to(name, snapshot(1, name)) for name in names]

    replies = client.post_together(requests)

    assert [reply.status for reply in replies] == [200, 200, 200, 500]


def fails_for(user: str, function: Any, error: Exception) -> Any:
    """The function, but for values of one user's commits."""

    def call(first: Any, *more: Any) -> Any:
        if user in str(first) or any(user in str(each) for each in more):
            raise error
        return function(first, *more)

    return call


def test_a_snapshot_that_cannot_be_encoded_is_refused_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("first", "second", "good", "deep")
    for name in names:
        client.table(name)
    # Such a snapshot is nested so deeply that it can be parsed, but not written by a thread.
    encode = fails_for("deep", snapshot_text, RecursionError())
    monkeypatch.setattr(commits, "snapshot_text", encode)

    replies = client.post_together([commit_to(name, snapshot(1, name)) for name in names])

    assert [reply.status for reply in replies] == [200, 200, 200, 400]


def test_a_snapshot_that_every_reader_would_have_to_load_is_refused(client: Client) -> None:
    client.table()

    reply = client.commit(snapshot(1, properties={"note": "x" * 2**22}))

    assert reply.error[0] == 400
    assert "4,194,304" in reply.json["message"]


@pytest.mark.parametrize("error", [InvalidInput("a path"), UnicodeError("a text"), OSError("odd")])
def test_files_that_are_there_are_commits_whatever_putting_them_says(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    names = ("first", "second", "third")
    for name in names:
        client.table(name)
    put = RoutedStorage.put_each_if_absent

    def put_and_fail(self: RoutedStorage, files: Any) -> Any:
        put(self, files)
        raise error

    monkeypatch.setattr(RoutedStorage, "put_each_if_absent", put_and_fail)

    replies = client.post_together([commit_to(name, snapshot(1)) for name in names])

    assert [reply.json for reply in replies] == [{"success": True}] * 3


def put_after_another(monkeypatch: pytest.MonkeyPatch, user: str, text: str) -> None:
    """Let somebody who does not ask the server publish right before the commits of a user."""
    put = RoutedStorage.put_each_if_absent

    def put_late(self: RoutedStorage, files: Any) -> Any:
        for path, data in files:
            if user in data.decode():
                Path(path).parent.mkdir()
                Path(path).write_text(text)
        return put(self, files)

    monkeypatch.setattr(RoutedStorage, "put_each_if_absent", put_late)


def test_a_file_that_is_no_snapshot_fails_the_commit_to_its_table_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("first", "second", "good", "taken")
    for name in names:
        client.table(name)
    put_after_another(monkeypatch, "taken", "not JSON")

    replies = client.post_together([commit_to(name, snapshot(1, name)) for name in names])

    assert [reply.json.get("success") for reply in replies] == [True, True, True, None]
    assert replies[3].status >= 500


@pytest.mark.parametrize("error", [StorageError("no answer"), ValueError("odd")])
def test_a_lost_commit_that_cannot_be_recorded_is_in_doubt_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    names = ("first", "good", "lost_and_broken", "lost")
    for name in names:
        client.table(name)
    heads = client.server.services.heads
    put_after_another(monkeypatch, "lost", json.dumps(snapshot(1, "other")))
    monkeypatch.setattr(heads, "reread", fails_for("broken", heads.reread, error))

    replies = client.post_together([commit_to(name, snapshot(1, name)) for name in names])

    assert [reply.json.get("success") for reply in replies] == [True, True, None, False]
    assert replies[2].status >= 500


@pytest.mark.parametrize("error", [InvalidInput("no text"), StorageError("no answer")])
def test_a_snapshot_that_is_there_is_never_reported_as_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: EmberlakeError
) -> None:
    client.table()

    def fail(_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(client.server.services.heads, "advance", fail)
        assert client.commit(snapshot(1)).error[0] == 503

    assert client.commit(snapshot(1)).json == {"success": True}


def test_a_table_that_somebody_has_locked_holds_up_no_other(client: Client, tmp_path: Path) -> None:
    for name in ("held", "free"):
        client.table(name)
    heads, (warehouse,) = client.server.services.heads, client.server.settings.warehouses
    held = heads.find(warehouse, "db", "held")
    other = tmp_path / "lake/db.db/free/snapshot/snapshot-1"
    is_locked, seen = threading.Event(), []

    def hold() -> None:
        with heads.locked(warehouse, held):
            is_locked.set()
            deadline = time.monotonic() + 20
            while not other.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            seen.append(other.exists())

    holder = threading.Thread(target=hold)
    holder.start()
    is_locked.wait(20)

    replies = client.post_together([commit_to("held", snapshot(1)), commit_to("free", snapshot(1))])

    holder.join()
    assert seen == [True]
    assert [reply.json for reply in replies] == [{"success": True}] * 2


def rename(client: Client, old: str, new: str) -> None:
    named = [{"database": "db", "object": name} for name in (old, new)]
    reply = client.post("/tables/rename", dict(zip(("source", "destination"), named, strict=True)))
    assert reply.status == 200


def test_a_commit_goes_to_the_table_that_has_the_name_now(client: Client, tmp_path: Path) -> None:
    client.table("t")
    client.table("other")
    assert client.commit(snapshot(1, "first")).json == {"success": True}
    rename(client, "t", "old")
    rename(client, "other", "t")

    reply = client.commit(snapshot(1, "second"))

    assert reply.json == {"success": True}
    for folder, user in (("t", "first"), ("other", "second")):  # folders keep their names
        found = json.loads((tmp_path / f"lake/db.db/{folder}/snapshot/snapshot-1").read_text())
        assert found["commitUser"] == user


def test_a_name_that_its_table_has_lost_takes_no_commit(client: Client, tmp_path: Path) -> None:
    client.table("t")
    assert client.commit(snapshot(1)).json == {"success": True}
    rename(client, "t", "renamed")

    reply = client.commit(snapshot(2))

    assert reply.error == (404, "TABLE", "t")
    assert files(tmp_path) == ["EARLIEST", "LATEST", "snapshot-1"]


def test_a_table_that_was_created_again_begins_with_its_first_snapshot(client: Client) -> None:
    client.table("t")
    client.commits(2)
    assert client.delete("/databases/db/tables/t").status == 200
    assert client.commit(snapshot(3)).error == (404, "TABLE", "t")
    client.table("t")

    assert client.commit(snapshot(3)).json == {"success": False}
    assert client.commit(snapshot(1)).json == {"success": True}


@pytest.mark.parametrize("count", [2**63 - 2, -5])
def test_totals_that_no_client_can_read_are_counted_instead(client: Client, count: int) -> None:
    client.table()
    statistics = {
        "spec": {},
        "recordCount": count,
        "fileSizeInBytes": 1,
        "fileCount": 1,
        "lastFileCreationTime": 1,
    }
    for number in (1, 2):
        assert client.commit(snapshot(number), statistics=[statistics]).json == {"success": True}

    found = client.get("/databases/db/tables/t/snapshot").json["snapshot"]
    assert found["recordCount"] == -1  # the manifests of this table are not there to be counted
    more = {**statistics, "recordCount": 2**63}
    assert client.commit(snapshot(3), statistics=[more]).error[0] == 400
