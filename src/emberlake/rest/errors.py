"""Errors of the protocol: ``{"resourceType", "resourceName", "message", "code"}``.

The HTTP status says that something failed, ``code`` says what went wrong, and the type of the
resource says what the error is about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Final

from emberlake.errors import (
    AlreadyExists,
    BranchAlreadyExists,
    BranchNotFound,
    ColumnAlreadyExists,
    ColumnNotFound,
    CommitConflict,
    DatabaseAlreadyExists,
    DatabaseNotFound,
    EmberlakeError,
    FunctionNotFound,
    InvalidInput,
    NoPermission,
    NotAuthenticated,
    NotFound,
    ServerError,
    SnapshotNotFound,
    TableAlreadyExists,
    TableNotFound,
    TagAlreadyExists,
    TagNotFound,
    Unsupported,
    ViewNotFound,
)
from emberlake.rest.reading import Fields, parse_json


class Code(IntEnum):
    """The numbers of errors."""

    BAD_REQUEST = 400
    NOT_AUTHENTICATED = 401
    FORBIDDEN = 403
    NOT_FOUND = 404
    CONFLICT = 409
    TOO_MANY_REQUESTS = 429
    FAILURE = 500
    NOT_IMPLEMENTED = 501
    UNAVAILABLE = 503


class ResourceType(StrEnum):
    """What an error is about. Clients compare these words."""

    DATABASE = "DATABASE"
    TABLE = "TABLE"
    PARTITION = "PARTITION"
    COLUMN = "COLUMN"
    SNAPSHOT = "SNAPSHOT"
    BRANCH = "BRANCH"
    TAG = "TAG"
    VIEW = "VIEW"
    DIALECT = "DIALECT"
    FUNCTION = "FUNCTION"
    DEFINITION = "DEFINITION"
    UNKNOWN = "UNKNOWN"


_RESOURCES: Final = {each.value: each for each in ResourceType}
_MISSING: Final[Mapping[ResourceType | None, type[NotFound]]] = {
    ResourceType.DATABASE: DatabaseNotFound,
    ResourceType.TABLE: TableNotFound,
    ResourceType.COLUMN: ColumnNotFound,
    ResourceType.SNAPSHOT: SnapshotNotFound,
    ResourceType.BRANCH: BranchNotFound,
    ResourceType.TAG: TagNotFound,
    ResourceType.VIEW: ViewNotFound,
    ResourceType.FUNCTION: FunctionNotFound,
}
_TAKEN: Final[Mapping[ResourceType | None, type[AlreadyExists]]] = {
    ResourceType.DATABASE: DatabaseAlreadyExists,
    ResourceType.TABLE: TableAlreadyExists,
    ResourceType.COLUMN: ColumnAlreadyExists,
    ResourceType.BRANCH: BranchAlreadyExists,
    ResourceType.TAG: TagAlreadyExists,
}
_CODES: Final[Sequence[tuple[type[EmberlakeError], Code]]] = (
    (NotFound, Code.NOT_FOUND),
    (AlreadyExists, Code.CONFLICT),
    (InvalidInput, Code.BAD_REQUEST),
    (Unsupported, Code.NOT_IMPLEMENTED),
    (NotAuthenticated, Code.NOT_AUTHENTICATED),
    (NoPermission, Code.FORBIDDEN),
    (CommitConflict, Code.CONFLICT),
)
_SHOWN_CHARACTERS: Final = 2000


@dataclass(frozen=True)
class ErrorAnswer:
    """The answer to a request that failed."""

    code: int
    message: str
    resource_type: ResourceType | None = None
    resource_name: str | None = None
    request_id: str | None = None  # from a header; for messages only

    def to_json(self) -> dict[str, Any]:
        return {
            "resourceType": None if self.resource_type is None else self.resource_type.value,
            "resourceName": self.resource_name,
            "message": self.message,
            "code": self.code,
        }

    @staticmethod
    def from_body(status: int, body: bytes, request_id: str | None = None) -> "ErrorAnswer":
        """The error in an answer; only its status if the body says nothing.

        A body that is not the JSON of an error is not shown: a proxy may have written it, and it
        may repeat what was sent, with its secrets.
        """
        try:
            fields = Fields(parse_json(body, "the answer"), "the answer")
            kind = fields.optional_text("resourceType")
            code = fields.optional_integer("code")
            message = fields.optional_text("message")
            name = fields.optional_text("resourceName")
        except InvalidInput:
            return ErrorAnswer(status, "", request_id=request_id)
        return ErrorAnswer(
            status if code is None else code,
            (message or "")[:_SHOWN_CHARACTERS],
            None if kind is None else _RESOURCES.get(kind, ResourceType.UNKNOWN),
            name,
            request_id,
        )

    @property
    def is_about_snapshot(self) -> bool:
        """Whether nothing was ever committed, or a snapshot has expired."""
        return self.code == Code.NOT_FOUND and self.resource_type is ResourceType.SNAPSHOT

    def to_error(self, doing: str) -> EmberlakeError:
        """The error that a client raises.

        Args:
            doing: What failed, and where: ``GET .../tables/t``.
        """
        said = f": {self.message}" if self.message else ""
        number = f", request {self.request_id}" if self.request_id else ""
        text = f"{doing} failed with {self.code}{number}{said}"
        match self.code:
            case Code.NOT_AUTHENTICATED:
                return NotAuthenticated(
                    f"{text}; check the options token and token.provider",
                    had_no_effect=True,
                    code=self.code,
                )
            case Code.FORBIDDEN:
                return NoPermission(
                    f"{text}; ask an administrator of the catalog for the permission",
                    had_no_effect=True,
                    code=self.code,
                )
            case Code.NOT_FOUND if self.resource_type in _MISSING:
                return _MISSING[self.resource_type](text)
            case Code.CONFLICT if self.resource_type in _TAKEN:
                return _TAKEN[self.resource_type](text)
            case Code.NOT_FOUND:
                return NotFound(text)
            case Code.CONFLICT:
                return AlreadyExists(text)
            case Code.BAD_REQUEST:
                return InvalidInput(text)
            case Code.NOT_IMPLEMENTED:
                return Unsupported(text)
            case code:
                # A gateway answers 503 also when the server behind it was lost halfway.
                was_refused = code == Code.TOO_MANY_REQUESTS
                return ServerError(text, had_no_effect=was_refused, code=code)

    @staticmethod
    def of_error(error: EmberlakeError, name: str | None = None) -> "ErrorAnswer":
        """What a server answers when an error of the engine ends a request."""
        text = str(error)
        for kinds, code in ((_MISSING, Code.NOT_FOUND), (_TAKEN, Code.CONFLICT)):
            for resource, kind in kinds.items():
                if isinstance(error, kind):
                    return ErrorAnswer(code, text, resource, name or _name_of(error))
        code = next((code for kind, code in _CODES if isinstance(error, kind)), Code.FAILURE)
        return ErrorAnswer(code, text, None, name)


def _name_of(error: EmberlakeError) -> str | None:
    """The plain name that an error has of what is missing or exists."""
    for attribute in ("database", "column", "tag", "branch"):
        name = getattr(error, attribute, None)
        if isinstance(name, str):
            return name
    table = getattr(error, "identifier", None)
    return getattr(table, "object_name", None)
