"""Rows for PyTorch; a stand-in takes its place where it is not installed."""

import importlib
import importlib.util
import pickle
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from builders import append, create_table, rows_of
from emberlake.errors import FileNotFound, InvalidInput, Unsupported
from emberlake.table import Table
from table_reads import live_files

STAND_IN = Path(__file__).parents[2] / "torch_stand_in"


@pytest.fixture(autouse=True)
def torch_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    if importlib.util.find_spec("torch") is None:
        monkeypatch.syspath_prepend(STAND_IN)
    yield importlib.import_module("emberlake.table.torch_data")
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        if str(STAND_IN) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
            sys.modules.pop("emberlake.table.torch_data", None)


@pytest.fixture
def table() -> Table:
    """Four files of ten rows, each a split of its own."""
    made = create_table(options={"source.split.target-size": "1 b"})
    for start in range(0, 40, 10):
        append(made, rows_of(range(start, start + 10)))
    return made


def dataset(table: Table, limit: int | None = None, **how: Any) -> Any:
    builder = table.new_read_builder().with_limit(limit)
    return builder.new_read().to_torch(builder.new_scan().plan().splits(), **how)


def ids_of(rows: Any) -> list[int]:
    return [row["id"] for row in rows]


def batch_ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def as_worker(monkeypatch: pytest.MonkeyPatch, module: ModuleType, worker: int, of: int) -> None:
    info = SimpleNamespace(id=worker, num_workers=of)
    monkeypatch.setattr(module, "get_worker_info", lambda: info)


# --- rows by their number -------------------------------------------------------------------------


def test_rows_are_found_by_their_number(table: Table) -> None:
    rows = dataset(table)

    assert len(rows) == 40
    assert rows[3] == {"id": 3, "day": "mon"}
    assert ids_of([rows[-1], *rows[10:12]]) == [39, 10, 11]
    assert ids_of(rows.__getitems__([7, 0, 7])) == [7, 0, 7]
    with pytest.raises(IndexError):
        rows[40]


def test_a_limit_holds_for_numbered_rows(table: Table) -> None:
    assert ids_of(dataset(table, limit=12)[:]) == list(range(12))


# --- streams --------------------------------------------------------------------------------------


