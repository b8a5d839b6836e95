"""Our errors reach the driver with their types, and are plain text on the way."""

import traceback

import pytest

from emberlake.errors import (
    CommitConflict,
    ConflictReason,
    CorruptFile,
    DataMismatch,
    EmberlakeError,
    FileNotFound,
    InvalidOption,
    SnapshotNotFound,
    StorageError,
)
from emberlake.spark.failures import error_in, reported_errors, typed_errors

ERRORS = [
    DataMismatch("id: holds 1 nulls"),
    DataMismatch("the data does not fit:\n  - id: 'é' \\ [more] (\"quoted\")\n"),
    DataMismatch(""),
    DataMismatch("\n"),
    DataMismatch("of another:\nemberlake.errors.Unsupported: x\n(in a task of emberlake)\n"),
    SnapshotNotFound("snapshot 3 is gone"),
    StorageError("the disk is full", had_no_effect=True),
    FileNotFound("/w/f.parquet", "it holds deletions of g.parquet"),
    CorruptFile("/w/is corrupt: f", "it is empty (or not)"),
    CommitConflict(ConflictReason.SEQUENCE_NUMBERS_TAKEN, "a file", "write again"),
]


def traceback_of(error: EmberlakeError) -> str:
    """What Spark gets of a task that fails."""
    try:
        with reported_errors():
            raise error
    except EmberlakeError:
        return traceback.format_exc()


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_of_a_task_is_the_same_error_on_the_driver(error: EmberlakeError) -> None:
    text = traceback_of(error)

    with pytest.raises(type(error)) as typed, typed_errors():
        raise RuntimeError(f"Job aborted: {text}\n\tat org.apache.spark\n")

    assert str(typed.value) == str(error)
    fields = {key: value for key, value in vars(error).items() if key != "__notes__"}
    assert vars(typed.value) == fields


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (
            DataMismatch("id: holds 1 nulls"),
            "emberlake.errors.DataMismatch: id: holds 1 nulls\n(in a task of emberlake)\n",
        ),
        (
            DataMismatch("it does not fit:\n  - a: too long"),
            "errors.DataMismatch: it does not fit:\n  - a: too long\n(in a task of emberlake)\n",
        ),
        (
            CorruptFile("/w/f", "é"),
            'is corrupt: é\n(in a task of emberlake: CorruptFile("/w/f", "é"))\n',
        ),
    ],
)
def test_logs_show_an_error_once_and_in_plain_text(error: EmberlakeError, end: str) -> None:
    text = traceback_of(error)

    assert text.endswith(end)
    assert text.count("Traceback") == 1


@pytest.mark.parametrize(
    "text",
    [
        "no error at all",
        "emberlake.errors.DataMismatch: of a function of the user's",
        "(in a task of emberlake)",
        "emberlake.errors.NoSuchError: a\n(in a task of emberlake)",
        "emberlake.errors.CommitConflict: a\n(in a task of emberlake)",
        "(in a task of emberlake: DataMismatch(no JSON))",
        '(in a task of emberlake: SystemExit("1"))',
        '(in a task of emberlake: CorruptFile("one"))',
        '(in a task of emberlake: CommitConflict("NO_REASON", "a", "b"))',
        ' (in a task of emberlake: DataMismatch("not at the start of a line"))',
    ],
)
def test_a_text_that_only_looks_like_an_error_of_ours_hides_no_failure(text: str) -> None:
    with pytest.raises(RuntimeError, match="the real failure"), typed_errors():
        raise RuntimeError(f"the real failure:\n{text}\n")


def test_of_errors_that_led_to_each_other_the_last_one_counts() -> None:
    try:
        with reported_errors():
            try:
                raise FileNotFound("/w/f")
            except FileNotFound as error:
                raise SnapshotNotFound("snapshot 3 is gone") from error
    except SnapshotNotFound:
        text = traceback.format_exc()

    assert isinstance(error_in(text), SnapshotNotFound)


def test_a_text_that_looks_like_an_error_does_not_hide_the_real_one() -> None:
    fake = "emberlake.errors.InvalidOption: fake\n(in a task of emberlake)"
    text = traceback_of(DataMismatch(f"a value:\n{fake}\n(in a task of emberlake: x(y))"))

    assert isinstance(error_in(f"{text}\n\tat"), DataMismatch)
    assert isinstance(error_in(f"{fake}\n(in a task of emberlake: x(y))"), InvalidOption)
