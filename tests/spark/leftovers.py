"""Files of a table that no snapshot of it refers to."""

from emberlake import Table
from emberlake.scan.files import live_entries
from table_reads import files_under, referenced_manifests


def left_over(table: Table) -> set[str]:
    """Every file below the table's folder that is no metadata and in no snapshot."""
    store = table.store
    layout = store.layout
    known = referenced_manifests(table)
    for snapshot_id in store.snapshots.list_ids():
        snapshot = store.snapshots.load(snapshot_id)
        for entry in live_entries(store, snapshot).entries():
            known.add(store.data_file_path(entry.partition, entry.bucket, entry.file))
        if snapshot.index_manifest is not None:
            for index in store.manifests.read_index(snapshot.index_manifest):
                known.add(store.index_file_path(index.partition, index.bucket, index.index_file))
    kept = (f"{layout.schema_folder}/", f"{layout.snapshot_folder}/")
    found = files_under(store.storage, layout.root)
    return {path for path in found if not path.startswith(kept)} - known
