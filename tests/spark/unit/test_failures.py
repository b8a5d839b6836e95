"""Errors of ours reach the driver as what they are, whatever else is in the text of a failure."""

from base64 import b64encode

import pytest

from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    DataMismatch,
    EmberlakeError,
    SnapshotNotFound,
)
from emberlake.spark.failures import TaskFailed, error_in, reported_errors, typed_errors


def marked(form: str) -> str:
    return f"[emberlake:{b64encode(form.encode()).decode()}]"


@pytest.mark.parametrize(
    "error",
    [
        DataMismatch("id: holds 1 nulls\n  - and: 'é' \\ [more]"),
        SnapshotNotFound("snapshot 3 is gone"),
        CommitConflict(ConflictReason.SEQUENCE_NUMBERS_TAKEN, "a file", "write again"),
    ],
)
def test_an_error_of_a_task_is_the_same_error_on_the_driver(error: EmberlakeError) -> None:
    with pytest.raises(TaskFailed) as failed, reported_errors():
        raise error

    with pytest.raises(type(error)) as typed, typed_errors():
        raise RuntimeError(f"Traceback ...\n{failed.value}\n\tat org.apache.spark")

    assert str(typed.value) == str(error)


@pytest.mark.parametrize(
    "text",
    [
        "no mark at all",
        "[emberlake:x]",
        marked("no JSON"),
        marked("[1]"),
        marked("7"),
        marked('["SystemExit", []]'),
        marked('["CommitConflict", ["NO_REASON"]]'),
    ],
)
def test_a_text_that_only_looks_like_an_error_of_ours_hides_no_failure(text: str) -> None:
    with pytest.raises(RuntimeError, match="the real failure"), typed_errors():
        raise RuntimeError(f"the real failure: {text}")


def test_a_text_that_looks_like_an_error_does_not_hide_the_one_behind_it() -> None:
    failed = TaskFailed(DataMismatch("too long"))

    assert isinstance(error_in(f"a value of [emberlake:abc] {failed}"), DataMismatch)
