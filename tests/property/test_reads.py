"""Random tables, filters, projections and limits against a model in plain Python.

A table has a history: appends of random rows, with columns added, widened, renamed and dropped in
between, over partitions, buckets, formats and kinds of statistics. Whatever a read leaves unread,
its rows must be those that the model gives.
"""

import datetime as dt
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from builders import alter, append, create_table, delete_rows
from effort import examples
from emberlake import AtomicType, PredicateBuilder, SchemaChange
from emberlake.predicates import Predicate
from emberlake.table import Table
from emberlake.table.read_builder import ReadBuilder
from table_reads import live_files

Row = dict[str, Any]
Truth = bool | None  # None is SQL's unknown


# --- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A column type, with the few values and literals that make filters hit."""

    paimon: str
    arrow: pa.DataType
    values: tuple[Any, ...]
    text: Callable[[Any], str]  # a literal in a filter's text


def quoted(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def float_text(value: float) -> str:
    return quoted(value) if math.isnan(value) or math.isinf(value) else repr(value)


KINDS = {
    "tiny": Kind("TINYINT", pa.int8(), (-128, -1, 0, 1, 7, 127), str),
    "int": Kind("INT", pa.int32(), (-(2**31), -1, 0, 1, 7, 2**31 - 1), str),
    "long": Kind("BIGINT", pa.int64(), (-(2**63), -1, 0, 1, 7, 2**40), str),
    "double": Kind(
        "DOUBLE",
        pa.float64(),
        (-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan),
        float_text,
    ),
    "text": Kind(
        "STRING",
        pa.string(),
        ("", "a", "ab", "b'", "a text that is longer than sixteen", "\U0010ffff" * 17),
        quoted,
    ),
    "money": Kind(
        "DECIMAL(10, 2)",
        pa.decimal128(10, 2),
        (Decimal("-1.50"), Decimal("0.00"), Decimal("1.50"), Decimal("99999999.99")),
        str,
    ),
    "date": Kind(
        "DATE",
        pa.date32(),
        (dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 6, 26)),
        lambda value: f"DATE '{value}'",
    ),
    "flag": Kind("BOOLEAN", pa.bool_(), (True, False), lambda value: str(value).upper()),
}
WIDER = {"tiny": "int", "int": "long"}


@dataclass
class Model:
    """The rows that a table holds, and its columns as they are now."""

    table: Table
    kinds: dict[str, str]  # column -> kind
    partition_keys: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([(name, KINDS[kind].arrow) for name, kind in self.kinds.items()])

    def append(self, rows: list[Row]) -> None:
        append(self.table, pa.Table.from_pylist(rows, self.arrow_schema))
        self.rows += rows

    def add_column(self, name: str, kind: str) -> None:
        change = SchemaChange.add_column(name, AtomicType(KINDS[kind].paimon))
        self.table = alter(self.table, change)
        self.kinds[name] = kind
        self.rows = [{**row, name: None} for row in self.rows]

    def widen(self, name: str) -> None:
        kind = WIDER[self.kinds[name]]
        change = SchemaChange.update_column_type(name, AtomicType(KINDS[kind].paimon))
        self.table = alter(self.table, change)
        self.kinds[name] = kind

    def rename(self, old: str, new: str) -> None:
        self.table = alter(self.table, SchemaChange.rename_column(old, new))
        self.kinds = {new if n == old else n: kind for n, kind in self.kinds.items()}
        self.rows = [{new if n == old else n: v for n, v in row.items()} for row in self.rows]

    def drop(self, name: str) -> None:
        self.table = alter(self.table, SchemaChange.drop_column(name))
        del self.kinds[name]
        self.rows = [{n: v for n, v in row.items() if n != name} for row in self.rows]

    def delete(self, doomed: set[int]) -> None:
        """Deletes rows, named by their ids."""
        positions = {
            entry.file.file_name: [
                at for at, number in enumerate(self._ids_in(entry)) if number in doomed
            ]
            for entry in live_files(self.table)
        }
        delete_rows(self.table, {name: found for name, found in positions.items() if found})
        self.rows = [row for row in self.rows if row["id"] not in doomed]

    def _ids_in(self, entry: Any) -> list[int]:
        builder = self.table.new_read_builder().with_projection(["id"])
        for split in builder.new_scan().plan().splits():
            for at, file in enumerate(split.files):
                if file.file_name == entry.file.file_name:
                    one = replace(
                        split,
                        entries=split.entries.slice(at, at + 1),
                        is_exact=split.is_exact[at : at + 1],
                    )
                    ids: list[int] = builder.new_read().to_arrow([one]).column("id").to_pylist()
                    return ids
        return []