def test_a_stream_gives_rows_as_they_are_read(table: Table) -> None:
    rows = dataset(table, streaming=True)

    assert next(iter(rows)) == {"id": 0, "day": "mon"}
    assert ids_of(rows) == ids_of(rows) == list(range(40))


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6])
def test_workers_of_a_loader_share_the_splits(
    table: Table, torch_data: ModuleType, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    rows = dataset(table, streaming=True)
    parts = []
    for worker in range(workers):
        as_worker(monkeypatch, torch_data, worker, workers)
        parts.append(ids_of(pickle.loads(pickle.dumps(rows))))

    assert [*chain(*parts)] == list(range(40))
    assert max(map(len, parts)) - min(map(len, parts)) <= 10


def test_processes_of_a_training_share_the_splits_and_so_do_their_workers(
    table: Table, torch_data: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = []
    for rank in range(2):
        rows = dataset(table, streaming=True, sharding_rank=rank, sharding_world_size=2)
        for worker in range(2):
            as_worker(monkeypatch, torch_data, worker, 2)
            parts.append(ids_of(rows))

    assert parts == [list(range(start, start + 10)) for start in range(0, 40, 10)]


def test_a_worker_knows_the_rank_of_the_process_that_started_it(
    table: Table, torch_data: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dataset(table, streaming=True, auto_detect_rank=True)
    assert len(ids_of(rows)) == 40
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    raw = pickle.dumps(rows)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    as_worker(monkeypatch, torch_data, 0, 1)

    assert ids_of(pickle.loads(raw)) == list(range(20, 40))


def test_a_limit_that_cuts_is_kept_by_one_worker(
    table: Table, torch_data: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dataset(table, limit=15, streaming=True)
    as_worker(monkeypatch, torch_data, 0, 2)
    assert ids_of(rows) == list(range(15))
    as_worker(monkeypatch, torch_data, 1, 2)
    assert ids_of(rows) == []

    shared = dataset(table, limit=15, streaming=True, sharding_rank=0, sharding_world_size=2)
    with pytest.raises(InvalidInput, match="limit"):
        next(iter(shared))


def test_threads_read_ahead(table: Table) -> None:
    before = threading.active_count()
    rows = dataset(table, streaming=True, prefetch_concurrency=3)

    assert sorted(ids_of(rows)) == list(range(40))
    reading = iter(rows)
    next(reading)
    reading.close()
    assert threading.active_count() == before


def test_an_error_of_a_thread_is_raised_where_rows_are_taken(table: Table) -> None:
    rows = dataset(table, streaming=True, prefetch_concurrency=2)
    entry = live_files(table)[2]
    table.store.storage.delete(table.store.data_file_path(entry.partition, 0, entry.file))

    with pytest.raises(FileNotFound):
        list(rows)


# --- batches --------------------------------------------------------------------------------------


def test_batches_have_the_size_that_is_asked_for(table: Table) -> None:
    batches = list(dataset(table, streaming=True, batch_format="pyarrow", batch_size=16))

    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert [batch.num_rows for batch in batches] == [16, 16, 8]
    assert [*chain(*batch_ids(batches))] == list(range(40))
    as_read = dataset(table, streaming=True, batch_format="pyarrow")
    assert [batch.num_rows for batch in as_read] == [10] * 4


def test_numbers_come_as_tensors(table: Table) -> None:
    builder = table.new_read_builder().with_projection(["id"])
    splits = builder.new_scan().plan().splits()

    batches = builder.new_read().to_torch(
        splits, streaming=True, batch_format="torch", batch_size=25
    )

    assert batch_ids(batches) == [list(range(25)), list(range(25, 40))]


def test_what_is_no_number_is_refused_unless_somebody_converts_it(table: Table) -> None:
    with pytest.raises(InvalidInput, match=r"day is string.*to_tensor_fn"):
        list(dataset(table, streaming=True, batch_format="torch"))
    converted = dataset(
        table, streaming=True, batch_format="torch", to_tensor_fn=lambda batch: batch.num_rows
    )
    assert list(converted) == [10] * 4


def test_nulls_are_refused(table: Table) -> None:
    append(table, [{"id": None, "day": None}])
    builder = table.new_read_builder().with_projection(["id"])
    read, splits = builder.new_read(), builder.new_scan().plan().splits()

    with pytest.raises(InvalidInput, match="1 nulls"):
        list(read.to_torch(splits, streaming=True, batch_format="torch"))


# --- in another order -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"buffer_size": 7}, {"max_buffer_input_splits": 1}])
def test_rows_are_mixed_and_each_comes_once(table: Table, how: dict[str, int]) -> None:
    rows = ids_of(dataset(table, streaming=True, shuffle=True, **how))

    assert rows != list(range(40))
    assert sorted(rows) == list(range(40))


def test_the_seed_and_the_epoch_decide_on_the_order(table: Table) -> None:
    rows = dataset(table, streaming=True, shuffle=True, seed=5)
    first = ids_of(rows)

    assert ids_of(rows) == first
    assert ids_of(dataset(table, streaming=True, shuffle=True, seed=5)) == first
    assert ids_of(dataset(table, streaming=True, shuffle=True, seed=6)) != first
    assert ids_of(rows.set_epoch(3)) != first
    assert rows.epoch == 3
    assert ids_of(rows.set_epoch(0)) == first


def test_a_small_buffer_mixes_neighbours_of_several_splits(table: Table) -> None:
    rows = ids_of(dataset(table, streaming=True, shuffle=True, buffer_size=4))

    assert len({row // 10 for row in rows[:8]}) > 1


def test_the_rows_of_a_limit_are_the_first_ones_in_another_order(table: Table) -> None:
    rows = ids_of(dataset(table, limit=15, streaming=True, shuffle=True))

    assert sorted(rows) == list(range(15))


def test_mixed_batches_have_the_size_that_is_asked_for(table: Table) -> None:
    how = {"streaming": True, "shuffle": True, "batch_format": "pyarrow", "batch_size": 16}

    found = batch_ids(dataset(table, **how))

    assert [len(ids) for ids in found] == [16, 16, 8]
    assert sorted(chain(*found)) == list(range(40))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"batch_format": "numpy"}, "not one of row, pyarrow, torch"),
        ({"batch_format": "pyarrow"}, "needs streaming=True"),
        ({"shuffle": True}, "needs streaming=True"),
        ({"auto_detect_rank": True}, "needs streaming=True"),
        ({"streaming": True, "batch_size": 4}, "for batches"),
        ({"streaming": True, "batch_format": "torch", "batch_size": 0}, "at least 1"),
        ({"streaming": True, "batch_format": "torch", "batch_size": True}, "at least 1"),
        ({"streaming": True, "batch_format": "pyarrow", "to_tensor_fn": len}, "'torch'"),
        ({"streaming": True, "batch_format": "torch", "to_tensor_fn": 3}, "cannot"),
        ({"streaming": True, "prefetch_concurrency": 2, "shuffle": True}, "not shuffled"),
        ({"streaming": True, "prefetch_concurrency": 0}, "at least 1"),
        ({"streaming": True, "shuffle": True, "buffer_size": 0}, "at least 1"),
        ({"streaming": True, "shuffle": True, "seed": 1.5}, "whole number"),
        ({"streaming": True, "sharding_rank": 1}, "together"),
        ({"streaming": True, "sharding_rank": 2, "sharding_world_size": 2}, "from 0 on"),
        (
            {
                "streaming": True,
                "auto_detect_rank": True,
                "sharding_rank": 0,
                "sharding_world_size": 2,
            },
            "not both",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(
    table: Table, how: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        dataset(table, **how)


def test_without_pytorch_the_error_says_what_to_install(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(Unsupported, match=r"\.\[torch\]"):
        dataset(table)
