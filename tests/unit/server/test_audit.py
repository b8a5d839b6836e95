"""The audit log goes on, whatever its database does."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from emberlake.base.env import SYSTEM_ENV
from emberlake.errors import StorageError
from emberlake.server import audit
from emberlake.server.audit import AuditLog, Entry, resource_text
from emberlake.server.database.database import Bulk


class Rows:
    """A database that keeps rows, or fails."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.failures: list[Exception] = []

    @contextmanager
    def transaction(self) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        yield self

    def run_bulk(self, _: Bulk, rows: list[tuple[Any, ...]]) -> None:
        names = [row[2].encode().decode() for row in rows]
        self.kept += names


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def add(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(audit, "_PAUSE_S", 0.01)
    monkeypatch.setattr(audit, "_AGAIN_S", 0.01)
    log = AuditLog(rows, SYSTEM_ENV)  # type: ignore[arg-type]
    log.start()
    yield lambda name: log.add(Entry(name, "id", "commit", "lake", "db.t", 200))
    log.stop()


def wait_for(rows: Rows, *names: str) -> None:
    deadline = time.monotonic() + 5
    while rows.kept != [*names] and time.monotonic() < deadline:
        time.sleep(0.005)
    assert rows.kept == [*names]


@pytest.mark.parametrize(
    ("body", "resource"),
    [
        (None, "db.t"),
        ([1], "db.t"),
        ({"select": ["k"]}, "db.t"),
        ({"branch": "b", "fromTag": None}, 'db.t {"branch": "b"}'),
        ({"tableId": "x", "snapshot": {"id": 7, "uuid": "y"}}, 'db.t {"snapshot": 7}'),
        ({"name": "d", "options": {"s3.secret-key": "hunter2"}}, 'db.t {"name": "d"}'),
        ({"changes": [{"key": "token", "value": "hunter2"}]}, "db.t"),
        ({"principal": "\ud800\0"}, 'db.t {"principal": "\\ud800\\u0000"}'),
    ],
)
def test_an_entry_names_what_the_path_and_the_body_name(body: object, resource: str) -> None:
    assert resource_text(["db", "t"], body) == resource


def test_entries_wait_for_a_database_that_does_not_answer(
    rows: Rows, add: Callable[[str], None]
) -> None:
    rows.failures = [StorageError("PostgreSQL does not answer")] * 3

    add("ann")

    wait_for(rows, "ann")


def test_an_entry_that_cannot_be_written_is_the_only_one_that_is_lost(
    rows: Rows, add: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("ann", "\ud800", "bob"):
        add(name)

    wait_for(rows, "ann", "bob")
    add("eve")
    wait_for(rows, "ann", "bob", "eve")
    assert "is lost" in caplog.text
