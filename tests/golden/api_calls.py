"""SQL statements as calls of the Python API.

Only those that the API can express: no queries inside of statements, no DEFAULT. `ApiRunner.run`
raises `NotInApi` for the others.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from emberlake import Schema, SchemaChange, Table
from emberlake.catalog.catalog import Catalog
from emberlake.types import AtomicType, DataField, RowType

QUOTED = r"'(?:[^']|'')*'"


class NotInApi(Exception):
    """The API cannot express the statement."""


@dataclass
class ApiRunner:
    """Runs statements, one after the other."""

    catalog: Catalog
    views: dict[str, pa.Table] = field(default_factory=dict)
    merge_schema: bool = False

    def run(self, sql: str) -> pa.Table | None:
        """Run a statement; returns the rows of a query."""
        sql = " ".join(sql.split())
        for pattern, act in self._forms():
            match = re.fullmatch(pattern, sql)
            if match:
                return act(**match.groupdict())
        raise NotInApi(f"no form for: {sql}")

    def _forms(self) -> Iterator[tuple[str, Callable[..., pa.Table | None]]]:
        name = r"(?P<name>[\w.]+)"
        alias = r"(?: (?:AS )?(?P<alias>(?!SET|WHERE)\w+))?"
        where = r"(?: WHERE (?P<where>.*))?"
        yield r"CREATE DATABASE (?P<name>\w+)", self._create_database
        yield (
            (
                rf"CREATE TABLE {name} \((?P<columns>.*?)\)(?: PARTITIONED BY \((?P<parts>.*?)\))?"
                r"(?: TBLPROPERTIES \((?P<options>.*)\))?"
            ),
            self._create_table,
        )
        yield (
            (
                rf"INSERT INTO {name}(?: \((?P<columns>[\w, ]+)\))? (?:SELECT .*? FROM )?"
                r"VALUES (?P<rows>.*?)(?: AS t\(.*\))?"
            ),
            self._insert,
        )
        yield (
            rf"INSERT OVERWRITE {name} PARTITION \(g = '(?P<part>\w+)'\) VALUES (?P<rows>.*)",
            self._overwrite,
        )
        yield rf"DELETE FROM {name}{alias}{where}", self._delete
        yield rf"UPDATE {name}{alias} SET (?P<values>.*?){where}", self._update
        yield (
            (
                r"(?:WITH c AS \((?P<cte>.*?)\) )?MERGE INTO (?P<name>[\w.]+)"
                r"(?: (?:AS )?(?P<alias>(?!USING)\w+))? USING (?P<rest>.*)"
            ),
            self._merge,
        )
        yield rf"TRUNCATE TABLE {name}", lambda name: self._delete(name, None, None)
        yield r"CALL sys\.compact\(table => '(?P<name>[\w.]+)'.*\)", self._compact
        yield rf"ALTER TABLE {name} ADD COLUMN (?P<column>\w+) (?P<type>\w+)", self._add_column
        yield r"CREATE TEMPORARY VIEW (?P<name>\w+) AS (?P<query>.*)", self._create_view
        yield r"(?P<word>SET|RESET) `spark.paimon.write.merge-schema`.*", self._set
        yield (
            (
                r"SELECT (?P<columns>[\w, *]+) FROM (?P<name>[\w.`$]+)"
                r"(?: WHERE (?P<where>[^()]*?))?(?: ORDER BY \w+)?"
            ),
            self._select,
        )

    # --- tables -----------------------------------------------------------------------------------

    def _create_database(self, name: str) -> None:
        self.catalog.create_database(name, ignore_if_exists=False)

    def _create_table(
        self, name: str, columns: str, parts: str | None, options: str | None
    ) -> None:
        settings = dict(re.findall(r"'([^']*)' = '([^']*)'", options or ""))
        keys = settings.pop("primary-key", "")
        fields = tuple(_field(number, text) for number, text in enumerate(_split(columns, ",")))
        schema = Schema(
            fields=fields,
            partition_keys=[parts] if parts else [],
            primary_keys=keys.split(",") if keys else [],
            options=settings,
        )
        self.catalog.create_table(name, schema)

    def _insert(self, name: str, columns: str | None, rows: str) -> None:
        table = self._table(name)
        names = columns.split(", ") if columns else table.field_names
        table.append(self._rows(table, names, rows))

    def _overwrite(self, name: str, part: str, rows: str) -> None:
        table = self._table(name)
        names = [n for n in table.field_names if n != "g"]
        data = self._rows(table, names, rows).append_column("g", pa.array([part]))
        table.overwrite(data, {"g": part})

    def _rows(self, table: Table, names: Sequence[str], text: str) -> pa.Table:
        schema = pa.schema([table.to_arrow(limit=0).schema.field(name) for name in names])
        made = [_row(row, schema) for row in _tuples(text)]
        return pa.Table.from_pylist(made, schema=pa.schema([f.with_nullable(True) for f in schema]))

    def _compact(self, name: str) -> None:
        self._table(name).compact(full=True)

    def _add_column(self, name: str, column: str, type: str) -> None:  # noqa: A002
        self.catalog.alter_table(name, [SchemaChange.add_column(column, type)])

    def _set(self, word: str) -> None:
        self.merge_schema = word == "SET"

    def _select(self, columns: str, name: str, where: str | None) -> pa.Table:
        if "__paimon" in columns:
            raise NotInApi("buckets are shown by $files")
        table = self._table(name.replace("`", ""))
        names: list[str] = []
        for column in columns.split(", "):
            names += table.field_names if column == "*" else [column]
        return table.to_arrow(names, where)

    # --- changes ----------------------------------------------------------------------------------

    def _delete(self, name: str, alias: str | None, where: str | None) -> None:
        table = self._table(name)
        if where is None:
            table.new_batch_write_builder().new_commit().truncate_table()
        else:
            table.delete(_expression(where, name, alias))

    def _update(self, name: str, alias: str | None, values: str, where: str | None) -> None:
        table = self._table(name)
        made = _assignments(_split(values, ","), name, alias)
        table.update(made, None if where is None else _expression(where, name, alias))

    def _merge(self, name: str, alias: str | None, rest: str, cte: str | None) -> None:
        source, rest = _head(rest)
        match = re.fullmatch(r"(?:(?:AS )?(?P<alias>(?!ON\b)\w+) )?ON (?P<on>.*)", rest)
        if match is None:
            raise NotInApi(f"names of columns after the source: {rest}")
        condition, *clauses = re.split(r" (?=WHEN )", match["on"])
        source_alias = match["alias"] or ("c" if cte else "s")
        names = {name: alias or "t", source: source_alias}
        builder = self._table(name).merge(
            self._source(cte or source),
            _renamed(condition, names),
            target_alias=alias or "t",
            source_alias=source_alias,
            merge_schema=self.merge_schema,
        )
        for clause in clauses:
            _add_clause(builder, clause, alias or "t", names)
        builder.execute()

    def _source(self, text: str) -> Any:
        if text.startswith("("):
            text = text[1:-1]
        if text in self.views:
            return self.views[text]
        if re.fullmatch(r"[\w.]+", text):
            return self._source_table(text)
        for pattern, make in (
            (r"SELECT \* FROM VALUES (?P<rows>.*) AS v\((?P<names>.*)\)", _values),
            (r"VALUES (?P<rows>.*)", _values),
            (r"SELECT \* FROM (?P<name>[\w.]+) WHERE 1 = 0", self._no_rows),
            (r"SELECT id, max\(n\) AS n FROM (?P<name>[\w.]+) GROUP BY id", self._greatest),
            (r"SELECT (?P<items>(?!.* FROM ).*)", _literals),
        ):
            match = re.fullmatch(pattern, text)
            if match:
                return make(**match.groupdict())
        raise NotInApi(f"a query as the source: {text}")

    def _source_table(self, name: str) -> Any:
        table = self._table(name)
        columns = table.field_names
        if table.options.get("row-tracking.enabled") == "true":
            columns = [*columns, "_ROW_ID"]
        return table.to_arrow(columns)

    def _no_rows(self, name: str) -> pa.Table:
        return self._table(name).to_arrow(limit=0)

    def _greatest(self, name: str) -> pa.Table:
        rows = self._table(name).to_arrow()
        return rows.group_by("id").aggregate([("n", "max")]).rename_columns(["id", "n"])

    def _create_view(self, name: str, query: str) -> None:
        self.views[name] = self._source(query)

    def _table(self, name: str) -> Table:
        return self.catalog.get_table(name)


# --- text -----------------------------------------------------------------------------------------


def _field(number: int, text: str) -> DataField:
    name, _, kind = text.strip().partition(" ")
    kind = kind.partition(" DEFAULT ")[0]
    row = re.fullmatch(r"STRUCT<(.*)>", kind)
    if row is None:
        return DataField(number, name, AtomicType(kind))
    parts = [part.split(": ") for part in row[1].split(", ")]
    inner = tuple(DataField(100 + at, n, AtomicType(t)) for at, (n, t) in enumerate(parts))
    return DataField(number, name, RowType(True, inner))


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that are not in quotes, brackets or parentheses."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == "'"
        depth += 0 if quoted else (sign in "(<") - (sign in ")>" and depth > 0)
        if sign == separator and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _head(text: str) -> tuple[str, str]:
    """The name, or what is in parentheses, that a text begins with; and the rest."""
    if not text.startswith("("):
        head, _, rest = text.partition(" ")
        return head, rest
    depth, quoted = 0, False
    for at, sign in enumerate(text):
        quoted ^= sign == "'"
        depth += 0 if quoted else (sign == "(") - (sign == ")")
        if depth == 0:
            return text[: at + 1], text[at + 2 :]
    raise NotInApi(text)


def _value(text: str) -> Any:
    """The value of a literal."""
    struct = re.fullmatch(r"named_struct\((.*)\)", text)
    if struct:
        parts = [_value(part) for part in _split(struct[1], ",")]
        return dict(zip(parts[::2], parts[1::2], strict=True))
    struct = re.fullmatch(r"struct\((.*)\)", text)
    if struct:
        return tuple(_value(part) for part in _split(struct[1], ","))
    if text.upper() in ("NULL", "TRUE", "FALSE"):
        return {"NULL": None, "TRUE": True, "FALSE": False}[text.upper()]
    if re.fullmatch(QUOTED, text):
        return text[1:-1].replace("''", "'")
    return ast.literal_eval(text.removesuffix("L"))


def _tuples(text: str) -> list[list[Any]]:
    return [[_value(part) for part in _split(row[1:-1], ",")] for row in _split(text, ",")]


def _row(values: Sequence[Any], schema: pa.Schema) -> dict[str, Any]:
    def as_struct(value: Any, kind: pa.DataType) -> Any:
        is_struct = isinstance(value, tuple)
        return dict(zip((f.name for f in kind), value, strict=True)) if is_struct else value

    return {c.name: as_struct(v, c.type) for v, c in zip(values, schema, strict=True)}


def _values(rows: str, names: str | None = None) -> pa.Table:
    found = _tuples(rows)
    known = names.split(", ") if names else [f"col{n + 1}" for n in range(len(found[0]))]
    return pa.table({n: _array([row[at] for row in found]) for at, n in enumerate(known)})


def _literals(items: str) -> pa.Table:
    """SELECT 1 AS id, 'x' AS name UNION ALL SELECT 2, 'y'."""
    first, *others = items.split(" UNION ALL SELECT ")
    pairs = [item.rpartition(" AS ") for item in _split(first, ",")]
    rows = [[value for value, _, _ in pairs], *(_split(other, ",") for other in others)]
    columns = {}
    for at, (_, _, name) in enumerate(pairs):
        texts = [row[at] for row in rows]
        kind = pa.int64() if any(text.endswith("L") for text in texts) else None
        columns[name] = _array([_value(text) for text in texts], kind)
    return pa.table(columns)


def _array(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    found = pa.array(values, kind)
    if pa.types.is_struct(found.type):
        return found.cast(pa.struct([("a", pa.int32()), ("b", pa.string())]))
    return found.cast(pa.int32()) if found.type == pa.int64() and kind is None else found


def _renamed(text: str, names: dict[str, str]) -> str:
    for name, alias in names.items():
        if re.fullmatch(r"\w+\.\w+", name):
            text = re.sub(rf"(?<![\w.]){re.escape(name)}\.", f"{alias}.", text)
    return text


def _expression(text: str, name: str, alias: str | None) -> str:
    if "SELECT " in text:
        raise NotInApi(f"a query inside of a statement: {text}")
    text = _renamed(text, {name: "t"})
    return re.sub(rf"\b{alias}\.", "t.", text) if alias else text


def _assignments(parts: Sequence[str], name: str, alias: str | None) -> dict[str, object]:
    made: dict[str, object] = {}
    for part in parts:
        target, _, value = part.partition(" = ")
        target = target.removeprefix(f"{alias}.")
        if value == "DEFAULT" or target in made:
            raise NotInApi(f"not a value for each column: {part}")
        made[target] = _expression(value, name, alias)
    return made


def _add_clause(builder: Any, text: str, alias: str, names: dict[str, str]) -> None:
    match = re.fullmatch(
        r"WHEN (?P<kind>MATCHED|NOT MATCHED BY SOURCE|NOT MATCHED)(?: AND (?P<where>.*))?"
        r" THEN (?P<action>UPDATE SET|DELETE|INSERT) ?(?P<rest>.*)",
        text,
    )
    if match is None or "SELECT " in text:
        raise NotInApi(text)
    kind = match["kind"].lower().replace(" ", "_")
    where = _renamed(match["where"], names) if match["where"] else None
    rest = _renamed(match["rest"], names)
    if match["action"] == "DELETE":
        getattr(builder, f"when_{kind}_delete")(where)
    elif match["action"] == "INSERT":
        if rest == "*":
            builder.when_not_matched_insert_all(where)
            return
        insert = re.fullmatch(r"\((.*?)\) VALUES \((.*)\)", rest)
        assert insert is not None
        columns, values = _split(insert[1], ","), _split(insert[2], ",")
        if len(columns) != len(values):
            raise NotInApi("not a value for each column")
        builder.when_not_matched_insert(dict(zip(columns, values, strict=True)), where)
    elif rest == "*":
        builder.when_matched_update_all(where)
    else:
        made = {}
        for part in _split(rest, ","):
            target, _, value = part.partition(" = ")
            target = target.removeprefix(f"{alias}.")
            if value == "DEFAULT":
                raise NotInApi(part)
            made[target] = value
        getattr(builder, f"when_{kind}_update")(made, where)
