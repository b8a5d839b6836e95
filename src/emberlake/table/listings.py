"""The history, files and partitions of a table, as small Arrow tables for people.

They are excerpts of the system tables, with the same column names.
"""

from typing import Final

import pyarrow as pa

from emberlake.inspect import open_system_table
from emberlake.spec.identifier import Identifier
from emberlake.store.table_store import TableStore

_HISTORY: Final = (
    "snapshot_id",
    "commit_time",
    "commit_kind",
    "operation",
    "total_record_count",
    "delta_record_count",
    "schema_id",
    "commit_user",
)
_FILES: Final = (
    "partition",
    "bucket",
    "level",
    "record_count",
    "file_size_in_bytes",
    "min_key",
    "max_key",
    "creation_time",
    "file_path",
)
_PARTITIONS: Final = (
    "partition",
    "record_count",
    "file_size_in_bytes",
    "file_count",
    "last_update_time",
)


class Listings:
    """What a table can list; ``Table`` inherits it."""

    store: TableStore

    def history(self) -> pa.Table:
        """The snapshots of this branch, the newest first, with the tags that keep them.

        Snapshots that only tags still keep are in the system table ``$tags``.
        """
        rows = self._system("snapshots", _HISTORY).sort_by([("snapshot_id", "descending")])
        tagged: dict[int, list[str]] = {}
        for name, tag in sorted(self.store.tags.list().items()):
            tagged.setdefault(tag.id, []).append(name)
        tags = [tagged.get(key, []) for key in rows["snapshot_id"].to_pylist()]
        return rows.add_column(3, "tags", pa.array(tags, pa.list_(pa.string())))

    def files(self) -> pa.Table:
        """The data files of the snapshot that a read would see, with their sizes and keys."""
        return self._system("files", _FILES)

    def partitions(self) -> pa.Table:
        """The partitions of the snapshot that a read would see, with their sizes.

        A table without partitions has one row, if it has any file.
        """
        return self._system("partitions", _PARTITIONS)

    def _system(self, name: str, columns: tuple[str, ...]) -> pa.Table:
        own = self.store.identity.identifier
        identifier = Identifier(own.database, own.table, own.branch, name)
        rows = open_system_table(name, identifier, self.store).to_arrow(list(columns))
        return rows.combine_chunks()  # so that it prints as one table
