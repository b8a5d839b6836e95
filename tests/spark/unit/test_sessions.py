"""The session that a job runs on; what it changes there, and puts back."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from emberlake import InvalidState
from emberlake.spark.sessions import fast_arrow, find_session, small_pieces

BOUND = "spark.sql.execution.arrow.maxBytesPerBatch"
PIECES = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


class Session:
    """A session's settings."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.is_broken = False

    @property
    def conf(self) -> Any:
        return self

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.settings.get(key, default)

    def set(self, key: str, value: str) -> None:
        if self.is_broken:
            raise ConnectionError("the server is gone")
        self.settings[key] = value


def test_the_bound_is_lifted_until_the_last_job_ends() -> None:
    session = Session(**{BOUND: "64MB"})

    with fast_arrow(session):
        with fast_arrow(session):
            assert session.get(BOUND) == str(2**31 - 1)
        assert session.get(BOUND) == str(2**31 - 1)

    assert session.get(BOUND) == "64MB"


@pytest.mark.parametrize("bound", ["1MB", "-1"])
def test_a_bound_of_the_users_own_stays(bound: str) -> None:
    session = Session(**{BOUND: bound})

    with fast_arrow(session):
        assert session.get(BOUND) == bound

    assert session.get(BOUND) == bound


def test_a_job_that_fails_puts_the_bound_back() -> None:
    session = Session(**{BOUND: "64MB"})

    with pytest.raises(ZeroDivisionError), fast_arrow(session):
        raise ZeroDivisionError

    assert session.get(BOUND) == "64MB"


def test_a_job_that_could_not_begin_is_not_waited_for() -> None:
    session = Session(**{BOUND: "64MB"})
    session.is_broken = True
    with pytest.raises(ConnectionError), fast_arrow(session):
        pass
    session.is_broken = False

    with fast_arrow(session):
        assert session.get(BOUND) == str(2**31 - 1)

    assert session.get(BOUND) == "64MB"


def test_settings_are_put_back_one_by_one() -> None:
    session = Session(**{BOUND: "64MB", PIECES: "67108864b"})

    with fast_arrow(session):
        with small_pieces(session):
            assert session.settings == {BOUND: str(2**31 - 1), PIECES: "4MB"}
        assert session.settings == {BOUND: str(2**31 - 1), PIECES: "67108864b"}

    assert session.settings == {BOUND: "64MB", PIECES: "67108864b"}


# --- which session --------------------------------------------------------------------------------


def no_session() -> SparkSession:
    raise PySparkRuntimeError(errorClass="NO_ACTIVE_OR_DEFAULT_SESSION", messageParameters={})


def stopped_session() -> SparkSession:
    """What Spark gives after ``sparkContext.stop()``."""
    session = object.__new__(SparkSession)
    session._sc = SimpleNamespace(_jsc=None)
    return session


@pytest.mark.parametrize("active", [no_session, stopped_session])
def test_without_a_session_that_runs_none_is_made(
    active: Callable[[], SparkSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkSession, "active", active)

    with pytest.raises(InvalidState, match="there is no active Spark session"):
        find_session()


def test_the_session_of_a_connect_server_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    monkeypatch.setattr(SparkSession, "active", lambda: session)

    assert find_session() is session
