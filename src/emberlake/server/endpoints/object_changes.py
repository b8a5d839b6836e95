"""Changes of views and functions: pure functions of their JSON."""

from typing import Any

from emberlake.errors import InvalidInput
from emberlake.rest.errors import ResourceType
from emberlake.rest.reading import Fields
from emberlake.server.calls import Refused


def changed_view(content: dict[str, Any], change: Fields) -> dict[str, Any]:
    """A view after one change."""
    dialects = dict(content.get("dialects") or {})
    match change.text("action"):
        case "addDialect":
            name = change.text("dialect")
            if name in dialects:
                raise Refused(409, f"dialect {name} exists", ResourceType.DIALECT, name)
            return {**content, "dialects": {**dialects, name: change.text("query")}}
        case "updateDialect":
            name = _existing(dialects, change.text("dialect"), ResourceType.DIALECT)
            return {**content, "dialects": {**dialects, name: change.text("query")}}
        case "dropDialect":
            del dialects[_existing(dialects, change.text("dialect"), ResourceType.DIALECT)]
            return {**content, "dialects": dialects}
        case action:
            return _common(content, change, action)


def changed_function(content: dict[str, Any], change: Fields) -> dict[str, Any]:
    """A function after one change."""
    definitions = dict(content.get("definitions") or {})
    match change.text("action"):
        case "addDefinition":
            name = change.text("name")
            if name in definitions:
                raise Refused(409, f"definition {name} exists", ResourceType.DEFINITION, name)
            return {**content, "definitions": {**definitions, name: _definition(change)}}
        case "updateDefinition":
            name = _existing(definitions, change.text("name"), ResourceType.DEFINITION)
            return {**content, "definitions": {**definitions, name: _definition(change)}}
        case "dropDefinition":
            del definitions[_existing(definitions, change.text("name"), ResourceType.DEFINITION)]
            return {**content, "definitions": definitions}
        case action:
            return _common(content, change, action)


def _common(content: dict[str, Any], change: Fields, action: str) -> dict[str, Any]:
    options = dict(content.get("options") or {})
    match action:
        case "setOption":
            options[change.text("key")] = change.text("value")
            return {**content, "options": options}
        case "removeOption":
            options.pop(change.text("key"), None)
            return {**content, "options": options}
        case "updateComment":
            return {**content, "comment": change.optional_text("comment")}
        case _:
            raise InvalidInput(f"{action!r} is not a change that can be made here")


def _definition(change: Fields) -> dict[str, Any]:
    value = change.raw("definition")
    if not isinstance(value, dict):
        raise InvalidInput("the definition is not a JSON object")
    return value


def _existing(found: dict[str, Any], name: str, kind: ResourceType) -> str:
    if name not in found:
        raise Refused(404, f"{kind.lower()} {name} does not exist", kind, name)
    return name
