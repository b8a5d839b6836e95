"""A session knows what names and settings mean."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.errors import InvalidInput, TableNotFound
from emberlake.sql.names import TableName
from emberlake.sql.session import SqlSession
from emberlake.table import Table


def session(folder: Path, settings: Mapping[str, str] | None = None) -> SqlSession:
    catalog = CatalogFactory.create({"warehouse": str(folder)})
    catalog.create_database("db", ignore_if_exists=True)
    catalog.create_table("db.t", pa.schema([("id", pa.int32())]), ignore_if_exists=True)
    engine: Any = SimpleNamespace(settings=lambda: settings or {})
    return SqlSession(catalog, engine, database="db")


@pytest.mark.parametrize(
    "parts", [("t",), ("db", "t"), ("paimon", "db", "t"), ("PAIMON", "db", "t")]
)
def test_a_table_is_found_by_all_its_names(tmp_path: Path, parts: tuple[str, ...]) -> None:
    assert str(session(tmp_path).table(TableName(parts)).identifier) == "db.t"


@pytest.mark.parametrize("parts", [("T",), ("DB", "t"), ("other", "db", "t"), ("a", "b", "c", "d")])
def test_other_names_are_none_of_the_lake(tmp_path: Path, parts: tuple[str, ...]) -> None:
    assert session(tmp_path).find(TableName(parts)) is None
    with pytest.raises(TableNotFound, match="TABLE_OR_VIEW_NOT_FOUND"):
        session(tmp_path).table(TableName(parts))


@pytest.mark.parametrize(("parts", "meant"), [(("db", "T"), "t"), (("dbb", "t"), "db")])
def test_similar_names_are_suggested(tmp_path: Path, parts: tuple[str, ...], meant: str) -> None:
    with pytest.raises(TableNotFound, match=rf"did you mean {meant}\?"):
        session(tmp_path).table(TableName(parts))


def test_system_tables_are_read_only(tmp_path: Path) -> None:
    name = TableName(("db", "t$snapshots"))

    assert session(tmp_path).find(name) is not None
    with pytest.raises(InvalidInput, match="only be read"):
        session(tmp_path).table(name)


def test_settings_are_options_of_tables_and_the_narrow_ones_win(tmp_path: Path) -> None:
    settings = {
        "spark.paimon.scan.mode": "latest",
        "spark.paimon.write.merge-schema": "true",
        "spark.paimon.target-file-size": "1 mb",
        "spark.paimon.*.db.t.target-file-size": "2 mb",
        "spark.paimon.paimon.db.other.target-file-size": "3 mb",
        "spark.sql.shuffle.partitions": "2",
    }

    found = session(tmp_path, settings).table(TableName(("t",)))

    assert dict(found.options) == {"scan.mode": "latest", "target-file-size": "2 mb"}


@pytest.mark.parametrize("is_written", [False, True])
def test_a_failed_create_as_drops_only_a_table_that_nobody_wrote_to(
    tmp_path: Path, is_written: bool
) -> None:
    made = session(tmp_path)
    rows = pa.table({"id": pa.array([1], pa.int32())})

    def write(table: Table, *, replaces: bool) -> None:
        assert not replaces
        if is_written:  # by somebody else, meanwhile
            table.append(rows)
        raise InvalidInput("no rows")

    fields = made.table(TableName(("t",))).fields
    made_of: Any = SimpleNamespace(fields=fields, write=write)
    made.engine.rows_of = lambda query, args: made_of  # type: ignore[method-assign]

    with pytest.raises(InvalidInput, match="no rows"):
        made.execute("CREATE TABLE new AS SELECT 1 AS id")

    found = made.find(TableName(("new",)))
    assert found is not None if is_written else found is None
