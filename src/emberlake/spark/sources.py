"""Reads files of other formats as a DataFrame that fits a table.

Parquet and ORC files know their types. CSV and JSON files do not: they are read with the types of
the table's columns, and a value that does not fit is an error, never a null. Columns that the table
lacks are kept, so that the alignment names them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere in Spark code
from pyspark.sql import types as spark

from emberlake.spark.types import spark_schema
from emberlake.types import DataField

# Read the schema of every file, so that a column that only some files have is not lost.
_MERGED: Final = {"mergeSchema": "true"}
_STRICT: Final = {"mode": "FAILFAST"}
_CSV: Final = {"header": "true", "enforceSchema": "false", **_STRICT}
# Session settings while the schemas of files are read.
_WHILE_LOOKING: Final = {
    # Times without a zone stay as they are written.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Folders such as dt=2026-06-26 give strings; the table knows their types.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def read_source(
    session: SparkSession,
    paths: Sequence[str],
    source_format: str,
    fields: Sequence[DataField] | None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of files, folders and globs.

    Args:
        session: The Spark session.
        paths: What to read, all of one format.
        source_format: ``parquet``, ``orc``, ``csv`` or ``json`` (one object per line).
        fields: The columns of the target table; without them the types of CSV and JSON are inferred
            from all rows.
        options: Options of Spark's reader, such as ``delimiter``.
    """
    given = dict(options or {})
    with _settings(session, _WHILE_LOOKING):
        if source_format in ("parquet", "orc"):
            rows = _reader(session, {**_MERGED, **given}).format(source_format).load(list(paths))
        elif fields is None:
            inferring = {**(_CSV if source_format == "csv" else _STRICT), "inferSchema": "true"}
            rows = _reader(session, {**inferring, **given}).format(source_format).load(list(paths))
        else:
            rows = _read_text(session, list(paths), source_format, tuple(fields), given)
    return rows if fields is None else _with_path_columns(rows, tuple(fields))


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session, and restore them afterwards."""
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is not None:
                session.conf.set(name, old)


def with_constants(
    rows: DataFrame, constants: Mapping[str, str], fields: Sequence[DataField] | None
) -> DataFrame:
    """Add constant columns to the rows, with the table's types, or as strings."""
    types = {field.name: field.dataType for field in spark_schema(tuple(fields or ()))}
    for name, text in constants.items():
        rows = rows.withColumn(name, F.lit(text).cast(types.get(name, spark.StringType())))
    return rows


def _reader(session: SparkSession, options: Mapping[str, str]) -> Any:
    return session.read.options(**options)


def _read_text(
    session: SparkSession,
    paths: list[str],
    source_format: str,
    fields: tuple[DataField, ...],
    options: Mapping[str, str],
) -> DataFrame:
    fixed = _CSV if source_format == "csv" else _STRICT
    # For CSV this reads the header; for JSON all rows, to find every column.
    found = _reader(session, {**fixed, **options}).format(source_format).load(paths).schema
    wanted = {field.name: field.dataType for field in spark_schema(fields)}
    schema = spark.StructType(
        [spark.StructField(f.name, _meet(f.dataType, wanted.get(f.name))) for f in found]
    )
    reader = _reader(session, {**fixed, **options}).schema(schema)
    rows: DataFrame = reader.format(source_format).load(paths)
    return rows


def _meet(found: spark.DataType, wanted: spark.DataType | None) -> spark.DataType:
    """The table's type, plus the other fields that a file has, so that they are not lost."""
    match found, wanted:
        case _, None:
            return found
        case spark.StructType(), spark.StructType():
            known = {field.name: field for field in wanted}
            return spark.StructType(
                [
                    spark.StructField(
                        field.name,
                        _meet(field.dataType, known[field.name].dataType)
                        if field.name in known
                        else field.dataType,
                    )
                    for field in found
                ]
            )
        case spark.ArrayType(), spark.ArrayType():
            return spark.ArrayType(_meet(found.elementType, wanted.elementType))
        case _:
            assert wanted is not None
            return wanted


def _with_path_columns(rows: DataFrame, fields: tuple[DataField, ...]) -> DataFrame:
    """Cast columns of folder names (``dt=2026-06-26``), which are strings, to the table's type."""
    wanted = {field.name: field.dataType for field in spark_schema(fields)}
    for name in _path_columns(rows):
        if name in wanted and name in rows.columns:
            rows = rows.withColumn(name, F.col(f"`{name}`").cast(wanted[name]))
    return rows


def _path_columns(rows: DataFrame) -> list[str]:
    files = rows.inputFiles()
    if not files:
        return []
    folders = PurePosixPath(files[0]).parent.parts
    return [part.partition("=")[0] for part in folders if "=" in part]
