"""The interface of data file formats: a writer that fills one file, a reader that streams one.

Both use Arrow: tables and batches have exactly the types of ``arrow_schema``. The reader converts
whatever a file holds physically (other units, widths, child names) to these types.
"""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Protocol, Self

import pyarrow as pa

from emberlake.base.names import listed
from emberlake.errors import (
    CorruptFile,
    DataMismatch,
    EmberlakeError,
    StorageError,
    Unsupported,
)
from emberlake.io.storage import Output, Storage
from emberlake.options import TARGET_FILE_SIZE, TableOptions
from emberlake.predicates.expressions import Predicate
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    arrow_schema,
)

DEFAULT_BATCH_ROWS: Final = 131_072
# Arrow raises these when a file cannot be read; ``read_failure`` tells the reasons apart.
READ_FAILURES: Final = (pa.ArrowException, OSError)


class FileWriter(Protocol):
    """Writes one data file. It exists once ``close`` has returned, and never after ``abort``."""

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table that has the Arrow schema of the file's fields."""

    @property
    def bytes_written(self) -> int:
        """The number of bytes written so far, without what the format still buffers."""

    def close(self) -> int:
        """Finish the file and return its size."""

    def abort(self) -> None:
        """Give up: no file is left. Does nothing after ``close`` or a first ``abort``."""


def new_file(storage: Storage, path: str, options: TableOptions) -> Output:
    """The file that a writer fills, about as large as the options want it."""
    return storage.open_output(path, options.value(TARGET_FILE_SIZE))


class FileReader(Protocol):
    """Reads one data file; a context manager."""

    @property
    def num_rows(self) -> int:
        """The number of rows in the file."""

    @property
    def row_group_count(self) -> int:
        """The number of parts (row groups, stripes) that can be skipped."""

    @property
    def row_groups_read(self) -> int:
        """How many of these were read so far."""

    def read(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,  # noqa: FBT001, FBT002
        *,
        rows: tuple[int, int] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches, each with the position of its first row in the file.

        Rows that ``predicate`` does not match may be left out, but need not be. The same goes for
        rows outside the half-open range ``rows``. Memory is bounded by one row group.
        """

    def read_table(
        self,
        columns: tuple[DataField, ...],
        predicate: Predicate | None = None,
        use_threads: bool = True,  # noqa: FBT001, FBT002
    ) -> pa.Table:
        """The same rows at once, for callers that need no positions."""

    def close(self) -> None:
        """Release the file."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def check_storable(fields: Iterable[DataField], format_name: str) -> None:
    """Refuse columns whose types emberlake cannot store in data files, all in one error."""
    problems = [f"{f.name} ({problem})" for f in fields if (problem := _problem_of(f.type))]
    if problems:
        raise Unsupported(
            f"columns that emberlake cannot store in {format_name} files: {', '.join(problems)}; "
            "leave them out"
        )


def check_nulls(table: pa.Table, fields: tuple[DataField, ...], path: str) -> None:
    """Refuse rows with a null in a column that is NOT NULL."""
    wrong = [
        f.name
        for f, column in zip(fields, table.columns, strict=True)
        if not f.type.nullable and column.null_count
    ]
    if wrong:
        raise DataMismatch(
            f"rows cannot be written to {path}: nulls in the NOT NULL columns {listed(wrong)}"
        )


def check_size(source: Any, path: str, file_size: int | None) -> None:
    """Refuse a file, opened as an Arrow input, whose size differs from its manifest."""
    if file_size is not None and source.size() != file_size:
        raise CorruptFile(path, f"it has {source.size()} bytes, but its manifest says {file_size}")


def read_failure(path: str, error: Exception) -> EmberlakeError:
    """The typed error for a failure inside Arrow: bad bytes, or a storage that does not answer."""
    if isinstance(error, OSError) and error.errno is not None:
        return StorageError(f"cannot read {path}: {error}")
    if isinstance(error, NotImplementedError):
        return Unsupported(f"{path} cannot be read: {error}")
    return CorruptFile(path, str(error).strip())


def batch_of_rows(count: int) -> pa.RecordBatch:
    """A batch without columns that still knows its number of rows."""
    return pa.RecordBatch.from_struct_array(
        pa.StructArray.from_buffers(pa.struct([]), count, [None])
    )


def table_of_batches(
    found: Iterable[tuple[int, pa.RecordBatch]], columns: tuple[DataField, ...]
) -> pa.Table:
    """The batches of a read as one table of these columns."""
    batches = [batch for _, batch in found]
    # Without columns, only the batches know the number of rows.
    schema = arrow_schema(columns) if columns or not batches else None
    return pa.Table.from_batches(batches, schema)


def _problem_of(data_type: DataType) -> str | None:
    match data_type:
        case AtomicType(root=root):
            return str(root) if root.is_opaque else None
        case ArrayType(element=element) | MultisetType(element=element):
            return _problem_of(element)
        case MapType(key=key, value=value):
            return _problem_of(key) or _problem_of(value)
        case RowType(fields=()):
            return "a ROW without fields"
        case RowType(fields=fields):
            return next((p for f in fields if (p := _problem_of(f.type))), None)
        case _:
            return str(data_type)
