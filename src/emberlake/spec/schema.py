"""A table's schema: what users declare (``Schema``) and what schema files hold (``TableSchema``).

Spec: "Schema files". A schema file is never changed; every change of a table writes the next one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from emberlake.base.html import html_box, html_title
from emberlake.errors import CorruptFile, EmberlakeError, InvalidSchema, Unsupported
from emberlake.options import BUCKET_KEY, DATA_EVOLUTION, TableOptions
from emberlake.spec.profile import TableProfile, profile_of
from emberlake.spec.schema_text import schema_html, schema_line
from emberlake.types import DataField, from_arrow_schema
from emberlake.types.json import field_from_json, field_to_json

SCHEMA_VERSION: Final = 3


@dataclass(frozen=True)
class Schema:
    """What a user declares to create a table."""

    fields: tuple[DataField, ...] = ()
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    def __init__(
        self,
        fields: Sequence[DataField] | None = None,
        partition_keys: Sequence[str] | None = None,
        primary_keys: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        for name, keys in (("partition_keys", partition_keys), ("primary_keys", primary_keys)):
            if isinstance(keys, str):
                raise InvalidSchema(f"{name} is a list of columns, as in [{keys!r}]")
        object.__setattr__(self, "fields", tuple(fields or ()))
        object.__setattr__(self, "partition_keys", tuple(partition_keys or ()))
        object.__setattr__(self, "primary_keys", tuple(primary_keys or ()))
        object.__setattr__(self, "options", dict(options or {}))
        object.__setattr__(self, "comment", comment)

    @staticmethod
    def from_pyarrow_schema(
        pa_schema: pa.Schema,
        partition_keys: Sequence[str] | None = None,
        primary_keys: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> "Schema":
        """A schema whose columns are those of an Arrow schema.

        Raises:
            InvalidSchema: names every column that has no Paimon type.
            Unsupported: names every column whose Paimon type emberlake does not implement.
        """
        has_blobs = str((options or {}).get(DATA_EVOLUTION.key, "")).strip().lower() == "true"
        fields = from_arrow_schema(pa_schema, has_blobs=has_blobs)
        return Schema(fields, partition_keys, primary_keys, options, comment)

    def __repr__(self) -> str:
        keys = self.partition_keys, self.primary_keys
        return f"Schema({schema_line(self.fields, *keys, self.options)})"

    def _repr_html_(self) -> str:
        keys = self.partition_keys, self.primary_keys
        columns = schema_html(self.fields, *keys, self.options)
        return html_box(html_title("Schema", self.comment or ""), columns)


@dataclass(frozen=True)
class TableSchema:
    """One version of a table's schema, as stored in a schema file."""

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: TableOptions = field(default_factory=TableOptions)
    comment: str | None = None
    time_millis: int = 0
    version: int = SCHEMA_VERSION

    @cached_property
    def field_by_name(self) -> Mapping[str, DataField]:
        return {f.name: f for f in self.fields}

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @cached_property
    def partition_fields(self) -> tuple[DataField, ...]:
        return tuple(self.field_by_name[name] for name in self.partition_keys)

    @cached_property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without partition columns; it identifies a row inside a partition."""
        return tuple(key for key in self.primary_keys if key not in self.partition_keys)

    @cached_property
    def partition_keys_outside_key(self) -> tuple[str, ...]:
        """The partition columns that a primary key lacks.

        With dynamic buckets it is unique in the table nevertheless, otherwise per partition only.
        """
        if not self.primary_keys:
            return ()
        return tuple(key for key in self.partition_keys if key not in self.primary_keys)

    @cached_property
    def fixed_columns(self) -> frozenset[str]:
        """The columns that tell the rows of a key table apart: an update cannot change them."""
        if not self.primary_keys:
            return frozenset()
        partition = () if self.profile.moves_rows else self.partition_keys
        return frozenset((*self.primary_keys, *partition))

    @cached_property
    def profile(self) -> TableProfile:
        """The traits of the table."""
        return profile_of(self.primary_keys, self.partition_keys, self.options)

    @cached_property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns that decide a row's bucket."""
        return self.options.value(BUCKET_KEY) or self.trimmed_primary_keys

    def __repr__(self) -> str:
        keys = self.partition_keys, self.primary_keys
        return f"TableSchema(id={self.id}: {schema_line(self.fields, *keys, self.options)})"

    def _repr_html_(self) -> str:
        keys = self.partition_keys, self.primary_keys
        columns = schema_html(self.fields, *keys, self.options)
        return html_box(html_title(f"Schema {self.id}", self.comment or ""), columns)

    def with_options(self, overrides: Mapping[str, str | None]) -> "TableSchema":
        """This schema with dynamic options; it is not written anywhere."""
        return replace(self, options=self.options.merged(overrides))

    def encode(self) -> bytes:
        """The bytes of the schema file."""
        value: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "fields": [field_to_json(f) for f in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
            "timeMillis": self.time_millis,
        }
        if self.comment is not None:
            value["comment"] = self.comment
        try:
            return json.dumps(value, indent=2, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidSchema(
                f"a name, an option or a comment contains {error.object[error.start]!r}, which is "
                "not a character"
            ) from error


def decode_table_schema(raw: bytes, path: str) -> TableSchema:
    """The schema in a schema file, with the defaults that its version implies."""
    try:
        value = json.loads(raw)
        version = int(value.get("version") or 1)
        if version > SCHEMA_VERSION:
            raise Unsupported(
                f"{path} has schema version {version}; emberlake reads up to {SCHEMA_VERSION}"
            )
        schema = TableSchema(
            id=int(value["id"]),
            fields=tuple(field_from_json(f) for f in value["fields"]),
            highest_field_id=int(value["highestFieldId"]),
            partition_keys=tuple(value.get("partitionKeys") or ()),
            primary_keys=tuple(value.get("primaryKeys") or ()),
            options=TableOptions(_implied_options(version, value.get("options") or {})),
            comment=value.get("comment"),
            time_millis=int(value.get("timeMillis") or 0),
            version=version,
        )
        _check_names(schema)
    except Unsupported:
        raise
    except (EmberlakeError, *_UNREADABLE) as error:
        raise CorruptFile(path, f"it is not a schema: {error}") from error
    return schema


_UNREADABLE: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def _check_names(schema: TableSchema) -> None:
    """Check that keys are columns, and that no column appears twice."""
    names, ids = schema.field_names, {f.id for f in schema.fields}
    if len(set(names)) != len(names) or len(ids) != len(names):
        raise ValueError("it has the same column twice")
    unknown = {*schema.partition_keys, *schema.primary_keys} - set(names)
    if unknown:
        raise ValueError(f"it has no columns {', '.join(sorted(map(str, unknown)))}")


def _implied_options(version: int, options: Mapping[str, str]) -> dict[str, str]:
    # Older schema versions had other defaults; making them explicit keeps one set of defaults.
    implied = {}
    if version <= 1:
        implied["bucket"] = "1"
    if version <= 2:
        implied["file.format"] = "orc"
    return {**implied, **{key: str(value) for key, value in options.items()}}
