"""The hash of a serialized row as a Spark expression, equal to ``spec.row_columns.hash_rows``.

Spark's own ``hash`` is the same Murmur3 with the same seed, but it hashes values, not rows. There
are two ways to compute the hash of a row:

words   A row of numbers is mixed word by word in 64-bit arithmetic. ``hash`` does the last step: it
        gets the one number that leads it to the same state as the words.
bytes   A row with strings is assembled byte by byte, and ``hash`` hashes the bytes.

Nothing overflows, so it does not matter whether the session lets integers overflow (ANSI). Words
use no expression twice, so the generated code does not grow exponentially with the columns.

Cost in addition to the scan, for 10 M rows, in seconds of CPU of the JVM: BIGINT 0.3 by words, 2.5
by bytes; STRING 0.8, (STRING, INT) 1.7 by bytes. A Python function over Arrow takes 2.0 in the JVM,
and another 1.5 in Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

from emberlake.base.hashing import ADD, C1, C2, DEFAULT_SEED, mix_scalar
from emberlake.spec.binary_row import MAX_INLINE_BYTES, null_area_size
from emberlake.types import AtomicType, TypeRoot

MAX_COLUMNS: Final = 8  # so that their null bits fit in one byte
# Spark processes expressions recursively, and each word adds eight levels. A thread's stack of
# 1 MiB is exhausted at about 30 words.
MAX_WORDS: Final = 12
# Beyond this, converting numbers to bytes takes longer than sending them to Python.
MAX_NUMBER_BYTES: Final = 16

_MASK: Final = 0xFFFFFFFF
_WIDTHS: Final = {
    TypeRoot.BOOLEAN: 1,
    TypeRoot.TINYINT: 1,
    TypeRoot.SMALLINT: 2,
    TypeRoot.INT: 4,
    TypeRoot.DATE: 4,
    TypeRoot.BIGINT: 8,
}


@dataclass(frozen=True, slots=True)
class _Number:
    """A column whose slot holds a number of ``width`` bytes, zero if it is null.

    With a tail, the slot holds a number of four bytes and the offset of the tail, which is a number
    of eight bytes.
    """

    slot: Column
    width: int
    tail: Column | None = None

    @property
    def size(self) -> int:
        return self.width + (0 if self.tail is None else 8)


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A column whose slot holds short values, or the position of long ones."""

    value: Column
    nullable: bool

    @property
    def length(self) -> Column:
        return sql.octet_length(self.value)

    @property
    def is_short(self) -> Column:
        return self.length <= MAX_INLINE_BYTES


def row_hash(types: Sequence[AtomicType], values: Sequence[Column]) -> Column | None:
    """The hash of every row of these values, in order; None if Spark cannot express it.

    Spark cannot express it for floats and large decimals, whose bits no Spark function exposes, for
    times, for many columns, and for numbers on Spark Connect.

    Args:
        types: The types of the values. A null of a NOT NULL type gets an arbitrary hash.
        values: Columns with the Spark types that the type contract has for these types.
    """
    columns = [_column(t, v) for t, v in zip(types, values, strict=True)]
    known = [column for column in columns if column is not None]
    if len(known) < len(columns) or len(columns) > MAX_COLUMNS:
        return None
    bits = [
        sql.when(value.isNull(), _long(1 << index)).otherwise(_long(0))
        for index, (data_type, value) in enumerate(zip(types, values, strict=True))
        if data_type.nullable
    ]
    nulls = reduce(Column.bitwiseOR, bits) if bits else None
    numbers = [column for column in known if isinstance(column, _Number)]
    if len(numbers) < len(known):
        size = sum(number.size for number in numbers)
        return _hash_bytes(known, nulls) if size <= MAX_NUMBER_BYTES else None
    words = _words(numbers, nulls)
    is_too_deep = len(words) > MAX_WORDS or _is_remote(values[0])
    return None if is_too_deep else _hash_words(words)


def _is_remote(column: Column) -> bool:
    """Whether a server gets it: its messages nest at most 100 levels deep, too few for words."""
    return type(column).__module__.startswith("pyspark.sql.connect.")


# --- what a column puts into the row --------------------------------------------------------------


def _column(data_type: AtomicType, value: Column) -> _Number | _Bytes | None:
    root, nullable = data_type.root, data_type.nullable
    if root.is_text or root.is_bytes:
        return _Bytes(value.cast("binary"), nullable)
    if root.is_timestamp:
        millis = _or_zero(_millis(data_type, value), nullable)
        if data_type.is_compact:
            return _Number(millis, 8)
        return _Number(_or_zero(_micros_of_milli(data_type, value) * 1000, nullable), 4, millis)
    if root is TypeRoot.DECIMAL and data_type.is_compact:
        digits = value * sql.lit(10**data_type.scale).cast(f"decimal({data_type.scale + 1}, 0)")
        return _Number(_or_zero(digits.cast("bigint"), nullable), 8)
    if root in _WIDTHS:
        number = sql.unix_date(value) if root is TypeRoot.DATE else value
        return _Number(_or_zero(number.cast("bigint"), nullable), _WIDTHS[root])
    return None


