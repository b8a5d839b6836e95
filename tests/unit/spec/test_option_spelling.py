"""Options that look like known ones."""

import pytest

from emberlake.spec.option_spelling import misspelled


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("buckt", "bucket"),
        ("scan.snapshotid", "scan.snapshot-id"),
        ("scan.snapshot", "scan.snapshot-id"),  # a read would silently be of the latest one
        ("scan.tag", "scan.tag-name"),
    ],
)
def test_an_option_that_looks_like_a_known_one_is_questioned(key: str, meant: str) -> None:
    assert misspelled([key]) == [f"emberlake does not know the option {key}: did you mean {meant}?"]


def test_options_of_other_engines_are_not() -> None:
    assert misspelled(["bucket", "scan.tag-name", "my.option", "num-sorted-run.stop"]) == []
