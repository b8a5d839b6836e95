"""Lance data files, version 2.2. They need the extra ``lance``.

The library opens local files by name. If a storage has no local files, whole files pass through a
temporary folder. Writers always use such a folder, so that the storage decides when a file exists.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa

from emberlake.base.closing import Closing
from emberlake.base.extras import load_extra
from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import CorruptFile, EmberlakeError, InvalidState, StorageError, Unsupported
from emberlake.formats.conform import plan_conformance
from emberlake.formats.file_format import (
    DEFAULT_BATCH_ROWS,
    batch_of_rows,
    check_nulls,
    check_storable,
    new_file,
    table_of_batches,
)
from emberlake.io.storage import Storage, as_parted
from emberlake.options import TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.types import DataField, DataType, RowType, arrow_schema

_VERSION: Final = "2.2"  # the first that stores maps; older ones lose nulls of structs
_MAGIC: Final = b"LANC"  # the last bytes of a file
_FOOTER_BYTES: Final = 40
_COPIED_AT_ONCE: Final = 8 * MEBIBYTE
_READ_AHEAD: Final = 4  # batches that are decoded before they are needed
_SPECIAL: Final = (".", "`")  # characters that have a meaning in a projection


class LanceWriter:
    """Fills one Lance file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        options: TableOptions,
    ) -> None:
        check_storable(fields, "lance")
        _check_names(fields)
        library = _library()
        self._fields = fields
        self._folder = TemporaryDirectory(prefix="emberlake-lance-")
        self._spool = Path(self._folder.name) / "data.lance"
        with _failures_of(path, "write"):
            self._writer = library.LanceFileWriter(
                str(self._spool), arrow_schema(fields), version=_VERSION
            )
        # This comes last, so that no later failure can leave the file behind.
        self._file = new_file(storage, path, options)

    @property
    def bytes_written(self) -> int:
        """The size of the folder: the library reports no size before the end."""
        with os.scandir(self._folder.name) as files:
            return sum(file.stat().st_size for file in files)

    def write(self, table: pa.Table) -> None:
        self._file.check_open()
        check_nulls(table, self._fields, self._file.path)
        with _failures_of(self._file.path, "write"):
            self._writer.write_batch(_without_slices(table))

    def close(self) -> int:
        self._file.check_open()
        with _failures_of(self._file.path, "write"):
            self._writer.close()
            with self._spool.open("rb") as spool:
                shutil.copyfileobj(spool, self._file, _COPIED_AT_ONCE)
        size = self._file.close()
        self._folder.cleanup()
        return size

    def abort(self) -> None:
        self._file.abort()
        self._writer = None
        self._folder.cleanup()


