"""Explain what a read would do: which files it opens and skips, and which step skips them."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from emberlake.predicates import Predicate, columns_of
from emberlake.scan.explanation import (
    ExplainedFile,
    ExplainedSplit,
    Explanation,
    PruningStat,
    Reason,
)
from emberlake.scan.files import (
    Mask,
    file_paths,
    partition_part,
    test_buckets,
    test_partitions,
    test_statistics,
)
from emberlake.scan.plan import ScanPlan, plan_scan
from emberlake.scan.splits import DataSplit
from emberlake.spec.profile import BucketMode
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_RANKS: Final = {reason: rank for rank, reason in enumerate(Reason)}


def explain_scan(
    store: TableStore,
    predicate: Predicate | None,
    limit: int | None,
    *,
    columns: Sequence[str],
    is_projected: bool = False,
    name: str | None = None,
    verbose: bool,
) -> Explanation:
    """Plan a read and account for every live file."""
    plan = plan_scan(store, predicate, limit)
    files = _explain_files(store, plan, predicate)
    by_partition, by_bucket, by_statistics = _pruning(store, predicate, files)
    return Explanation(
        table_path=store.layout.root,
        table_identifier=name or store.layout.root,
        is_primary_key_table=store.schema.profile.has_keys,
        bucket_mode=_bucket_mode(store),
        deletion_vectors_enabled=store.schema.profile.has_deletion_vectors,
        data_evolution_enabled=store.schema.profile.evolves_data,
        snapshot_id=plan.snapshot.id if plan.snapshot else None,
        schema_id=store.schema.id if plan.snapshot else None,
        predicate=None if predicate is None else str(predicate),
        columns=tuple(columns),
        projection=list(columns) if is_projected else None,
        limit=limit,
        manifests=plan.funnel.manifests,
        manifests_read=plan.funnel.manifests_read,
        files=tuple(sorted(files, key=lambda f: 0 if f.reason.is_read else _RANKS[f.reason])),
        planned=tuple(_explain_split(store, split) for split in plan.splits),
        partition_pruning=by_partition,
        bucket_pruning=by_bucket,
        file_skipping=by_statistics,
        verbose=verbose,
    )


def _explain_split(store: TableStore, split: DataSplit) -> ExplainedSplit:
    names, values = store.schema.partition_keys, store.partition_values(split.partition)
    return ExplainedSplit(
        partition=dict(zip(names, values, strict=True)),
        bucket=split.bucket,
        row_count=split.row_count,
        merged_row_count=split.merged_row_count(),
        file_size=split.file_size,
        raw_convertible=split.raw_convertible,
        deletion_file_count=len(split.deletion_files),
        entries=split.entries,
        store=store,
    )


def _bucket_mode(store: TableStore) -> str:
    """How rows get their bucket, in the words of the specification."""
    schema = store.schema
    match schema.profile.bucket_mode:
        case BucketMode.POSTPONED:
            return "POSTPONE_MODE"
        case BucketMode.FIXED:
            return "HASH_FIXED"
        case BucketMode.UNAWARE:
            return "BUCKET_UNAWARE"
        case BucketMode.DYNAMIC:
            return "HASH_DYNAMIC"
        case BucketMode.CROSS_PARTITION:
            return "CROSS_PARTITION"


def _pruning(
    store: TableStore, predicate: Predicate | None, files: Sequence[ExplainedFile]
) -> tuple[PruningStat | None, PruningStat | None, PruningStat | None]:
    """What partitions, buckets and statistics left out, one after another."""
    if predicate is None:
        return None, None, None
    counts = Counter(file.reason for file in files)
    inside = len(files) - counts[Reason.PARTITION]
    in_bucket = inside - counts[Reason.BUCKET]
    filtered, keys = columns_of(predicate), store.schema.bucket_keys
    has_hash = store.schema.profile.bucket_mode is BucketMode.FIXED
    names_bucket = has_hash and bool(keys) and filtered.issuperset(keys)
    return (
        PruningStat(len(files), inside) if store.schema.partition_keys else None,
        PruningStat(inside, in_bucket) if names_bucket else None,
        PruningStat(in_bucket, in_bucket - counts[Reason.STATISTICS]),
    )


def _test_rows(
    store: TableStore, entries: ManifestEntries, predicate: Predicate | None
) -> tuple[Mask, Mask]:
    """For every file: can it hold a matching row, and do all its rows match."""
    if not store.schema.profile.has_keys:
        return test_statistics(store, entries, predicate)
    # Whether a file of a primary-key table is read depends on those that share its keys.
    splits = plan_scan(store, predicate, None).splits
    exact = {
        file.file_name: is_exact and split.raw_convertible
        for split in splits
        for file, is_exact in zip(split.files, split.is_exact, strict=True)
    }
    names = entries.file_name.to_pylist()
    may = np.array([name in exact for name in names], bool)
    return may, np.array([exact.get(name, False) for name in names], bool)


def _explain_files(
    store: TableStore, plan: ScanPlan, predicate: Predicate | None
) -> list[ExplainedFile]:
    everything = plan_scan(store, None, None)
    entries = ManifestEntries.concat(split.entries for split in everything.splits)
    in_partition = test_partitions(store, entries, partition_part(store, predicate))
    in_bucket = test_buckets(store, entries, predicate)
    may, exact = _test_rows(store, entries, predicate)
    reasons = np.select(
        [~in_partition, ~in_bucket, ~may, exact & (predicate is not None)],
        [Reason.PARTITION, Reason.BUCKET, Reason.STATISTICS, Reason.ALL_ROWS_MATCH],
        Reason.READ,
    )
    planned = ManifestEntries.concat(split.entries for split in plan.splits).file_name
    names = entries.file_name
    is_planned = pc.is_in(names, planned.cast(names.type)).to_numpy(zero_copy_only=False)
    out = []
    for path, rows, size, reason, is_left in zip(
        file_paths(store, entries).to_pylist(),
        entries.row_count.tolist(),
        entries.file_size.tolist(),
        reasons.tolist(),
        is_planned.tolist(),
        strict=True,
    ):
        found = Reason(reason)
        final = found if is_left or not found.is_read else Reason.LIMIT
        out.append(ExplainedFile(path, rows, size, final))
    return sorted(out, key=lambda explained: not explained.reason.is_read)
