"""Run the scripts of tests/golden-sql and compare answers and tables with those of Java."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from canonical import canonical_values

# Statements that give something else; docs/sql.md says why. Nothing gets worse, or better, unseen.
DIFFERENT: dict[str, set[int]] = {
    "ddl_create": {7},  # a date before 1582 is kept
    "dml_keys": {36},  # an update that would have no effect is refused
    "errors": {50},  # a table needs a column
}
SCRIPTS = Path(__file__).parent / "golden-sql" / "scripts.json.gz"
Run = Callable[..., Any]  # lake.sql, or the like: text and args to rows
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_LENGTH = re.compile(r"(var)?char\(\d+\)")


@cache
def scripts() -> dict[str, dict[str, Any]]:
    """All scripts by their names."""
    with gzip.open(SCRIPTS, "rt", encoding="utf-8") as file:
        found: dict[str, dict[str, Any]] = json.load(file)
    return found


@dataclass(frozen=True)
class Answer:
    """Columns with their types (None if unknown), and rows in canonical form."""

    columns: list[tuple[str, str | None]]
    rows: list[list[Any]]


@dataclass(frozen=True)
class GoldenRun:
    """One run of a script in a warehouse."""

    sql: Run
    warehouse: Path

    def differences(self, name: str, numbers: range | None = None) -> Iterator[str]:
        """What differs, statement by statement; those before ``numbers`` run, too."""
        for number, statement in enumerate(scripts()[name]["statements"], 1):
            if numbers is not None and number >= numbers.stop:
                return
            difference = self._difference(statement)
            is_asked = numbers is None or number in numbers
            if difference and is_asked and "optional" not in statement:
                yield f"{name}:{number}: {difference} | {' '.join(statement['sql'].split())}"

    def _difference(self, statement: Mapping[str, Any]) -> str | None:
        text = statement["sql"]
        for mark, moment in statement.get("substitute", {}).items():
            text = text.replace(mark, self._moment(moment))
        error: Exception | None = None
        answer = Answer([], [])
        try:
            given = (text, statement["args"]) if statement.get("args") else (text,)
            answer = self._answer(self.sql(*given))
        except Exception as problem:  # noqa: BLE001 - whatever is raised is an answer, too
            error = problem
        wanted = statement.get("state") or []
        wanted = wanted if isinstance(wanted, list) else [wanted]
        states = [self._state(state["table"]) for state in wanted]
        if is_careful(statement.get("careful"), answer, error, states):
            return None
        expected = statement["result"].get("error")
        if expected is not None and error is None:
            return f"no error, Java says {expected['class']} {expected['message'][:100]}"
        if expected is None and error is not None:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        found = None if expected is not None else self._answer_differs(statement, answer)
        is_call = text.lstrip()[:4].upper() == "CALL"
        differences = (
            state_differs(w, s, is_call=is_call) for w, s in zip(wanted, states, strict=True)
        )
        return found or next(filter(None, differences), None)

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, frame: Any) -> Answer:
        if frame is None:
            return Answer([], [])
        if hasattr(frame, "toArrow"):
            columns = [(f.name, f.dataType.simpleString()) for f in frame.schema.fields]
            table = frame.toArrow() if columns else pa.table({})
        else:
            table = frame.to_arrow()
            columns = [(name, None) for name in table.schema.names]
        if not columns:
            return Answer([], [])
        rows = zip(*(canonical_values(column) for column in table.columns), strict=True)
        return Answer(columns, self._clean_rows([list(row) for row in rows], columns))

    def _answer_differs(self, statement: Mapping[str, Any], answer: Answer) -> str | None:
        wanted = statement["result"]
        if not wanted["columns"]:
            return None  # what commands answer is free
        names = [name for name, _ in wanted["columns"]]
        hidden = [names.index(name) for name in statement.get("mask", []) if name in names]
        rows = [
            ["*" if i in hidden and v is not None else v for i, v in enumerate(row)]
            for row in answer.rows
        ]
        expected = self._clean_rows(wanted["rows"], wanted["columns"])
        if statement.get("loose"):
            rows, expected = before_empty(rows), before_empty(expected)
        return columns_differ(wanted["columns"], answer.columns) or rows_differ(
            expected, rows, ordered=wanted["ordered"]
        )

    def _clean_rows(self, rows: Sequence[Sequence[Any]], columns: Sequence[Any]) -> list[list[Any]]:
        """Rows without what differs by machine, user or name of the catalog."""
        names = [column[0] for column in columns]
        cleaned = [[self._clean(value) for value in row] for row in rows]
        if names == ["key", "value"]:
            cleaned = [row for row in cleaned if row[0] not in ("path", "owner")]
        for row in cleaned:
            if len(row) > 1 and row[0] in ("Owner", "Catalog Name", "Catalog"):
                row[1] = "*"
            if "catalog" in names:
                row[names.index("catalog")] = "*"
        return cleaned

    def _clean(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {key: self._clean(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        for prefix in ("file://", "file:", ""):
            value = value.replace(f"{prefix}{self.warehouse}", "WAREHOUSE")
        value = re.sub(r"\b(CREATE TABLE|Table) (?:paimon|spark_catalog)\.", r"\1 ", value)
        if value.startswith("CREATE TABLE "):
            value = re.sub(r"\n *LOCATION '[^']*'|\n *'path' = '[^']*',?", "", value)
            value = value.replace("\nTBLPROPERTIES ()", "")
            value = re.sub(r",(?=\n?\))", "", re.sub(r"\nTBLPROPERTIES \(\)?\n?$", "\n", value))
        return value

    # --- tables -----------------------------------------------------------------------------------

    def _folder(self, name: str) -> Path:
        database, table = parts_of(name)[-2:]
        table, _, branch = table.partition("$branch_")
        folder = self.warehouse / f"{database}.db" / table
        return folder / "branch" / f"branch-{branch}" if branch else folder

    def _moment(self, moment: Mapping[str, Any]) -> str:
        file = self._folder(moment["table"]) / "snapshot" / f"snapshot-{moment['snapshot']}"
        millis = json.loads(file.read_text())["timeMillis"] + moment["plus ms"]
        if moment["of"] == "millis":
            return str(millis)
        second = datetime.fromtimestamp(millis // 1000, UTC)
        return f"{second:%Y-%m-%d %H:%M:%S}.{millis % 1000:03d}"

    def _state(self, name: str) -> dict[str, Any]:
        folder = self._folder(name)
        schemas = numbers_in(folder / "schema", "schema-")
        if not schemas:
            return {"table": name, "exists": False}
        schema = json.loads((folder / "schema" / f"schema-{max(schemas)}").read_text())
        options = {k: self._clean(v) for k, v in sorted(schema["options"].items()) if k != "owner"}
        path = ".".join("`" + part.replace("`", "``") + "`" for part in parts_of(name))
        rows = self._answer(self.sql(f"SELECT * FROM {path}"))
        snapshots = numbers_in(folder / "snapshot", "snapshot-")
        kind = None
        if snapshots:
            latest = folder / "snapshot" / f"snapshot-{max(snapshots)}"
            kind = json.loads(latest.read_text())["commitKind"]
        return {
            "table": name,
            "columns": rows.columns,
            "rows": rows.rows,
            "schema": {
                "fields": schema["fields"],
                "partition keys": schema["partitionKeys"],
                "primary keys": schema["primaryKeys"],
                "options": options,
                "comment": schema.get("comment"),
            },
            "snapshot": {"kind": kind},
            "tags": {
                file.name[4:]: json.loads(file.read_text())["id"]
                for file in sorted(folder.glob("tag/tag-*"))
            },
            "branches": sorted(file.name[7:] for file in folder.glob("branch/branch-*")),
        }


def parts_of(name: str) -> list[str]:
    return [quoted.replace("``", "`") if quoted else plain for quoted, plain in _PART.findall(name)]


def numbers_in(folder: Path, prefix: str) -> list[int]:
    found = (path.name.removeprefix(prefix) for path in folder.glob(f"{prefix}*"))
    return [int(number) for number in found if number.isdecimal()]


def before_empty(rows: list[list[Any]]) -> list[list[Any]]:
    end = next((number for number, row in enumerate(rows) if row[0] == ""), len(rows))
    return rows[:end]


def columns_differ(wanted: Sequence[Any], found: Sequence[Any]) -> str | None:
    if len(wanted) != len(found):
        return f"columns {[c[0] for c in found]}, want {[c[0] for c in wanted]}"
    for (name, kind), (other, given) in zip(wanted, found, strict=True):
        if re.fullmatch(r"\w+", name) and name.lower() != other.lower():
            return f"column {other}, want {name}"
        if given is not None and _LENGTH.sub("string", kind) != _LENGTH.sub("string", given):
            return f"column {name} is {given}, want {kind}"
    return None


def rows_differ(
    wanted: Sequence[Any], found: Sequence[Any], *, ordered: bool = False
) -> str | None:
    keys = [[json.dumps(row, sort_keys=True) for row in rows] for rows in (wanted, found)]
    if (keys[0] == keys[1]) if ordered else (Counter(keys[0]) == Counter(keys[1])):
        return None
    extra, missing = Counter(keys[1]) - Counter(keys[0]), Counter(keys[0]) - Counter(keys[1])
    return f"{len(found)} rows, want {len(wanted)}; extra {[*extra][:3]} missing {[*missing][:3]}"


def state_differs(
    wanted: Mapping[str, Any], found: Mapping[str, Any], *, is_call: bool
) -> str | None:
    if "unreadable" in wanted:
        return None
    table = wanted["table"]
    if wanted.get("exists") is False or found.get("exists") is False:
        is_same = wanted.get("exists") == found.get("exists")
        return None if is_same else f"{table}: exists is {found.get('exists', True)}"
    difference = columns_differ(wanted["columns"], found["columns"])
    difference = difference or rows_differ(wanted["rows"], found["rows"])
    if difference:
        return f"{table}: {difference}"
    for key, value in wanted["schema"].items():
        if (value or None) != (found["schema"][key] or None):
            return f"{table}: {key} {found['schema'][key]}, want {value}"
    kinds = [(state.get("snapshot") or {}).get("kind") for state in (wanted, found)]
    if kinds[0] != kinds[1] and "COMPACT" not in kinds and not is_call:
        return f"{table}: its snapshot is {kinds[1]}, want {kinds[0]}"
    for key in ("tags", "branches"):
        if (wanted.get(key) or None) != (found[key] or None):
            return f"{table}: {key} {found[key]}, want {wanted.get(key)}"
    return None


def is_careful(
    careful: Mapping[str, Any] | None,
    answer: Answer,
    error: Exception | None,
    states: Sequence[Mapping[str, Any]],
) -> bool:
    """Whether the outcome is what a careful engine does where Java's looks unintended."""
    if careful is None:
        return False
    if "anything" in careful or ("error" in careful and error is not None):
        return True
    if error is not None:
        return False
    if "rows" in careful and not rows_differ(careful["rows"], answer.rows):
        return True
    return (
        "state rows" in careful
        and bool(states)
        and not rows_differ(careful["state rows"], states[0].get("rows", []))
    )
