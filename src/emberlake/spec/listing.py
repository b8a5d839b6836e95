"""What catalogs list: partitions with their totals, a page at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition and its totals.

    ``spec`` has a value as text for each partition column; pass it to ``drop_partitions``
    unchanged. ``last_file_creation_time`` is in milliseconds since 1970 in UTC. Only catalogs with
    a server know who created a partition and whether it is done.
    """

    spec: Mapping[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int | None
    total_buckets: int
    done: bool = False
    created_at: int | None = None
    created_by: str | None = None
    updated_at: int | None = None
    updated_by: str | None = None
    options: Mapping[str, str] | None = None


@dataclass(frozen=True)
class PagedList(Generic[T]):
    """One page of a listing; the token, if there is one, requests the next page."""

    elements: list[T]
    next_page_token: str | None = None
