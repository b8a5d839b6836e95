"""One column of every type that tables can have, with values at the edges, and null."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from emberlake import ArrayType, AtomicType, DataField, MapType, MultisetType, RowType
from emberlake.types import DataType, arrow_type


@dataclass(frozen=True)
class Sample:
    """A type and some values of it."""

    name: str
    type: DataType
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def data(self) -> pa.Table:
        """Rows of an id and a value each, the last one null."""
        return self._rows(self.values)

    def data_for(self, file_format: str) -> pa.Table:
        """The rows that a file format can keep: our ORC has no fractions before 1970."""
        is_fraction = file_format == "orc" and pa.types.is_timestamp(arrow_type(self.type))
        kept = [v for v in self.values if not (is_fraction and v.count < 0)]
        return self._rows(tuple(kept))

    def _rows(self, chosen: tuple[Any, ...]) -> pa.Table:
        kind = arrow_type(self.type)
        values = [_as_arrow(value, kind) for value in chosen] + [None]
        column = pa.array(values, kind)
        return pa.table({"id": pa.array(range(len(values)), pa.int32()), "c": column})

    @property
    def fields(self) -> list[DataField]:
        return [DataField(0, "id", AtomicType("INT")), DataField(1, "c", self.type)]


@dataclass(frozen=True)
class Units:
    """A count of the units of a time type, for values that Python's own types cannot hold."""

    count: int


def _as_arrow(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, Units):
        return pa.scalar(value.count, pa.int64()).cast(kind)
    return value


def _atomic(text: str, *values: Any) -> Sample:
    name = text.lower().replace(" with local time zone", "_ltz")
    name = name.translate(str.maketrans({"(": "", ")": "", ",": "_", " ": ""}))
    return Sample(name, AtomicType(text), values)


def _row(*fields: tuple[str, DataType]) -> RowType:
    return RowType(True, tuple(DataField(10 + i, n, t) for i, (n, t) in enumerate(fields)))


_INT, _STRING = AtomicType("INT"), AtomicType("STRING")
_DAY, _LONG = dt.date(2024, 2, 29), "a long string beyond sixteen characters"
# 2024-02-29 12:34:56.123456789 and the instant just before 1970.
_SECONDS = 1_709_210_096


def _times(text: str, digits: int) -> Sample:
    scale = 10 ** (0 if digits == 0 else 3 if digits <= 3 else 6 if digits <= 6 else 9)
    fraction = 123_456_789 // 10 ** (9 - digits) * 10**9 // 10**digits * scale // 10**9
    return _atomic(text, Units(0), Units(_SECONDS * scale + fraction), Units(-1))


ATOMIC = (
    _atomic("BOOLEAN", True, False),
    _atomic("TINYINT", -128, 127, 0),
    _atomic("SMALLINT", -32768, 32767, 0),
    _atomic("INT", -(2**31), 2**31 - 1, 0),
    _atomic("BIGINT", -(2**63), 2**63 - 1, 0),
    _atomic("FLOAT", 1.5, -0.0, float("nan"), float("inf")),
    _atomic("DOUBLE", 1.5, -0.0, float("nan"), float("-inf"), 5e-324),
    _atomic("DECIMAL(9, 2)", Decimal("1234567.89"), Decimal("-0.01")),
    _atomic("DECIMAL(18, 6)", Decimal("123456789012.345678"), Decimal("-0.000001")),
    _atomic("DECIMAL(30, 6)", Decimal("123456789012345678901234.567890"), Decimal("-1.500000")),
    _atomic("DECIMAL(38, 0)", Decimal("9" * 38), Decimal("-" + "9" * 38)),
    _atomic("STRING", "", "a", "sevenby", "eightbyt", _LONG, "naïve ☃ 中文 🎉"),
    _atomic("VARCHAR(9)", "", "a", "nine char"),
    _atomic("CHAR(5)", "abcde", "fives"),
    _atomic("BYTES", b"", b"\x00\x01", b"\xff" * 20),
    _atomic("BINARY(6)", b"sixsix", b"\x00" * 6),
    _atomic("DATE", dt.date(1970, 1, 1), _DAY, dt.date(1900, 1, 1), dt.date(2200, 12, 31)),
    _atomic("TIME(0)", dt.time(0), dt.time(23, 59, 59)),
    _atomic("TIME(3)", dt.time(0), dt.time(12, 34, 56, 789_000), dt.time(23, 59, 59, 999_000)),
    _times("TIMESTAMP(0)", 0),
    _times("TIMESTAMP(2)", 2),
    _times("TIMESTAMP(3)", 3),
    _times("TIMESTAMP(6)", 6),
    _times("TIMESTAMP(9)", 9),
    _times("TIMESTAMP(0) WITH LOCAL TIME ZONE", 0),
    _times("TIMESTAMP(3) WITH LOCAL TIME ZONE", 3),
    _times("TIMESTAMP(6) WITH LOCAL TIME ZONE", 6),
    _times("TIMESTAMP(9) WITH LOCAL TIME ZONE", 9),
)

_POINT = _row(("x", _INT), ("y", _STRING))
_DEEP = _row(
    ("d", AtomicType("DECIMAL(20, 4)")),
    ("t", AtomicType("TIMESTAMP(6)")),
    ("l", ArrayType(True, MapType(True, AtomicType("STRING", False), ArrayType(True, _INT)))),
)

NESTED = (
    Sample("array_int", ArrayType(True, _INT), ([], [1], [1, None, 3])),
    Sample("array_string", ArrayType(True, _STRING), ([""], [_LONG, None], ["a", "b"])),
    Sample(
        "map_string_bigint",
        MapType(True, AtomicType("STRING", False), AtomicType("BIGINT")),
        ([], [("k", 1)], [("a", None), (_LONG, 2**40)]),
    ),
    Sample(
        "map_int_double",
        MapType(True, AtomicType("INT", False), AtomicType("DOUBLE")),
        ([(1, 0.5)], [(2, None), (3, -0.0)]),
    ),
    Sample("row", _POINT, ({"x": 1, "y": "a"}, {"x": None, "y": None}, {"x": 2, "y": _LONG})),
    Sample(
        "array_row",
        ArrayType(True, _row(("x", _INT), ("y", _STRING))),
        ([{"x": 1, "y": None}], [None, {"x": None, "y": "b"}], []),
    ),
    Sample(
        "row_deep",
        _DEEP,
        (
            {
                "d": Decimal("1.5000"),
                "t": dt.datetime(2024, 2, 29, 1, 2, 3, 456789),  # noqa: DTZ001
                "l": [[("k", [1, None])], None, []],
            },
            {"d": None, "t": None, "l": None},
        ),
    ),
    Sample(
        "multiset",
        MultisetType(True, AtomicType("STRING", False)),
        ([], [("a", 1)], [("a", 2), ("b", 1)]),
    ),
)

SAMPLES = (*ATOMIC, *NESTED)
