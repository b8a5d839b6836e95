"""The storage protocol on object stores.

There are no folders: a folder exists while something is in it. A database without tables has a
hidden object of ours. Once a write is answered, it is durable, and everybody sees it immediately.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any, Final

from emberlake.base.parallel import parallel_map
from emberlake.base.requests import MOST_AT_ONCE, ask_all, ask_each, settle
from emberlake.errors import FileNotFound, StorageError, Unsupported
from emberlake.io.object import publish, reading, upload
from emberlake.io.object.calls import ask, ask_again, mark_of
from emberlake.io.object.clients import Purpose
from emberlake.io.object.config import StoreConfig, parse_config
from emberlake.io.object.listing import PAGE, ask_for_list, pages_of
from emberlake.io.object.location import Cloud, Location, locate
from emberlake.io.object.probe import PROBE_PREFIX, check_conditions
from emberlake.io.object.uploads import end_uploads, unfinished_uploads
from emberlake.io.storage import (
    FileInfo,
    OneByOne,
    Output,
    Standing,
    Storage,
    StorageTraits,
    Upload,
)

FOLDER_MARK: Final = ".emberlake-folder"
_DELETIONS_AT_ONCE: Final = 4


@dataclass(frozen=True)
class ObjectStorage:
    """Objects of one cloud. Paths name their bucket."""

    config: StoreConfig

    @cached_property
    def traits(self) -> StorageTraits:
        return StorageTraits(
            is_shared=True,
            # As s3a://. Spark cannot renew credentials that a catalog hands out.
            spark_reads=self.config.cloud is Cloud.S3 and not self.config.credentials.are_vended,
            moves_folders=False,
            flushes_late=False,
            others_overwrite=not self.config.is_single_writer,
            requests_at_once=MOST_AT_ONCE,
        )

    # --- reading ----------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        location = self._locate(path)
        found: bytes = self._ask(
            location, "read", lambda obs, client: bytes(obs.get(client, location.key).bytes())
        )
        return found

    def read_marked(self, path: str) -> tuple[bytes, str | None]:
        location = self._locate(path)

        def fetch(obs: Any, client: Any) -> tuple[bytes, str | None]:
            found = obs.get(client, location.key)
            return bytes(found.bytes()), mark_of(found.meta)

        read: tuple[bytes, str | None] = self._ask(location, "read", fetch)
        return read

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return bytes(reading.read_range(self.config, self._locate(path), offset, length))

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes]:
        return ask_each((partial(self.read, path) for path in paths), MOST_AT_ONCE)

    def open_input(self, path: str, size: int | None = None) -> AbstractContextManager[object]:
        location = self._locate(path)
        opened: AbstractContextManager[object] = reading.open_input(self.config, location, size)
        return opened

    def local_file(self, path: str) -> str | None:
        del path
        return None

    # --- writing ----------------------------------------------------------------------------------

    def open_output(self, path: str, target: int | None = None) -> Output:
        return upload.ObjectOutput(self.config, self._locate(path), target)

    def create(self, path: str, data: bytes) -> None:
        upload.create(self.config, self._locate(path), data)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> None:
        ask_all((partial(self.create, path, data) for path, data in files), MOST_AT_ONCE)

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        return self.put_or_read(path, data, after).is_ours

    put_each_if_absent = OneByOne.put_each_if_absent

    def put_or_read(self, path: str, data: bytes, after: Sequence[str] = ()) -> Standing:
        location = self._locate(path)
        try:
            check_conditions(self.config, location)
            # Written files are durable, but they may have been deleted with their table.
            ask_all((partial(self.size, name) for name in after), MOST_AT_ONCE)
        except StorageError as error:
            error.had_no_effect = True
            raise
        return publish.put_or_read(self.config, location, data)

    def put(self, path: str, data: bytes) -> None:
        location = self._locate(path)
        self._ask(
            location,
            "write",
            lambda obs, client: obs.put(client, location.key, data, use_multipart=False),
        )

    def put_hint(self, path: str, data: bytes) -> None:
        location = self._locate(path)
        self._ask(
            location,
            "write",
            lambda obs, client: obs.put(client, location.key, data, use_multipart=False),
            Purpose.HINT,
        )

    # --- looking ----------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        location = self._locate(path)
        # Both in parallel: the path may be either, and an answer takes time.
        looks = (partial(self._is_folder, location), partial(self._is_object, location))
        return any(ask_all(looks, MOST_AT_ONCE))

    def size(self, path: str) -> int:
        return upload.size_of(self.config, self._locate(path))

    def list(self, path: str) -> Iterator[FileInfo]:
        location = self._locate(path)
        found = ask_for_list(
            self.config,
            location,
            lambda obs, client: obs.list_with_delimiter(client, location.key or None),
        )
        folders = [
            FileInfo(child.path, name, 0, is_folder=True, modified_ms=0)
            for name in map(_name, found["common_prefixes"])
            for child in [location.child(name)]
        ]
        files = [info for one in found["objects"] if (info := _file_info(location, one))]
        return iter(sorted(folders + files, key=lambda info: info.name))

    def list_all(self, path: str) -> Iterator[FileInfo]:
        location = self._locate(path)
        empty: FileInfo | None = None  # a file, or another program's mark for a folder
        for page in pages_of(self.config, location):
            for one in page:
                info = _file_info(location, one)
                if empty is not None and not (info and info.path.startswith(f"{empty.path}/")):
                    yield empty
                empty = info if info is not None and info.size == 0 else None
                if info is not None and info is not empty:
                    yield info
        if empty is not None:
            yield empty

    # --- folders and deletion ---------------------------------------------------------------------
    # Nobody waits for hints, but none may be written after the deletion of its table.

    def make_folder(self, path: str) -> None:
        self.put(self._locate(path).child(FOLDER_MARK).path, b"")

    def delete(self, path: str) -> None:
        settle()
        location = self._locate(path)
        with suppress(FileNotFound):
            ask_again(
                self.config,
                location,
                "delete",
                lambda obs, client: obs.delete(client, location.key),
            )

    def delete_all(self, paths: Iterable[str]) -> None:
        settle()
        locations = map(self._locate, paths)
        for _, group in groupby(locations, key=lambda location: location.root):
            batches = _batches(group)
            for _ in parallel_map(self._delete_batch, batches, workers=_DELETIONS_AT_ONCE):
                pass

    def delete_folder(self, path: str) -> None:
        settle()
        # After an interruption, the next listing finds what is left.
        location = self._locate(path)
        pages = (
            [_location(location, one) for one in page] for page in pages_of(self.config, location)
        )
        for _ in parallel_map(self._delete_batch, pages, workers=_DELETIONS_AT_ONCE):
            pass

    def delete_empty_folder(self, path: str) -> None:
        """Nothing to do: there are none."""

    def move_folder(self, source: str, target: str) -> None:
        raise Unsupported(
            f"{source} cannot be moved to {target}: object stores cannot rename a folder "
            "in one step; copy its contents"
        )

    # --- uploads ----------------------------------------------------------------------------------

    def unfinished_uploads(self, path: str) -> Iterator[Upload]:
        return unfinished_uploads(self.config, self._locate(path))

    def end_uploads(self, uploads: Iterable[Upload]) -> None:
        end_uploads(self.config, uploads)

    # --- requests ---------------------------------------------------------------------------------

    def _locate(self, path: str) -> Location:
        location = locate(path)
        if location.cloud is not self.config.cloud:
            raise Unsupported(f"{path} is not on {self.config.cloud}, the store of this catalog")
        return location

    def _ask(
        self, location: Location, action: str, work: Any, purpose: Purpose = Purpose.DATA
    ) -> Any:
        return ask(self.config, location, action, work, purpose)

    def _is_object(self, location: Location) -> bool:
        if not location.key:
            return False
        try:
            upload.size_of(self.config, location)
        except FileNotFound:
            return False
        return True

    def _is_folder(self, location: Location) -> bool:
        return not location.key or next(pages_of(self.config, location), None) is not None

    def _delete_batch(self, batch: Sequence[Location]) -> None:
        keys = [location.key for location in batch]
        try:
            ask_again(self.config, batch[0], "delete", lambda obs, client: obs.delete(client, keys))
        except FileNotFound:
            # Some clouds stop at the first missing object.
            for location in batch:
                self.delete(location.path)


def open_storage(path: str, options: Mapping[str, object]) -> tuple[Storage, str]:
    """The store of a path, and the path in its normal form."""
    location = locate(path)
    return ObjectStorage(parse_config(location, options)), location.path


def _name(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _location(folder: Location, found: Mapping[str, Any]) -> Location:
    return Location(folder.cloud, folder.root, folder.bucket, folder.host, found["path"])


def _file_info(folder: Location, found: Mapping[str, Any]) -> FileInfo | None:
    """A listed object; None if it only stands for a folder."""
    location = _location(folder, found)
    name = _name(location.key)
    # Other programs write empty objects whose names end in a slash, which listings do not show.
    is_mark = name == FOLDER_MARK or location.key == folder.key or name.startswith(PROBE_PREFIX)
    if is_mark:
        return None
    modified_ms = int(found["last_modified"].timestamp() * 1000)
    return FileInfo(
        path=location.path,
        name=name,
        size=found["size"],
        is_folder=False,
        modified_ms=modified_ms,
        etag=mark_of(found),
    )


def _batches(locations: Iterable[Location]) -> Iterator[Sequence[Location]]:
    batch: list[Location] = []
    for location in locations:
        batch.append(location)
        if len(batch) == PAGE:
            yield batch
            batch = []
    if batch:
        yield batch