MODES = ("truncate(16)", "truncate(1)", "full", "counts", "none")


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A table with a history."""
    kinds = {"id": "long"}
    for number, kind in enumerate(
        draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    ):
        kinds[f"c{number}"] = kind
    others = [name for name in kinds if name != "id"]
    partition_keys = tuple(draw(st.lists(st.sampled_from(others), unique=True, max_size=2)))
    options = {
        "file.format": draw(st.sampled_from(["parquet", "parquet", "orc", "avro"])),
        "metadata.stats-mode": draw(st.sampled_from(MODES)),
        "source.split.target-size": draw(st.sampled_from(["1 b", "128 mb"])),
    }
    free = [name for name in kinds if name not in partition_keys]
    if draw(st.booleans()):
        keys = draw(st.lists(st.sampled_from(free), unique=True, min_size=1, max_size=2))
        options |= {"bucket": "3", "bucket-key": ",".join(keys)}
    if draw(st.booleans()):
        options["fields.id.stats-mode"] = draw(st.sampled_from(MODES))
    schema = pa.schema([(name, KINDS[kind].arrow) for name, kind in kinds.items()])
    table = create_table(columns=schema, partition_keys=partition_keys, options=options)
    model = Model(table, kinds, partition_keys)
    for number in range(draw(st.integers(1, 4))):
        model.append(draw(rows(model)))
        if number % 2 == 0:
            draw(changes(model))
    if model.rows and draw(st.integers(0, 4)) == 0:
        ids = [row["id"] for row in model.rows]
        model.delete(set(draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3))))
    return model


@st.composite
def rows(draw: st.DrawFn, model: Model) -> list[Row]:
    start = len(model.rows) + 100 * model.table.table_schema.id
    return [
        {
            "id": start + number,
            **{
                name: draw(st.none() | st.sampled_from(KINDS[kind].values))
                for name, kind in model.kinds.items()
                if name != "id"
            },
        }
        for number in range(draw(st.integers(0, 8)))
    ]


@st.composite
def changes(draw: st.DrawFn, model: Model) -> None:
    """Changes the schema, or not."""
    fixed = {"id", *model.partition_keys, *model.table.options.get("bucket-key", "").split(",")}
    loose = [name for name in model.kinds if name not in fixed]
    match draw(st.sampled_from(["nothing", "add", "widen", "rename", "drop"])):
        case "add":
            name = f"a{model.table.table_schema.id}"
            model.add_column(name, draw(st.sampled_from(sorted(KINDS))))
        case "widen" if narrow := [n for n in loose if model.kinds[n] in WIDER]:
            model.widen(draw(st.sampled_from(narrow)))
        case "rename" if loose:
            model.rename(draw(st.sampled_from(loose)), f"r{model.table.table_schema.id}")
        case "drop" if loose:
            model.drop(draw(st.sampled_from(loose)))


# --- filters --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter:
    """A filter three times: for the builder, as text, and as the model's truth of a row."""

    build: Callable[[PredicateBuilder], Predicate]
    text: str
    truth: Callable[[Row], Truth]


COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "=": ("equal", operator.eq),
    "<>": ("not_equal", operator.ne),
    "<": ("less_than", operator.lt),
    "<=": ("less_or_equal", operator.le),
    ">": ("greater_than", operator.gt),
    ">=": ("greater_or_equal", operator.ge),
}


def known(name: str, test: Callable[[Any], bool]) -> Callable[[Row], Truth]:
    return lambda row: None if row[name] is None else test(row[name])


@st.composite
def leaves(draw: st.DrawFn, kinds: dict[str, str]) -> Filter:
    name = draw(st.sampled_from(sorted(kinds)))
    kind = KINDS[kinds[name]]
    pick = st.sampled_from((*kind.values, *range(100, 104)) if name == "id" else kind.values)
    shape = draw(st.sampled_from(["compare", "compare", "between", "in", "not in", "null", "like"]))
    if shape == "like" and kind.paimon == "STRING":
        return draw(text_leaves(name))
    if shape == "null":
        if draw(st.booleans()):
            return Filter(lambda b: b.is_null(name), f"{name} IS NULL", lambda r: r[name] is None)
        return Filter(
            lambda b: b.is_not_null(name), f"{name} IS NOT NULL", lambda r: r[name] is not None
        )
    if shape in ("in", "not in"):
        values = draw(st.lists(pick, min_size=1, max_size=4))
        texts = ", ".join(kind.text(v) for v in values)
        if shape == "in":
            return Filter(
                lambda b: b.is_in(name, values),
                f"{name} IN ({texts})",
                known(name, lambda v: any(v == x for x in values)),
            )
        return Filter(
            lambda b: b.is_not_in(name, values),
            f"{name} NOT IN ({texts})",
            known(name, lambda v: all(v != x for x in values)),
        )
    if shape == "between":
        low, high = draw(pick), draw(pick)
        return Filter(
            lambda b: b.between(name, low, high),
            f"{name} BETWEEN {kind.text(low)} AND {kind.text(high)}",
            known(name, lambda v: low <= v <= high),
        )
    symbol = draw(st.sampled_from(sorted(COMPARISONS)))
    method, compare = COMPARISONS[symbol]
    value = draw(pick)
    return Filter(
        lambda b: getattr(b, method)(name, value),
        f"{name} {symbol} {kind.text(value)}",
        known(name, lambda v: compare(v, value)),
    )


