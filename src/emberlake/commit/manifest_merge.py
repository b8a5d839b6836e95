"""Keep the number of manifests small: merge them now and then, as the table's options say.

Spec: "Manifest merging at commit". The decisions are pure; ``merge_manifests`` carries them out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from emberlake.options import (
    MANIFEST_FULL_COMPACTION_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_SIZE,
    TableOptions,
)
from emberlake.scan.files import may_hold_partition
from emberlake.spec.manifest import FileKind, ManifestFile
from emberlake.store.entries import compact_entries, merge_entries
from emberlake.store.manifests import NewFiles
from emberlake.store.table_store import TableStore


@dataclass(frozen=True, slots=True)
class Merged:
    """Manifests that were rewritten, and those that replace them."""

    replaced: tuple[tuple[str, ...], ...] = ()  # names of each merged group, in list order
    by: tuple[tuple[ManifestFile, ...], ...] = field(default=())

    @property
    def written(self) -> tuple[ManifestFile, ...]:
        return tuple(manifest for group in self.by for manifest in group)

    def apply(self, manifests: Sequence[ManifestFile]) -> tuple[ManifestFile, ...] | None:
        """The list with the merged manifests in it; None if one that they replace is missing."""
        names = {m.file_name for m in manifests}
        if not all(name in names for group in self.replaced for name in group):
            return None
        first = {group[0]: by for group, by in zip(self.replaced, self.by, strict=True)}
        gone = {name for group in self.replaced for name in group}
        out: list[ManifestFile] = []
        for manifest in manifests:
            if manifest.file_name in first:
                out.extend(first[manifest.file_name])
            elif manifest.file_name not in gone:
                out.append(manifest)
        return tuple(out)


def merge_manifests(
    store: TableStore,
    manifests: Sequence[ManifestFile],
    into: NewFiles | None = None,
    *,
    is_all: bool = False,
) -> Merged:
    """Rewrite the manifests that are due, at once or with other files; empty if none is.

    Args:
        store: The table.
        manifests: Those of its latest snapshot.
        into: Where new files are collected.
        is_all: Whether a full merge is due whatever the options say.
    """
    options = store.options
    if is_all or is_full_merge_due(manifests, options):
        group = _to_rewrite(store, manifests)
        if len(group) > 1 or (is_all and group):
            return _rewrite(store, [group], into, keep_deletes=False)
    return _rewrite(store, plan_minor_merge(manifests, options), into, keep_deletes=True)


def is_full_merge_due(manifests: Sequence[ManifestFile], options: TableOptions) -> bool:
    """Whether the manifests that are small or hold deletes add up to enough bytes."""
    target = options.value(MANIFEST_TARGET_SIZE)
    due = (m.file_size for m in manifests if m.num_deleted_files > 0 or m.file_size < target)
    return sum(due) >= options.value(MANIFEST_FULL_COMPACTION_SIZE)


def plan_minor_merge(
    manifests: Sequence[ManifestFile], options: TableOptions
) -> list[list[ManifestFile]]:
    """Groups of neighbours that reach the target size, and the rest if it is many."""
    target = options.value(MANIFEST_TARGET_SIZE)
    groups: list[list[ManifestFile]] = []
    group: list[ManifestFile] = []
    size = 0
    for manifest in manifests:
        group.append(manifest)
        size += manifest.file_size
        if size >= target:
            groups.append(group)
            group, size = [], 0
    if len(group) >= options.value(MANIFEST_MERGE_MIN_COUNT):
        groups.append(group)
    return [g for g in groups if len(g) > 1]


def _rewrite(
    store: TableStore,
    groups: Sequence[Sequence[ManifestFile]],
    into: NewFiles | None,
    *,
    keep_deletes: bool,
) -> Merged:
    written: list[tuple[ManifestFile, ...]] = []
    for group in groups:
        entries = store.manifests.read_manifests(group)
        merged = compact_entries(entries) if keep_deletes else merge_entries(entries)
        written.append(store.manifests.write_manifests(merged, store.partition_types, into))
    return Merged(tuple(tuple(m.file_name for m in group) for group in groups), tuple(written))


def _to_rewrite(store: TableStore, manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
    """What a full merge rewrites: all manifests but large ones that no delete can refer to."""
    target = store.options.value(MANIFEST_TARGET_SIZE)
    with_deletes = [m for m in manifests if m.num_deleted_files > 0]
    entries = store.manifests.read_manifests(with_deletes)
    deletes = entries.take(entries.kind == int(FileKind.DELETE))
    rows = [store.partition_values(partition) for partition in deletes.partitions]
    return [
        m
        for m in manifests
        if m.num_deleted_files > 0
        or m.file_size < target
        or any(may_hold_partition(store, m, row) for row in rows)
    ]
