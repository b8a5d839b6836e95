import datetime as dt
import json

import pytest

from emberlake.errors import CorruptFile
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.spec.tag import Tag, decode_tag, format_duration

SNAPSHOT = Snapshot(
    id=3,
    schema_id=0,
    base_manifest_list="base",
    delta_manifest_list="delta",
    commit_user="me",
    commit_identifier=1,
    commit_kind=CommitKind.APPEND,
    time_millis=1,
    total_record_count=1,
    delta_record_count=1,
    unknown={"fromTheFuture": 1},
)
NOON = dt.datetime(2026, 6, 26, 12, 0)  # noqa: DTZ001
DAY = dt.timedelta(days=1)


def kept(retained, created=NOON) -> Tag:
    return Tag.from_snapshot_and_tag_ttl(SNAPSHOT, retained, created)


@pytest.mark.parametrize(
    "created",
    [NOON, NOON.replace(second=5), NOON.replace(second=5, microsecond=250), NOON.replace(hour=0)],
)
def test_a_tag_is_read_as_it_was_written(created):
    tag = kept(dt.timedelta(hours=36, microseconds=500), created)

    assert decode_tag(tag.encode(), "tag-x") == tag
    assert tag.trim_to_snapshot() == SNAPSHOT


@pytest.mark.parametrize(
    ("created", "parts"),
    [
        (NOON, [2026, 6, 26, 12, 0]),
        (NOON.replace(second=5), [2026, 6, 26, 12, 0, 5]),
        (NOON.replace(microsecond=250), [2026, 6, 26, 12, 0, 0, 250_000]),
    ],
)
def test_times_are_written_as_java_writes_them(created, parts):
    value = json.loads(kept(dt.timedelta(hours=36), created).encode())

    assert value["tagCreateTime"] == parts
    assert value["tagTimeRetained"] == 129600.0


def test_a_tag_that_is_kept_for_good_is_a_plain_snapshot():
    """Old readers do not know the keys."""
    assert kept(None).encode() == SNAPSHOT.encode()


@pytest.mark.parametrize(
    ("retained", "now", "has_expired"),
    [
        (DAY, NOON + DAY, False),
        (DAY, NOON + DAY + dt.timedelta(microseconds=1), True),
        (dt.timedelta.max, NOON + DAY, False),
        (None, dt.datetime.max, False),  # noqa: DTZ901
    ],
)
def test_a_tag_expires_when_its_time_is_over(retained, now, has_expired):
    assert kept(retained).has_expired(now) is has_expired


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (dt.timedelta(), "PT0S"),
        (dt.timedelta(days=1), "PT24H"),
        (dt.timedelta(seconds=3661), "PT1H1M1S"),
        (dt.timedelta(microseconds=500), "PT0.0005S"),
        (dt.timedelta(seconds=10), "PT10S"),
    ],
)
def test_durations_are_shown_as_java_shows_them(duration, text):
    assert format_duration(duration) == text


@pytest.mark.parametrize(
    "wrong", [{"tagCreateTime": [2026, 13, 1]}, {"tagCreateTime": "x"}, {"tagTimeRetained": "1 d"}]
)
def test_a_tag_that_does_not_say_how_long_is_corrupt(wrong):
    raw = json.dumps({**SNAPSHOT.to_json(), **wrong}).encode()

    with pytest.raises(CorruptFile, match="tag-x"):
        decode_tag(raw, "tag-x")
