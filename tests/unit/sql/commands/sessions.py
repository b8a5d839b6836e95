"""A session without an engine: commands need nothing but a catalog."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from emberlake import CatalogFactory
from emberlake.sql.names import TableName
from emberlake.sql.session import SqlSession


class NoEngine:
    """Keeps settings, and hands out what commands answer."""

    def __init__(self) -> None:
        self._settings: dict[str, str] = {}

    def answer(self, rows: pa.Table | None) -> pa.Table | None:
        return rows

    def settings(self) -> dict[str, str]:
        return self._settings

    def set_setting(self, key: str, value: str) -> None:
        self._settings[key] = value

    def reset_setting(self, key: str | None) -> None:
        self._settings = {k: v for k, v in self._settings.items() if key not in (k, None)}

    def owns(self, name: TableName) -> bool:
        return False

    def is_view(self, name: TableName) -> bool:
        return False

    def value(self, expression: str, args: Any) -> str:
        return expression.strip("'")


class Lake:
    """A warehouse, and the statements that are given to it."""

    def __init__(self, folder: Path) -> None:
        self.catalog = CatalogFactory.create({"warehouse": str(folder)})
        engine: Any = NoEngine()
        self.session = SqlSession(self.catalog, engine, database="db")
        self.sql("CREATE DATABASE db")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        answered = self.session.execute(text)
        if answered is None:
            return []
        return list(zip(*(column.to_pylist() for column in answered.columns), strict=True))
