"""Rows of splits as datasets of PyTorch: all in memory, or as a stream.

The splits of a stream are divided among the processes of a distributed training, and then among the
workers of the loader of each. Rows stay in Arrow until they are returned: they are shuffled and cut
into batches one column at a time.
"""

import os
import queue
import random
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import index as as_index
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from emberlake.errors import InvalidInput
from emberlake.read.table_reader import TableReader
from emberlake.scan.splits import DataSplit

_FORMATS: Final = ("row", "pyarrow", "torch")
_ROWS_AT_ONCE: Final = 1024  # at most this many rows are Python objects at the same time
_WAIT_SECONDS: Final = 0.1

_T = TypeVar("_T")
Batches: TypeAlias = Iterable[pa.RecordBatch]


@dataclass(frozen=True, kw_only=True)
class Streaming:
    """How rows are streamed; see ``TableRead.to_torch``."""

    prefetch_concurrency: int = 1
    batch_format: str = "row"
    batch_size: int | None = None
    to_tensor_fn: Callable[[pa.RecordBatch], object] | None = None
    shuffle: bool = False
    seed: int = 0
    buffer_size: int = 1000
    max_buffer_input_splits: int = 10
    auto_detect_rank: bool = False
    sharding_rank: int | None = None
    sharding_world_size: int | None = None

    @property
    def is_sharded(self) -> bool:
        return self.auto_detect_rank or self.given_rank is not None

    @property
    def given_rank(self) -> tuple[int, int] | None:
        """The given rank and world size."""
        if self.sharding_rank is None and self.sharding_world_size is None:
            return None
        if self.sharding_rank is None or self.sharding_world_size is None:
            raise InvalidInput("sharding_rank and sharding_world_size are given together")
        return checked_rank(self.sharding_rank, self.sharding_world_size)


def open_dataset(
    reader: TableReader, splits: Sequence[DataSplit], how: Streaming, *, streaming: bool
) -> "TorchDataset | TorchIterDataset":
    """The dataset that the arguments describe.

    Raises:
        InvalidInput: the arguments contradict each other.
    """
    _check(how, streaming=streaming)
    if streaming:
        return TorchIterDataset(reader, splits, how)
    return TorchDataset(reader.read_table(splits))


