"""Table options that emberlake knows, with their defaults and parsers.

Raw option strings are parsed once, by ``TableOptions``; everything inside asks for typed values:
``options.value(BUCKET)``. Keys that emberlake does not know are kept as they are: other engines use
them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar, cast

from emberlake.base.names import did_you_mean
from emberlake.base.option_texts import (
    MEBIBYTE,
    is_true,
    parse_bool,
    parse_duration,
    parse_duration_ms,
    parse_int,
    parse_levels,
    parse_ratio,
    parse_size,
    parse_words,
)
from emberlake.base.secrets import shown_options
from emberlake.errors import InvalidOption

T = TypeVar("T")

UNAWARE_BUCKET: Final = -1
POSTPONE_BUCKET: Final = -2  # also the bucket number of rows that have no bucket yet


class Choice(StrEnum):
    """One of a fixed set of words; case does not matter."""

    @classmethod
    def _missing_(cls, value: object) -> "Choice | None":
        return next((c for c in cls if isinstance(value, str) and c == value.lower()), None)


class MergeEngine(Choice):
    """How rows with the same primary key are merged."""

    DEDUPLICATE = "deduplicate"
    PARTIAL_UPDATE = "partial-update"
    AGGREGATION = "aggregation"
    FIRST_ROW = "first-row"

    @property
    def builds_rows(self) -> bool:
        """Whether a row is built column by column; otherwise it is one record of its key."""
        return self in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION)


class ChangelogProducer(Choice):
    """How changelog files are produced."""

    NONE = "none"
    INPUT = "input"
    LOOKUP = "lookup"
    FULL_COMPACTION = "full-compaction"


class SortOrder(Choice):
    """Which record of a key is the newer one, by its sequence fields."""

    ASCENDING = "ascending"  # the one with the larger value
    DESCENDING = "descending"


class BucketFunction(Choice):
    """How a bucket key is mapped to a bucket."""

    DEFAULT = "default"
    MOD = "mod"
    HIVE = "hive"


class ExternalStrategy(Choice):
    """Which folder outside of the table a new file goes to."""

    NONE = "none"
    ROUND_ROBIN = "round-robin"
    SPECIFIC_FS = "specific-fs"
    ENTROPY_INJECT = "entropy-inject"
    WEIGHT_ROBIN = "weight-robin"


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option: its key, its default, and the parser of its text."""

    key: str
    default: T
    parse: Callable[[str], T]


def _text(text: str) -> str:
    return text


