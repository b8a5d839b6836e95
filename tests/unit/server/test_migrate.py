"""A database of an older program becomes one of this program, or stays as it is."""

from pathlib import Path

import pytest

from emberlake.errors import StorageError
from emberlake.server.database import migrate
from emberlake.server.database.sqlite import SqliteDatabase

NEXT = """
ALTER TABLE catalogs ADD COLUMN note TEXT;  -- what is it for; who knows
CREATE INDEX catalogs_by_note ON catalogs (note);
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database with a row, as this program makes it."""
    database = SqliteDatabase(tmp_path / "server.db")
    database.run("INSERT INTO catalogs (name, location, created_at) VALUES ('lake', '/lake', 1)")
    database.close()
    return tmp_path / "server.db"


def version_of(database: SqliteDatabase) -> int:
    ((version,),) = database.run("SELECT user_version FROM pragma_user_version")
    return int(version)


def test_what_is_missing_is_added_and_rows_stay(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = (*migrate.migrations(), NEXT)
    monkeypatch.setattr(migrate, "migrations", lambda: versions)

    for _ in range(2):  # the second time there is nothing to do
        database = SqliteDatabase(old)
        assert database.run("SELECT name, note FROM catalogs") == [("lake", None)]
        assert version_of(database) == len(versions)
        database.close()


def test_a_step_that_fails_takes_back_those_before_it(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.migrations()
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "migrations", lambda: (*known, NEXT, "CREATE TABLE catalogs (a)"))
        with pytest.raises(StorageError, match="catalogs already exists"):
            SqliteDatabase(old)

    database = SqliteDatabase(old)
    assert version_of(database) == len(known)
    assert database.run("SELECT * FROM catalogs") == [("lake", "/lake", 1)]
    database.close()
