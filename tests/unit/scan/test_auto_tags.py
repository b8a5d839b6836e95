"""Names of the tags that Java's engines create by themselves."""

import pytest

from emberlake.options import TableOptions
from emberlake.scan.auto_tags import tag_before, time_of


@pytest.mark.parametrize(
    ("period", "formatter", "tag", "time"),
    [
        (None, None, "2025-06-15", "2025-06-15T00:00"),
        (None, None, "2025-06-15 11", "2025-06-15T00:00"),
        (None, None, "2025-6-15", None),
        (None, None, "2025-06-31", None),
        (None, None, "20250615", None),
        ("daily", "without_dashes", "20250615", "2025-06-15T00:00"),
        ("daily", "without_dashes_and_spaces", "20250615", "2025-06-15T00:00"),
        ("hourly", None, "2025-06-15 23", "2025-06-15T23:00"),
        ("hourly", None, "2025-06-15", None),
        ("hourly", "without_dashes", "20250615 09", "2025-06-15T09:00"),
        ("hourly", "without_dashes_and_spaces", "2025061509", "2025-06-15T09:00"),
        ("two-hours", "without_dashes", "2025-06-15 22", "2025-06-15T22:00"),
        ("never", None, "2025-06-15", None),
    ],
)
def test_the_name_of_an_automatic_tag_is_a_time(
    period: str | None, formatter: str | None, tag: str, time: str | None
) -> None:
    given = {"tag.creation-period": period, "tag.period-formatter": formatter}

    found = time_of(tag, TableOptions({k: v for k, v in given.items() if v is not None}))

    assert (found and found.isoformat(timespec="minutes")) == time


def test_a_period_of_any_length_names_minutes() -> None:
    options = TableOptions({"tag.creation-period-duration": "10 min"})

    assert time_of("202506152310", options).isoformat(timespec="minutes") == "2025-06-15T23:10"


def test_the_tag_before_is_the_last_one_of_an_earlier_time() -> None:
    tags = ["2025-06-17", "2025-06-01", "2025-06-10", "release", "2025-06-15"]

    assert tag_before("2025-06-15", tags, TableOptions()) == "2025-06-10"
    assert tag_before("2025-06-01", tags, TableOptions()) is None
    assert tag_before("release", tags, TableOptions()) is None
