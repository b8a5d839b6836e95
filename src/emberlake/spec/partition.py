"""Partition values as text and as folders: ``dt=2024-01-15/region=eu``. Spec: "Partition path".

Folders carry text only; the true values are in manifests. ``legacy_name`` (the default of
tables) writes internal values, such as the number of a day; otherwise values are readable.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np

from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.binary_row import EXACT
from emberlake.spec.values import Value
from emberlake.types import AtomicType, DataField, TypeRoot

_ESCAPED: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
# White space as Java defines it: Unicode separators except those that forbid a line break.
_BLANK: Final = re.compile(
    "[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]*"
)
_NANOS_PER_SECOND: Final = 1_000_000_000
_SECONDS_PER_DAY: Final = 86_400


def partition_path(
    fields: Sequence[DataField], values: Sequence[Value], *, default_name: str, legacy_name: bool
) -> str:
    """The folder of a partition below the table: ``k=v/k2=v2``, empty when unpartitioned."""
    spec = partition_spec(fields, values, default_name=default_name, legacy_name=legacy_name)
    return "/".join(f"{escape_path_name(k)}={escape_path_name(v)}" for k, v in spec.items())


def partition_spec(
    fields: Sequence[DataField], values: Sequence[Value], *, default_name: str, legacy_name: bool
) -> dict[str, str]:
    """The text of every partition value; null and blank values get the default name."""
    if len(fields) != len(values):
        raise InvalidInput(f"{len(values)} values do not make a partition of {len(fields)} keys")
    return {
        field.name: default_name
        if value is None
        else _text(field, value, legacy_name) or default_name
        for field, value in zip(fields, values, strict=True)
    }


def escape_path_name(name: str) -> str:
    """Escape the characters that have a meaning in file systems and paths."""
    if not name:
        raise InvalidInput("an empty text cannot be part of a partition path")
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", name)


def _text(field: DataField, value: Any, legacy_name: bool) -> str:  # noqa: FBT001
    """The text of a value that is not null; empty when it is blank."""
    data_type = _atomic(field)
    match data_type.root:
        case TypeRoot.CHAR | TypeRoot.VARCHAR:
            return "" if _BLANK.fullmatch(value) else str(value)
        case TypeRoot.BOOLEAN:
            return "true" if value else "false"
        case TypeRoot.TINYINT | TypeRoot.SMALLINT | TypeRoot.INT | TypeRoot.BIGINT:
            return str(value)
        case TypeRoot.DATE:
            return str(value) if legacy_name else _format_day(value)
        case TypeRoot.TIME:
            return str(value) if legacy_name else _format_time(value, data_type.precision)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            return _format_timestamp(field, value, legacy_name)
        case TypeRoot.DECIMAL:
            return _format_decimal(value, data_type.scale)
        case TypeRoot.FLOAT:
            return _format_number(np.float32(value))
        case TypeRoot.DOUBLE:
            return _format_number(np.float64(value))
        case _:
            raise _refusal(field)


def _atomic(field: DataField) -> AtomicType:
    if not isinstance(field.type, AtomicType):
        raise _refusal(field)
    return field.type


def _refusal(field: DataField) -> Unsupported:
    return Unsupported(f"partition key {field.name} of type {field.type}: it has no text form")


def _format_day(day: int) -> str:
    """A day since the epoch as ``2024-01-15``, in the Gregorian calendar even before its start."""
    # Years that start on March 1 end with the leap day, and 400 years always have as many days.
    era, day_of_era = divmod(day + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return (
        f"{sign}{abs(year):04d}-{month:02d}-{day_of_year - (153 * shifted_month + 2) // 5 + 1:02d}"
    )


def _format_time(millis: int, precision: int) -> str:
    text = _format_clock(millis // 1000)
    if precision == 0:
        return text
    # At least one digit, and no trailing zeros after it.
    return f"{text}.{f'{millis % 1000:03d}'[:precision].rstrip('0') or '0'}"


def _format_clock(second_of_day: int) -> str:
    minutes, seconds = divmod(second_of_day, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"


def _format_timestamp(field: DataField, nanos: int, legacy_name: bool) -> str:  # noqa: FBT001
    data_type = _atomic(field)
    seconds, fraction = divmod(nanos, _NANOS_PER_SECOND)
    day, second_of_day = divmod(seconds, _SECONDS_PER_DAY)
    if legacy_name:
        return f"{_format_day(day)}T{_iso_clock(second_of_day, fraction)}"
    if data_type.root is TypeRoot.TIMESTAMP_LTZ:
        raise Unsupported(
            f"partition key {field.name} of type {field.type}: with partition.legacy-name=false "
            "its folders depend on the time zone of the writer. Use partition.legacy-name=true"
        )
    digits = f"{fraction:09d}"
    digits = digits[: data_type.precision] + digits[data_type.precision :].rstrip("0")
    return f"{_format_day(day)} {_format_clock(second_of_day)}" + (f".{digits}" if digits else "")


def _iso_clock(second_of_day: int, nanos: int) -> str:
    """The shortest ISO form: seconds only when needed, fractions in groups of three digits."""
    clock = _format_clock(second_of_day)
    if not nanos:
        return clock.removesuffix(":00")
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{clock}.{digits}"


def _format_decimal(value: Decimal, scale: int) -> str:
    return f"{value.quantize(Decimal(1).scaleb(-scale), context=EXACT):f}"


def _format_number(value: np.floating[Any]) -> str:
    """The shortest text that reads back as the same number, as Java writes it."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, trim="0")
    mantissa, _, exponent = np.format_float_scientific(value, unique=True, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"
