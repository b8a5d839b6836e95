"""Decides which files Spark's own Parquet reader may read: those where it returns our rows.

Spark finds columns by name, ignoring case, returns null for those that a file lacks, and knows
nothing of field ids, deletion vectors or keys. A file is left to Spark only if that makes no
difference, and if Spark neither skips nor refuses its path and columns. All of this is decided from
metadata: no data file is opened.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from emberlake.io.local import local_path
from emberlake.io.registry import scheme_of
from emberlake.options import (
    DATA_FILE_PREFIX,
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    TableOptions,
)
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.spark.session_files import S3A
from emberlake.spark.types import is_same_in_spark
from emberlake.spec.key_value import key_value_fields
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import is_hidden, readable_fields, stored_fields
from emberlake.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType

# Spark treats a path with one of these characters as a pattern.
_PATTERN_CHARACTERS: Final = frozenset("{}[]*?\\")
# Spark silently skips files whose names begin with one of these.
_HIDDEN_PREFIXES: Final = (".", "_")
_SPARK_CODECS: Final = frozenset(
    {"zstd", "snappy", "gzip", "lz4", "lz4_raw", "none", "uncompressed"}
)
_S3_SCHEMES: Final = ("s3", "s3a", "s3n")
_UUID: Final = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


# Whether Spark reads an object by itself: its path, its path for Spark, and its size.
Opens = Callable[[str, str, int], bool]


def opens_none(path: str, spark_path: str, size: int) -> bool:
    """No object at all."""
    del path, spark_path, size
    return False


@dataclass(frozen=True, slots=True)
class NativeFile:
    """A file that Spark reads by itself."""

    path: str
    partition: bytes

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class NativeScan:
    """What a read requires of files that Spark reads.

    Args:
        reader: The read.
        opens: Whether Spark can read a file of an object store.
        more: Columns that must be read for something else.
    """

    reader: TableReader
    opens: Opens = opens_none
    more: tuple[DataField, ...] = ()

    @cached_property
    def fields(self) -> tuple[DataField, ...]:
        """The columns to read from files: those of the result and of the filter, and ``more``."""
        named = {field.name for field in self._asked}
        return (*self._asked, *(field for field in self.more if field.name not in named))

    @cached_property
    def _asked(self) -> tuple[DataField, ...]:
        reader = self.reader
        known = readable_fields(reader.store.schema)
        return reader.projection.read_fields(known, reader.predicate)

    @cached_property
    def is_possible(self) -> bool:
        """Whether any file may be left to Spark."""
        return (
            # Not if only Python can reach the storage, or if the storage observes reads.
            self.reader.store.storage.traits.spark_reads
            and not self.reader.store.rules.hides  # Spark knows nothing of rules
            and not self.reader.with_kind
            # Ids of rows are not in the files.
            and not any(is_hidden(f) for f in self._asked)
            and all(is_plain(f.type) for f in self.fields)
            and _has_unique_names(self.fields)
        )

    def native_paths(self, split: DataSplit) -> list[str | None]:
        """For every file of an append table, the path for Spark to read it; None: it may not."""
        if not self.is_state(split):
            return [None] * len(split.entries)
        # All files of a split are in one folder; computing it for each file would be expensive.
        folder = self.reader.store.bucket_folder(split.partition, split.bucket)
        groups = split.groups if split.is_grouped else ()
        beside = {f.file_name for g in groups if len(g.all_files) > 1 for f in g.all_files}
        return [
            self._path(file.path_in(folder), file)
            if file.file_name not in beside and self._is_plain(split, file)
            else None
            for file in split.files
        ]

    def paths_of_records(self, split: DataSplit) -> list[str | None]:
        """For every file of a key table, the path for Spark to read its records, merged or not."""
        folder = self.reader.store.bucket_folder(split.partition, split.bucket)
        return [
            self._path(file.path_in(folder), file) if self._is_plain(split, file) else None
            for file in split.files
        ]

    def _path(self, path: str, file: DataFile) -> str | None:
        found = spark_path(path)
        if found is None or scheme_of(path) == "file":
            return found
        return found if self.opens(path, found, file.file_size) else None

    def is_state(self, split: DataSplit) -> bool:
        """Whether a split has the rows of one state of the table, planned for this read."""
        if split.is_changes or split.before is not None:
            return False
        # A plan with another filter may have skipped files whose keys matter.
        return (
            not self.reader.store.schema.profile.has_keys
            or split.predicate == self.reader.predicate
        )

    def _is_plain(self, split: DataSplit, file: DataFile) -> bool:
        """Whether Spark reads the columns of a whole file as we do."""
        return (
            self._name_pattern.fullmatch(file.file_name) is not None
            and file.file_name not in split.deletion_files
            and file.file_name not in split.ranges
            and self._fits(file)
        )

    @cached_property
    def _name_pattern(self) -> re.Pattern[str]:
        """The names that Paimon writers give to Parquet files.

        Tables that were migrated from Hive keep its files and their names: these lack the partition
        columns, and may store others in ways that Spark refuses to read as our types.
        """
        prefix = self.reader.store.options.value(DATA_FILE_PREFIX)
        return re.compile(rf"(data-|{re.escape(prefix)})(.+-)?{_UUID}-[0-9]+(\.\w+)*\.parquet")

    def _fits(self, file: DataFile) -> bool:
        key = file.schema_id, file.write_cols
        fits = self._fitting.get(key)
        if fits is None:
            schema = self.reader.store.schemas.load(file.schema_id)
            is_keyed = schema.profile.has_keys
            stored = (
                key_value_fields(schema) if is_keyed else stored_fields(schema, file.write_cols)
            )
            fits = has_spark_codecs(schema.options) and has_columns(stored or (), self.fields)
            self._fitting[key] = fits
        return fits

    @cached_property
    def _fitting(self) -> dict[tuple[int, tuple[str, ...] | None], bool]:
        return {}


def is_plain(data_type: DataType) -> bool:
    """Whether Spark's Parquet reader returns the same values of the type as ours."""
    match data_type:
        case AtomicType():
            # Timestamps that are finer than Spark's are stored as INT96, which Spark rounds.
            return is_same_in_spark(data_type)
        case ArrayType(element=element):
            return is_plain(element)
        case MapType(key=key, value=value):
            return is_plain(key) and is_plain(value)
        case RowType(fields=fields):
            return bool(fields) and all(is_plain(f.type) for f in fields)
        case _:
            return False


