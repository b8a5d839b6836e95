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
_VERSION: Final = 1
_SCHEMA: Final = 2
_NUM_ROWS: Final = 3
_ROW_GROUPS: Final = 4
# SchemaElement
_ELEMENT_TYPE: Final = 1
_ELEMENT_LENGTH: Final = 2
_ELEMENT_NAME: Final = 4
_ELEMENT_CHILDREN: Final = 5
_ELEMENT_CONVERTED: Final = 6
_ELEMENT_ID: Final = 9
_ELEMENT_LOGICAL: Final = 10
# RowGroup
_COLUMNS: Final = 1
_TOTAL_BYTES: Final = 2
_GROUP_ROWS: Final = 3
_GROUP_OFFSET: Final = 5
_GROUP_COMPRESSED: Final = 6
_ORDINAL: Final = 7
# ColumnChunk
_CHUNK_FILE: Final = 1
_CHUNK_OFFSET: Final = 2
_META_DATA: Final = 3
_CRYPTO: Final = 8
_CHUNK_INDEXES: Final = (4, 5, 6, 7)  # of pages, elsewhere in the file
# ColumnMetaData
_COLUMN_TYPE: Final = 1
_TOTAL_UNCOMPRESSED: Final = 6
_TOTAL_COMPRESSED: Final = 7
_DATA_PAGE: Final = 9
_INDEX_PAGE: Final = 10
_DICTIONARY_PAGE: Final = 11
_STATISTICS: Final = 12
_PAGE_ENCODINGS: Final = 13
_BLOOM_FILTER: Final = (14, 15)  # elsewhere in the file
# Statistics
_NULL_COUNT: Final = 3
_MAX_VALUE: Final = 5
_MIN_VALUE: Final = 6
# PageEncodingStats
_PAGE_TYPE: Final = 1
_PAGE_ENCODING: Final = 2
_DATA_PAGES: Final = frozenset({0, 3})
_DICTIONARY_ENCODINGS: Final = frozenset({2, 8})
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

    def with_statistics(self, null_count: int, bounds: tuple[bytes, bytes] | None) -> "Chunk":
        """The chunk with statistics; the bounds are as plain values are stored, None: unknown."""
        statistics: Struct = {_NULL_COUNT: (thrift.I64, null_count)}
        if bounds is not None:
            low, high = bounds
            statistics |= {_MAX_VALUE: (thrift.BINARY, high), _MIN_VALUE: (thrift.BINARY, low)}
        meta = {**self.column[_META_DATA][1], _STATISTICS: (thrift.STRUCT, statistics)}
        return Chunk(self.data, {**self.column, _META_DATA: (thrift.STRUCT, meta)})


def _moved(column: Struct, offset: int) -> Struct:
    """The ColumnChunk of a chunk whose bytes come this many bytes later in the file."""
    meta = dict(column[_META_DATA][1])
    for page in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
        if page in meta:
            meta[page] = (thrift.I64, meta[page][1] + offset)
    return {**column, _CHUNK_OFFSET: (thrift.I64, 0), _META_DATA: (thrift.STRUCT, meta)}


def chunks_of(file: pa.Buffer) -> list[Chunk]:
    """The column chunks of a Parquet file in memory that has one row group."""
    (group,) = _footer_of(file)[_ROW_GROUPS][1][1]
    return [_cut(file, column) for column in group[_COLUMNS][1][1]]


def encode_row_group(chunks: Sequence[Struct], row_count: int, offset: int, ordinal: int) -> bytes:
    """The bytes of the RowGroup of chunks whose bytes follow each other from ``offset``."""
    columns = []
    compressed = uncompressed = 0
    for chunk in chunks:
        columns.append(_moved(chunk, offset + compressed))
        compressed += chunk[_META_DATA][1][_TOTAL_COMPRESSED][1]
        uncompressed += chunk[_META_DATA][1][_TOTAL_UNCOMPRESSED][1]
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
    layouts: dict[str, "Layout"]

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
            {name: _layout(found) for name, found in _by_column(elements).items()},
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


# How a column is stored: its elements of the schema, without their ids.
Layout = tuple[bytes, ...]


