"""Refuse what would give the levels of a table another meaning. Spec: "Changelog producers".

Where compaction looks up, the record of a key on the lowest level above 0 is its whole row.
Elsewhere it is merged with the records above it. So a table can go from one to the other only while
no bucket has rows on several levels.
"""

import numpy as np

from emberlake.errors import InvalidSchema
from emberlake.merge.plan import plan_merge
from emberlake.options import CHANGELOG_PRODUCER
from emberlake.scan.files import live_entries
from emberlake.scan.key_files import bucket_files
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import Snapshot
from emberlake.store.table_store import TableStore


def reads_levels_alike(then: TableSchema, now: TableSchema) -> bool:
    """Whether the same files are the same rows under two schemas of a table."""
    if then.profile.looks_up_only is now.profile.looks_up_only:
        return True
    return not plan_merge(now, now.fields).needs_older_rows


def check_one_level(store: TableStore, snapshot: Snapshot | None) -> None:
    """Refuse to read a snapshot otherwise than it was written, unless it makes no difference.

    Raises:
        InvalidSchema: a bucket has rows on several levels above 0.
    """
    if snapshot is None:
        return
    entries = live_entries(store, snapshot)
    entries = entries.take((entries.bucket >= 0) & (entries.level > 0))
    count = sum(len(np.unique(entries.level[files])) > 1 for files in bucket_files(entries))
    if count:
        raise InvalidSchema(
            f"{CHANGELOG_PRODUCER.key} decides how rows on several levels are merged, and snapshot "
            f"{snapshot.id} has such rows (in {count} bucket{'s' * (count > 1)}): compact the "
            "table fully before the producer changes from or to lookup"
        )
