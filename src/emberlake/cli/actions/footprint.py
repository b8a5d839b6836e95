"""The storage that a table takes: everything that dropping it deletes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from emberlake.base.texts import count_text, size_text
from emberlake.catalog import Catalog
from emberlake.errors import CorruptFile, NotFound, Unsupported
from emberlake.io import FileInfo, Storage
from emberlake.table import Table


@dataclass(frozen=True)
class Footprint:
    """Files and bytes; ``is_known`` is False if the table could not be opened to count them."""

    files: int = 0
    bytes: int = 0
    is_known: bool = True

    @property
    def text(self) -> str:
        size = f"{count_text(self.files, 'file')}, {size_text(self.bytes)}"
        return size if self.is_known else f"{size}, and a table that cannot be opened"


def footprint_of(catalog: Catalog, identifier: str) -> Footprint:
    """The footprint of a table with all its snapshots, branches and tags.

    A table that cannot be opened can still be dropped, so that is not an error.
    """
    try:
        table = catalog.get_table(identifier)
    except (CorruptFile, Unsupported):
        return Footprint(is_known=False)
    assert isinstance(table, Table)
    sizes = [info.size for info in _walk(table.store.storage, table.table_path)]
    return Footprint(len(sizes), sum(sizes))


def total(parts: Iterable[Footprint]) -> Footprint:
    """The sum of several footprints."""
    files = size = 0
    is_known = True
    for part in parts:
        files, size = files + part.files, size + part.bytes
        is_known = is_known and part.is_known
    return Footprint(files, size, is_known)


def _walk(storage: Storage, folder: str) -> Iterator[FileInfo]:
    folders = [folder]
    while folders:
        try:
            found = list(storage.list(folders.pop()))
        except NotFound:  # deleted since it was listed
            continue
        folders += [info.path for info in found if info.is_folder]
        yield from (info for info in found if not info.is_folder)
