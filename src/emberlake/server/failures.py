"""Errors as answers."""

import errno
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from emberlake.errors import (
    BranchNotFound,
    CorruptFile,
    EmberlakeError,
    FileNotFound,
    InvalidState,
    ServerError,
    SnapshotNotFound,
    StorageError,
)
from emberlake.rest.errors import Code, ErrorAnswer, ResourceType
from emberlake.rest.paths import Endpoint
from emberlake.server.calls import Refused

_NAMED_BY: Final[Mapping[ResourceType, str]] = {
    ResourceType.DATABASE: "database",
    ResourceType.TABLE: "table",
    ResourceType.BRANCH: "branch",
    ResourceType.TAG: "tag",
    ResourceType.SNAPSHOT: "version",
    ResourceType.VIEW: "view",
    ResourceType.FUNCTION: "function",
}
# Requests that can be repeated safely: reads, and commits, whose file tells who won.
_REPEATABLE: Final = frozenset(
    {Endpoint.COMMIT, *(each for each in Endpoint if each.method == "GET")}
)


def answer_of(
    error: Exception, endpoint: Endpoint | None, names: Mapping[str, str], request_id: str
) -> ErrorAnswer:
    """The answer to an error. Only errors of the engine keep their own messages."""
    match error:
        case Refused():
            answer = error.answer
        case EmberlakeError():
            answer = _engine_answer(error, endpoint, names)
        case UnicodeError():
            answer = ErrorAnswer(Code.BAD_REQUEST, "a string holds an invalid character")
        case _:
            answer = ErrorAnswer(
                Code.FAILURE, f"the server failed; its log has more, by the request id {request_id}"
            )
    word = None if answer.resource_type is None else _NAMED_BY.get(answer.resource_type)
    if answer.resource_name is None and word is not None:
        return replace(answer, resource_name=names.get(word))
    return answer


def _is_name_too_long(error: StorageError) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ENAMETOOLONG


def _engine_answer(
    error: EmberlakeError, endpoint: Endpoint | None, names: Mapping[str, str]
) -> ErrorAnswer:
    table = names.get("table", "")
    match error:
        case SnapshotNotFound() if endpoint is Endpoint.GET_SNAPSHOT:
            # Clients compare this text.
            return ErrorAnswer(Code.NOT_FOUND, "No Snapshot", ResourceType.SNAPSHOT, table)
        case BranchNotFound() if "$branch_" in table and "branch" not in names:
            return ErrorAnswer(Code.NOT_FOUND, str(error), ResourceType.TABLE, table)
        case StorageError() if _is_name_too_long(error):
            return ErrorAnswer(Code.BAD_REQUEST, "a name is too long for a file name")
        case StorageError() if not isinstance(error, ServerError):
            is_safe = error.had_no_effect or endpoint in _REPEATABLE
            return ErrorAnswer(Code.UNAVAILABLE if is_safe else Code.FAILURE, str(error))
        case FileNotFound() | CorruptFile() | InvalidState():
            return ErrorAnswer(Code.FAILURE, str(error))
        case _:
            return ErrorAnswer.of_error(error)
