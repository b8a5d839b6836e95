"""Queries with what Spark answered: ANSI mode, in UTC, on Parquet files with the rows of `tables`.

``python tests/sql/answers.py`` asks Spark again.
"""

import datetime as dt
import gzip
import json
import re
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FILE = Path(__file__).with_name("answers.json.gz")
_INF, _NAN = float("inf"), float("nan")


def answers() -> dict[str, dict[str, Any]]:
    """Types and rows of each query."""
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        found: dict[str, dict[str, Any]] = json.load(file)
    return found


def type_text(kind: pa.DataType) -> str:
    """A type without what only says how Arrow lays it out."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_text(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)},{type_text(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_text(field.type)}' for field in kind)}>"
    text = re.sub(r"^large_(string|binary)$", r"\1", str(kind))
    return "timestamp[us, tz=UTC]" if text.startswith("timestamp[us, tz=") else text


def _moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def tables() -> dict[str, pa.Table]:
    """Numbers, texts, dates, nested values, orders and customers."""
    n = pa.table(
        {
            "id": pa.array(range(1, 9), pa.int32()),
            "b": pa.array([1, -7, 127, -128, None, 0, 5, 7], pa.int8()),
            "s": pa.array([10, -300, 32767, -32768, None, 0, 3, 2], pa.int16()),
            "i": pa.array([7, -7, 2147483647, -2147483648, None, 0, 3, 3], pa.int32()),
            "l": pa.array(
                [70, -9, 9223372036854775807, -9223372036854775808, None, 0, 2, 2], pa.int64()
            ),
            "f": pa.array([1.5, -2.5, _NAN, _INF, None, -0.0, 0.1, 3.0], pa.float32()),
            "d": pa.array([2.5, -3.5, _NAN, -_INF, None, -0.0, 0.1, 1e20], pa.float64()),
            "c": pa.array(
                [
                    Decimal("1.25"),
                    Decimal("-2.50"),
                    Decimal("99999999.99"),
                    Decimal("-0.01"),
                    None,
                    Decimal("0.00"),
                    Decimal("3.33"),
                    Decimal("10.00"),
                ],
                pa.decimal128(10, 2),
            ),
            "e": pa.array(
                [
                    Decimal("1.0000000001"),
                    Decimal("-2.5"),
                    Decimal("1234567890123456789012345678.0123456789"),
                    Decimal("0.5"),
                    None,
                    Decimal(0),
                    Decimal(7),
                    Decimal("1.5"),
                ],
                pa.decimal128(38, 10),
            ),
            "bo": pa.array([True, False, None, True, False, True, None, False]),
            "g": pa.array(["x", "y", "x", "y", None, "x", "z", "z"]),
        }
    )
    t = pa.table(
        {
            "id": pa.array(range(1, 13), pa.int32()),
            "v": pa.array(
                [
                    "abc",
                    "ABC",
                    "",
                    None,
                    "a_b%c",
                    "héllo",
                    " pad ",
                    "12",
                    "-7.9",
                    "foo,bar,baz",
                    "a\\b",
                    "日本語x",
                ]
            ),
            "w": pa.array(["b", "abc", "x", "y", None, "l", "pad", "3", "-7", ",", "\\", "本"]),
            "k": pa.array([1, 2, 3, None, 0, -1, 2, 5, 100, 2, 1, 1], pa.int32()),
            "bin": pa.array(
                [b"abc", b"", None, b"\x00\xff", b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"abd"],
                pa.binary(),
            ),
        }
    )
    d = pa.table(
        {
            "id": pa.array(range(1, 9), pa.int32()),
            "d": pa.array(
                [
                    dt.date(2024, 2, 29),
                    dt.date(2023, 12, 31),
                    dt.date(1970, 1, 1),
                    None,
                    dt.date(2000, 1, 31),
                    dt.date(1969, 12, 31),
                    dt.date(2024, 1, 1),
                    dt.date(2021, 1, 3),
                ],
                pa.date32(),
            ),
            "ts": pa.array(
                [
                    _moment(2024, 2, 29, 12, 34, 56, 789123),
                    _moment(2023, 12, 31, 23, 59, 59, 999999),
                    _moment(1970, 1, 1),
                    None,
                    _moment(2000, 1, 31, 1, 2, 3),
                    _moment(1969, 12, 31, 23, 59, 59, 500000),
                    _moment(2024, 1, 1),
                    _moment(2021, 1, 3, 10),
                ],
                pa.timestamp("us", "UTC"),
            ),
            "ntz": pa.array(
                [
                    _moment(2024, 2, 29, 12, 34, 56, 789123),
                    _moment(2023, 12, 31, 23, 59, 59),
                    _moment(1970, 1, 1),
                    None,
                    _moment(2000, 1, 31, 1, 2, 3),
                    _moment(1969, 12, 31, 23, 59, 59, 500000),
                    _moment(2024, 1, 1),
                    _moment(2021, 1, 3, 10),
                ],
                pa.timestamp("us"),
            ),
            "s": pa.array(
                [
                    "2024-02-29",
                    "2024-02-29 12:34:56",
                    " 2023-1-5 ",
                    None,
                    "31/12/2023",
                    "2024",
                    "nope",
                    "20240229",
                ]
            ),
            "n": pa.array([1, -1, 13, 2, None, 400, 0, 30], pa.int32()),
        }
    )
    r = pa.struct([("a", pa.int32()), ("b", pa.string())])
    x = pa.table(
        {
            "id": pa.array(range(1, 6), pa.int32()),
            "a": pa.array([[3, 1, 2], [], None, [None, 5, 5], [1]], pa.list_(pa.int32())),
            "sa": pa.array(
                [["b", "a"], ["x", None], [], None, ["a", "b", "a"]], pa.list_(pa.string())
            ),
            "m": pa.array(
                [[("k", 1), ("j", 2)], [], None, [("k", None)], [("z", 26)]],
                pa.map_(pa.string(), pa.int32()),
            ),
            "mi": pa.array(
                [[(1, "one")], [(2, "two"), (-1, "neg")], None, [], [(0, "zero")]],
                pa.map_(pa.int32(), pa.string()),
            ),
            "r": pa.array(
                [
                    {"a": 1, "b": "one"},
                    {"a": None, "b": "n"},
                    None,
                    {"a": 4, "b": None},
                    {"a": 1, "b": "one"},
                ],
                r,
            ),
            "ar": pa.array(
                [[{"a": 1, "b": "p"}, {"a": 2, "b": None}], [], None, [None], [{"a": 9, "b": "q"}]],
                pa.list_(r),
            ),
        }
    )
    o = pa.table(
        {
            "oid": pa.array(range(1, 11), pa.int64()),
            "cid": pa.array([1, 1, 2, 3, None, 2, 1, 9, 3, 3], pa.int32()),
            "amount": pa.array(
                [
                    Decimal("10.50"),
                    Decimal("20.00"),
                    Decimal("5.25"),
                    None,
                    Decimal("7.00"),
                    Decimal("100.10"),
                    Decimal("0.01"),
                    Decimal("3.00"),
                    Decimal("8.00"),
                    Decimal("8.00"),
                ],
                pa.decimal128(9, 2),
            ),
            "day": pa.array(
                [dt.date(2024, 1, i) for i in (1, 2, 2, 3, 3, 5, 8, 13, 21, 21)], pa.date32()
            ),
            "q": pa.array([1, 2, None, 4, 5, 6, 7, 8, 9, 10], pa.int32()),
            "x": pa.array([0.5, 1.5, 2.5, None, _NAN, -1.0, 3.25, 2.0, 2.0, 7.0], pa.float64()),
        }
    )
    c = pa.table(
        {
            "cid": pa.array([1, 2, 3, 4, None], pa.int32()),
            "name": pa.array(["ann", "bob", None, "dan", "eve"]),
            "city": pa.array(["rome", "oslo", "rome", None, "bern"]),
        }
    )
    return {"n": n, "t": t, "d": d, "x": x, "o": o, "c": c}


def _record() -> None:
    from canonical import canonical_values  # noqa: PLC0415
    from emberlake.spark import session  # noqa: PLC0415

    spark = session("local[2]", **{"spark.sql.session.timeZone": "UTC"})
    folder = tempfile.mkdtemp()
    for name, rows in tables().items():
        pq.write_table(rows, f"{folder}/{name}.parquet")
        spark.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)
    found = {}
    for query in answers():
        table = spark.sql(query).toArrow()
        rows = zip(*(canonical_values(column) for column in table.columns), strict=True)
        types = [type_text(field.type) for field in table.schema]
        found[query] = {"types": types, "rows": [list(row) for row in rows]}
    with gzip.GzipFile(FILE, "wb", mtime=0) as file:
        file.write(json.dumps(found, ensure_ascii=False).encode())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    _record()
