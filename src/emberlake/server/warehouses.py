"""The warehouses that a server manages: a name, a folder, and the storage that it is on."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from emberlake.errors import InvalidInput, StorageError
from emberlake.io import RoutedStorage, Storage, open_storage
from emberlake.io.registry import scheme_of
from emberlake.spec.identifier import NameKind, check_name

# Warehouse names are part of paths, and some clients encode them twice: these need no encoding.
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_DATABASE_SUFFIX: Final = ".db"
_DROPPED: Final = ".dropped"  # filesystem catalogs do not take a hidden folder for a database


@dataclass(frozen=True)
class Warehouse:
    """A folder of databases, by the name that clients ask for."""

    name: str
    location: str
    files: RoutedStorage = field(repr=False, compare=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    external: tuple[str, ...] = ()  # folders in which everybody may have external tables

    @property
    def storage(self) -> Storage:
        """The storage of the folder itself."""
        return self.files.storage

    @cached_property
    def is_local(self) -> bool:
        """Whether looking at a file takes no request."""
        return not self.storage.traits.is_remote

    def database_path(self, database: str) -> str:
        """The folder of a database, as filesystem catalogs look for it."""
        check_name(NameKind.DATABASE, database)
        return f"{self.location}/{database}{_DATABASE_SUFFIX}"

    def table_path(self, database: str, table: str, suffix: str = "") -> str:
        """A folder for a table; with a suffix if the plain name is taken by other files."""
        check_name(NameKind.TABLE, table)
        return f"{self.database_path(database)}/{table}{suffix and '-'}{suffix}"

    def dropped_path(self, database: str, table: str, table_id: str) -> str:
        """Where the files of a dropped table are kept."""
        return f"{self.location}/{_DROPPED}/{database}{_DATABASE_SUFFIX}/{table}-{table_id}"


def open_warehouse(
    name: str, path: str, options: Mapping[str, str], external: tuple[str, ...] = ()
) -> Warehouse:
    """Open the storage of a warehouse.

    Raises:
        InvalidInput: the name cannot be that of a warehouse.
        Unsupported: there is no storage for the scheme of the path.
    """
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise InvalidInput(
            f"{name!r} cannot be the name of a warehouse: use letters, digits, '_', '.' and '-'"
        )
    storage, location = open_storage(path, options)
    location = location.rstrip("/")
    files = RoutedStorage(storage, location, dict(options))
    return Warehouse(name, location, files, options, external)


def check_reachable(warehouse: Warehouse) -> None:
    """Check that the folder of a warehouse can be used, before the first client needs it.

    Raises:
        StorageError: it cannot be listed or, if it is on this machine, created or written to.
    """
    local = warehouse.storage.local_file(warehouse.location)
    if local is None:
        next(iter(warehouse.storage.list(warehouse.location)), None)
        return
    folder = Path(local)
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"the warehouse {warehouse.name} is at {folder}, which is not a folder")
    warehouse.storage.make_folder(warehouse.location)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise StorageError(
            f"the user that runs this server may not read and write {folder}, the folder of the "
            f"warehouse {warehouse.name}"
        )


def parse_warehouse(text: str) -> tuple[str, str]:
    """The name and the path of ``NAME=PATH``; the default name is that of the last folder."""
    name, separator, path = text.partition("=")
    if separator and _NAME.fullmatch(name):
        return name, path
    last = text.rstrip("/").rpartition("/")[2]
    if not _NAME.fullmatch(last):
        raise InvalidInput(f"--warehouse {text}: give it a name, as in --warehouse lake={text}")
    return last, text


def wire_path(path: str) -> str:
    """A path as it is sent to clients: with its scheme."""
    return f"file://{path}" if scheme_of(path) == "file" and path.startswith("/") else path
