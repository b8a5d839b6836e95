"""The commands that manage a server: those of the pages run, and say what they did."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog_server import TOKEN, Client, serving
from emberlake.cli import main
from emberlake.server.warehouses import open_warehouse

DOCS = Path(__file__).parents[2] / "docs"
LINE = re.compile(r"^emberlake (serve (?!--).*?)(?:\s+#.*|\s+\[--as NAME\])?$", re.MULTILINE)
GRANT = {
    "resource": {"type": "TABLE", "database": "db", "table": "t"},
    "access": "SELECT",
    "principal": "ann",
}
Run = Callable[..., dict[str, object]]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the warehouse ``lake``; its JSON document."""
    monkeypatch.setenv("EMBERLAKE_SERVER_DATABASE", str(tmp_path / "server.db"))

    def run(*words: str) -> dict[str, object]:
        capfd.readouterr()
        code = main([*words, "--warehouse", f"lake={tmp_path / 'lake'}", "--json"])
        out, err = capfd.readouterr()
        assert code == 0, err
        found: dict[str, object] = json.loads(out)
        return found

    return run


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with serving(tmp_path) as found:
        yield found.database()


def commands(page: str) -> list[list[str]]:
    text = (DOCS / page).read_text(encoding="utf-8")
    words = [shlex.split(found) for found in LINE.findall(text)]
    return [each[: each.index("--warehouse")] if "--warehouse" in each else each for each in words]


def test_the_commands_of_the_page_on_security_work(run: Run) -> None:
    typed = commands("security.md")
    run("serve", "add", "ann")
    token_id = ""

    for words in typed:
        given = run(*[token_id if word == "ID" else word for word in words])
        token_id = str(given.get("id", token_id))

    assert len(typed) > 10


def test_the_commands_of_the_page_on_the_server_work(run: Run, tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        client.database().table()
        client.delete("/databases/db/tables/t")
    typed = commands("server.md")

    for words in sorted(typed, key=lambda each: each[1] == "release"):
        if words[1] == "restore":
            (dropped,) = run("serve", "dropped")["dropped"]  # type: ignore[misc]
            words[2] = dropped["id"]
        run(*words, *(["--yes"] if words[1] == "release" else []))

    assert {words[1] for words in typed} >= {"register", "release", "dropped", "restore"}


def test_a_token_works_until_it_is_revoked(run: Run, client: Client) -> None:
    client.table()
    run("serve", "add", "ann")
    issued = run("serve", "token", "ann", "--days", "1")
    run("serve", "grant", "ann", "select", "db.t")
    ann = client.as_(str(issued["token"]))

    assert ann.get("/databases/db/tables/t").status == 200
    assert ann.delete("/databases/db/tables/t").status == 403
    run("serve", "revoke-token", str(issued["id"]))
    assert ann.get("/databases/db/tables/t").status == 401
    listed = run("serve", "tokens", "ann")["tokens"]
    assert TOKEN not in json.dumps(listed)
    assert str(issued["token"]) not in json.dumps(listed)


def test_grants_of_columns_are_listed_as_they_are_meant(run: Run, client: Client) -> None:
    column = {"type": "COLUMN", "database": "db", "table": "t"}
    for who, key in (("ann", "columnNames"), ("bob", "excludedColumnNames")):
        grant = {**GRANT, "principal": who, "resource": column, "columns": {key: ["b", "a"]}}
        assert client.post("/permissions/grant", grant).status == 200

    listed: Any = run("serve", "grants")["grants"]

    found = {each["principal"]: each["columns"] for each in listed}
    assert (found["ann"], found["bob"]) == ("a, b", "all but a, b")


def test_the_audit_log_says_who_did_what(run: Run, tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        client.database()
        client.get("/databases")  # reads are not logged
        client.post("/permissions/grant", GRANT)
        client.as_("x" * 20).get("/databases")  # refusals are

    entries = run("serve", "audit")["entries"]

    found = [(each["principal"], each["action"], each["outcome"]) for each in entries]  # type: ignore[attr-defined]
    assert found == [
        ("admin", "create_database", 200),
        ("admin", "grant_permission", 200),
        ("", "unknown", 401),
    ]
    assert json.loads(entries[1]["resource"]) == GRANT  # type: ignore[index]


def test_a_warehouse_that_moved_is_refused(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run("serve", "principals")

    code = main(["serve", "principals", "--warehouse", f"lake={tmp_path / 'elsewhere'}"])

    assert code == 1
    assert "knows the warehouse lake at" in capfd.readouterr().err


def test_a_database_of_a_newer_program_is_refused(run: Run, client: Client, tmp_path: Path) -> None:
    client.server.services.database.run("PRAGMA user_version = 999")  # type: ignore[attr-defined]

    with pytest.raises(RuntimeError, match="newer emberlake"), serving(tmp_path / "."):
        pass


def test_names_of_warehouses_need_no_encoding() -> None:
    for name in ("a/b", "a b", "é", "", ".."):
        with pytest.raises(ValueError, match="warehouse"):
            open_warehouse(name, "/x", {})