def _optional(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    return parse


BUCKET: Final = Option("bucket", -1, parse_int)
BUCKET_KEY: Final = Option[tuple[str, ...]]("bucket-key", (), parse_words)
BUCKET_FUNCTION: Final = Option("bucket-function.type", BucketFunction.DEFAULT, BucketFunction)
TYPE: Final = Option("type", "table", _text)
BRANCH: Final = Option("branch", "main", _text)

FILE_FORMAT: Final = Option("file.format", "parquet", str.lower)
FILE_FORMAT_PER_LEVEL: Final = Option[Mapping[int, str]]("file.format.per.level", {}, parse_levels)
FILE_COMPRESSION: Final = Option("file.compression", "zstd", str.lower)
ZSTD_LEVEL: Final = Option("file.compression.zstd-level", 1, parse_int)
VERIFY_PAGES: Final = Option("parquet.verify-page-checksums", False, parse_bool)
FILE_BLOCK_SIZE: Final = Option[int | None]("file.block-size", None, _optional(parse_size))
FILE_SUFFIX_COMPRESSION: Final = Option("file.suffix.include.compression", False, parse_bool)
FILE_COMPRESSION_PER_LEVEL: Final = Option[Mapping[int, str]](
    "file.compression.per.level", {}, parse_levels
)
TARGET_FILE_SIZE: Final = Option[int | None]("target-file-size", None, _optional(parse_size))
TARGET_FILE_ROWS: Final = Option("target-file-row-num", 2**63 - 1, parse_int)
DATA_FILE_PREFIX: Final = Option("data-file.prefix", "data-", _text)
CHANGELOG_FILE_PREFIX: Final = Option("changelog-file.prefix", "changelog-", _text)
CHANGELOG_FILE_FORMAT: Final = Option[str | None](
    "changelog-file.format", None, _optional(str.lower)
)
CHANGELOG_FILE_COMPRESSION: Final = Option[str | None](
    "changelog-file.compression", None, _optional(_text)
)
CHANGELOG_FILE_STATS: Final = Option[str | None](
    "changelog-file.stats-mode", None, _optional(_text)
)
DATA_FILE_DIRECTORY: Final = Option("data-file.path-directory", "", _text)
EXTERNAL_PATHS: Final = Option[tuple[str, ...]]("data-file.external-paths", (), parse_words)
EXTERNAL_STRATEGY: Final = Option(
    "data-file.external-paths.strategy", ExternalStrategy.NONE, ExternalStrategy
)
EXTERNAL_SPECIFIC_FS: Final = Option[str | None](
    "data-file.external-paths.specific-fs", None, _optional(_text)
)
EXTERNAL_WEIGHTS: Final = Option[tuple[str, ...]](
    "data-file.external-paths.weights", (), parse_words
)
INDEX_EXTERNAL_PATH: Final = Option("global-index.external-path", "", _text)
INDEX_IN_DATA_DIR: Final = Option("index-file-in-data-file-dir", False, parse_bool)
PARTITION_DEFAULT_NAME: Final = Option("partition.default-name", "__DEFAULT_PARTITION__", _text)
PARTITION_LIFETIME: Final = Option[timedelta | None](
    "partition.expiration-time", None, _optional(parse_duration)
)
PARTITION_EXPIRY_STRATEGY: Final = Option("partition.expiration-strategy", "values-time", str.lower)
PARTITION_EXPIRY_MAX: Final = Option("partition.expiration-max-num", 100, parse_int)
PARTITION_TIME_FORMATTER: Final = Option[str | None](
    "partition.timestamp-formatter", None, _optional(_text)
)
PARTITION_TIME_PATTERN: Final = Option[str | None](
    "partition.timestamp-pattern", None, _optional(_text)
)
PARTITION_DONE_ACTION: Final = Option("partition.mark-done-action", "success-file", str.lower)
PARTITION_LEGACY_NAME: Final = Option("partition.legacy-name", True, parse_bool)
WRITE_BUFFER_SIZE: Final = Option("write-buffer-size", 256 * MEBIBYTE, parse_size)

STATS_MODE: Final = Option("metadata.stats-mode", "truncate(16)", str.lower)
STATS_DENSE_STORE: Final = Option("metadata.stats-dense-store", True, parse_bool)
STATS_KEEP_FIRST_N: Final = Option("metadata.stats-keep-first-n-columns", -1, parse_int)

MANIFEST_COMPRESSION: Final = Option("manifest.compression", "zstd", str.lower)
MANIFEST_TARGET_SIZE: Final = Option("manifest.target-file-size", 8 * MEBIBYTE, parse_size)
MANIFEST_MERGE_MIN_COUNT: Final = Option("manifest.merge-min-count", 30, parse_int)
MANIFEST_FULL_COMPACTION_SIZE: Final = Option(
    "manifest.full-compaction-threshold-size", 16 * MEBIBYTE, parse_size
)
# Accepted without effect: emberlake may always keep the statistics.
MANIFEST_DELETE_DROP_STATS: Final = Option("manifest.delete-file-drop-stats", False, parse_bool)

COMMIT_MAX_RETRIES: Final = Option("commit.max-retries", 10, parse_int)
COMMIT_TIMEOUT_MS: Final = Option[int | None]("commit.timeout", None, _optional(parse_duration_ms))
COMMIT_MIN_WAIT_MS: Final = Option("commit.min-retry-wait", 10, parse_duration_ms)
COMMIT_MAX_WAIT_MS: Final = Option("commit.max-retry-wait", 10_000, parse_duration_ms)
# Not options of Paimon: other engines do not check.
CHECK_FILES: Final = Option("commit.check-files", True, parse_bool)
COMMIT_VERIFY_WINDOW_MS: Final = Option[int | None](
    "commit.verify-window", None, _optional(parse_duration_ms)
)
DYNAMIC_PARTITION_OVERWRITE: Final = Option("dynamic-partition-overwrite", True, parse_bool)
# Accepted without effect: an empty append never makes a snapshot.
IGNORE_EMPTY_COMMIT: Final = Option[bool | None](
    "snapshot.ignore-empty-commit", None, _optional(parse_bool)
)
COMMIT_USER_PREFIX: Final = Option[str | None]("commit.user-prefix", None, _optional(_text))

SNAPSHOT_RETAIN_MIN: Final = Option("snapshot.num-retained.min", 10, parse_int)
SNAPSHOT_RETAIN_MAX: Final = Option("snapshot.num-retained.max", 2**31 - 1, parse_int)
SNAPSHOT_RETAIN_MS: Final = Option("snapshot.time-retained", 3_600_000, parse_duration_ms)
SNAPSHOT_EXPIRE_LIMIT: Final = Option("snapshot.expire.limit", 50, parse_int)
TAG_CREATION: Final = Option("tag.automatic-creation", "none", str.lower)
TAG_PERIOD: Final = Option("tag.creation-period", "daily", str.lower)
TAG_PERIOD_DURATION: Final = Option[str | None](
    "tag.creation-period-duration", None, _optional(_text)
)
TAG_PERIOD_FORMATTER: Final = Option("tag.period-formatter", "with_dashes", str.lower)
TAG_RETAINED: Final = Option[timedelta | None](
    "tag.default-time-retained", None, _optional(parse_duration)
)
CHANGELOG_RETAIN_MIN: Final = Option[int | None](
    "changelog.num-retained.min", None, _optional(parse_int)
)
CHANGELOG_RETAIN_MAX: Final = Option[int | None](
    "changelog.num-retained.max", None, _optional(parse_int)
)
CHANGELOG_RETAIN_MS: Final = Option[int | None](
    "changelog.time-retained", None, _optional(parse_duration_ms)
)

SPLIT_TARGET_SIZE: Final = Option("source.split.target-size", 128 * MEBIBYTE, parse_size)
SPLIT_OPEN_FILE_COST: Final = Option("source.split.open-file-cost", 4 * MEBIBYTE, parse_size)
SCAN_MODE: Final = Option("scan.mode", "default", str.lower)
SCAN_SNAPSHOT_ID: Final = Option[int | None]("scan.snapshot-id", None, _optional(parse_int))
SCAN_TAG_NAME: Final = Option[str | None]("scan.tag-name", None, _optional(_text))
SCAN_TIMESTAMP_MILLIS: Final = Option[int | None](
    "scan.timestamp-millis", None, _optional(parse_int)
)
SCAN_TIMESTAMP: Final = Option[str | None]("scan.timestamp", None, _optional(_text))
SCAN_VERSION: Final = Option[str | None]("scan.version", None, _optional(_text))
SCAN_WATERMARK: Final = Option[int | None]("scan.watermark", None, _optional(parse_int))
CONSUMER_ID: Final = Option[str | None]("consumer-id", None, _optional(_text))
STREAM_OVERWRITES: Final = Option("streaming-read-overwrite", False, parse_bool)
STREAM_APPEND_OVERWRITES: Final = Option("streaming-read-append-overwrite", False, parse_bool)
INCREMENTAL_BETWEEN: Final = Option[tuple[str, ...]]("incremental-between", (), parse_words)
INCREMENTAL_BETWEEN_TIMESTAMP: Final = Option[tuple[str, ...]](
    "incremental-between-timestamp", (), parse_words
)
INCREMENTAL_TO_AUTO_TAG: Final = Option[str | None](
    "incremental-to-auto-tag", None, _optional(_text)
)
INCREMENTAL_SCAN_MODE: Final = Option("incremental-between-scan-mode", "auto", str.lower)
INCREMENTAL_TAG_TO_SNAPSHOT: Final = Option(
    "incremental-between-tag-to-snapshot", False, parse_bool
)

MERGE_ENGINE: Final = Option("merge-engine", MergeEngine.DEDUPLICATE, MergeEngine)
CHANGELOG_PRODUCER: Final = Option("changelog-producer", ChangelogProducer.NONE, ChangelogProducer)
ROW_DEDUPLICATE: Final = Option("changelog-producer.row-deduplicate", False, parse_bool)
ROW_DEDUPLICATE_IGNORED: Final = Option[tuple[str, ...]](
    "changelog-producer.row-deduplicate-ignore-fields", (), parse_words
)
SEQUENCE_FIELD: Final = Option[tuple[str, ...]]("sequence.field", (), parse_words)
SEQUENCE_SORT_ORDER: Final = Option("sequence.field.sort-order", SortOrder.ASCENDING, SortOrder)
# The first of these that is set wins; all but the first are old names.
IGNORE_DELETE: Final = tuple(
    Option(f"{engine}ignore-delete", False, parse_bool)
    for engine in ("", "first-row.", "deduplicate.", "partial-update.")
)
REMOVE_ON_DELETE: Final = {
    engine: Option(f"{engine}.remove-record-on-delete", False, parse_bool)
    for engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION)
}
REMOVE_ON_SEQUENCE_GROUP: Final = Option[tuple[str, ...]](
    "partial-update.remove-record-on-sequence-group", (), parse_words
)
DEFAULT_AGGREGATE: Final = Option[str | None](
    "fields.default-aggregate-function", None, _optional(_text)
)
THIN_MODE: Final = Option("data-file.thin-mode", False, parse_bool)
ROWKIND_FIELD: Final = Option[str | None]("rowkind.field", None, _optional(_text))
PRIMARY_KEY_NULLABLE: Final = Option("primary-key.nullable", False, parse_bool)
IGNORE_UPDATE_BEFORE: Final = Option("ignore-update-before", False, parse_bool)
DYNAMIC_BUCKET_ROWS: Final = Option("dynamic-bucket.target-row-num", 2_000_000, parse_int)
DYNAMIC_BUCKET_MAX: Final = Option("dynamic-bucket.max-buckets", -1, parse_int)
POSTPONE_BUCKET_COUNT: Final = Option[int | None](
    "postpone.default-bucket-num", None, _optional(parse_int)
)
POSTPONE_BUCKETS_AT_ONCE: Final = Option("postpone.batch-write-fixed-bucket", True, parse_bool)
POSTPONE_BUCKET_ROWS: Final = Option[int | None](
    "postpone.target-row-num-per-bucket", None, _optional(parse_int)
)
POSTPONE_BUCKET_SIZE: Final = Option("postpone.target-size-per-bucket", 1024 * MEBIBYTE, parse_size)
WRITE_ONLY: Final = Option("write-only", False, parse_bool)
RUN_TRIGGER: Final = Option("num-sorted-run.compaction-trigger", 5, parse_int)
NUM_LEVELS: Final = Option[int | None]("num-levels", None, _optional(parse_int))
SIZE_RATIO: Final = Option("compaction.size-ratio", 1, parse_int)
MAX_AMPLIFICATION: Final = Option("compaction.max-size-amplification-percent", 200, parse_int)
FORCE_LOOKUP: Final = Option("force-lookup", False, parse_bool)
FULL_COMPACTION_COMMITS: Final = Option[int | None](
    "full-compaction.delta-commits", None, _optional(parse_int)
)
# Accepted without effect: a commit always waits for the compaction that it needs.
LOOKUP_WAIT: Final = Option("lookup-wait", True, parse_bool)
FORCE_UP_LEVEL_0: Final = Option("compaction.force-up-level-0", False, parse_bool)
SMALL_FILE_RATIO: Final = Option("compaction.small-file-ratio", 0.7, parse_ratio)
MIN_FILE_COUNT: Final = Option("compaction.min.file-num", 5, parse_int)
DELETE_RATIO: Final = Option("compaction.delete-ratio-threshold", 0.2, parse_ratio)
VECTOR_FILE_SIZE: Final = Option("deletion-vector.index-file.target-size", 2 * MEBIBYTE, parse_size)
DELETION_VECTORS: Final = Option("deletion-vectors.enabled", False, parse_bool)
MERGE_ON_READ: Final = Option("deletion-vectors.merge-on-read", False, parse_bool)
DELETION_VECTORS_MODIFIABLE: Final = Option("deletion-vectors.modifiable", False, parse_bool)
DELETION_VECTORS_BITMAP64: Final = Option("deletion-vectors.bitmap64", False, parse_bool)
ROW_TRACKING: Final = Option("row-tracking.enabled", False, parse_bool)
ROW_IDS_BY_PARTITION: Final = Option("row-tracking.partition-group-on-commit", True, parse_bool)
GLOBAL_INDEX_UPDATE: Final = Option("global-index.column-update-action", "throw_error", str.lower)
DATA_EVOLUTION: Final = Option("data-evolution.enabled", False, parse_bool)
QUERY_AUTH: Final = Option("query-auth.enabled", False, parse_bool)
CHAIN_TABLE: Final = Option("chain-table.enabled", False, parse_bool)
# Accepted without effect: types are only ever widened.
DISABLE_EXPLICIT_CAST: Final = Option("disable-explicit-type-casting", False, parse_bool)
ADD_COLUMN_BEFORE_PARTITION: Final = Option("add-column-before-partition", False, parse_bool)
NULL_TO_NOT_NULL_DISABLED: Final = Option(
    "alter-column-null-to-not-null.disabled", True, parse_bool
)

