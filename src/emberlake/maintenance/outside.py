"""What a dropped table has outside of its folder. Spec: "External paths".

Other tables may have files in the same folders, and a name does not tell which table a file is of.
So a file there is deleted only if a manifest of the table names it, in a folder that one of its
schemas names.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from emberlake.base.parallel import parallel_map
from emberlake.errors import CorruptFile, InvalidOption, SchemaNotFound
from emberlake.io.storage import Storage
from emberlake.maintenance.holders import by_manifest, load_holders, load_metadata
from emberlake.spec.external_paths import external_folders, plain_uri
from emberlake.spec.layout import MAIN_BRANCH, TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.store.branches import list_branches
from emberlake.store.entries import ManifestEntries
from emberlake.store.schemas import SchemaStore
from emberlake.store.table_store import TableStore


def schemas_outside(storage: Storage, layout: TableLayout) -> list[TableSchema]:
    """The schemas of a table, of all branches, that name folders outside of it."""
    return [s for s in _schemas(storage, layout) if external_folders(s.options)]


def files_outside(store: TableStore, schemas: Iterable[TableSchema]) -> list[str]:
    """The files in folders that the schemas name, and that any manifest of the table names.

    Raises:
        InvalidState: something that refers to files is missing.
        CorruptFile: something that refers to files cannot be read.
    """
    folders = {folder for schema in schemas for folder in external_folders(schema.options)}
    metadata = [*parallel_map(lambda holder: load_metadata(store, holder), load_holders(store))]
    indexes = (entry.index_file.external_path for m in metadata for entry in m.index_entries)
    found = {path for path in indexes if path is not None}
    found.update(*by_manifest(store, metadata, _data_files).values())
    return sorted(path for path in found if _is_below(path, folders))


def _data_files(entries: ManifestEntries) -> set[str]:
    """Data files that have a path of their own, and the files that go with them."""
    outside = entries.take(entries.external_path.is_valid().to_numpy(zero_copy_only=False))
    paths = outside.external_path.to_pylist()
    found = set(paths)
    for path, extras in zip(paths, outside.extra_files.to_pylist(), strict=True):
        found.update(f"{path.rpartition('/')[0]}/{extra}" for extra in extras or ())
    return found


def _is_below(path: str, folders: Collection[str]) -> bool:
    return any(plain_uri(path).startswith(f"{folder}/") for folder in folders)


def _schemas(storage: Storage, layout: TableLayout) -> Iterator[TableSchema]:
    for branch in (MAIN_BRANCH, *list_branches(storage, layout)):
        schemas = SchemaStore(storage, layout.for_branch(branch))
        for schema_id in schemas.files().etags:
            # Leave out one that cannot be read: a damaged table can still be dropped.
            with suppress(CorruptFile, InvalidOption, SchemaNotFound):
                yield schemas.load(schema_id)
