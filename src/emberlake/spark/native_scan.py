"""Which files Spark's own Parquet reader may read, with exactly the rows that ours would give.

Spark finds columns by name, whatever their case, gives null for those that a file lacks, and knows
no field ids, deletion vectors or keys. A file is left to it only where that makes no difference,
and where its path and columns are such that Spark neither skips nor refuses it. All of this is
decided from metadata: no data file is opened.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
from emberlake.read.key_read import may_retract
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit
from emberlake.spark.types import is_same_in_spark
from emberlake.spec.key_value import key_value_fields
from emberlake.spec.manifest import DataFile
from emberlake.types import ArrayType, AtomicType, DataField, DataType, MapType, RowType

# Spark takes a path with one of these for a pattern.
_PATTERN_CHARACTERS: Final = frozenset("{}[]*?\\")
# Spark leaves out files whose names begin so, without a word.
_HIDDEN_PREFIXES: Final = (".", "_")
_SPARK_CODECS: Final = frozenset(
    {"zstd", "snappy", "gzip", "lz4", "lz4_raw", "none", "uncompressed"}
)
_UUID: Final = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@dataclass(frozen=True)
class Division:
    """The files that Spark reads by itself, and what is left for our own reader."""

    paths: tuple[str, ...]
    rest: tuple[DataSplit, ...]


def divide(reader: TableReader, splits: Sequence[DataSplit]) -> Division:
    """Which part of a read is left to Spark's own reader."""
    scan = NativeScan(reader)
    if not scan.is_possible:
        return Division((), tuple(splits))
    paths: list[str] = []
    rest: list[DataSplit] = []
    for split in splits:
        found = scan.native_paths(split)
        native = [path for path in found if path is not None]
        paths += native
        if len(native) < max(1, len(found)):
            rest.append(split.take([path is None for path in found]) if native else split)
    return Division(tuple(paths), tuple(rest))


@dataclass(frozen=True)
class NativeScan:
    """What a read asks of files that Spark is to read."""

    reader: TableReader

    @cached_property
    def fields(self) -> tuple[DataField, ...]:
        """The columns to read from files: what is handed out, and what the filter is on."""
        reader = self.reader
        return reader.projection.read_fields(reader.store.schema.fields, reader.predicate)

    @cached_property
    def is_possible(self) -> bool:
        """Whether any file may be left to Spark."""
        return (
            # A storage that only Python can reach is not asked of Spark, nor one that watches.
            self.reader.store.storage.traits.spark_reads
            and not self.reader.with_kind
            and all(is_plain(f.type) for f in self.fields)
            and _has_unique_names(self.fields)
        )

    def native_paths(self, split: DataSplit) -> list[str | None]:
        """For every file of a split the path by which Spark may read it, None if it may not."""
        if not self._is_raw(split):
            return [None] * len(split.entries)
        # All files of a split have one folder; working it out for each of them is not cheap.
        folder = self.reader.store.bucket_folder(split.partition, split.bucket)
        return [
            spark_path(file.external_path or f"{folder}/{file.file_name}")
            if self._is_native(split, file)
            else None
            for file in split.files
        ]

    def _is_raw(self, split: DataSplit) -> bool:
        if not split.raw_convertible or split.is_changes or split.before is not None:
            return False
        # A plan with another filter may have left out files whose keys matter.
        return (
            not self.reader.store.schema.profile.has_keys
            or split.predicate == self.reader.predicate
        )

    def _is_native(self, split: DataSplit, file: DataFile) -> bool:
        return (
            self._name_pattern.fullmatch(file.file_name) is not None
            and file.write_cols is None
            and file.file_name not in split.deletion_files
            and file.file_name not in split.ranges
            and not (self.reader.store.schema.profile.has_keys and may_retract(file))
            and self._fits(file.schema_id)
        )

    @cached_property
    def _name_pattern(self) -> re.Pattern[str]:
        """How writers of the format name a Parquet file.

        Tables that were made of Hive's files keep these, and their names: they lack the partition
        columns, and may hold others in ways that Spark refuses to read as our types.
        """
        prefix = self.reader.store.options.value(DATA_FILE_PREFIX)
        return re.compile(rf"(data-|{re.escape(prefix)})(.+-)?{_UUID}-[0-9]+(\.\w+)*\.parquet")

    def _fits(self, schema_id: int) -> bool:
        fits = self._fitting.get(schema_id)
        if fits is None:
            schema = self.reader.store.schemas.load(schema_id)
            stored = key_value_fields(schema) if schema.profile.has_keys else schema.fields
            fits = has_spark_codecs(schema.options) and has_columns(stored, self.fields)
            self._fitting[schema_id] = fits
        return fits

    @cached_property
    def _fitting(self) -> dict[int, bool]:
        return {}


def is_plain(data_type: DataType) -> bool:
    """Whether Spark's Parquet reader gives values of the type just as ours does."""
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
    """Whether Spark, by name, finds the asked columns in a file that stores these columns.

    A column that the file has no trace of is null for Spark as it is for us.
    """
    by_id = {f.id: f for f in stored}
    names = Counter(f.name.lower() for f in stored)
    return all(
        _is_found(by_id[f.id], f, names) if f.id in by_id else not names[f.name.lower()]
        for f in asked
    )


def has_spark_codecs(options: TableOptions) -> bool:
    """Whether files that are written with these options have codecs that Spark comes with."""
    of_levels = options.value(FILE_COMPRESSION_PER_LEVEL).values()
    return {options.value(FILE_COMPRESSION), *of_levels} <= _SPARK_CODECS


def spark_path(path: str) -> str | None:
    """The path as Spark wants it; None where Spark would not take it for that of one file.

    Files outside of the table may be on a storage that only emberlake has the keys of.
    """
    if scheme_of(path) != "file":
        return None
    local = local_path(path)
    name = local.rpartition("/")[2]
    if name.startswith(_HIDDEN_PREFIXES) or _PATTERN_CHARACTERS & set(local):
        return None
    # With the scheme: Spark may have another default than this machine's disk.
    return f"file:{local}"


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
    """Whether no two columns have names that are the same to Spark."""
    names = [f.name.lower() for f in fields]
    return len(set(names)) == len(names)