# Options that make emberlake refuse a table. A flag with any other text than ``true`` is off.
FALLBACK_BRANCH: Final = Option[str | None]("scan.fallback-branch", None, _optional(_text))
PRIMARY_BRANCH: Final = Option[str | None]("scan.primary-branch", None, _optional(_text))
MANIFEST_FORMAT: Final = Option("manifest.format", "avro", str.lower)
PK_CLUSTERING: Final = Option("pk-clustering-override", False, is_true)
SNAPSHOT_ORDERING: Final = Option("sequence.snapshot-ordering", False, is_true)
INCREMENTAL_CLUSTERING: Final = Option("clustering.incremental", False, is_true)
POSTPONE_MERGE_ON_READ: Final = Option("postpone.merge-on-read", False, is_true)
RECORD_EXPIRE_TIME: Final = Option[str | None]("record-level.expire-time", None, _optional(_text))
ICEBERG_STORAGE: Final = Option("metadata.iceberg.storage", "disabled", str.lower)
COMMIT_CALLBACKS: Final = Option[tuple[str, ...]]("commit.callbacks", (), parse_words)


def _declared(values: Iterable[object]) -> Iterator[Option[object]]:
    for value in values:
        if isinstance(value, Option):
            yield value
        elif isinstance(value, tuple):
            yield from _declared(value)
        elif isinstance(value, dict):
            yield from _declared(value.values())


