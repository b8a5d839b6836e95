"""Our client at our server: somebody who was granted some columns reads these, and no others."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, Schema
from emberlake.cli import main
from emberlake.errors import NoPermission
from server.processes import served

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("salary", pa.int64())])


def test_granted_columns_are_read_and_others_are_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBERLAKE_SERVER_DATABASE", str(tmp_path / "server.db"))

    def run(*words: str) -> dict[str, str]:
        capfd.readouterr()
        assert main(["serve", *words, "--warehouse", f"lake={tmp_path / 'lake'}", "--json"]) == 0
        found: dict[str, str] = json.loads(capfd.readouterr().out)
        return found

    with served(tmp_path) as lake:
        admin = CatalogFactory.create({**lake.options, "warehouse": lake.path})
        admin.create_database("hr")
        guarded = {"query-auth.enabled": "true"}
        people = admin.create_table(
            "hr.people", Schema.from_pyarrow_schema(COLUMNS, options=guarded)
        )
        people.append(pa.table({"id": [1], "name": ["ann"], "salary": [5]}, schema=COLUMNS))
        people.update({"salary": "salary + 1"}, "id = 1")
        run("add", "ann")
        run("grant", "ann", "SELECT", "hr.people", "--columns", "id,name")
        token = run("token", "ann")["token"]
        catalog = CatalogFactory.create({**lake.options, "warehouse": lake.path, "token": token})

        table = catalog.get_table("hr.people")

        assert table.to_arrow(columns=["name"], filter="id = 1").to_pylist() == [{"name": "ann"}]
        assert catalog.sql("SELECT count(*) FROM hr.people WHERE name = 'ann'").fetchall() == [(1,)]
        for columns, condition in ((None, None), (["salary"], None), (["id"], "salary = 6")):
            with pytest.raises(NoPermission, match="no permission to read salary"):
                table.to_arrow(columns=columns, filter=condition)
        with pytest.raises(NoPermission, match="no permission to read salary"):
            catalog.get_table("hr.people$files").to_arrow()
        assert people.to_arrow().to_pylist() == [{"id": 1, "name": "ann", "salary": 6}]
