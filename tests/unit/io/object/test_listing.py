from collections.abc import Iterator
from typing import Any

import pytest

from emberlake.io.object.listing import _Listing

PATHS = ["t/a/1", "t/a/2", "t/a-b", "t/b"]  # by folders, as stores list that keep files in them


class Stores:
    """A client library whose listings break off on demand, and then begin again."""

    def __init__(self) -> None:
        self.breaks = False

    def list(self, *_: Any, offset: str | None, **__: Any) -> Iterator[list[dict[str, str]]]:
        del offset  # not every store knows it
        for path in PATHS:
            if self.breaks:
                self.breaks = False
                raise OSError
            yield [{"path": path}]


def paths_of(listing: _Listing, obs: Stores, client: object) -> list[str]:
    pages = iter(lambda: listing.next_page(obs, client), None)
    return [one["path"] for page in pages for one in page]


def test_pages_may_come_in_any_order() -> None:
    assert paths_of(_Listing("t"), Stores(), object()) == PATHS


def test_known_names_are_not_listed_again_after_a_failure() -> None:
    listing, obs, client = _Listing("t"), Stores(), object()
    assert listing.next_page(obs, client) == [{"path": "t/a/1"}]
    obs.breaks = True

    with pytest.raises(OSError):  # noqa: PT011 - it is the store's
        listing.next_page(obs, client)

    assert "t/a/1" not in paths_of(listing, obs, client)
