"""A PostgreSQL for all tests of the server, and an empty database in it for each."""

from collections.abc import Iterator

import psycopg
import pytest

from postgres import running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with running_postgres() as address:
        yield address


@pytest.fixture
def postgres_database(postgres: str, request: pytest.FixtureRequest) -> str:
    """The address of an empty database."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        (count,) = connection.execute("SELECT count(*) FROM pg_database").fetchone() or (0,)
        name = f"test{count}"
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
    return postgres.rpartition("/")[0] + f"/{name}"
