"""Statements that Java's Spark connector ran, run with the API: the same rows after each of them.

README.md describes the scripts. A statement that the API cannot express, or that means something
else in it, is named here with the reason; the table is then given the rows that Java left, so
that the script goes on.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from canonical import canonical_rows, sorted_rows
from emberlake import CatalogFactory, EmberlakeError
from emberlake.catalog.catalog import Catalog
from golden.api_calls import ApiRunner, NotInApi

SCRIPTS = json.loads(Path(__file__).with_name("paimon-2.0.0-row-changes.json").read_text())

QUERY = "a query inside of a statement"
NOT_SAID = {
    "dml_append": {
        26: "a column is set twice",
        27: "DEFAULT",
        30: QUERY, 31: QUERY, 32: QUERY, 33: QUERY, 34: QUERY, 35: QUERY,
        44: "an aggregate",
        63: "the bucket of a row",
    },
    "dml_dv": {12: QUERY},
    "dml_keys": {11: QUERY},
    "merge_append": {
        29: QUERY,
        32: "DEFAULT",
        33: "names of columns after the source",
        38: "fewer values than columns",
    },
}  # fmt: skip
# Where docs/row-operations.md says that ours is different: refused, or other rows.
REFUSED = {
    "dml_append": {
        21: "text is no INT without a CAST",
        23: "a fraction is never cut off silently",
    },
    "dml_keys": {
        24: "partial-update: a null would change nothing",
        28: "partial-update without remove-record-on-delete takes no deletes",
        36: "a sequence.field must not be set to a lower value",
    },
    "merge_append": {
        16: "a column that only one side has is an error",
        25: "a merge needs an equality between the two sides",
        26: "a merge needs an equality between the two sides",
    },
}
OTHER_ROWS = {
    "merge_append": {
        18: "several rows of the source may delete the same row",
        21: "only one of the two rows of the source would change the row",
    },
}


@dataclass
class Script:
    """A script as far as it has been said."""

    name: str
    runner: ApiRunner
    catalog: Catalog
    problems: list[str] = field(default_factory=list)
    said: int = 0

    def run(self) -> None:
        for number, statement in enumerate(SCRIPTS[self.name], start=1):
            for problem in self._problems(number, statement):
                self.problems.append(f"{number} {statement['sql']}: {problem}")

    def _problems(self, number: int, statement: dict[str, Any]) -> Iterator[str]:
        expected = self._expected(number, statement)
        try:
            answer = self.runner.run(statement["sql"])
            outcome = "done"
        except NotInApi:
            outcome = "not said"
        except EmberlakeError:
            outcome = "refused"
        if outcome != expected:
            yield f"{outcome}, not {expected}"
            return
        self.said += outcome != "not said"
        state = statement.get("state")
        if outcome == "done" and "rows" in statement:
            assert answer is not None
            yield from differences(rows_of(answer), statement["rows"])
        if state is None:
            return
        java = statement.get("careful", {}).get("state rows") or state["rows"]
        found = list(differences(self._state(state), java))
        is_other = number in OTHER_ROWS.get(self.name, {})
        if found and (outcome == "done" and not is_other):
            yield from found
        if is_other and not found:
            yield "the same rows, though others are expected"
        if found:
            self._catch_up(state["table"], java)
        elif outcome == "done" and "snapshot" in state:
            yield from self._snapshot_problems(statement, state)

    def _expected(self, number: int, statement: dict[str, Any]) -> str:
        if number in NOT_SAID.get(self.name, {}):
            return "not said"
        careful = statement.get("careful", {})
        fails = "error" in careful or (statement.get("fails", False) and not careful)
        if number in REFUSED.get(self.name, {}) or fails:
            return "done" if number in OTHER_ROWS.get(self.name, {}) else "refused"
        return "done"

    def _state(self, state: dict[str, Any]) -> list[list[Any]]:
        return rows_of(self.catalog.get_table(state["table"]).to_arrow(state["columns"]))

    def _catch_up(self, name: str, rows: list[list[Any]]) -> None:
        table = self.catalog.get_table(name)
        schema = table.to_arrow(limit=0).schema
        made = []
        for row in rows:
            values = dict(zip(schema.names, row, strict=True))
            for column in schema:
                if pa.types.is_struct(column.type) and values[column.name] is not None:
                    names = [f.name for f in column.type]
                    values[column.name] = dict(zip(names, values[column.name], strict=True))
            made.append(values)
        table.overwrite(pa.Table.from_pylist(made, schema=schema), {})

    def _snapshot_problems(self, statement: dict[str, Any], state: dict[str, Any]) -> Iterator[str]:
        verb = statement["sql"].split()[0]
        java = state["snapshot"]
        if verb not in ("DELETE", "UPDATE", "MERGE") or "careful" in statement:
            return
        snapshot = self.catalog.get_table(state["table"]).store.snapshots.latest()
        if java["operation"] == "TRUNCATE" or "COMPACT" in (java["kind"], snapshot.commit_kind):
            return  # we delete rows of key tables one by one, and have TRUNCATE elsewhere
        is_merge = java["operation"] == "MERGE" and verb == "UPDATE"  # of data evolution, in Java
        said = verb if is_merge else java["operation"]
        if snapshot.operation != said and java["operation"] not in ("WRITE", "OVERWRITE"):
            yield f"the snapshot says {snapshot.operation}, not {said}"
        if snapshot.commit_kind != java["kind"]:
            yield f"the snapshot is {snapshot.commit_kind}, not {java['kind']}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_rows_are_those_of_java_after_every_statement(name: str, tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    script = Script(name, ApiRunner(catalog), catalog)

    script.run()

    assert script.problems == []
    assert script.said == len(SCRIPTS[name]) - len(NOT_SAID.get(name, {}))


def rows_of(table: pa.Table) -> list[list[Any]]:
    return [row[1:] for row in canonical_rows(table)]


def differences(found: list[list[Any]], expected: list[list[Any]]) -> Iterator[str]:
    # CHAR columns: Spark pads what it shows.
    ours, theirs = (sorted_rows([_stripped(row) for row in rows]) for rows in (found, expected))
    if ours != theirs:
        yield f"{ours}, not {theirs}"


def _stripped(row: list[Any]) -> list[Any]:
    return [value.rstrip() if isinstance(value, str) else value for value in row]
