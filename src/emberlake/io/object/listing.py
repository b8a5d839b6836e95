"""All objects of a folder, a page at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from emberlake.io.object.calls import ask_again
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.location import Location

PAGE: Final = 1000  # of a listing, and of a bulk deletion

_T = TypeVar("_T")
_Page = Sequence[Mapping[str, Any]]


def pages_of(config: StoreConfig, location: Location) -> Iterator[_Page]:
    """All objects below a folder, by name, in one page per request; no page is empty."""
    listing = _Listing(location.key or None)
    while (page := ask_for_list(config, location, listing.next_page)) is not None:
        if page:
            yield page


def ask_for_list(config: StoreConfig, location: Location, work: Callable[[Any, Any], _T]) -> _T:
    """The answer to a request for a list; the request is repeated if the answer breaks off."""
    return ask_again(config, location, "list", work, only_broken_off=True)


class _Listing:
    """A listing that another client can continue.

    A stream that has failed once claims to be at its end. So a retry, and also a client with new
    keys, begins a new stream after the last known object.
    """

    def __init__(self, prefix: str | None) -> None:
        self._prefix = prefix
        self._client: Any = None
        self._stream: Iterator[_Page] = iter(())
        self._last: str | None = None
        self._after: str | None = None  # where the stream began

    def next_page(self, obs: Any, client: Any) -> _Page | None:
        if client is not self._client:
            self._client = client
            self._after = self._last
            found = obs.list(client, self._prefix, offset=self._after, chunk_size=PAGE)
            self._stream = iter(found)
        try:
            page = next(self._stream, None)
        except BaseException:
            self._client = None
            raise
        if page is None:
            return None
        if self._after is not None:  # some stores ignore the offset and begin at the start
            page = [one for one in page if one["path"] > self._after]
        if page:
            self._last = page[-1]["path"]
        return page
