"""Views and functions: catalogs keep them for other engines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from emberlake.rest.reading import Fields
from emberlake.rest.values import NO_AUDIT, Audit, Json
from emberlake.types import DataField
from emberlake.types.json import field_from_json, field_to_json


@dataclass(frozen=True, kw_only=True)
class View:
    """A view: a query in the SQL of one or more engines.

    ``dialects`` has the query by the name of an engine, such as ``spark``; ``query`` is for all.
    """

    name: str
    fields: tuple[DataField, ...]
    query: str
    dialects: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None
    audit: Audit = NO_AUDIT

    def schema_to_json(self) -> Json:
        return {
            "fields": [field_to_json(each) for each in self.fields],
            "query": self.query,
            "dialects": dict(self.dialects),
            "comment": self.comment,
            "options": dict(self.options),
        }

    def to_json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "schema": self.schema_to_json(),
            **self.audit.to_json(),
        }

    @staticmethod
    def from_json(value: object) -> "View":
        """The view of an answer."""
        fields = Fields(value, "the view")
        schema = Fields(fields.raw("schema"), "the schema of the view")
        return View(
            name=fields.text("name"),
            id=fields.optional_text("id"),
            fields=schema.read_all("fields", field_from_json),
            query=schema.text("query"),
            dialects=schema.text_map("dialects"),
            comment=schema.optional_text("comment"),
            options=schema.text_map("options"),
            audit=Audit.from_json(value),
        )


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function: its parameters, and a definition for each engine.

    A definition is a JSON object whose ``type`` is ``lambda``, ``sql`` or ``file``.
    """

    name: str
    input_params: tuple[DataField, ...] = ()
    return_params: tuple[DataField, ...] = ()
    deterministic: bool = False
    definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    uuid: str | None = None
    audit: Audit = NO_AUDIT

    def to_json(self) -> Json:
        return {
            "uuid": self.uuid,
            "name": self.name,
            "inputParams": [field_to_json(each) for each in self.input_params],
            "returnParams": [field_to_json(each) for each in self.return_params],
            "deterministic": self.deterministic,
            "definitions": {name: dict(each) for name, each in self.definitions.items()},
            "comment": self.comment,
            "options": dict(self.options),
            **self.audit.to_json(),
        }

    @staticmethod
    def from_json(value: object) -> "Function":
        fields = Fields(value, "the function")
        return Function(
            name=fields.text("name"),
            uuid=fields.optional_text("uuid"),
            input_params=fields.read_all("inputParams", field_from_json),
            return_params=fields.read_all("returnParams", field_from_json),
            deterministic=fields.flag("deterministic"),
            definitions=dict(fields.raw("definitions") or {}),
            comment=fields.optional_text("comment"),
            options=fields.text_map("options"),
            audit=Audit.from_json(value),
        )
