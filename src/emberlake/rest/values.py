"""Databases, tables, snapshots, partitions and tags, as servers and clients exchange them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from emberlake.options import TableOptions
from emberlake.rest.reading import Fields
from emberlake.spec.field_ids import highest_field_id
from emberlake.spec.identifier import Identifier
from emberlake.spec.schema import Schema, TableSchema
from emberlake.types.json import field_from_json, field_to_json

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Who created and changed something, and when, in milliseconds since 1970 in UTC."""

    owner: str | None = None
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None

    def to_json(self) -> Json:
        return {
            "owner": self.owner,
            "createdAt": self.created_at,
            "createdBy": self.created_by,
            "updatedAt": self.updated_at,
            "updatedBy": self.updated_by,
        }

    @staticmethod
    def from_json(value: object) -> "Audit":
        fields = Fields(value, "the object")
        return Audit(
            owner=fields.optional_text("owner"),
            created_at=fields.optional_integer("createdAt"),
            created_by=fields.optional_text("createdBy"),
            updated_at=fields.optional_integer("updatedAt"),
            updated_by=fields.optional_text("updatedBy"),
        )


NO_AUDIT = Audit()


# --- config and pages -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """What a server tells a client first."""

    defaults: Mapping[str, str] = field(default_factory=dict, repr=False)
    overrides: Mapping[str, str] = field(default_factory=dict, repr=False)

    def merged(self, options: Mapping[str, str]) -> dict[str, str]:
        """The options of a client, between what the server proposes and what it insists on."""
        return {**self.defaults, **options, **self.overrides}

    def to_json(self) -> Json:
        return {"defaults": dict(self.defaults), "overrides": dict(self.overrides)}

    @staticmethod
    def from_json(value: object) -> "Config":
        fields = Fields(value, "the config")
        return Config(fields.text_map("defaults"), fields.text_map("overrides"))


def page_to_json(key: str, elements: Iterable[object], next_page_token: str | None) -> Json:
    """One page of a listing. The list is never null, and the token is always there."""
    return {key: list(elements), "nextPageToken": next_page_token or None}


# --- databases ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RemoteDatabase:
    """A database as a server describes it."""

    name: str
    id: str | None = None
    location: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    audit: Audit = NO_AUDIT

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "location": self.location,
            "options": dict(self.options),
            **self.audit.to_json(),
        }

    @staticmethod
    def from_json(value: object) -> "RemoteDatabase":
        fields = Fields(value, "the database")
        return RemoteDatabase(
            name=fields.text("name"),
            id=fields.optional_text("id"),
            location=fields.optional_text("location"),
            options=fields.text_map("options"),
            audit=Audit.from_json(value),
        )


def create_database_json(name: str, options: Mapping[str, str]) -> Json:
    """The request to create a database."""
    return {"name": name, "options": dict(options)}


@dataclass(frozen=True)
class DatabaseChanges:
    """Options of a database to remove and to set."""

    removals: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"removals": list(self.removals), "updates": dict(self.updates)}

    @staticmethod
    def from_json(value: object) -> "DatabaseChanges":
        fields = Fields(value, "the change of a database")
        return DatabaseChanges(fields.texts("removals"), fields.text_map("updates"))


# --- tables ---------------------------------------------------------------------------------------


def identifier_to_json(identifier: Identifier) -> Json:
    """A table or view by its name; ``object`` is ``t$branch_b`` for a branch."""
    return {"database": identifier.database, "object": identifier.object_name}


def identifier_from_json(value: object) -> Identifier:
    """The name in a request or an answer."""
    fields = Fields(value, "the identifier")
    return Identifier(fields.text("database"), fields.text("object"))


def schema_to_json(schema: Schema | TableSchema) -> Json:
    """The schema of a table, without its id; the ids of its fields are the sender's."""
    return {
        "fields": [field_to_json(each) for each in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
        "comment": schema.comment,
    }


def schema_from_json(value: object) -> Schema:
    """The schema in a request or an answer."""
    fields = Fields(value, "the schema")
    return Schema(
        fields.read_all("fields", field_from_json),
        fields.texts("partitionKeys"),
        fields.texts("primaryKeys"),
        fields.text_map("options"),
        fields.optional_text("comment"),
    )


@dataclass(frozen=True, kw_only=True)
class RemoteTable:
    """A table, or a branch of one, as a server describes it.

    ``name`` is ``t$branch_b`` for a branch; ``path`` is always that of the table.
    """

    id: str | None
    database: str | None
    name: str | None
    path: str
    is_external: bool
    schema_id: int
    schema: Schema
    audit: Audit = NO_AUDIT

    def table_schema(self) -> TableSchema:
        """The schema as its file has it."""
        return TableSchema(
            id=self.schema_id,
            fields=self.schema.fields,
            highest_field_id=highest_field_id(self.schema.fields),
            partition_keys=self.schema.partition_keys,
            primary_keys=self.schema.primary_keys,
            options=TableOptions(self.schema.options),
            comment=self.schema.comment,
            time_millis=self.audit.updated_at or 0,
        )

    def to_json(self) -> Json:
        schema = schema_to_json(self.schema)
        schema["options"].pop("path", None)
        return {
            "id": self.id,
            "database": self.database,
            "name": self.name,
            "path": self.path,
            "isExternal": self.is_external,
            "schemaId": self.schema_id,
            "schema": schema,
            **self.audit.to_json(),
        }

    @staticmethod
    def from_json(value: object) -> "RemoteTable":
        fields = Fields(value, "the table")
        return RemoteTable(
            id=fields.optional_text("id"),
            database=fields.optional_text("database"),
            name=fields.optional_text("name"),
            path=fields.text("path"),
            is_external=fields.flag("isExternal"),
            schema_id=fields.integer("schemaId"),
            schema=fields.read("schema", schema_from_json),
            audit=Audit.from_json(value),
        )


@dataclass(frozen=True)
class NewTable:
    """The request to create a table."""

    identifier: Identifier
    schema: Schema | TableSchema

    def to_json(self) -> Json:
        return {
            "identifier": identifier_to_json(self.identifier),
            "schema": schema_to_json(self.schema),
        }

    @staticmethod
    def from_json(value: object) -> "NewTable":
        fields = Fields(value, "the request")
        return NewTable(
            fields.read("identifier", identifier_from_json),
            fields.read("schema", schema_from_json),
        )


@dataclass(frozen=True)
class RegisteredTable:
    """The request to register the table of an existing folder."""

    identifier: Identifier
    path: str

    def to_json(self) -> Json:
        return {"identifier": identifier_to_json(self.identifier), "path": self.path}

    @staticmethod
    def from_json(value: object) -> "RegisteredTable":
        fields = Fields(value, "the request")
        return RegisteredTable(fields.read("identifier", identifier_from_json), fields.text("path"))


@dataclass(frozen=True)
class Rename:
    """The request to rename a table or a view."""

    source: Identifier
    destination: Identifier

    def to_json(self) -> Json:
        return {
            "source": identifier_to_json(self.source),
            "destination": identifier_to_json(self.destination),
        }

    @staticmethod
    def from_json(value: object) -> "Rename":
        fields = Fields(value, "the request")
        return Rename(
            fields.read("source", identifier_from_json),
            fields.read("destination", identifier_from_json),
        )
