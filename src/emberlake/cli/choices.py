"""The choices of some options. This module is light: the declarations of commands load it."""

from enum import StrEnum


class ReadFormat(StrEnum):
    """How ``emberlake read`` writes rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class SourceFormat(StrEnum):
    """The formats that ``emberlake ingest`` reads, and that tables can be created from."""

    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"
    JSON = "json"


class IngestMode(StrEnum):
    """How new rows affect existing ones."""

    APPEND = "append"
    UPSERT = "upsert"
    OVERWRITE = "overwrite"


class SqlFormat(StrEnum):
    """How ``emberlake sql`` writes rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