def _or_zero(number: Column, nullable: bool) -> Column:  # noqa: FBT001
    return sql.coalesce(number, _long(0)) if nullable else number


def _long(number: int) -> Column:
    # Typed here, because Spark widens types one level of an expression at a time.
    return sql.lit(number).cast("bigint")


def _millis(data_type: AtomicType, value: Column) -> Column:
    if data_type.root is TypeRoot.TIMESTAMP_LTZ:
        return sql.unix_millis(value)
    # Before Spark 4.3 no function returns the number behind a timestamp without a zone. Its whole
    # seconds are truncated towards 1970, but the seconds of its minute are not. So take the minute.
    seconds = sql.unix_timestamp(value) - sql.second(value)
    minute = seconds - sql.pmod(seconds, sql.lit(60))
    return minute * 1000 + (_second_of_minute(value) * 1000).cast("bigint")


def _micros_of_milli(data_type: AtomicType, value: Column) -> Column:
    if data_type.root is TypeRoot.TIMESTAMP_LTZ:
        return sql.pmod(sql.unix_micros(value), sql.lit(1000))
    return (_second_of_minute(value) * 1_000_000).cast("bigint") % 1000


def _second_of_minute(value: Column) -> Column:
    return sql.extract(sql.lit("SECOND"), value)  # a decimal with six digits after the point


# --- by words -------------------------------------------------------------------------------------


def _hash_words(words: Sequence[Column | int]) -> Column:
    state: Column | int = DEFAULT_SEED
    for word in words:
        state = _mix(state, word)
    return _finish(state, 4 * len(words))


def _words(columns: Sequence[_Number], nulls: Column | None) -> list[Column | int]:
    words: list[Column | int] = [0 if nulls is None else sql.shiftleft(nulls, 8), 0]
    tails: list[Column | int] = []
    size = null_area_size(len(columns)) + 8 * len(columns)
    for column in columns:
        if column.tail is not None:
            words += [column.slot, size]
            tails += [_low(column.tail), sql.shiftrightunsigned(column.tail, 32)]
            size += 8
        elif column.width == 8:
            words += [_low(column.slot), sql.shiftrightunsigned(column.slot, 32)]
        else:
            words += [column.slot.bitwiseAND(_long((1 << 8 * column.width) - 1)), 0]
    return words + tails


# Of a state only the low 32 bits count; words have at most 32 bits.


def _mix(state: Column | int, word: Column | int) -> Column | int:
    if isinstance(state, int):
        if isinstance(word, int):
            return mix_scalar(state, word)
        state = _long(state)
    if isinstance(word, Column) or word:  # zero has nothing to mix in
        word = word if isinstance(word, Column) else _long(word)
        scrambled = _times(_rotate(_times(word, C1), 15), C2)
        state = state.bitwiseXOR(scrambled)
    return _rotate(state, 13) * _long(5) + _long(ADD)


def _finish(state: Column | int, size: int) -> Column:
    """The hash of a row of that size: Spark's hash of the number that leads to the same state."""
    assert isinstance(state, Column)
    # ``hash`` of an INT mixes one word after the seed, as a row of four bytes.
    state = _low(state).bitwiseXOR(_long(size ^ 4))
    word = _rotate(_times(state - _long(ADD), _inverse(5)), 32 - 13).bitwiseXOR(_long(DEFAULT_SEED))
    word = _times(_rotate(_times(word, _inverse(C2)), 32 - 15), _inverse(C1))
    return sql.hash(sql.shiftright(sql.shiftleft(word, 32), 32).cast("int"))


def _inverse(factor: int) -> int:
    return pow(factor, -1, 1 << 32)


def _low(number: Column) -> Column:
    return number.bitwiseAND(_long(_MASK))


def _times(word: Column, factor: int) -> Column:
    # The product of 32 bits with 31 bits and a sign fits in 63 bits and a sign.
    return word * _long(factor - (1 << 32) if factor >> 31 else factor)


def _rotate(number: Column, bits: int) -> Column:
    """The low 32 bits rotated to the left, using the number only once."""
    # Modulo ``2**32 - 1`` adds the high bits to the low ones. Shifting the result to the range from
    # 1 to that number, instead of from 0, keeps all ones as all ones, and zero as zero.
    return (sql.shiftleft(_low(number), bits) - _long(1)) % _long(_MASK) + _long(1)


