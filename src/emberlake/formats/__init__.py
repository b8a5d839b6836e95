"""Data file formats. Parquet, ORC and Avro behind one writer and one reader."""

from collections.abc import Callable, Mapping
from typing import Final

from emberlake.errors import Unsupported
from emberlake.formats.avro import AvroReader, AvroWriter
from emberlake.formats.file_format import FileReader, FileWriter
from emberlake.formats.orc import OrcReader, OrcWriter
from emberlake.formats.parquet import ParquetReader
from emberlake.formats.parquet_writer import ParquetWriter
from emberlake.io.storage import Storage
from emberlake.options import TableOptions
from emberlake.types import DataField

__all__ = ["FileReader", "FileWriter", "format_of", "open_reader", "open_writer"]

_WRITERS: Final[Mapping[str, Callable[..., FileWriter]]] = {
    "parquet": ParquetWriter,
    "orc": OrcWriter,
    "avro": AvroWriter,
}
_READERS: Final[Mapping[str, Callable[..., FileReader]]] = {
    "parquet": ParquetReader,
    "orc": OrcReader,
    "avro": AvroReader,
}


def format_of(file_name: str) -> str:
    """The format of a data file, by its last extension."""
    return _known(file_name.rpartition(".")[2].lower(), file_name)


def open_writer(
    storage: Storage,
    path: str,
    fields: tuple[DataField, ...],
    options: TableOptions,
    format: str,  # noqa: A002
) -> FileWriter:
    """A writer for a new file with these columns; compression comes from the options."""
    return _WRITERS[_known(format, path)](storage, path, fields, options)


def open_reader(
    storage: Storage,
    path: str,
    fields: tuple[DataField, ...],
    format: str,  # noqa: A002
    file_size: int | None = None,
) -> FileReader:
    """A reader of a file that was written with these columns.

    ``file_size`` is what the manifest says: a file of another size is corrupt.
    """
    return _READERS[_known(format, path)](storage, path, fields, file_size)


def _known(name: str, path: str) -> str:
    if name not in _READERS:
        raise Unsupported(
            f"{path}: emberlake has no data file format {name!r}; it has {', '.join(_READERS)}"
        )
    return name
