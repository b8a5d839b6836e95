"""Reads a table and makes the views of it. What cannot be read is left unknown where possible."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.base.parallel import parallel_map
from emberlake.errors import NotFound, Unsupported
from emberlake.inspect import load_partition_totals
from emberlake.inspect.files import value_ranges
from emberlake.inspect.text import json_rows
from emberlake.inspect.totals import describe_partitions, load_bucket_totals, load_live_files
from emberlake.maintenance.check_report import DAMAGE
from emberlake.predicates import columns_of as columns_of_filter
from emberlake.read.row_texts import cells_of
from emberlake.scan.explanation import ExplainedFile, Reason
from emberlake.scan.files import delta_manifests_of
from emberlake.scan.runs import key_ranges
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import DELETION_VECTORS_INDEX, EMPTY_ROW, FileKind
from emberlake.spec.snapshot import Snapshot
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore
from emberlake.store.tags import TagStore
from emberlake.table import Table
from emberlake.ui.views.buckets import BucketLine, BucketList, BucketView
from emberlake.ui.views.heat import HeatMap, PartitionSize, heat_map_of
from emberlake.ui.views.history import Change, History, Lane, history_of
from emberlake.ui.views.lsm import KeyFile, lsm_of
from emberlake.ui.views.overview import (
    Overview,
    Size,
    buckets_of,
    columns_of,
    kind_of,
    shown_options,
)
from emberlake.ui.views.plan import PlanView, plan_view_of
from emberlake.ui.views.rows import RowsView, shortened
from emberlake.ui.views.sizes import SizeBar, size_bars_of

HISTORY_PAGE: Final = 60
FIRST_ROWS: Final = 25
BUCKETS_PAGE: Final = 100
_LONGEST_BOUND: Final = 40


def load_overview(table: Table) -> Overview:
    """What a table is, and how large its latest snapshot is."""
    store, schema, snapshot = table.store, table.table_schema, table.latest_snapshot()
    return Overview(
        identifier=str(table.identifier),
        path=table.table_path,
        branch=table.current_branch(),
        kind=kind_of(schema),
        buckets=buckets_of(schema),
        comment=schema.comment or None,
        schema_id=schema.id,
        columns=columns_of(schema),
        options=shown_options(schema.options),
        partition_keys=tuple(schema.partition_keys),
        primary_keys=tuple(schema.primary_keys),
        snapshot=snapshot,
        size=_load_size(store, snapshot),
        tags=len(table.list_tags()),
        branches=len(table.list_branches()),
    )


def _load_size(store: TableStore, snapshot: Snapshot | None) -> Size:
    if snapshot is None:
        return Size()
    buckets = load_bucket_totals(store, snapshot)
    return Size(
        rows=snapshot.total_record_count,
        files=int(buckets.files.file_count.sum()),
        bytes=int(buckets.files.file_size_in_bytes.sum()),
        partitions=len(set(buckets.names)) if store.schema.partition_keys else 0,
        buckets=len(buckets.buckets),
    )


def load_size_bars(table: Table) -> tuple[SizeBar, ...]:
    """How large the files of the latest snapshot are."""
    return size_bars_of(load_live_files(table.store, table.latest_snapshot()).file_size)


# --- history --------------------------------------------------------------------------------------


def load_history(table: Table, before: int | None = None, count: int = HISTORY_PAGE) -> History:
    """A page of the history: the snapshots before one, by default the newest."""
    store = table.store
    all_ids = sorted(store.snapshots.list_ids())
    ids = [i for i in all_ids if before is None or i < before]
    older = max(0, len(ids) - count)
    first = ids[older] if older else 0
    last = None if before is None else before - 1
    layouts = sorted(store.branches.layouts(), key=lambda each: each.branch != store.layout.branch)
    lanes = (_load_lane(store, layout, first, last, count) for layout in layouts)
    shown = [lane for lane in lanes if lane.snapshots or lane.branch == store.layout.branch]
    return history_of(shown, older=older)


def _load_lane(
    store: TableStore, layout: TableLayout, first: int, last: int | None, count: int
) -> Lane:
    snapshots = store.snapshots_of(layout)
    all_ids = sorted(snapshots.list_ids())
    ids = [i for i in all_ids if i >= first and (last is None or i <= last)][-count:]
    found = tuple(s for s in snapshots.find_each(ids) if s is not None)
    tags = {
        name: tag
        for name, tag in TagStore(store.storage, layout).list().items()
        if tag.id >= first and (last is None or tag.id <= last)
    }
    changes = parallel_map(partial(_load_change, store), found, workers=store.readers)
    return Lane(
        layout.branch,
        found,
        tags,
        dict(zip((s.id for s in found), changes, strict=True)),
        all_ids[-1] if all_ids else None,
        _load_bytes(store, found[-1]) if found else None,
    )


def _load_change(store: TableStore, snapshot: Snapshot) -> Change | None:
    """What a snapshot did; None if its manifests cannot be read."""
    try:
        entries = store.manifests.read_manifests(delta_manifests_of(store, snapshot))
    except DAMAGE:
        return None
    added = entries.kind == FileKind.ADD.value
    return Change(
        int(added.sum()),
        int((~added).sum()),
        int(entries.file_size[added].sum()),
        int(entries.file_size[~added].sum()),
    )


def _load_bytes(store: TableStore, snapshot: Snapshot) -> int | None:
    try:
        return int(load_live_files(store, snapshot).file_size.sum())
    except DAMAGE:
        return None


# --- partitions and buckets -----------------------------------------------------------------------


def load_heat_map(table: Table) -> HeatMap:
    """The partitions of the latest snapshot."""
    return heat_map_of(load_partitions(table))


def load_partitions(table: Table) -> list[PartitionSize]:
    """The partitions of the latest snapshot, in the order of their names."""
    totals = load_partition_totals(table.store, table.latest_snapshot())
    files = totals.files
    columns = (files.record_count, files.file_size_in_bytes, files.file_count)
    return [
        PartitionSize(name, values, rows, size, count)
        for name, values, rows, size, count in zip(
            totals.names, totals.values, *(c.tolist() for c in columns), strict=True
        )
    ]


def load_buckets(table: Table, partition: str | None, count: int = BUCKETS_PAGE) -> BucketList:
    """The largest buckets of the latest snapshot, or of one partition of it."""
    totals = load_bucket_totals(table.store, table.latest_snapshot())
    names = np.array(totals.names, object)
    chosen = np.flatnonzero(names == partition) if partition else np.arange(len(names))
    sizes = totals.files.file_size_in_bytes
    order = chosen[np.argsort(-sizes[chosen], kind="stable")]
    lines = tuple(
        BucketLine(
            totals.names[i],
            int(totals.buckets[i]),
            int(totals.files.record_count[i]),
            int(sizes[i]),
            int(totals.files.file_count[i]),
        )
        for i in order[:count].tolist()
    )
    most = int(sizes[order[0]]) if len(order) else 0
    return BucketList(partition, lines, len(order), most)


def load_bucket(table: Table, partition: str, bucket: int) -> BucketView:
    """The files of one bucket: a tree of sorted runs, if the table has keys.

    Raises:
        NotFound: there is no such bucket.
    """
    store, snapshot = table.store, table.latest_snapshot()
    entries = load_live_files(store, snapshot)
    _, names = describe_partitions(store, entries.partitions)
    wanted = np.array([name == partition for name in names], bool)
    inside = wanted[entries.partition_codes] & (entries.bucket == bucket)
    entries = entries.take(inside)
    if snapshot is None or not len(entries):
        where = f" of partition {partition}" if partition else ""
        raise NotFound(f"{table.identifier} has no bucket {bucket}{where}")
    line = BucketLine(
        partition,
        bucket,
        int(entries.row_count.sum()),
        int(entries.file_size.sum()),
        len(entries),
    )
    files = _key_files(store, snapshot, entries)
    tree = lsm_of(files) if files else None
    return BucketView(line, tree, size_bars_of(entries.file_size))


def _key_files(store: TableStore, snapshot: Snapshot, entries: ManifestEntries) -> list[KeyFile]:
    """The files of a bucket with their key ranges; none if some have no keys."""
    if not store.schema.profile.has_keys:
        return []
    lows, highs = entries.min_key, entries.max_key
    if pc.any(pc.equal(lows, pa.scalar(EMPTY_ROW, lows.type))).as_py():
        return []  # rows that have no bucket yet
    fields = store.schema.field_by_name
    types = [fields[name].type for name in store.schema.trimmed_primary_keys]
    with store.decoding_rows():
        ranges = key_ranges(types, lows, highs)
        texts = [
            [text[1:-1] for text in json_rows(types, rows).to_pylist()] for rows in (lows, highs)
        ]
    names = entries.file_name.to_pylist()
    vectors = dict(_hidden_rows(store, snapshot))
    return [
        KeyFile(name, level, rows, size, deletes, vectors.get(name, 0), last, low, high, bounds)
        for name, level, rows, size, deletes, last, low, high, bounds in zip(
            names,
            entries.level.tolist(),
            entries.row_count.tolist(),
            entries.file_size.tolist(),
            entries.delete_row_count.to_pylist(),
            entries.max_sequence_number.tolist(),
            *texts,
            ranges,
            strict=True,
        )
    ]


def _hidden_rows(store: TableStore, snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """How many rows of a file its deletion vector hides."""
    if snapshot.index_manifest is None or not store.schema.profile.has_deletion_vectors:
        return
    for entry in store.manifests.read_index(snapshot.index_manifest):
        if entry.index_file.index_type == DELETION_VECTORS_INDEX:
            for vector in entry.index_file.deletion_vectors or ():
                yield vector.data_file_name, vector.cardinality or 0


# --- plans and rows -------------------------------------------------------------------------------


def load_plan(table: Table, text: str) -> PlanView:
    """What a read with this filter would do.

    Raises:
        InvalidPredicate, ColumnNotFound: it is not a filter for this table.
    """
    builder = table.new_read_builder().with_filter(text.strip() or None)
    predicate = builder.new_scan().predicate
    names = sorted(columns_of_filter(predicate)) if predicate else []
    why = _why(table, [name for name in names if name not in table.partition_keys])
    return plan_view_of(text.strip(), builder.explain(), why)


def _why(table: Table, columns: Sequence[str]) -> Callable[[Sequence[ExplainedFile]], list[str]]:
    """Tells what the statistics of files say about some columns."""

    def why(files: Sequence[ExplainedFile]) -> list[str]:
        judged = {Reason.STATISTICS, Reason.READ, Reason.ALL_ROWS_MATCH}
        names = {_name_of(file) for file in files if file.reason in judged}
        if not columns or not names:
            return [""] * len(files)
        store = table.store
        live = load_live_files(store, table.latest_snapshot())
        chosen = pc.is_in(live.file_name, pa.array(sorted(names), live.file_name.type))
        entries = live.take(chosen.to_numpy(zero_copy_only=False))
        least, greatest = (texts.to_pylist() for texts in value_ranges(store, entries))
        said = {
            name: _ranges_text(columns, low, high)
            for name, low, high in zip(entries.file_name.to_pylist(), least, greatest, strict=True)
        }
        return [said.get(_name_of(file), "") for file in files]

    return why


def _name_of(file: ExplainedFile) -> str:
    return file.path.rpartition("/")[2]


def _ranges_text(columns: Sequence[str], least: str, greatest: str) -> str:
    low, high = json.loads(least), json.loads(greatest)
    texts = (
        f"{name}: {_bound(low[name])} to {_bound(high[name])}"
        for name in columns
        if low.get(name) is not None and high.get(name) is not None
    )
    return "; ".join(texts) or "no statistics"


def _bound(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_BOUND else f"{text[:_LONGEST_BOUND]}…"


def load_rows(table: Table, count: int = FIRST_ROWS) -> RowsView:
    """The first rows, or why they cannot be read: a file may be missing or damaged."""
    try:
        rows = table.to_arrow(limit=count + 1)
    except (*DAMAGE, Unsupported) as error:
        return RowsView(problem=str(error))
    shown = rows.slice(0, count)
    return RowsView(
        tuple((f.name, str(f.type)) for f in table.fields),
        tuple(map(_is_number, rows.schema.types)),
        tuple(tuple(map(shortened, row)) for row in cells_of(shown)),
        rows.num_rows > count,
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
