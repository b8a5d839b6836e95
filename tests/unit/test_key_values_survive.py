"""Values at the edges of their types come out of every merge engine exactly as they went in."""

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from builders import NAME, open_catalog
from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, DataField, Schema, Table
from emberlake.io import MemoryStorage
from emberlake.spec.values import Value, to_arrow_array

pytestmark = pytest.mark.thorough

NANOS = 1_700_000_000_123_456_789
LONG = "a long string, ☃ and 🎉 " * 400
NAN, NEGATIVE_ZERO = float("nan"), -0.0

# Columns, and the values that each of them takes on in turn.
COLUMNS: dict[str, tuple[str, Sequence[Value]]] = {
    "at9": ("TIMESTAMP(9)", (NANOS, 5, -1, None)),
    "ltz9": ("TIMESTAMP(9) WITH LOCAL TIME ZONE", (NANOS + 1, 7, -1_000_000_001, None)),
    "at6": ("TIMESTAMP(6)", (NANOS // 1_000 * 1_000, 1_000, -1_000, None)),
    "d38": (
        "DECIMAL(38, 0)",
        (Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal("1" + "0" * 37), None),
    ),
    "d38s": (
        "DECIMAL(38, 38)",
        (Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1"), Decimal("0." + "0" * 38), None),
    ),
    "text": ("STRING", ("", LONG, "\x00", None)),
    "bytes": ("BYTES", (b"", b"\x00" * 3, b"\xff" * 1_000, None)),
    "double": ("DOUBLE", (NAN, NEGATIVE_ZERO, 5e-324, None)),
    "float": ("FLOAT", (NEGATIVE_ZERO, NAN, float("inf"), None)),
    "long": ("BIGINT", (-(2**63), 2**63 - 1, 0, None)),
    "truth": ("BOOLEAN", (True, False, True, None)),
    "day": ("DATE", (-719_162, 2_932_896, 0, None)),
    "time": ("TIME(3)", (0, 86_399_999, 1, None)),
}
TURNS = 4


def aggregated(function: str) -> dict[str, str]:
    return {
        "merge-engine": "aggregation",
        **{f"fields.{name}.aggregate-function": function for name in COLUMNS},
    }


ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "deduplicate by sequence": {"sequence.field": "turn"},
    "partial-update": {"merge-engine": "partial-update"},
    "partial-update with a group": {
        "merge-engine": "partial-update",
        "fields.turn.sequence-group": ",".join(COLUMNS),
    },
    "last_value": aggregated("last_value"),
    "last_non_null_value": aggregated("last_non_null_value"),
    "first_value": aggregated("first_value"),
    "first_non_null_value": aggregated("first_non_null_value"),
    "max": aggregated("max"),
    "min": aggregated("min"),
    "first-row": {"merge-engine": "first-row"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
}
FIRST = ("first-row", "first_value", "first_non_null_value")
KEEPS_VALUES = ("partial-update", "last_non_null_value")
FORMATS = ("parquet", "orc")  # Avro files have no nanoseconds, and such a table is refused


def create(options: Mapping[str, str], key: str = "INT") -> Table:
    columns = {"id": key, "turn": "INT"} | {name: kind for name, (kind, _) in COLUMNS.items()}
    fields = [DataField(i, n, AtomicType(t)) for i, (n, t) in enumerate(columns.items())]
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    catalog.create_table(NAME, Schema(fields, (), ["id"], {"bucket": "1", **options}))
    return catalog.get_table(NAME)


def rows_of(table: Table, rows: Sequence[Sequence[Value]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        {
            f.name: to_arrow_array(f.type, list(c))
            for f, c in zip(table.fields, columns, strict=True)
        }
    )


def turn(number: int, keys: Sequence[Value] = (1, 2, 3)) -> list[list[Value]]:
    """The rows of one turn: every key has other values than in the turn before."""
    return [
        [key, number, *(values[(number + place) % TURNS] for _, values in COLUMNS.values())]
        for place, key in enumerate(keys)
    ]


def write(table: Table, rows: Sequence[Sequence[Value]]) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as writing:
        writing.write_arrow(rows_of(table, rows))
        builder.new_commit().commit(writing.prepare_commit())


def read(table: Table) -> list[Row]:
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    at_once = sorted_rows(canonical_rows(builder.new_read().to_arrow(splits)))
    stream = builder.new_read().to_arrow_batch_reader(splits).read_all()
    assert sorted_rows(canonical_rows(stream)) == at_once
    return at_once


def canonical(table: Table, rows: Sequence[Sequence[Value]]) -> list[Row]:
    return sorted_rows(canonical_rows(rows_of(table, rows)))


def check_read_and_compacted(table: Table, expected: list[Row]) -> None:
    assert read(table) == expected
    table.compact()
    assert read(table) == expected
    table.compact(full=True)
    assert read(table) == expected


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_only_record_of_a_key_comes_back_as_it_is(file_format: str) -> None:
    for options in ENGINES.values():
        table = create({**options, "file.format": file_format})
        rows = [row for number in range(TURNS) for row in turn(number, [10 * number])]
        kept = [r for r in rows if file_format != "orc" or not _is_fraction_before_1970(r)]
        write(table, kept)

        check_read_and_compacted(table, canonical(table, kept))


def _is_fraction_before_1970(row: Sequence[Value]) -> bool:
    """What ORC files of this library cannot keep, and refuse."""
    times = [v for v, (kind, _) in zip(row[2:], COLUMNS.values(), strict=True) if "STAMP" in kind]
    return any(isinstance(time, int) and time < 0 for time in times)


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("max", "min")])
@pytest.mark.parametrize("in_one_write", [True, False], ids=["one write", "four writes"])
def test_values_survive_the_merge(engine: str, in_one_write: bool) -> None:
    table = create(ENGINES[engine])
    turns = [turn(number) for number in range(TURNS)]
    if in_one_write:
        write(table, [row for rows in turns for row in rows])
    else:
        for rows in turns:
            write(table, rows)

    check_read_and_compacted(table, canonical(table, [chosen(engine, n) for n in range(3)]))


def chosen(engine: str, place: int) -> list[Value]:
    """The row of a key after all turns."""
    rows = [turn(number)[place] for number in range(TURNS)]
    if engine == "first-row":
        return rows[0]
    if engine in FIRST:
        first = [
            _first(column, skip_null=engine == "first_non_null_value")
            for column in zip(*rows, strict=True)
        ]
        return [rows[-1][0], rows[-1][1], *first[2:]]
    if engine in KEEPS_VALUES:
        return [_first(column[::-1], skip_null=True) for column in zip(*rows, strict=True)]
    return rows[-1]


def _first(values: Sequence[Value], *, skip_null: bool) -> Value:
    return next((v for v in values if not skip_null or v is not None), None)


@pytest.mark.parametrize("function", ["max", "min"])
def test_the_greatest_and_the_least_are_exact(function: str) -> None:
    table = create(ENGINES[function])
    write(table, turn(0, [1]))
    for number in (1, 2, 3):
        write(table, turn(number, [1]))

    (row,) = read(table)
    found = dict(zip(["kind", "id", "turn", *COLUMNS], row, strict=True))
    is_max = function == "max"
    assert found["at9"] == ([1_700_000_000_123, 456_789] if is_max else [-1, 999_999])
    assert found["d38"] == ("9" * 38 if is_max else "-" + "9" * 38)
    assert found["d38s"] == ("0." + "9" * 38 if is_max else "-0." + "0" * 37 + "1")
    assert found["text"] == (LONG if is_max else "")
    assert found["bytes"] == (("ff" * 1_000) if is_max else "")
    assert found["double"] == ("7ff8000000000000" if is_max else bits(NEGATIVE_ZERO))
    assert found["long"] == (2**63 - 1 if is_max else -(2**63))
    table.compact(full=True)
    assert read(table) == [row]


def bits(value: float) -> str:
    return format(struct.unpack("<Q", struct.pack("<d", value))[0], "x")


def test_sums_of_38_digits_are_exact() -> None:
    fields = [
        DataField(0, "id", AtomicType("INT")),
        DataField(1, "d", AtomicType("DECIMAL(38, 10)")),
    ]
    catalog = open_catalog(MemoryStorage())
    catalog.create_database("db")
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.d.aggregate-function": "sum"}
    catalog.create_table(NAME, Schema(fields, (), ["id"], options))
    table = catalog.get_table(NAME)
    parts = ["9" * 27 + ".0000000001", "0.9999999998", "-0.0000000003", "1" + "0" * 26]
    for text in parts:
        write(table, [[1, Decimal(text)]])

    expected = "10" + "9" * 26 + ".9999999996"
    check_read_and_compacted(table, [["+I", 1, expected]])


KEYS: dict[str, tuple[str, Sequence[Value]]] = {
    kind: (kind, [value for value in values if value is not None])
    for kind, values in COLUMNS.values()
}


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "last_value", "first-row"])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_survive_the_merge(engine: str, kind: str) -> None:
    keys = list(dict.fromkeys(repr(v) for v in KEYS[kind][1]))
    values = [next(v for v in KEYS[kind][1] if repr(v) == text) for text in keys]
    table = create(ENGINES[engine], kind)
    for number in (0, 1):
        write(table, turn(number, values))

    rows = turn(0 if engine == "first-row" else 1, values)
    if engine == "partial-update":
        before = turn(0, values)
        rows = [
            [a if b is None else b for a, b in zip(old, new, strict=True)]
            for old, new in zip(before, rows, strict=True)
        ]
    check_read_and_compacted(table, canonical(table, rows))
