"""Words that can be chosen from; light, since the declarations of commands need them."""

from enum import StrEnum


class ReadFormat(StrEnum):
    """How ``emberlake read`` writes rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class SourceFormat(StrEnum):
    """What ``emberlake ingest`` reads, and what tables can be created from."""

    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"
    JSON = "json"


class IngestMode(StrEnum):
    """What becomes of the rows that are there."""

    APPEND = "append"
    UPSERT = "upsert"
    OVERWRITE = "overwrite"
