"""Rows one at a time: collected as Python values, passed on one column at a time."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import DataMismatch
from emberlake.options import ROWKIND_FIELD
from emberlake.spec.generic_row import GenericRow
from emberlake.spec.key_value import RowKind
from emberlake.spec.schema import TableSchema
from emberlake.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType, TypeRoot
from emberlake.wire import CommitMessage
from emberlake.write.row_kinds import ROW_KIND_COLUMN
from emberlake.write.rows_writer import RowsWriter

# Rows are passed on once there are this many, or their text and bytes are this long.
_MAX_ROWS: Final = 65_536
_MAX_BYTES: Final = 16 * MEBIBYTE


class RowBuffer:
    """Collects rows for a writer, in order with everything else that is written to it."""

    def __init__(self, writer: RowsWriter, schema: TableSchema) -> None:
        self._writer = writer
        self._schema = schema
        self._rows: list[Sequence[Any]] = []
        self._kinds: list[str | None] = []
        self._bytes = 0
        options = schema.options
        self._takes_kinds = schema.profile.has_keys and options.value(ROWKIND_FIELD) is None
        self._names: tuple[str, ...] = ()  # of the columns of the collected rows

    def add(self, row: object, row_kind: str | None = None) -> None:
        """Add a row."""
        names, values, own_kind = self._take_apart(row)
        kind = row_kind or own_kind
        # Some rows may have their kind in a column.
        if self._rows and (names != self._names or (kind is None) != (self._kinds[0] is None)):
            self.flush()
        if not self._rows:
            self._check(names)
        if len(names) != len(values):
            raise DataMismatch(f"a row has {len(values)} values for the columns {', '.join(names)}")
        self._names = names
        self._rows.append(values)
        self._kinds.append(kind)
        self._bytes += sum(len(v) for v in values if isinstance(v, str | bytes | bytearray))
        if len(self._rows) >= _MAX_ROWS or self._bytes >= _MAX_BYTES:
            self.flush()

    def flush(self) -> None:
        """Pass on the collected rows."""
        rows, kinds = self._rows, self._kinds
        self._clear()
        if not rows:
            return
        try:
            table = self._as_table(rows)
            if len(set(kinds)) == 1:
                self._writer.write(table, kinds[0])
            else:
                self._writer.write(table.append_column(ROW_KIND_COLUMN, pa.array(kinds)))
        except BaseException:  # the rows are gone; nothing may be committed without them
            self._writer.abort()
            raise

    def _clear(self) -> None:
        self._rows, self._kinds, self._bytes = [], [], 0

    # --- a writer of whatever comes, in order -----------------------------------------------------

    @property
    def write_columns(self) -> tuple[str, ...] | None:
        return self._writer.write_columns

    @property
    def has_rows(self) -> bool:
        return bool(self._rows) or self._writer.has_rows

    def set_write_columns(self, columns: Iterable[str]) -> None:
        self.flush()
        self._writer.set_write_columns(columns)

    def write(self, data: object, row_kind: str | None = None) -> None:
        self.flush()
        self._writer.write(data, row_kind)

    def prepare(self) -> list[CommitMessage]:
        self.flush()
        return self._writer.prepare()

    def abort(self) -> None:
        self._clear()
        self._writer.abort()

    def close(self) -> None:
        self._clear()
        self._writer.close()

    # --- rows -------------------------------------------------------------------------------------

    def _take_apart(self, row: object) -> tuple[tuple[str, ...], Sequence[Any], str | None]:
        """The names of a row's columns, its values, and its kind if it has one."""
        if isinstance(row, Mapping):
            return tuple(row), tuple(row.values()), None
        if isinstance(row, GenericRow):
            kind = row.row_kind
            is_given = self._takes_kinds or kind is not RowKind.INSERT
            names = tuple(f.name for f in row.fields)
            return names, row.values, kind.symbol if is_given else None
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise DataMismatch(f"a row is a dict, a tuple or a GenericRow, not {row!r}")
        return tuple(self._writer.write_columns or self._schema.field_names), row, None

    def _check(self, names: tuple[str, ...]) -> None:
        known = self._schema.field_by_name
        unknown = [name for name in names if name not in known]
        if unknown:
            raise DataMismatch(f"a row has columns that are not in the table: {', '.join(unknown)}")
        expected = self._writer.write_columns or self._schema.field_names
        missing = [n for n in expected if n not in names and not known[n].type.nullable]
        if missing:
            raise DataMismatch(f"a row lacks the NOT NULL columns {', '.join(missing)}")

    def _as_table(self, rows: Sequence[Sequence[Any]]) -> pa.Table:
        fields = [self._schema.field_by_name[name] for name in self._names]
        columns = []
        for field, values in zip(fields, zip(*rows, strict=True), strict=True):
            try:
                columns.append(_as_array(field.type, values))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise DataMismatch(f"column {field.name} ({field.type}): {error}") from error
        return pa.Table.from_arrays(columns, list(self._names))


def _as_array(data_type: DataType, values: Sequence[Any]) -> pa.Array:
    """Values in the type that Python gives them: Arrow silently truncates what does not fit a type.

    Alignment finds out later whether they fit the column.
    """
    match data_type:
        case RowType(fields=fields):
            return _structs(fields, values)
        case ArrayType(element=element):
            offsets, mask = _extents(values)
            inner = _as_array(element, [item for value in values for item in value or ()])
            return pa.ListArray.from_arrays(offsets, inner, mask=mask)
        case MapType(key=key, value=item):
            lists = [list(v.items()) if isinstance(v, Mapping) else v for v in values]
            offsets, mask = _extents(lists)
            pairs = [pair for value in lists for pair in value or ()]
            keys = _as_array(key, [pair[0] for pair in pairs])
            items = _as_array(item, [pair[1] for pair in pairs])
            return pa.MapArray.from_arrays(offsets, keys, items, mask=mask)
        case AtomicType(root=TypeRoot.FLOAT):
            return pa.array(values, pa.float32())  # Python's floats are doubles
        case _:
            _check_zones(values)
            return pa.array(values)


def _check_zones(values: Sequence[Any]) -> None:
    """Refuse times with and without a zone in one column: Arrow would mix them up."""
    zones = {value.tzinfo is not None for value in values if isinstance(value, datetime)}
    if len(zones) > 1:
        raise ValueError("some times have a time zone and some have none")


def _structs(fields: Sequence[DataField], values: Sequence[Any]) -> pa.Array:
    names = [f.name for f in fields]
    for value in values:
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"a ROW is a dict, not {value!r}")
        if value is not None and (unknown := value.keys() - set(names)):
            raise ValueError(f"no such fields: {', '.join(map(str, unknown))}")
    children = [
        _as_array(f.type, [None if value is None else value.get(f.name) for value in values])
        for f in fields
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, names, mask=mask)


def _extents(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
    """The offsets of each value among the items of all, and which values are null."""
    sizes = [0 if value is None else len(value) for value in values]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return pa.array(offsets, pa.int32()), pa.array([v is None for v in values], pa.bool_())
