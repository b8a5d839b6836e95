"""Partitions as catalogs describe them: by name and by text values."""

import re
from collections.abc import Callable, Mapping, Sequence

from emberlake.base.times import instant_ms
from emberlake.catalog.catalog import check_page_size
from emberlake.errors import InvalidInput
from emberlake.inspect import PartitionTotals, load_partition_totals
from emberlake.inspect.totals import describe_partitions
from emberlake.options import PARTITION_DEFAULT_NAME
from emberlake.spec.identifier import Identifier
from emberlake.spec.listing import PagedList, Partition
from emberlake.spec.partition_match import match_partition
from emberlake.spec.schema import TableSchema
from emberlake.store.table_store import TableStore


def list_partition_page(
    store: TableStore,
    max_results: int | None = None,
    page_token: str | None = None,
    name_pattern: str | None = None,
) -> PagedList[Partition]:
    """Partitions of the latest snapshot, computed from the table's own metadata.

    The token is the last partition of the previous page. So if partitions come or go between two
    pages, no other partition appears twice or is left out.
    """
    check_page_size(max_results)
    totals = load_partition_totals(store, store.snapshots.latest())
    matches = _name_matcher(name_pattern)
    is_after = _position_matcher(store, page_token)
    chosen = [
        index
        for index, (name, partition) in enumerate(zip(totals.names, totals.partitions, strict=True))
        if matches(name) and is_after(name, partition)
    ]
    page = chosen if max_results is None else chosen[:max_results]
    has_more = len(page) < len(chosen)
    return PagedList(
        [_partition_at(store.schema.partition_keys, totals, index) for index in page],
        totals.partitions[page[-1]].hex() if has_more else None,
    )


def check_partition_specs(
    identifier: Identifier, schema: TableSchema, specs: Sequence[Mapping[str, object]]
) -> None:
    """Refuse specs that name no partition column, or whose values do not fit."""
    if not schema.partition_keys:
        raise InvalidInput(f"{identifier} is not partitioned")
    if not specs or not all(specs):
        raise InvalidInput(
            f"{identifier}: give a value for at least one of the partition columns "
            f"{', '.join(schema.partition_keys)}"
        )
    default_name = schema.options.value(PARTITION_DEFAULT_NAME)
    for spec in specs:
        match_partition(schema.partition_fields, spec, default_name=default_name)


def _name_matcher(pattern: str | None) -> Callable[[str], bool]:
    if pattern is None:
        return lambda _: True
    parts = re.split(r"[*%]", pattern)
    regex = re.compile(".*".join(re.escape(part) for part in parts), re.DOTALL)
    return lambda name: regex.fullmatch(name) is not None


def _position_matcher(store: TableStore, page_token: str | None) -> Callable[[str, bytes], bool]:
    if page_token is None:
        return lambda *_: True
    try:
        last = bytes.fromhex(page_token)
        _, names = describe_partitions(store, [last])
    except ValueError as error:
        raise InvalidInput(
            f"{page_token!r} is not a page token; pass next_page_token of the previous page"
        ) from error
    return lambda name, partition: (name, partition) > (names[0], last)


def _partition_at(keys: tuple[str, ...], totals: PartitionTotals, index: int) -> Partition:
    files = totals.files
    # Files record the wall clock of their writers.
    created = files.last_creation_time.cast("int64")[index].as_py()
    return Partition(
        spec=dict(zip(keys, totals.values[index], strict=True)),
        record_count=int(files.record_count[index]),
        file_size_in_bytes=int(files.file_size_in_bytes[index]),
        file_count=int(files.file_count[index]),
        last_file_creation_time=None if created is None else instant_ms(created),
        total_buckets=int(files.total_buckets[index]),
    )
