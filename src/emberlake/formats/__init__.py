"""Data file formats behind one writer and one reader.

A format is a module of this package that is named after the format and has a ``Writer`` and a
``Reader``; ``FILE_FORMATS`` lists them. A module is loaded when the first file of its format is
opened.
"""

import importlib
from typing import Any

from emberlake.errors import Unsupported
from emberlake.formats.file_format import FileReader, FileWriter
from emberlake.io.storage import Storage
from emberlake.options import TableOptions
from emberlake.spec.support import FILE_FORMATS
from emberlake.types import DataField

__all__ = ["FileReader", "FileWriter", "format_of", "open_reader", "open_writer"]


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
    writer: FileWriter = _module(format, path).Writer(storage, path, fields, options)
    return writer


def open_reader(
    storage: Storage,
    path: str,
    fields: tuple[DataField, ...],
    format: str,  # noqa: A002
    file_size: int | None = None,
    *,
    verifies_pages: bool = False,
) -> FileReader:
    """A reader for a file that was written with these columns.

    ``file_size`` is the size in the manifest: a file of another size is corrupt. With
    ``verifies_pages`` so are pages that differ from their checksums, in formats that have some.
    """
    more = {"verifies_pages": True} if verifies_pages and format == "parquet" else {}
    reader: FileReader = _module(format, path).Reader(storage, path, fields, file_size, **more)
    return reader


def _module(name: str, path: str) -> Any:
    return importlib.import_module(f"{__name__}.{_known(name, path)}")


def _known(name: str, path: str) -> str:
    if name not in FILE_FORMATS:
        raise Unsupported(
            f"{path}: emberlake does not know the file format {name!r}, only "
            f"{', '.join(FILE_FORMATS)}"
        )
    return name
