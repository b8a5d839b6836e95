"""A table in a few facts: what it is, its columns, its options, how large it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from emberlake.base.secrets import HIDDEN, may_be_secret
from emberlake.io.object.spellings import is_secret_option
from emberlake.spec.profile import BucketMode
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot

_BUCKETS: Final = {
    BucketMode.FIXED: "fixed",
    BucketMode.DYNAMIC: "dynamic",
    BucketMode.CROSS_PARTITION: "dynamic, over all partitions",
    BucketMode.POSTPONED: "postponed",
    BucketMode.UNAWARE: "none",
}


@dataclass(frozen=True)
class ColumnFact:
    """A column of a table."""

    name: str
    type: str
    role: str
    comment: str


@dataclass(frozen=True)
class Size:
    """How much a snapshot holds."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    partitions: int = 0
    buckets: int = 0


@dataclass(frozen=True)
class Overview:
    """What a table is."""

    identifier: str
    path: str
    branch: str
    kind: str
    buckets: str
    comment: str | None
    schema_id: int
    columns: tuple[ColumnFact, ...]
    options: tuple[tuple[str, str], ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    snapshot: Snapshot | None
    size: Size
    tags: int
    branches: int

    @property
    def unit(self) -> str:
        """What is counted: stored records, which are rows only if none has to be merged."""
        return "record" if self.primary_keys else "row"


def columns_of(schema: TableSchema) -> tuple[ColumnFact, ...]:
    """The columns with their roles."""
    return tuple(
        ColumnFact(f.name, str(f.type), _role(schema, f.name), f.description or "")
        for f in schema.fields
    )


def kind_of(schema: TableSchema) -> str:
    """The kind of a table, in two words or three."""
    return "primary-key table" if schema.profile.has_keys else "append table"


def buckets_of(schema: TableSchema) -> str:
    """How rows get their buckets."""
    mode = schema.profile.bucket_mode
    number = schema.options.get("bucket")
    return f"{number}, {_BUCKETS[mode]}" if mode is BucketMode.FIXED else _BUCKETS[mode]


def shown_options(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Options by name; values that may be secret are hidden."""
    return tuple((key, _shown(key, value)) for key, value in sorted(options.items()))


def _shown(key: str, value: str) -> str:
    return HIDDEN if is_secret_option(key) or may_be_secret(key) else value


def _role(schema: TableSchema, name: str) -> str:
    roles: Sequence[tuple[str, Sequence[str]]] = (
        ("primary key", schema.primary_keys),
        ("partition", schema.partition_keys),
    )
    return ", ".join(role for role, names in roles if name in names)
