"""New objects that are written piece by piece, in bounded memory.

Data that fits into one part is one conditional write. More data is a multipart upload: its object
appears as a whole when the upload is completed, or never.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, Final

from emberlake.base.option_texts import MEBIBYTE
from emberlake.base.requests import MOST_AT_ONCE, begin
from emberlake.errors import EmberlakeError, FileNotFound, InvalidInput, StorageError
from emberlake.io.object.aside import run_briefly
from emberlake.io.object.calls import ask
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.location import Location
from emberlake.io.object.publish import delete_quietly, put_or_read
from emberlake.io.object.uploads import end_uploads, unfinished_uploads
from emberlake.io.storage import Output

PART_BYTES: Final = 8 * MEBIBYTE  # for files that need no larger parts
MOST_PARTS: Final = 10_000  # of one upload, for all stores
MOST_BYTES: Final = 5 * 1024**4  # of one object
_ROOM: Final = 2  # a file has at most this many times its target size
_PARTS_AT_ONCE: Final = 4
_SENDING_BYTES: Final = 64 * MEBIBYTE  # of the parts under way, unless one alone has more
_LARGE_BYTES: Final = MEBIBYTE  # pieces from this size on are sent without being copied


def part_bytes(target: int | None) -> int:
    """The size of the parts of a file that should have about ``target`` bytes.

    Some stores insist that all parts of an upload have the same size, so this is decided before the
    first one is sent.
    """
    most = min(_ROOM * (target or 0), MOST_BYTES)
    return max(PART_BYTES, -(-most // MOST_PARTS // MEBIBYTE) * MEBIBYTE)


def parts_at_once(size: int) -> int:
    """How many parts of this size are under way at once; one more is being filled."""
    return max(1, min(_PARTS_AT_ONCE, _SENDING_BYTES // size))


def create(config: StoreConfig, location: Location, data: bytes) -> None:
    """Create an object with a unique name.

    Raises:
        StorageError: the object exists, or the write failed. A failed write leaves no object
            behind, unless the store can no longer be reached.
    """
    try:
        is_ours = put_or_read(config, location, data).is_ours
    except StorageError as error:
        if not error.had_no_effect:
            delete_quietly(config, location)
        raise
    if not is_ours:
        raise StorageError(f"cannot create {location.path}: it exists", had_no_effect=True)


def size_of(config: StoreConfig, location: Location) -> int:
    """The size of an object in bytes."""
    return int(
        ask(config, location, "look at", lambda obs, client: obs.head(client, location.key))["size"]
    )


class ObjectOutput(Output):
    """An object that appears, as a whole, when it is closed."""

    def __init__(self, config: StoreConfig, location: Location, target: int | None = None) -> None:
        super().__init__(location.path)
        self._config = config
        self._location = location
        self._part_bytes = part_bytes(target)
        self._waiting: list[bytes | memoryview] = []  # not yet handed to the library
        self._waiting_bytes = 0
        self._writer: Any = None
        self._check_absent: Callable[[], None] = lambda: None
        self._may_stand = False  # whether the object may exist although nobody confirmed it

    def _append(self, data: memoryview) -> None:
        if self.position + data.nbytes > self._part_bytes * MOST_PARTS:
            raise InvalidInput(
                f"{self.path} is too large: an object has at most {MOST_PARTS:,} parts, here of "
                f"{self._part_bytes // MEBIBYTE} MB, as fits target-file-size; raise or lower it"
            )
        view = data.cast("B") if data.nbytes else data
        while view.nbytes:
            piece = view[: PART_BYTES - self._waiting_bytes]
            view = view[piece.nbytes :]
            # The library keeps the bytes it is given and sends them later: they must not change.
            is_kept = piece.readonly and piece.nbytes >= _LARGE_BYTES
            self._waiting.append(piece if is_kept else bytes(piece))
            self._waiting_bytes += piece.nbytes
            if self._waiting_bytes == PART_BYTES:
                self._send()

    def _send(self) -> None:
        if self._writer is None:
            self._begin()
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        writer = self._writer
        for piece in _gathered(waiting):
            self._ask_writer("write", partial(_write_to, writer, piece))

    def _begin(self) -> None:
        # Names are unique, so the answer is awaited only at the end.
        self._check_absent = begin(self._refuse_present, MOST_AT_ONCE)
        self._writer = ask(
            self._config,
            self._location,
            "write",
            lambda obs, client: obs.open_writer(
                client,
                self._location.key,
                buffer_size=self._part_bytes,
                max_concurrency=parts_at_once(self._part_bytes),
            ),
        )

    def _refuse_present(self) -> None:
        with suppress(FileNotFound):
            size_of(self._config, self._location)
            raise StorageError(f"cannot create {self.path}: it exists", had_no_effect=True)

    def _finish(self) -> None:
        if self._writer is None:
            data = b"".join(self._waiting)
            self._waiting.clear()
            create(self._config, self._location, data)
            return
        if self._waiting:
            self._send()
        self._check_absent()
        writer = self._writer
        self._may_stand = True
        try:
            self._ask_writer("write", lambda _obs, _client: writer.close())
        except EmberlakeError:
            # Perhaps only the answer was lost. An object that exists is whole.
            if not self._is_whole():
                raise
        self._may_stand = False
        self._writer = None

    def _ask_writer(self, action: str, work: Callable[[Any, Any], object]) -> None:
        """Call the writer, only once: after a failure it may already hold some of the data."""
        ask(self._config, self._location, action, work, is_repeatable=False)

    def _is_whole(self) -> bool:
        with suppress(EmberlakeError):
            return size_of(self._config, self._location) == self.position
        return False

    def _drop(self) -> None:
        self._waiting.clear()
        writer, self._writer = self._writer, None
        if writer is not None or self._may_stand:
            # Nobody sees what is left, and orphan cleaning finds it, so we do not wait for long.
            with suppress(EmberlakeError):
                run_briefly(partial(self._give_up, writer))

    def _give_up(self, writer: Any) -> None:
        if writer is not None:
            # The library gives up an upload when its context is left with an exception.
            reason = StorageError("given up")
            with suppress(EmberlakeError):
                self._ask_writer(
                    "abort", lambda _obs, _client: writer.__exit__(type(reason), reason, None)
                )
            # A store that is still receiving a part keeps the upload, and does not always say so.
            with suppress(EmberlakeError):
                uploads = unfinished_uploads(self._config, self._location.parent)
                end_uploads(self._config, [one for one in uploads if one.path == self.path])
        if self._may_stand:
            delete_quietly(self._config, self._location)


def _write_to(writer: Any, piece: bytes | memoryview, _obs: Any, _client: Any) -> None:
    writer.write(piece)


def _gathered(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes in fewer pieces: consecutive small ones are put together."""
    for is_large, run in groupby(pieces, lambda piece: len(piece) >= _LARGE_BYTES):
        if is_large:
            yield from run
        else:
            yield b"".join(run)
