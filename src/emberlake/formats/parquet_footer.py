"""Take Parquet footers apart and put them together.

Columns are encoded in parallel, each group into a small Parquet file in memory. This module moves
their column chunks into one file: bytes are copied as they are, only the offsets in the footer
change. Numbers are the field ids of Parquet's Thrift definition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from emberlake.formats import thrift
from emberlake.formats.thrift import Struct

MAGIC: Final = b"PAR1"
TAIL_BYTES: Final = 8  # length of the footer, then the magic

# FileMetaData
_SCHEMA: Final = 2
_NUM_ROWS: Final = 3
_ROW_GROUPS: Final = 4
# SchemaElement
_ELEMENT_TYPE: Final = 1
_ELEMENT_LENGTH: Final = 2
_ELEMENT_NAME: Final = 4
_ELEMENT_CONVERTED: Final = 6
_ELEMENT_LOGICAL: Final = 10
# RowGroup
_COLUMNS: Final = 1
_TOTAL_BYTES: Final = 2
_GROUP_ROWS: Final = 3
_GROUP_OFFSET: Final = 5
_GROUP_COMPRESSED: Final = 6
_ORDINAL: Final = 7
# ColumnChunk
_CHUNK_OFFSET: Final = 2
_META_DATA: Final = 3
# ColumnMetaData
_COLUMN_TYPE: Final = 1
_TOTAL_UNCOMPRESSED: Final = 6
_TOTAL_COMPRESSED: Final = 7
_DATA_PAGE: Final = 9
_INDEX_PAGE: Final = 10
_DICTIONARY_PAGE: Final = 11
_STATISTICS: Final = 12
# Statistics
_NULL_COUNT: Final = 3
# Type
_INT96: Final = (thrift.I32, 3)
_FIXED: Final = (thrift.I32, 7)
_INT96_BYTES: Final = (thrift.I32, 12)

_ROOT_NAME: Final = b"paimon_schema"
_LAST_ORDINAL: Final = 32_767  # ordinals have 16 bits; they are optional, so later groups have none


@dataclass(frozen=True)
class Chunk:
    """One encoded column chunk: its bytes, and its metadata with offsets from its first byte."""

    data: pa.Buffer
    column: Struct

    def as_int96(self) -> "Chunk":
        """The chunk of a column of 12 bytes, declared as INT96."""
        meta = dict(self.column[_META_DATA][1])
        meta[_COLUMN_TYPE] = _INT96
        # INT96 has no order: bounds of its bytes mean nothing.
        statistics = meta.pop(_STATISTICS, (thrift.STRUCT, {}))[1]
        if _NULL_COUNT in statistics:
            meta[_STATISTICS] = (thrift.STRUCT, {_NULL_COUNT: statistics[_NULL_COUNT]})
        return Chunk(self.data, {**self.column, _META_DATA: (thrift.STRUCT, meta)})

    def placed(self, offset: int) -> Struct:
        """The ColumnChunk of this chunk when its bytes start at ``offset``."""
        meta = dict(self.column[_META_DATA][1])
        for page in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
            if page in meta:
                meta[page] = (thrift.I64, meta[page][1] + offset)
        return {
            **self.column,
            _CHUNK_OFFSET: (thrift.I64, 0),
            _META_DATA: (thrift.STRUCT, meta),
        }


def chunks_of(file: pa.Buffer) -> list[Chunk]:
    """The column chunks of a Parquet file in memory that has one row group."""
    (group,) = _footer_of(file)[_ROW_GROUPS][1][1]
    return [_cut(file, column) for column in group[_COLUMNS][1][1]]


def encode_row_group(chunks: Sequence[Chunk], row_count: int, offset: int, ordinal: int) -> bytes:
    """The bytes of the RowGroup of chunks whose bytes follow each other from ``offset``."""
    columns = []
    compressed = uncompressed = 0
    for chunk in chunks:
        columns.append(chunk.placed(offset + compressed))
        compressed += chunk.data.size
        uncompressed += chunk.column[_META_DATA][1][_TOTAL_UNCOMPRESSED][1]
    group: Struct = {
        _COLUMNS: (thrift.LIST, (thrift.STRUCT, columns)),
        _TOTAL_BYTES: (thrift.I64, uncompressed),
        _GROUP_ROWS: (thrift.I64, row_count),
        _GROUP_OFFSET: (thrift.I64, offset),
        _GROUP_COMPRESSED: (thrift.I64, compressed),
    }
    if ordinal <= _LAST_ORDINAL:
        group[_ORDINAL] = (thrift.I16, ordinal)
    return thrift.encode_struct(group)


@dataclass(frozen=True)
class FooterFrame:
    """What footers of files with the same columns share: everything except the row groups."""

    before: bytes
    after: bytes

    @staticmethod
    def of(empty_file: pa.Buffer) -> "FooterFrame":
        """The frame of a Parquet file in memory without rows; plain 12 bytes become INT96."""
        footer = _footer_of(empty_file)
        root, *elements = footer[_SCHEMA][1][1]
        root[_ELEMENT_NAME] = (thrift.BINARY, _ROOT_NAME)
        for element in elements:
            if _is_plain_12_bytes(element):
                element[_ELEMENT_TYPE] = _INT96
                del element[_ELEMENT_LENGTH]
        before = {key: value for key, value in footer.items() if key < _NUM_ROWS}
        after = {key: value for key, value in footer.items() if key > _ROW_GROUPS}
        return FooterFrame(
            thrift.encode_fields(before),
            thrift.encode_fields(after, after=_ROW_GROUPS) + thrift.STOP,
        )

    def encode(self, row_count: int, row_groups: Sequence[bytes]) -> bytes:
        """The end of a file with these row groups."""
        rows: Struct = {_NUM_ROWS: (thrift.I64, row_count)}
        return _with_tail(
            self.before
            + thrift.encode_fields(rows, after=_SCHEMA)
            + thrift.encode_structs(_ROW_GROUPS, row_groups, after=_NUM_ROWS)
            + self.after
        )


def int96_as_bytes(footer: bytes) -> bytes:
    """A file without rows whose footer says that INT96 columns are fixed bytes, as they are stored.

    Arrow reads INT96 as 64 bits of nanoseconds and lets larger values wrap around; as bytes nothing
    is lost.
    """
    metadata = thrift.decode_struct(footer)
    for element in metadata[_SCHEMA][1][1]:
        if element.get(_ELEMENT_TYPE) == _INT96:
            element[_ELEMENT_TYPE] = _FIXED
            element[_ELEMENT_LENGTH] = _INT96_BYTES
    for group in metadata[_ROW_GROUPS][1][1]:
        for column in group[_COLUMNS][1][1]:
            meta = column[_META_DATA][1]
            if meta[_COLUMN_TYPE] == _INT96:
                meta[_COLUMN_TYPE] = _FIXED
                meta.pop(_STATISTICS, None)
    return MAGIC + _with_tail(thrift.encode_struct(metadata))


def _is_plain_12_bytes(element: Struct) -> bool:
    return (
        element.get(_ELEMENT_TYPE) == _FIXED
        and element[_ELEMENT_LENGTH] == _INT96_BYTES
        and _ELEMENT_CONVERTED not in element  # decimals are annotated
        and _ELEMENT_LOGICAL not in element
    )


def _with_tail(footer: bytes) -> bytes:
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def _footer_of(file: pa.Buffer) -> Struct:
    size = int.from_bytes(file[file.size - TAIL_BYTES :].to_pybytes()[:4], "little")
    return thrift.decode_struct(
        file[file.size - TAIL_BYTES - size : file.size - TAIL_BYTES].to_pybytes()
    )


def _cut(file: pa.Buffer, column: Struct) -> Chunk:
    meta = column[_META_DATA][1]
    pages = [meta[page][1] for page in (_DATA_PAGE, _DICTIONARY_PAGE) if page in meta]
    # Writers may put 0 for "no dictionary"; nothing starts before the magic.
    start = min(page for page in pages if page >= len(MAGIC))
    chunk = Chunk(file.slice(start, meta[_TOTAL_COMPRESSED][1]), column)
    return Chunk(chunk.data, chunk.placed(-start))