KNOWN: Final[tuple[Option[object], ...]] = tuple(
    _declared([value for name, value in list(globals().items()) if name.isupper()])
)
KNOWN_KEYS: Final = frozenset(option.key for option in KNOWN)
_BY_KEY: Final = {option.key: option for option in KNOWN}


def unknown_option(key: str, choices: Iterable[str] = KNOWN_KEYS) -> str:
    """The message for an unknown option."""
    return f"unknown option {key}" + did_you_mean([key], sorted(choices), before=": ")


class TableOptions(Mapping[str, str]):
    """The options of a table: raw text by key, typed values by ``Option``."""

    __slots__ = ("_parsed", "_raw")

    def __init__(self, raw: Mapping[str, str] | None = None) -> None:
        self._raw = dict(raw or {})
        self._parsed: dict[str, object] = {}  # only of options that are set
        problems: list[str] = []
        for key, text in self._raw.items():
            option = _BY_KEY.get(key)
            if option is None:
                continue
            try:
                self._parsed[key] = option.parse(text)
            except ValueError as error:
                problems.append(f"{key}={text!r}: {_explain(option, error)}")
        if problems:
            raise InvalidOption("options that cannot be read: " + "; ".join(problems))

    def value(self, option: Option[T]) -> T:
        """The typed value of an option, or its default."""
        return cast("T", self._parsed.get(option.key, option.default))

    def is_set(self, option: Option[Any]) -> bool:
        """Whether the option is set explicitly."""
        return option.key in self._raw

    def merged(self, overrides: Mapping[str, str | None]) -> "TableOptions":
        """These options with some set, or removed where the value is None."""
        raw = {**self._raw, **{k: v for k, v in overrides.items() if v is not None}}
        return TableOptions({k: v for k, v in raw.items() if overrides.get(k, v) is not None})

    def __getitem__(self, key: str) -> str:
        return self._raw[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"TableOptions({shown_options(self._raw)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return TableOptions, (self._raw,)


def _explain(option: Option[object], error: ValueError) -> str:
    if isinstance(option.parse, type) and issubclass(option.parse, StrEnum):
        return "expected one of " + ", ".join(option.parse)
    return str(error)