def has_columns(stored: Sequence[DataField], asked: Sequence[DataField]) -> bool:
    """Whether Spark finds the asked columns by name in a file that stores these columns.

    A column that the file does not have at all is null for Spark, as it is for us.
    """
    by_id = {f.id: f for f in stored}
    names = Counter(f.name.lower() for f in stored)
    return all(
        _is_found(by_id[f.id], f, names) if f.id in by_id else not names[f.name.lower()]
        for f in asked
    )


def has_spark_codecs(options: TableOptions) -> bool:
    """Whether files that are written with these options use codecs that Spark includes."""
    of_levels = options.value(FILE_COMPRESSION_PER_LEVEL).values()
    return {options.value(FILE_COMPRESSION), *of_levels} <= _SPARK_CODECS


def spark_path(path: str) -> str | None:
    """The path in Spark's form; None if Spark would not treat it as the path of one file.

    Whether Spark can open it is another question.
    """
    scheme = scheme_of(path)
    if scheme == "file":
        # With the scheme: Spark may have another default than this machine's disk.
        named = f"file:{local_path(path)}"
    elif scheme in _S3_SCHEMES:
        named = f"{S3A}:{path.partition(':')[2]}"
    else:
        return None
    name = named.rpartition("/")[2]
    if name.startswith(_HIDDEN_PREFIXES) or _PATTERN_CHARACTERS & set(named):
        return None
    return named


def _is_found(stored: DataField, asked: DataField, names: Counter[str]) -> bool:
    return (
        stored.name == asked.name
        and names[asked.name.lower()] == 1
        and _is_found_type(stored.type, asked.type)
    )


def _is_found_type(stored: DataType, asked: DataType) -> bool:
    match stored, asked:
        case RowType(), RowType():
            by_id = {f.id: f for f in stored.fields}
            names = Counter(f.name.lower() for f in stored.fields)
            return all(f.id in by_id and _is_found(by_id[f.id], f, names) for f in asked.fields)
        case ArrayType(), ArrayType():
            return _is_found_type(stored.element, asked.element)
        case MapType(), MapType():
            is_same_key = _is_found_type(stored.key, asked.key)
            return is_same_key and _is_found_type(stored.value, asked.value)
        case _:
            return stored.with_nullable(True) == asked.with_nullable(True)


def _has_unique_names(fields: Iterable[DataField]) -> bool:
    """Whether no two columns have names that are the same for Spark."""
    names = [f.name.lower() for f in fields]
    return len(set(names)) == len(names)
