"""Brings a database to the version of this program.

Each file of ``migrations`` is one version. All that are missing are applied in one transaction.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources

from emberlake.errors import InvalidState
from emberlake.server.database.database import Statements


@cache
def migrations() -> tuple[str, ...]:
    """The statements of every version, the first one first."""
    folder = resources.files("emberlake.server.database") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=_name)
    return tuple(file.read_text(encoding="utf-8") for file in files)


def missing_statements(version: int) -> Iterator[str]:
    """The statements that lead from a version to the newest.

    Raises:
        InvalidState: the database is newer than this program.
    """
    known = migrations()
    if version > len(known):
        raise InvalidState(
            f"the server's database has version {version}, this emberlake knows up to "
            f"{len(known)}; use the newer emberlake that wrote it"
        )
    for text in known[version:]:
        yield from statements_of(text)


def statements_of(text: str) -> Iterator[str]:
    """The statements of a file, one by one, without comments."""
    lines = (line.partition("--")[0].rstrip() for line in text.splitlines())
    for statement in "\n".join(line for line in lines if line).split(";"):
        if statement.strip():
            yield statement.strip()


def migrate(version: int, session: Statements) -> int:
    """Apply what is missing; the version that the database has then."""
    for statement in missing_statements(version):
        session.run(statement)
    return len(migrations())


def _name(file: object) -> str:
    return str(getattr(file, "name", ""))
