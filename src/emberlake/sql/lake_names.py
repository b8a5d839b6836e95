"""The names that a session can complete, asked of its catalog."""

from contextlib import suppress

from emberlake.errors import EmberlakeError
from emberlake.sql.names import TableName
from emberlake.sql.session import SqlSession


class LakeNames:
    """The current names of a lake. Completion must not fail, so an error gives no names."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    @property
    def catalog(self) -> str:
        return self._session.name

    @property
    def database(self) -> str:
        return self._session.database

    def databases(self) -> list[str]:
        with suppress(EmberlakeError, OSError):
            return list(self._session.catalog.list_databases())
        return []

    def tables(self, database: str) -> list[str]:
        catalog = self._session.catalog
        with suppress(EmberlakeError, OSError):
            return sorted({*catalog.list_tables(database), *catalog.list_views(database)})
        return []

    def columns(self, table: tuple[str, ...]) -> list[str]:
        with suppress(EmberlakeError, OSError):
            found = self._session.find(TableName(table))
            return [] if found is None else list(found.field_names)
        return []
