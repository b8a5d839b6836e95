"""Rules as servers send them: filters and masks, in the JSON of the protocol."""

import json
from collections.abc import Mapping
from typing import Any


def ref(name: str, kind: str = "STRING") -> dict[str, Any]:
    """A reference to a column, with an index that is wrong; the type counts for Java alone."""
    return {"index": 77, "name": name, "type": kind}


def column(name: str, kind: str = "STRING") -> dict[str, Any]:
    return {"name": "FIELD_REF", "fieldRef": ref(name, kind)}


def of_inputs(transform: str, *inputs: object) -> dict[str, Any]:
    return {"name": transform, "inputs": list(inputs)}


def leaf(transform: str | Mapping[str, Any], function: str, *literals: object) -> dict[str, Any]:
    """A comparison of a column, or of a transform."""
    made = column(transform) if isinstance(transform, str) else transform
    return {"kind": "LEAF", "transform": made, "function": function, "literals": list(literals)}


def compound(function: str, *children: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "COMPOUND", "function": function, "children": list(children)}


def rules(
    *filters: Mapping[str, Any], masks: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The answer of a server."""
    return {
        "filter": [json.dumps(each) for each in filters] or None,
        "columnMasking": {name: json.dumps(mask) for name, mask in (masks or {}).items()} or None,
    }


def upper(name: str) -> dict[str, Any]:
    return of_inputs("UPPER", ref(name))


NULL = {"name": "NULL"}
