"""Text as values of other types, where rows that do not fit are kept apart.

Writes cast nothing that could fail for some rows: text in an INT column is refused as a whole.
Where bad rows are allowed, each text is read as a value of the column, by the rules of SQL's CAST;
texts that cannot be read are bad cells.

``read_texts(data, schema)`` is for data in this process; Spark reads texts by ``try_cast``.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.names import with_article
from emberlake.errors import DataMismatch
from emberlake.expressions.casts import cast_ansi
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField, DataType, TypeRoot, arrow_type
from emberlake.write.bad_rows import BadCells

_STRING: Final = AtomicType("STRING")
_SHOWN: Final = 40  # characters of a text in a reason
# Not TIMESTAMP_LTZ: text without a zone could mean any instant.
_ROOTS: Final = frozenset(
    {
        TypeRoot.BOOLEAN,
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
        TypeRoot.DATE,
        TypeRoot.TIMESTAMP,
    }
)


def is_read_from_text(data_type: DataType) -> bool:
    """Whether text can be read as values of the type."""
    return isinstance(data_type, AtomicType) and data_type.root in _ROOTS


def read_texts(data: pa.Table, schema: TableSchema) -> tuple[pa.Table, list[BadCells]]:
    """The data with text read as the table's values, and the texts that cannot be read."""
    found: list[BadCells] = []
    for field in schema.fields:
        at = data.schema.get_field_index(field.name)
        if at < 0 or not _is_text(data.schema.field(at).type) or not is_read_from_text(field.type):
            continue
        column, bad = _read_column(data.column(at), field)
        data = data.set_column(at, field.name, column)
        found += bad
    return data, found


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _read_column(
    column: pa.ChunkedArray, field: DataField
) -> tuple[pa.ChunkedArray, list[BadCells]]:
    wanted = field.type.with_nullable(True)
    assert isinstance(wanted, AtomicType)
    done: list[pa.Array] = []
    found: list[BadCells] = []
    start = 0
    for chunk in column.chunks:
        texts = chunk.cast(pa.string())
        parts = list(_read(texts, wanted))
        done += [pa.nulls(n, arrow_type(wanted)) if p is None else p for p, n in parts]
        mask = np.repeat([p is None for p, _ in parts], [n for _, n in parts])
        if mask.any():
            shown = pc.utf8_slice_codeunits(texts.filter(pa.array(mask)), 0, _SHOWN)
            why = pc.binary_join_element_wise(
                "'", shown, f"' is not {with_article(str(wanted))}", ""
            )
            found.append(BadCells(field.name, np.flatnonzero(mask) + start, why))
        start += len(chunk)
    return pa.chunked_array(done, arrow_type(wanted)), found


def _read(texts: pa.Array, wanted: AtomicType) -> Iterator[tuple[pa.Array | None, int]]:
    """Values in pieces: None for a text that cannot be read; with the number of texts."""
    try:
        yield cast_ansi(texts, _STRING, wanted), len(texts)
    except (DataMismatch, pa.ArrowInvalid):
        if len(texts) == 1:
            yield None, 1
            return
        middle = len(texts) // 2
        yield from _read(texts.slice(0, middle), wanted)
        yield from _read(texts.slice(middle), wanted)