class LanceReader(Closing):
    """One open Lance file."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        fields: tuple[DataField, ...],
        file_size: int | None = None,
    ) -> None:
        del fields  # the file describes itself
        library = _library()
        self._open_columns = library.LanceFileReader
        self._path = path
        self._resources = ExitStack()
        _check_end(storage, path, file_size)
        try:
            self._local = storage.local_file(path) or self._fetched(storage, file_size)
            with _failures_of(path, "read"):
                found = self._open_columns(self._local).metadata()
        except EmberlakeError:
            self._resources.close()
            raise
        self._found: pa.Schema = found.schema
        self._num_rows = int(found.num_rows)
        self._reads = 0
        self._is_open = True

    @property
    def num_rows(self) -> int:
        return self._num_rows

    @property
    def row_group_count(self) -> int:
        return 1

    @property
    def row_groups_read(self) -> int:
        return min(self._reads, 1)

    def read(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,  # noqa: FBT001, FBT002
        *,
        rows: tuple[int, int] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        # Files have no statistics, and the library has threads of its own.
        del predicate, use_threads
        check_storable(columns, "lance")
        if not self._is_open:
            raise InvalidState(f"{self._path} was closed; open it again to read")
        self._reads += 1
        start, stop = rows or (0, self.num_rows)
        position = start
        for batch in self._batches(columns, batch_rows, start, min(stop, self.num_rows)):
            yield position, plan_conformance(self._path, batch.schema, columns).apply(batch)
            position += batch.num_rows

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        found = self.read(columns, predicate, DEFAULT_BATCH_ROWS, use_threads)
        return table_of_batches(found, columns)

    def close(self) -> None:
        self._is_open = False
        self._resources.close()

    def _batches(
        self, columns: tuple[DataField, ...], batch_rows: int, first: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        names = [path for f in columns for path in _paths(f.name, f.type, self._found)]
        if not names:
            for start in range(first, stop, batch_rows):
                yield batch_of_rows(min(batch_rows, stop - start))
            return
        if first >= stop:
            return
        with _failures_of(self._path, "read"):
            reader = self._open_columns(self._local, columns=names)
            found = reader.read_range(
                first, stop - first, batch_size=batch_rows, batch_readahead=_READ_AHEAD
            )
            yield from found.to_batches()

    def _fetched(self, storage: Storage, size: int | None) -> str:
        folder = self._resources.enter_context(TemporaryDirectory(prefix="emberlake-lance-"))
        copy = Path(folder) / "data.lance"
        source: Any
        with storage.open_input(self._path, size) as source, copy.open("wb") as target:
            parted = as_parted(source)
            if parted is not None:
                end = source.size()
                starts = range(0, end, _COPIED_AT_ONCE)
                parts = [[(start, min(start + _COPIED_AT_ONCE, end))] for start in starts]
                for _ in parted.each_part(parts):
                    target.write(source.read(_COPIED_AT_ONCE))
            else:
                shutil.copyfileobj(source, target, _COPIED_AT_ONCE)
        return str(copy)


Writer: Final = LanceWriter
Reader: Final = LanceReader


def _library() -> Any:
    return load_extra("lance.file", extra="lance")


def _check_names(fields: tuple[DataField, ...]) -> None:
    wrong = [f.name for f in fields if any(mark in f.name for mark in _SPECIAL)]
    if wrong:
        raise Unsupported(
            f"columns that emberlake cannot store in lance files: {', '.join(wrong)}; Lance does "
            "not allow a dot or a backtick in the name of a column"
        )


def _check_end(storage: Storage, path: str, file_size: int | None) -> None:
    """Refuse a file that is not a Lance file; the library would panic on some of these."""
    size = storage.size(path)
    if file_size is not None and size != file_size:
        raise CorruptFile(path, f"it has {size} bytes, but its manifest says {file_size}")
    if size < _FOOTER_BYTES or storage.read_range(path, size - 4, 4) != _MAGIC:
        raise CorruptFile(path, "it does not end like a Lance file")


def _paths(name: str, data_type: DataType, found: pa.Schema) -> list[str]:
    """The paths to request from the library: a column, or only the wanted fields of a ROW."""
    at = found.get_field_index(name)
    return [] if at < 0 else _nested_paths(name, data_type, found.field(at).type)


def _nested_paths(path: str, data_type: DataType, found: pa.DataType) -> list[str]:
    if not isinstance(data_type, RowType) or not pa.types.is_struct(found):
        return [path]
    stored = {child.name: child.type for child in found}
    wanted = [f for f in data_type.fields if f.name in stored]
    is_whole = len(wanted) == len(stored)
    if is_whole or any(mark in f.name for f in wanted for mark in _SPECIAL):
        return [path]
    inner = [_nested_paths(f"{path}.{f.name}", f.type, stored[f.name]) for f in wanted]
    return [name for names in inner for name in names] or [path]


def _without_slices(table: pa.Table) -> pa.Table:
    """The rows, with nested values that begin at the start of their buffers.

    The library gives up on some that do not, such as slices of rows that are all null.
    """
    columns = {
        name: pa.chunked_array([_copied(chunk) for chunk in column.chunks], column.type)
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_nested(column.type) and any(chunk.offset for chunk in column.chunks)
    }
    for name, column in columns.items():
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), column)
    return table


def _copied(array: pa.Array) -> pa.Array:
    return array.take(pa.array(np.arange(len(array)))) if array.offset else array


@contextmanager
def _failures_of(path: str, action: str) -> Iterator[None]:
    """Translate the library's failures: it raises Python's own errors, and Rust panics."""
    try:
        yield
    except EmberlakeError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise StorageError(f"cannot {action} {path}: {error}") from error
        raise CorruptFile(path, _first_line(error)) from error
    except NotImplementedError as error:
        raise Unsupported(f"{path}: {_first_line(error)}") from error
    except (ValueError, RuntimeError) as error:
        raise CorruptFile(path, _first_line(error)) from error
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":  # Ctrl-C and the like
            raise
        raise CorruptFile(path, f"the Lance library gave up: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