@st.composite
def text_leaves(draw: st.DrawFn, name: str) -> Filter:
    part = draw(st.sampled_from(["", "a", "ab", "b'", "sixteen", "\U0010ffff"]))
    method, pattern, test = draw(
        st.sampled_from(
            [
                ("startswith", f"{part}%", lambda v: v.startswith(part)),
                ("endswith", f"%{part}", lambda v: v.endswith(part)),
                ("contains", f"%{part}%", lambda v: part in v),
            ]
        )
    )
    return Filter(
        lambda b: getattr(b, method)(name, part),
        f"{name} LIKE {quoted(pattern)}",
        known(name, test),
    )


def join_and(parts: list[Filter]) -> Filter:
    def truth(row: Row) -> Truth:
        truths = [part.truth(row) for part in parts]
        return False if False in truths else None if None in truths else True

    return Filter(
        lambda b: PredicateBuilder.and_predicates([p.build(b) for p in parts]),
        " AND ".join(f"({p.text})" for p in parts),
        truth,
    )


def join_or(parts: list[Filter]) -> Filter:
    def truth(row: Row) -> Truth:
        truths = [part.truth(row) for part in parts]
        return True if True in truths else None if None in truths else False

    return Filter(
        lambda b: PredicateBuilder.or_predicates([p.build(b) for p in parts]),
        " OR ".join(f"({p.text})" for p in parts),
        truth,
    )


def filters(kinds: dict[str, str]) -> st.SearchStrategy[Filter]:
    return st.recursive(
        leaves(kinds),
        lambda inner: st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda parts: st.sampled_from([join_and(parts), join_or(parts)])
        ),
        max_leaves=5,
    )


# --- the property ---------------------------------------------------------------------------------


def settle(found: list[Row]) -> list[str]:
    """Rows in comparable form: NaN like itself, and the zeros unlike each other."""
    return sorted(repr(list(row.items())) for row in found)


def pick(row: Row, columns: list[str]) -> Row:
    return {name: row[name] for name in columns}


@given(data=st.data())
@examples(50)  # making a table takes longest: each is read in several ways
def test_a_read_gives_the_rows_of_the_model(data: st.DataObject) -> None:
    model = data.draw(models())
    for where in data.draw(st.lists(st.none() | filters(model.kinds), min_size=3, max_size=6)):
        names = st.lists(st.sampled_from(sorted(model.kinds)), min_size=1, unique=True)
        columns = data.draw(st.none() | names)
        builder = model.table.new_read_builder().with_projection(columns)
        if where is not None:
            built = where.build(builder.new_predicate_builder())
            builder.with_filter(where.text if data.draw(st.booleans()) else built)

        matching = [row for row in model.rows if where is None or where.truth(row) is True]
        expected = settle([pick(row, columns or list(model.kinds)) for row in matching])
        check(builder, expected, limit=data.draw(st.integers(0, 4)))


def check(builder: ReadBuilder, expected: list[str], limit: int) -> None:
    splits = builder.new_scan().plan().splits()
    read = builder.new_read()

    assert settle(read.to_arrow(splits).to_pylist()) == expected
    assert settle(read.to_arrow_batch_reader(splits).read_all().to_pylist()) == expected
    limited = builder.with_limit(limit)
    some = limited.new_read().to_arrow(limited.new_scan().plan().splits()).to_pylist()
    left = list(expected)
    for row in settle(some):
        left.remove(row)  # what a limit lets pass is one of them, and none comes twice
    assert len(some) == min(limit, len(expected))


@given(data=st.data())
@examples(15)
def test_splits_of_one_filter_read_with_another_give_the_rows_of_both(data: st.DataObject) -> None:
    model = data.draw(models())
    pairs = st.lists(st.tuples(*[filters(model.kinds)] * 2), min_size=2, max_size=4)
    for planned, asked in data.draw(pairs):
        check_both(model, planned, asked)


def check_both(model: Model, planned: Filter, asked: Filter) -> None:
    def builder(filtered: Filter) -> Any:
        return model.table.new_read_builder().with_filter(filtered.text)

    splits = builder(planned).new_scan().plan().splits()
    found = settle(builder(asked).new_read().to_arrow(splits).to_pylist())

    matching = [row for row in model.rows if asked.truth(row) is True]
    wanted = [pick(row, list(model.kinds)) for row in matching if planned.truth(row) is True]
    for row in settle(wanted):
        found.remove(row)
    # The plan may keep files of more rows than its filter asks for, but none of other rows.
    left = settle([pick(row, list(model.kinds)) for row in matching])
    for row in [*settle(wanted), *found]:
        left.remove(row)
