"""Errors of the protocol: what a client raises, and what a server answers."""

import json

import pytest

from emberlake.errors import (
    AlreadyExists,
    ColumnNotFound,
    CommitConflict,
    ConflictReason,
    DatabaseNotFound,
    EmberlakeError,
    InvalidInput,
    NoPermission,
    NotAuthenticated,
    NotFound,
    ServerError,
    SnapshotNotFound,
    StorageError,
    TableAlreadyExists,
    TableNotFound,
    TagNotFound,
    Unsupported,
)
from emberlake.rest.errors import Code, ErrorAnswer, ResourceType
from emberlake.spec.identifier import Identifier


def body(**values: object) -> bytes:
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (404, {"code": 404, "resourceType": "TABLE"}, TableNotFound),
        (404, {"code": 404, "resourceType": "DATABASE"}, DatabaseNotFound),
        (404, {"code": 404, "resourceType": "SNAPSHOT"}, SnapshotNotFound),
        (404, {"code": 404, "resourceType": "TAG"}, TagNotFound),
        (404, {"code": 404, "resourceType": "COLUMN"}, ColumnNotFound),
        (404, {"code": 404, "resourceType": "DIALECT"}, NotFound),
        (404, {"code": 404, "resourceType": None}, NotFound),
        (404, {"code": 404, "resourceType": "SOMETHING_NEW"}, NotFound),
        (404, {"code": 501}, Unsupported),
        (409, {"code": 409, "resourceType": "TABLE"}, TableAlreadyExists),
        (409, {"code": 409}, AlreadyExists),
        (400, {"code": 400, "message": "bad"}, InvalidInput),
        (401, {"message": "who"}, NotAuthenticated),
        (403, {"code": 403, "resourceType": "TABLE"}, NoPermission),
        (500, {"code": 500}, ServerError),
        (502, {}, ServerError),
    ],
)
def test_the_code_and_the_resource_decide(
    status: int, answer: dict[str, object], kind: type[EmberlakeError]
) -> None:
    error = ErrorAnswer.from_body(status, body(**answer)).to_error("GET /t")

    assert type(error) is kind


@pytest.mark.parametrize("data", [b"", b"<html>Bearer secret</html>", b"[1]", b'{"code": "x"}'])
def test_a_body_that_is_no_error_is_not_shown(data: bytes) -> None:
    error = ErrorAnswer.from_body(502, data, "r-1").to_error("GET /t")

    assert isinstance(error, ServerError)
    assert str(error) == "GET /t failed with 502, request r-1"
    assert error.code == 502


def test_only_some_failures_are_known_to_have_had_no_effect() -> None:
    known = {
        code: error.had_no_effect
        for code in (401, 403, 429, 500, 502, 503, 504)
        if isinstance(error := ErrorAnswer(code, "").to_error("POST"), StorageError)
    }

    assert known == {
        401: True,
        403: True,
        429: True,
        500: False,
        502: False,
        503: False,
        504: False,
    }


@pytest.mark.parametrize(
    ("error", "code", "resource", "name"),
    [
        (TableNotFound("x", identifier=Identifier("db", "t")), 404, ResourceType.TABLE, "t"),
        (DatabaseNotFound("x", database="db"), 404, ResourceType.DATABASE, "db"),
        (ColumnNotFound("x", column="c"), 404, ResourceType.COLUMN, "c"),
        (TableAlreadyExists("x"), 409, ResourceType.TABLE, None),
        (InvalidInput("x"), 400, None, None),
        (Unsupported("x"), 501, None, None),
        (CommitConflict(ConflictReason.SCHEMA_CHANGED, "a", "b"), 409, None, None),
        (StorageError("x"), 500, None, None),
        (NoPermission("x"), 403, None, None),
    ],
)
def test_an_error_of_the_engine_becomes_an_answer(
    error: EmberlakeError, code: int, resource: ResourceType | None, name: str | None
) -> None:
    answer = ErrorAnswer.of_error(error)

    assert (answer.code, answer.resource_type, answer.resource_name) == (code, resource, name)
    again = ErrorAnswer.from_body(code, json.dumps(answer.to_json()).encode())
    assert (again.code, again.message) == (code, str(error))


def test_a_missing_snapshot_is_not_a_missing_table() -> None:
    assert ErrorAnswer(Code.NOT_FOUND, "", ResourceType.SNAPSHOT).is_about_snapshot
    assert not ErrorAnswer(Code.NOT_FOUND, "", ResourceType.TABLE).is_about_snapshot
