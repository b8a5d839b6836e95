"""Which live data files a read needs: pruned by manifest, partition, bucket and statistics.

Nothing is guessed: a file is left out only when its metadata proves that no row can match.
Spec: "Pruning pipeline".
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.options import BUCKET_FUNCTION, DATA_FILE_DIRECTORY
from emberlake.predicates import (
    ColumnRange,
    Op,
    Predicate,
    and_all,
    columns_of,
    computed_of,
    evaluate,
    leaves_of,
    split_conjuncts,
    test_ranges,
)
from emberlake.scan.columnstats import files_alike, key_range
from emberlake.scan.file_groups import GroupStatistics, group_entries
from emberlake.spec.binary_row import decode_row
from emberlake.spec.bucket import bucket_of
from emberlake.spec.key_value import key_fields
from emberlake.spec.manifest import ManifestFile
from emberlake.spec.profile import BucketMode
from emberlake.spec.row_columns import decode_column
from emberlake.spec.snapshot import Snapshot
from emberlake.spec.values import Value
from emberlake.store.entries import ManifestEntries, merge_entries
from emberlake.store.table_store import TableStore
from emberlake.types import DataField, DataType

Mask = npt.NDArray[np.bool_]

# More combinations of bucket key literals than this are not worth hashing.
_MAX_BUCKET_COMBINATIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Funnel:
    """How many manifests and files each step of pruning left."""

    manifests: int = 0
    manifests_read: int = 0
    files: int = 0
    after_partition: int = 0
    after_bucket: int = 0
    after_statistics: int = 0


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files to read, and which of them hold only matching rows."""

    entries: ManifestEntries
    is_exact: Mask
    funnel: Funnel


