"""One engine in one process that changes rows: emberlake in .venv, deltalake in .venv-deltalake.

Takes JSON requests, one a line. It imports nothing but pyarrow, its neighbours and the engine that
it was started for.
"""

import sys
from pathlib import Path

import pyarrow as pa

from engine_worker import measured
from requests_in_turn import answer_requests

NEW_VALUES = {"b": "b * 2", "c": "'moved'"}


class Emberlake:
    """Tables of emberlake."""

    def __init__(self) -> None:
        import emberlake  # noqa: PLC0415

        self.catalogs = emberlake.CatalogFactory

    def make(self, where: dict, parts: list[pa.Table], options: dict) -> None:
        catalog = self.catalogs.create({"warehouse": where["warehouse"]})
        catalog.create_database(where["table"].split(".", maxsplit=1)[0], True)
        table = catalog.create_table(where["table"], parts[0].schema, options=options)
        for part in parts:
            table.append(part)

    def table(self, where: dict):
        return self.catalogs.create({"warehouse": where["warehouse"]}).get_table(where["table"])

    def merge(self, table, source: pa.Table):
        started = table.merge(source, on=["id"])
        return started.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self, table, where: str):
        return table.delete(where)

    def update(self, table, where: str):
        return table.update(NEW_VALUES, where)

    def counts(self, result) -> dict[str, int]:
        return {
            "updated": result.rows_updated,
            "deleted": result.rows_deleted,
            "inserted": result.rows_inserted,
        }


class DeltaLake:
    """Tables of deltalake, with its defaults; its files are rewritten."""

    def __init__(self) -> None:
        import deltalake  # noqa: PLC0415

        self.deltalake = deltalake

    def make(self, where: dict, parts: list[pa.Table], options: dict) -> None:
        for part in parts:
            self.deltalake.write_deltalake(_folder(where), part, mode="append")

    def table(self, where: dict):
        return self.deltalake.DeltaTable(_folder(where))

    def merge(self, table, source: pa.Table):
        started = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        return started.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self, table, where: str):
        return table.delete(where)

    def update(self, table, where: str):
        return table.update(updates=NEW_VALUES, predicate=where)

    def counts(self, result) -> dict[str, int]:
        names = {
            "updated": ("num_target_rows_updated", "num_updated_rows"),
            "deleted": ("num_target_rows_deleted", "num_deleted_rows"),
            "inserted": ("num_target_rows_inserted",),
        }
        return {
            kind: next((int(result[name]) for name in known if name in result), 0)
            for kind, known in names.items()
        }


class Worker:
    """Does what a request says and measures the operation."""

    def __init__(self, engine) -> None:
        self.engine = engine

    def make(self, request: dict) -> dict:
        """Write a table of so many files."""
        rows = _rows(request["source"])
        size = -(-rows.num_rows // request["files"])
        parts = [rows.slice(start, size) for start in range(0, rows.num_rows, size)]
        self.engine.make(request, parts, request["options"])
        return {}

    def merge(self, request: dict) -> dict:
        """Update the rows that the source has, and insert the others."""
        source = _rows(request["source"])
        return self._measure(request, lambda table: self.engine.merge(table, source))

    def delete(self, request: dict) -> dict:
        return self._measure(request, lambda table: self.engine.delete(table, request["where"]))

    def update(self, request: dict) -> dict:
        return self._measure(request, lambda table: self.engine.update(table, request["where"]))

    def _measure(self, request: dict, change) -> dict:
        with measured() as answer:
            result = change(self.engine.table(request))
        return {**answer, "changed": self.engine.counts(result)}


def _folder(where: dict) -> str:
    database, name = where["table"].split(".")
    return str(Path(where["warehouse"]) / f"{database}.db" / name)


def _rows(path: str) -> pa.Table:
    with pa.OSFile(path, "rb") as source:
        return pa.ipc.open_file(source).read_all()


if __name__ == "__main__":
    engines = {"emberlake": Emberlake, "deltalake": DeltaLake}
    answer_requests(Worker(engines[sys.argv[1]]()))
