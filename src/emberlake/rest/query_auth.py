"""What a server lets somebody read of a table with ``query-auth.enabled``: rows, and values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from emberlake.errors import InvalidInput
from emberlake.rest.reading import Fields


def query_auth_json(columns: Sequence[str]) -> dict[str, Any]:
    """The request: which columns are to be read."""
    return {"select": list(columns)}


@dataclass(frozen=True)
class QueryAuth:
    """The answer: rules, each a JSON value in a text of its own.

    Rows must match all filters. A masked column has other values than those that are stored.
    """

    filters: tuple[str, ...] = ()
    masks: Mapping[str, str] = field(default_factory=dict)

    @property
    def restricts(self) -> bool:
        """Whether it hides anything."""
        return bool(self.filters or self.masks)

    @staticmethod
    def from_json(value: object) -> "QueryAuth":
        """The rules of an answer.

        Raises:
            InvalidInput: a rule is missing or empty, so nobody knows what it was to hide.
        """
        fields = Fields(value, "the permission to read")
        found = fields.raw("columnMasking")
        masks = {} if found is None else found
        if not isinstance(masks, Mapping):
            raise InvalidInput("the permission to read: 'columnMasking' is not a JSON object")
        filters = fields.texts("filter")
        for rule in (*filters, *masks.values()):
            if not isinstance(rule, str) or not rule.strip():
                raise InvalidInput("the permission to read has a rule without a text")
        return QueryAuth(filters, dict(masks))