class TorchDataset(Dataset):  # type: ignore[misc]
    """Rows by their number, as dicts; all are held in memory, in Arrow."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Iterable[int]) -> list[dict[str, Any]]:
        places = [self._place(index) for index in indices]
        rows: list[dict[str, Any]] = self._rows.take(pa.array(places, pa.int64())).to_pylist()
        return rows

    def _place(self, index: int) -> int:
        place = as_index(index)
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return place


class TorchIterDataset(IterableDataset):  # type: ignore[misc]
    """Rows or batches as they are read, in bounded memory."""

    def __init__(self, reader: TableReader, splits: Sequence[DataSplit], how: Streaming) -> None:
        self._reader = reader
        self._splits = list(splits)
        self._how = how
        self._rank = _find_rank(how)
        # Persistent workers see it change from epoch to epoch.
        self._epoch = torch.tensor(0, dtype=torch.long).share_memory_()

    @property
    def epoch(self) -> int:
        """The epoch, which changes the order of shuffled rows."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> "TorchIterDataset":
        """Shuffle rows in another order from the next iteration on."""
        self._epoch += as_index(epoch) - self.epoch
        return self

    def __getstate__(self) -> dict[str, object]:
        # A newly started worker does not know the processes of its training.
        return {**vars(self), "_rank": self._current_rank()}

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        splits = self._share(worker, workers)
        batches = self._batches(splits)
        if self._how.shuffle:
            rank, _ = self._current_rank()
            seed = f"{self._how.seed}:{self.epoch}:{rank}:{worker}"
            chance = np.random.default_rng(random.Random(seed).getrandbits(64))  # noqa: S311
            batches = _mixed(batches, self._how.buffer_size, chance)
        match self._how.batch_format:
            case "row":
                yield from _rows(batches)
            case "pyarrow":
                yield from _sized(batches, self._how.batch_size)
            case _:
                convert = self._how.to_tensor_fn or as_tensors
                yield from map(convert, _sized(batches, self._how.batch_size))

    def _share(self, worker: int, workers: int) -> list[DataSplit]:
        """The splits of one worker of this process."""
        rank, world = self._current_rank()
        if self._is_cut_off:
            if world > 1:
                raise InvalidInput("processes that share a table cannot share a limit")
            return self._splits if worker == 0 else []
        return _part(_part(self._splits, rank, world), worker, workers)

    @property
    def _is_cut_off(self) -> bool:
        """Whether the limit may leave out rows, which takes a single worker to count."""
        limit = self._reader.limit
        if limit is None:
            return False
        counts = ((split.merged_row_count(), split.row_count) for split in self._splits)
        return sum(stored if merged is None else merged for merged, stored in counts) > limit

    def _current_rank(self) -> tuple[int, int]:
        found = _find_rank(self._how)
        if found[1] > 1 or get_worker_info() is None:
            self._rank = found
        return self._rank

    def _batches(self, splits: Sequence[DataSplit]) -> Batches:
        how = self._how
        if how.shuffle and how.max_buffer_input_splits > 1 and not self._is_cut_off:
            at_once = min(how.max_buffer_input_splits, max(1, len(splits)))
            piece = max(1, how.buffer_size // at_once)
            streams = (_pieces(self._stream([split]), piece) for split in splits)
            return _in_turn(streams, at_once)
        threads = min(how.prefetch_concurrency, len(splits))
        if threads > 1 and not self._is_cut_off:
            groups = [splits[start::threads] for start in range(threads)]
            return _read_ahead([self._stream(group) for group in groups])
        return self._stream(splits)

    def _stream(self, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
        return self._reader.read_batches(splits)


def as_tensors(batch: pa.RecordBatch) -> dict[str, torch.Tensor]:
    """The columns of a batch as tensors, by name.

    Raises:
        InvalidInput: a column has nulls, or is not numeric.
    """
    tensors = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not (is_number or pa.types.is_boolean(kind)) or column.null_count:
            raise InvalidInput(
                f"column {name} is {kind} with {column.null_count} nulls, and a tensor holds "
                "numbers alone; project other columns, or give to_tensor_fn"
            )
        # A copy: tensors are writable, memory of Arrow is not.
        tensors[name] = torch.from_numpy(column.to_numpy(zero_copy_only=False, writable=True))
    return tensors


# --- who reads what -------------------------------------------------------------------------------


def checked_rank(rank: object, world_size: object) -> tuple[int, int]:
    """Check a rank and a world size."""
    numbers = (rank, world_size)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in numbers):
        raise InvalidInput(f"rank {rank!r} of {world_size!r}: both are whole numbers")
    assert isinstance(rank, int)
    assert isinstance(world_size, int)
    if not 0 <= rank < world_size:
        raise InvalidInput(f"rank {rank} of {world_size}: ranks are numbered from 0 on")
    return rank, world_size


def _find_rank(how: Streaming) -> tuple[int, int]:
    """The rank of this process in a distributed training, and the world size."""
    if not how.auto_detect_rank:
        return how.given_rank or (0, 1)
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return checked_rank(distributed.get_rank(), distributed.get_world_size())
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None and world_size is None:
        return 0, 1
    try:
        return checked_rank(int(rank or ""), int(world_size or ""))
    except ValueError as error:
        raise InvalidInput(
            f"RANK={rank} and WORLD_SIZE={world_size}: both are whole numbers, set together"
        ) from error


def _part(items: Sequence[_T], index: int, count: int) -> list[_T]:
    """Part ``index`` of this many parts of about the same size."""
    size, rest = divmod(len(items), count)
    start = index * size + min(index, rest)
    return list(items[start : start + size + (index < rest)])


# --- streams of batches ---------------------------------------------------------------------------


def _rows(batches: Batches) -> Iterator[dict[str, Any]]:
    for piece in _pieces(batches, _ROWS_AT_ONCE):
        yield from piece.to_pylist()


def _pieces(batches: Batches, size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at most this many."""
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)


def _sized(batches: Batches, size: int | None) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly this many, except the last one."""
    if size is None:
        yield from batches
        return
    held: list[pa.RecordBatch] = []
    missing = size
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, missing)
            held.append(piece)
            start += piece.num_rows
            missing -= piece.num_rows
            if not missing:
                yield pa.concat_batches(held)
                held, missing = [], size
    if held:
        yield pa.concat_batches(held)


def _mixed(batches: Batches, size: int, chance: np.random.Generator) -> Iterator[pa.RecordBatch]:
    """The same rows, shuffled in a buffer: some leave it as others come in."""
    pool: pa.RecordBatch | None = None
    for batch in _sized(batches, size):
        if pool is None:
            pool = batch
            continue
        both = pa.concat_batches([pool, batch])
        order = pa.array(chance.permutation(both.num_rows))
        yield both.take(order.slice(0, batch.num_rows))
        pool = both.take(order.slice(batch.num_rows))
    if pool is not None:
        yield pool.take(pa.array(chance.permutation(pool.num_rows)))


def _in_turn(streams: Iterable[Iterator[pa.RecordBatch]], at_once: int) -> Iterator[pa.RecordBatch]:
    """One batch from each of several streams in turn; an exhausted one is replaced by the next."""
    waiting = iter(streams)
    active: deque[Iterator[pa.RecordBatch]] = deque()
    while True:
        while len(active) < at_once and (stream := next(waiting, None)) is not None:
            active.append(stream)
        if not active:
            return
        stream = active.popleft()
        batch = next(stream, None)
        if batch is not None:
            active.append(stream)
            yield batch


_Item: TypeAlias = pa.RecordBatch | BaseException | None  # None: a stream has ended


def _read_ahead(
    streams: Sequence[Iterator[pa.RecordBatch]],
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of several streams as they arrive, each read by a thread; few are held."""
    waiting: queue.Queue[_Item] = queue.Queue(2 * len(streams))
    is_over = threading.Event()
    threads = [
        threading.Thread(target=_fill, args=(waiting, stream, is_over), daemon=True)
        for stream in streams
    ]
    for thread in threads:
        thread.start()
    left = len(threads)
    try:
        while left:
            item = waiting.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _fill(
    waiting: queue.Queue[_Item], stream: Iterator[pa.RecordBatch], is_over: threading.Event
) -> None:
    try:
        for batch in stream:
            if not _put(waiting, batch, is_over):
                return
        _put(waiting, None, is_over)
    except BaseException as error:  # noqa: BLE001  it is raised where rows are taken
        _put(waiting, error, is_over)


def _put(waiting: queue.Queue[_Item], item: _Item, is_over: threading.Event) -> bool:
    """Wait for room; False if nobody wants the item any more."""
    while not is_over.is_set():
        with suppress(queue.Full):
            waiting.put(item, timeout=_WAIT_SECONDS)
            return True
    return False


def _check(how: Streaming, *, streaming: bool) -> None:
    if how.batch_format not in _FORMATS:
        raise InvalidInput(f"batch_format={how.batch_format!r} is not one of {', '.join(_FORMATS)}")
    is_row = how.batch_format == "row"
    _check_number("seed", how.seed)
    _check_number("prefetch_concurrency", how.prefetch_concurrency, least=1)
    _check_number("buffer_size", how.buffer_size, least=1)
    _check_number("max_buffer_input_splits", how.max_buffer_input_splits, least=1)
    if how.batch_size is not None:
        _check_number("batch_size", how.batch_size, least=1)
    if how.auto_detect_rank and how.given_rank is not None:
        raise InvalidInput("a rank is given or detected, not both")
    conditions = {
        "a share of a distributed training": (how.is_sharded, streaming),
        f"batch_format={how.batch_format!r}": (not is_row, streaming),
        "shuffle": (how.shuffle, streaming),
    }
    for what, (is_asked, is_given) in conditions.items():
        if is_asked and not is_given:
            raise InvalidInput(f"{what} needs streaming=True")
    if how.batch_size is not None and is_row:
        raise InvalidInput("batch_size is for batches: batch_format='pyarrow' or 'torch'")
    if how.to_tensor_fn is not None and (how.batch_format != "torch"):
        raise InvalidInput("to_tensor_fn is for batch_format='torch'")
    if how.to_tensor_fn is not None and not callable(how.to_tensor_fn):
        raise InvalidInput(f"to_tensor_fn is called with a batch, and {how.to_tensor_fn!r} cannot")
    if how.prefetch_concurrency > 1 and (how.shuffle or not is_row):
        raise InvalidInput("prefetch_concurrency is for rows that are not shuffled")


def _check_number(name: str, value: object, least: int | None = None) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or (least is not None and value < least):  # type: ignore[operator]
        wanted = "a whole number" if least is None else f"a whole number, at least {least}"
        raise InvalidInput(f"{name} is {wanted}, not {value!r}")