def manifests_of(store: TableStore, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests that together hold the whole state of a snapshot."""
    base, delta = store.manifests.read_lists(snapshot.state_lists)
    return (*base, *delta)


def delta_manifests_of(store: TableStore, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests that hold only the changes of a snapshot."""
    return store.manifests.read_list(
        snapshot.delta_manifest_list, snapshot.delta_manifest_list_size
    )


def changelog_manifests_of(store: TableStore, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests of the changelog files of a snapshot."""
    name = snapshot.changelog_manifest_list
    if name is None:
        return ()
    return store.manifests.read_list(name, snapshot.changelog_manifest_list_size)


def file_paths(store: TableStore, entries: ManifestEntries) -> pa.Array:
    """The paths of data files; the folder of a bucket is made once, not for each of its files."""
    keys = np.stack([entries.partition_codes, entries.bucket], axis=1)
    buckets, codes = np.unique(keys, axis=0, return_inverse=True)
    paths = [store.partition_path(partition) for partition in entries.partitions]
    directory = store.options.value(DATA_FILE_DIRECTORY)
    folders = [
        store.layout.bucket_folder(paths[partition], bucket, directory)
        for partition, bucket in buckets.tolist()
    ]
    folder = pa.array(folders, pa.string()).take(pa.array(codes.reshape(-1)))
    inside = pc.binary_join_element_wise(folder, entries.file_name.cast(pa.string()), "/")
    return pc.coalesce(entries.external_path.cast(pa.string()), inside)


PartitionChoice = frozenset[bytes] | Callable[[bytes], bool]


def live_entries(
    store: TableStore, snapshot: Snapshot, *, partitions: PartitionChoice | None = None
) -> ManifestEntries:
    """All live files of a snapshot, or those of some partitions: listed, or chosen by a test."""
    manifests: Sequence[ManifestFile] = manifests_of(store, snapshot)
    if isinstance(partitions, frozenset) and store.partition_types:
        rows = [store.partition_values(partition) for partition in partitions]
        manifests = [m for m in manifests if any(may_hold_partition(store, m, row) for row in rows)]
    entries = store.manifests.read_manifests(manifests)
    if partitions is not None and len(entries):
        is_wanted = in_partitions(partitions)
        wanted = np.array([is_wanted(p) for p in entries.partitions], bool)
        entries = entries.take(wanted[entries.partition_codes])
    return merge_entries(entries)


def in_partitions(partitions: PartitionChoice) -> Callable[[bytes], bool]:
    """A test for whether a serialized partition is among those chosen."""
    return partitions.__contains__ if isinstance(partitions, frozenset) else partitions


def plan_files(
    store: TableStore, manifests: Sequence[ManifestFile], predicate: Predicate | None
) -> FilePlan:
    """The live files of some manifests that can hold rows matching a predicate."""
    entries, funnel = load_files(store, manifests, predicate)
    may, exact = test_statistics(store, entries, predicate)
    entries, exact = entries.take(may), exact[may]
    return FilePlan(entries, exact, replace(funnel, after_statistics=len(entries)))


def load_files(
    store: TableStore, manifests: Sequence[ManifestFile], predicate: Predicate | None
) -> tuple[ManifestEntries, Funnel]:
    """The live files of some manifests whose partition and bucket can hold matching rows."""
    funnel = Funnel(
        manifests=len(manifests),
        files=sum(m.num_added_files - m.num_deleted_files for m in manifests),
    )
    on_partition = partition_part(store, predicate)
    kept = _prune_manifests(store, manifests, on_partition)
    entries = store.manifests.read_manifests(kept)
    entries = merge_entries(entries.take(test_partitions(store, entries, on_partition)))
    funnel = replace(funnel, manifests_read=len(kept), after_partition=len(entries))
    entries = entries.take(test_buckets(store, entries, predicate))
    return entries, replace(funnel, after_bucket=len(entries))


def partition_part(store: TableStore, predicate: Predicate | None) -> Predicate | None:
    """The conjuncts that use only partition columns."""
    return conjuncts_on(store.schema.partition_keys, predicate)


def conjuncts_on(columns: Iterable[str], predicate: Predicate | None) -> Predicate | None:
    """The conjuncts that use only these columns."""
    names = frozenset(columns)
    return and_all(p for p in split_conjuncts(predicate) if columns_of(p) <= names)


def _prune_manifests(
    store: TableStore, manifests: Sequence[ManifestFile], on_partition: Predicate | None
) -> list[ManifestFile]:
    if on_partition is None or not manifests:
        return list(manifests)
    types = store.partition_types
    arity = len(types).to_bytes(4, "big")
    described = [m.partition_stats.min_values[:4] == arity for m in manifests]
    known = [m for m, is_known in zip(manifests, described, strict=True) if is_known]
    lookup = partial(_manifest_range, store, known)
    counts = np.array([m.num_added_files + m.num_deleted_files for m in known], np.int64)
    may = iter(test_ranges(on_partition, counts, lookup).may.tolist())
    return [
        m for m, is_known in zip(manifests, described, strict=True) if not is_known or next(may)
    ]


def _manifest_range(
    store: TableStore, manifests: Sequence[ManifestFile], field: DataField
) -> ColumnRange | None:
    if field.name not in store.schema.partition_keys:
        return None
    index = store.schema.partition_keys.index(field.name)
    stats = [m.partition_stats for m in manifests]
    nulls = [s.null_counts[index] if s.null_counts else None for s in stats]
    return ColumnRange(
        decode_column(store.partition_types, _binary([s.min_values for s in stats]), index),
        decode_column(store.partition_types, _binary([s.max_values for s in stats]), index),
        pa.array(nulls, pa.int64()),
    )


def may_hold_partition(
    store: TableStore, manifest: ManifestFile, values: tuple[Value, ...]
) -> bool:
    """Whether a manifest can have entries of a partition."""
    stats = manifest.partition_stats
    if stats.min_values[:4] != len(values).to_bytes(4, "big"):
        return True
    lows: tuple[Any, ...] = decode_row(store.partition_types, stats.min_values)
    highs: tuple[Any, ...] = decode_row(store.partition_types, stats.max_values)
    # Written so that NaN, which is neither less nor greater than anything, excludes nothing.
    return not any(
        value is not None and low is not None and high is not None and (value < low or value > high)
        for value, low, high in zip(values, lows, highs, strict=True)
    )


def test_partitions(
    store: TableStore, entries: ManifestEntries, on_partition: Predicate | None
) -> Mask:
    """For every file: can its partition hold a matching row."""
    if on_partition is None or not len(entries):
        return np.ones(len(entries), bool)
    # By a struct: a batch without columns would forget how many partitions there are.
    columns = _partition_columns(store, entries)
    names = list(store.schema.partition_keys)
    nothing = pa.array([{}] * len(entries.partitions), pa.struct([]))
    rows = pa.StructArray.from_arrays(columns, names) if names else nothing
    batch = pa.RecordBatch.from_struct_array(rows)
    matches = evaluate(on_partition, batch).fill_null(False).to_numpy(zero_copy_only=False)
    found: Mask = matches[entries.partition_codes]
    return found


def _partition_columns(store: TableStore, entries: ManifestEntries) -> list[pa.Array]:
    rows = _binary(entries.partitions)
    types = store.partition_types
    return [decode_column(types, rows, index) for index in range(len(types))]


def _binary(rows: Sequence[bytes]) -> pa.Array:
    return pa.array(list(rows), pa.binary())


def test_buckets(store: TableStore, entries: ManifestEntries, predicate: Predicate | None) -> Mask:
    """For every file: can its bucket hold a matching row."""
    keys = None
    if predicate is not None and store.schema.profile.bucket_mode is BucketMode.FIXED:
        keys = _bucket_key_literals(store, predicate)
    if keys is None:
        return np.ones(len(entries), bool)
    function = store.options.value(BUCKET_FUNCTION)
    types = [store.schema.field_by_name[name].type for name in store.schema.bucket_keys]
    keep = entries.total_buckets <= 0
    # A partition keeps the bucket count it was written with, whatever the table's option is now.
    for total in np.unique(entries.total_buckets[~keep]).tolist():
        buckets = sorted({bucket_of(function, types, key, total) for key in keys})
        keep |= (entries.total_buckets == total) & np.isin(entries.bucket, buckets)
    # If a key column has another type, hashes differ: the bucket of such files means nothing.
    for schema_id in np.unique(entries.schema_id).tolist():
        if not _has_key_types(store, schema_id, types):
            keep |= entries.schema_id == schema_id
    return keep


def _has_key_types(store: TableStore, schema_id: int, types: Sequence[DataType]) -> bool:
    if schema_id == store.schema.id:
        return True
    then = {field.id: field.type for field in store.schemas.load(schema_id).fields}
    ids = [store.schema.field_by_name[name].id for name in store.schema.bucket_keys]
    return all(
        i in then and then[i].with_nullable(True) == t.with_nullable(True)
        for i, t in zip(ids, types, strict=True)
    )


def _bucket_key_literals(store: TableStore, predicate: Predicate) -> list[tuple[Value, ...]] | None:
    """Every bucket key that a matching row can have, or None if the filter does not fix them."""
    choices: dict[str, list[Value]] = {}
    for part in split_conjuncts(predicate):
        pinned = _pinned_values(part)
        if pinned is not None:
            choices.setdefault(*pinned)
    literals = [choices.get(name) for name in store.schema.bucket_keys]
    known = [choice for choice in literals if choice is not None]
    if not known or len(known) < len(literals):
        return None
    if math.prod(len(choice) for choice in known) > _MAX_BUCKET_COMBINATIONS:
        return None
    return list(itertools.product(*known))


def _pinned_values(part: Predicate) -> tuple[str, list[Value]] | None:
    """The column that a conjunct pins down, and the values that it allows."""
    if computed_of(part):
        return None
    leaves = leaves_of(part)
    names = {leaf.column.name for leaf in leaves}
    if len(names) != 1 or any(leaf.op not in (Op.EQUAL, Op.IN) or leaf.path for leaf in leaves):
        return None
    literals = (value for leaf in leaves for value in leaf.literals if value is not None)
    return names.pop(), [equal for value in literals for equal in _equal_values(value)]


def _equal_values(value: Value) -> tuple[Value, ...]:
    """All values that equal a value; the two zeros are equal but have different hashes."""
    return (0.0, -0.0) if isinstance(value, float) and value == 0 else (value,)


def test_statistics(
    store: TableStore, entries: ManifestEntries, predicate: Predicate | None
) -> tuple[Mask, Mask]:
    """For every file: can it, and those beside it, hold a matching row, and do all rows match."""
    count = len(entries)
    if predicate is None:
        return np.ones(count, bool), np.ones(count, bool)
    if store.schema.profile.evolves_data:
        return _test_groups(store, entries, predicate)
    may, exact = np.ones(count, bool), np.zeros(count, bool)
    for alike in files_alike(store, entries, _partition_range(store, entries)):
        rows = alike.rows
        verdict = test_ranges(predicate, entries.row_count[rows], alike.range_of)
        may[rows], exact[rows] = verdict.may, verdict.all
    return may, exact


def _test_groups(
    store: TableStore, entries: ManifestEntries, predicate: Predicate
) -> tuple[Mask, Mask]:
    """The same where files lie side by side: all files of a group are needed, or none is."""
    may, exact = np.ones(len(entries), bool), np.zeros(len(entries), bool)
    if not len(entries):
        return may, exact
    grouping = group_entries(entries)
    partition_range = _partition_range(store, entries)
    alike = list(files_alike(store, entries, partition_range))
    statistics = GroupStatistics(entries, grouping, alike, partition_range)
    verdict = test_ranges(predicate, statistics.row_counts, statistics.range_of)
    may[grouping.order] = np.repeat(verdict.may, grouping.sizes)
    exact[grouping.order] = np.repeat(verdict.all, grouping.sizes)
    return may, exact


def test_keys(store: TableStore, entries: ManifestEntries, predicate: Predicate | None) -> Mask:
    """For every file of a primary-key table: can it hold a matching key."""
    on_key = conjuncts_on(store.schema.trimmed_primary_keys, predicate)
    if on_key is None or not len(entries):
        return np.ones(len(entries), bool)
    lookup = partial(key_range, key_fields(store.schema), entries)
    return test_ranges(on_key, entries.row_count, lookup).may


def _partition_range(
    store: TableStore, entries: ManifestEntries
) -> Callable[[str, npt.NDArray[np.int64]], ColumnRange | None]:
    """Ranges of partition columns: in one file they have one value."""
    columns = dict(
        zip(store.schema.partition_keys, _partition_columns(store, entries), strict=True)
    )

    def lookup(name: str, rows: npt.NDArray[np.int64]) -> ColumnRange | None:
        if name not in columns:
            return None
        values = columns[name].take(pa.array(entries.partition_codes[rows]))
        nulls = np.where(
            values.is_null().to_numpy(zero_copy_only=False), entries.row_count[rows], 0
        )
        return ColumnRange(values, values, pa.array(nulls, pa.int64()))

    return lookup
