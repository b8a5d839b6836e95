import pytest

from emberlake.errors import InvalidInput
from emberlake.spec.instant import Instant


@pytest.mark.parametrize(
    ("instant", "value"),
    [
        (Instant.snapshot(3), {"type": "snapshot", "snapshotId": 3}),
        (Instant.tag("v1"), {"type": "tag", "tagName": "v1"}),
    ],
)
def test_an_instant_is_read_as_it_was_written(instant, value):
    assert instant.to_dict() == value
    assert Instant.from_dict(value) == instant


@pytest.mark.parametrize("value", [{}, {"type": "tag"}, {"type": "snapshot", "snapshotId": "x"}])
def test_what_is_no_instant_is_refused(value):
    with pytest.raises(InvalidInput, match="neither"):
        Instant.from_dict(value)
