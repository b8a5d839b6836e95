"""Sizes, durations and moments as people read and type them."""

from datetime import UTC, datetime, timedelta

import pytest

from emberlake.base.texts import count_text, seconds_text, size_text
from emberlake.cli.actions.moments import parse_moment
from emberlake.cli.failures import UsageError

NOW = datetime(2026, 6, 26, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_940, "99.9 kB"),
        (123_456, "123 kB"),
        (999_600, "1.0 MB"),
        (5 * 10**12, "5.0 TB"),
        (10**20, "100 EB"),
    ],
)
def test_sizes_have_three_digits(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.031, "0.03 s"), (12.34, "12.3 s"), (185, "3 min 05 s"), (7620, "2 h 07 min")],
)
def test_durations_have_the_unit_that_fits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_one_is_singular() -> None:
    assert count_text(1, "file") == "1 file"
    assert count_text(1234, "file") == "1,234 files"


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_moments_are_so_long_ago(text: str, ago: timedelta) -> None:
    assert parse_moment(text, NOW) == NOW - ago


def test_moments_are_dates_too() -> None:
    assert parse_moment("2026-06-01T10:00:00+00:00", NOW) == datetime(2026, 6, 1, 10, tzinfo=UTC)
    assert parse_moment("2026-06-01", NOW).date().isoformat() == "2026-06-01"


@pytest.mark.parametrize("text", ["", "soon", "7x", "2026-13-01", "9" * 30 + "d"])
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="expected 7d, 12h"):
        parse_moment(text, NOW)