class StoredChunks:
    """Where the encoded column chunks of a file are, for those who copy them.

    Args:
        footer: The bytes of the footer.

    Raises:
        ValueError: it is no footer.
    """

    def __init__(self, footer: bytes) -> None:
        metadata = thrift.decode_struct(footer)
        self._root, *elements = metadata[_SCHEMA][1][1]
        self._version: int = metadata[_VERSION][1]
        self._elements = by_column = _by_column(elements)
        self.layouts: Final = {name: _layout(found) for name, found in by_column.items()}
        self._groups: list[Struct] = metadata[_ROW_GROUPS][1][1]
        self.row_counts: Final = [int(group[_GROUP_ROWS][1]) for group in self._groups]
        # The leaves of all columns follow each other in every row group.
        self._leaves: dict[str, slice] = {}
        start = 0
        for name, found in by_column.items():
            count = sum(_ELEMENT_TYPE in element for element in found)
            self._leaves[name] = slice(start, start + count)
            start += count

    def columns(self, group: int, name: str) -> list[Struct] | None:
        """The chunks of a column in a row group; None if they cannot be copied."""
        found: list[Struct] = self._groups[group][_COLUMNS][1][1][self._leaves[name]]
        is_plain = all(_CRYPTO not in c and _CHUNK_FILE not in c and _META_DATA in c for c in found)
        return [_alone(column) for column in found] if is_plain else None

    def is_indexed(self, group: int, name: str) -> bool:
        """Whether a column has one chunk, whose values are all places in a dictionary."""
        found = self._groups[group][_COLUMNS][1][1][self._leaves[name]]
        if len(found) != 1 or _META_DATA not in found[0]:
            return False
        known = found[0][_META_DATA][1].get(_PAGE_ENCODINGS, (thrift.LIST, (thrift.STRUCT, [])))
        pages = [page for page in known[1][1] if page[_PAGE_TYPE][1] in _DATA_PAGES]
        return bool(pages) and all(
            page[_PAGE_ENCODING][1] in _DICTIONARY_ENCODINGS for page in pages
        )

    def file_of(self, group: int, name: str, chunks: Sequence[Chunk]) -> bytes:
        """A file that has the chunks of one column of a row group, and nothing else."""
        row_count = self.row_counts[group]
        footer: Struct = {
            _VERSION: (thrift.I32, self._version),
            _SCHEMA: (
                thrift.LIST,
                (
                    thrift.STRUCT,
                    [{**self._root, _ELEMENT_CHILDREN: (thrift.I32, 1)}, *self._elements[name]],
                ),
            ),
            _NUM_ROWS: (thrift.I64, row_count),
        }
        columns = encode_row_group([c.column for c in chunks], row_count, len(MAGIC), 0)
        end = thrift.encode_structs(_ROW_GROUPS, [columns], after=_NUM_ROWS) + thrift.STOP
        return b"".join(
            [MAGIC, *(c.data for c in chunks), _with_tail(thrift.encode_fields(footer) + end)]
        )

    def null_count(self, group: int, name: str) -> int | None:
        """How many values of a column that has one chunk are null, if that is known."""
        found = self._groups[group][_COLUMNS][1][1][self._leaves[name]]
        if len(found) != 1 or _META_DATA not in found[0]:
            return None
        statistics = found[0][_META_DATA][1].get(_STATISTICS, (thrift.STRUCT, {}))[1]
        return int(statistics[_NULL_COUNT][1]) if _NULL_COUNT in statistics else None


def chunk_range(column: Struct) -> tuple[int, int]:
    """Where the bytes of a chunk begin, and how many there are."""
    meta = column[_META_DATA][1]
    pages = [meta[page][1] for page in (_DATA_PAGE, _DICTIONARY_PAGE) if page in meta]
    # Writers may put 0 for "no dictionary"; nothing starts before the magic.
    return min(page for page in pages if page >= len(MAGIC)), meta[_TOTAL_COMPRESSED][1]


def chunk_of(data: pa.Buffer, column: Struct) -> Chunk:
    """A chunk with its bytes, whose metadata has the offsets of the file that it was in."""
    return Chunk(data, _moved(column, -chunk_range(column)[0]))


def _alone(column: Struct) -> Struct:
    """A chunk without what refers to other parts of its file."""
    meta = {k: v for k, v in column[_META_DATA][1].items() if k not in _BLOOM_FILTER}
    for page in (_INDEX_PAGE, _DICTIONARY_PAGE):
        if page in meta and meta[page][1] < len(MAGIC):  # how some writers say that there is none
            del meta[page]
    kept = {k: v for k, v in column.items() if k not in _CHUNK_INDEXES}
    return {**kept, _META_DATA: (thrift.STRUCT, meta)}


def _by_column(elements: Sequence[Struct]) -> dict[str, list[Struct]]:
    """The elements of each top-level column; those of its children follow its own."""
    found: dict[str, list[Struct]] = {}
    at = 0
    while at < len(elements):
        start, left = at, 1
        while left:
            left += elements[at].get(_ELEMENT_CHILDREN, (thrift.I32, 0))[1] - 1
            at += 1
        name = elements[start][_ELEMENT_NAME][1].decode("utf-8", "replace")
        found[name] = list(elements[start:at])
    return found


def _layout(elements: Sequence[Struct]) -> Layout:
    return tuple(
        thrift.encode_struct({k: v for k, v in element.items() if k != _ELEMENT_ID})
        for element in elements
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
    return chunk_of(file.slice(*chunk_range(column)), column)
