"""Rows that wait until all of them have arrived: in memory, or in parts on the local disk.

Where a row goes depends on where its key is, so the keys of the table are read once, when all rows
are known. Until then rows are kept in memory up to a bound. Beyond it, rows and keys are divided by
the hash of their keys into parts, which are files of a temporary folder. The rows of a key are in
one part, in their order, and parts are taken one after the other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.spec.column_buffers import Mask

Hashes = npt.NDArray[np.int32]

_PARTS: Final = 128
_PART_BITS: Final = 7
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_FILTER_BITS: Final = 24


@dataclass
class HashFilter:
    """Tells which keys may be among those that were added; a false hit does no harm."""

    _seen: Mask = field(default_factory=lambda: np.zeros(1 << _FILTER_BITS, bool))

    def add(self, hashes: Hashes) -> None:
        self._seen[_low_bits(hashes)] = True

    def may_have(self, hashes: Hashes) -> Mask:
        found: Mask = self._seen[_low_bits(hashes)]
        return found


def _low_bits(hashes: Hashes) -> npt.NDArray[np.uint32]:
    bits: npt.NDArray[np.uint32] = hashes.view(np.uint32) & np.uint32((1 << _FILTER_BITS) - 1)
    return bits


class HashParts:
    """Several streams of rows, to be taken part by part; the parts of all streams belong together.

    Args:
        bound: How many bytes may be in memory.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._bytes = 0
        self._held: dict[str, list[tuple[pa.Table, Hashes]]] = {}
        self._folder: TemporaryDirectory[str] | None = None
        self._files: dict[tuple[str, int], pa.ipc.RecordBatchStreamWriter] = {}
        self._sinks: list[pa.OSFile] = []
        self._written: set[tuple[str, int]] = set()

    @property
    def is_on_disk(self) -> bool:
        return self._folder is not None

    def add(self, stream: str, rows: pa.Table, hashes: Hashes) -> None:
        """Add rows to a stream, with the hash of each row's key."""
        if not rows.num_rows:
            return
        if self._folder is not None:
            self._write(self._folder, stream, rows, hashes)
            return
        self._held.setdefault(stream, []).append((rows, hashes))
        self._bytes += rows.nbytes
        if self._bytes > self._bound:
            self._folder = TemporaryDirectory(prefix="emberlake-keys-")
            held, self._held = self._held, {}
            for name, tables in held.items():
                while tables:
                    self._write(self._folder, name, *tables.pop(0))

    def take(self) -> Iterator[Mapping[str, pa.Table]]:
        """The parts, one after the other; a stream without rows in a part is left out."""
        if self._folder is None:
            held, self._held = self._held, {}
            yield {name: pa.concat_tables([t for t, _ in some]) for name, some in held.items()}
            return
        self._close_files()
        names = {name for name, _ in self._written}
        for part in range(_PARTS):
            found = {}
            for name in names:
                if (name, part) in self._written:
                    path = _path(self._folder, name, part)
                    with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
                        found[name] = reader.read_all()
                    path.unlink()
            if found:
                yield found

    def close(self) -> None:
        """Forget all rows."""
        self._held.clear()
        self._bytes = 0
        self._close_files()
        self._written.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _write(
        self, folder: "TemporaryDirectory[str]", stream: str, rows: pa.Table, hashes: Hashes
    ) -> None:
        parts = hashes.view(np.uint32) >> np.uint32(32 - _PART_BITS)
        order = np.argsort(parts.astype(np.uint8), kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=_PARTS))
        for part, places in enumerate(np.split(order, ends[:-1])):
            if len(places):
                some = rows.take(pa.array(places)).combine_chunks()
                self._file(folder, stream, part, rows.schema).write_table(some)

    def _file(
        self, folder: "TemporaryDirectory[str]", stream: str, part: int, schema: pa.Schema
    ) -> pa.ipc.RecordBatchStreamWriter:
        key = (stream, part)
        if key not in self._files:
            sink = pa.OSFile(str(_path(folder, stream, part)), "wb")
            self._sinks.append(sink)
            self._written.add(key)
            self._files[key] = pa.ipc.new_stream(sink, schema, options=_OPTIONS)
        return self._files[key]

    def _close_files(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        for sink in self._sinks:
            sink.close()
        self._sinks.clear()


def _path(folder: "TemporaryDirectory[str]", stream: str, part: int) -> Path:
    return Path(folder.name) / f"{stream}-{part}"