# --- by bytes -------------------------------------------------------------------------------------


def _hash_bytes(columns: Sequence[_Number | _Bytes], nulls: Column | None) -> Column:
    row = [_zeros(8)] if nulls is None else [_zeros(1), _little_endian(nulls, 1), _zeros(6)]
    tails: list[Column] = []
    size: Column | int = null_area_size(len(columns)) + 8 * len(columns)
    for column in columns:
        match column:
            case _Bytes() if column is columns[-1] and not tails:
                return sql.hash(_ending_with(row, column, size))
            case _Bytes():
                row.append(_bytes_slot(column, size))
                tails.append(_bytes_tail(column))
                size = _after(column, size)
            case _Number(slot=slot, width=width, tail=None):
                row += [_little_endian(slot, width), _zeros(8 - width)]
            case _Number(slot=slot, tail=tail):
                assert tail is not None
                row += [_little_endian(slot, 4), _small_number(size)]
                tails.append(_little_endian(tail, 8))
                size = size + 8
    return sql.hash(sql.concat(*row, *tails))


def _ending_with(row: Sequence[Column], column: _Bytes, offset: Column | int) -> Column:
    """A row whose only bytes column comes last: its slot is directly followed by its tail."""
    long = sql.concat(*row, *_long_slot(column, offset), *_long_tail(column))
    whole = sql.when(column.is_short, sql.concat(*row, *_short_slot(column))).otherwise(long)
    return sql.coalesce(whole, sql.concat(*row, _zeros(8))) if column.nullable else whole


def _zeros(count: int) -> Column:
    return sql.lit(bytes(count))


# The end of a slot of 0 to 7 bytes, each in a cell of 8 bytes: zeros and the marked length.
_SLOT_ENDS: Final = b"".join(bytes(7 - n) + bytes([0x80 | n]) + bytes(n) for n in range(8))
_ALL_BYTES: Final = bytes(range(256))
_SMALL_NUMBERS: Final = b"".join(n.to_bytes(4, "little") for n in range(256))


def _bytes_slot(column: _Bytes, offset: Column | int) -> Column:
    short, long = sql.concat(*_short_slot(column)), sql.concat(*_long_slot(column, offset))
    slot = sql.when(column.is_short, short).otherwise(long)
    return sql.coalesce(slot, _zeros(8)) if column.nullable else slot


def _bytes_tail(column: _Bytes) -> Column:
    tail = sql.when(column.is_short, _zeros(0)).otherwise(sql.concat(*_long_tail(column)))
    return sql.coalesce(tail, _zeros(0)) if column.nullable else tail


def _short_slot(column: _Bytes) -> tuple[Column, ...]:
    length = column.length
    end = sql.substring(sql.lit(_SLOT_ENDS), length * 8 + 1, sql.lit(8) - length)
    return column.value, end


def _long_slot(column: _Bytes, offset: Column | int) -> tuple[Column, ...]:
    return _small_number(column.length), _small_number(offset)


def _long_tail(column: _Bytes) -> tuple[Column, ...]:
    fill = sql.substring(_zeros(8), sql.lit(1), (-column.length).bitwiseAND(7))
    return column.value, fill


def _after(column: _Bytes, offset: Column | int) -> Column:
    padded = (column.length + 7).bitwiseAND(-8)
    size = sql.when(column.is_short, 0).otherwise(padded)
    return _or_zero(size, column.nullable) + offset


def _small_number(number: Column | int) -> Column:
    """The four bytes of a number that is usually small."""
    if isinstance(number, int):
        return sql.lit(number.to_bytes(4, "little"))
    cell = sql.substring(sql.lit(_SMALL_NUMBERS), number * 4 + 1, sql.lit(4))
    return sql.when(number < 256, cell).otherwise(_little_endian(number, 4))


def _little_endian(number: Column, width: int) -> Column:
    """The low bytes of a number, the lowest first."""
    number = number.cast("bigint")
    if width == 1:
        return sql.substring(sql.lit(_ALL_BYTES), _byte(number, 0).cast("int") + 1, sql.lit(1))
    if width == 8:
        high = sql.shiftrightunsigned(number, 56)
        return sql.concat(_little_endian(number, 7), _little_endian(high, 1))
    turned = [sql.shiftleft(_byte(number, at), 8 * (width - 1 - at)) for at in range(width)]
    # The bit above them keeps leading zeros, and is cut off again.
    text = sql.hex(reduce(Column.bitwiseOR, turned, _long(1 << 8 * width)))
    return sql.substring(sql.unhex(text), sql.lit(2), sql.lit(width))


def _byte(number: Column, at: int) -> Column:
    return sql.shiftrightunsigned(number, 8 * at).bitwiseAND(_long(0xFF))
