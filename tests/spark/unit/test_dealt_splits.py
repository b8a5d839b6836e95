"""Splits inside the function of a task: each partition finds its own, in little space."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import append, create_table, rows_of
from emberlake.predicates import PredicateBuilder
from emberlake.scan.plan import plan_scan
from emberlake.scan.splits import DataSplit
from emberlake.spark.dealt_splits import PARTITION, DealtSplits, split_table
from emberlake.store.entries import ManifestEntries


def some_splits(count: int) -> list[DataSplit]:
    """Splits that differ in the name of their file, and in their predicate."""
    table = create_table()
    append(table, rows_of([1, 2]))
    (split,) = plan_scan(table.store, None, None).splits
    (entry,) = split.entries.entries()
    builder = PredicateBuilder(table.fields)
    predicates = [None, builder.equal("id", 1), builder.equal("id", 2)]
    named = (replace(entry, file=replace(entry.file, file_name=f"data-{n}")) for n in range(count))
    return [
        replace(
            split, entries=ManifestEntries.from_entries([one]), predicate=predicates[number % 3]
        )
        for number, one in enumerate(named)
    ]


SPLITS = some_splits(12)


def batch(*partitions: int) -> pa.RecordBatch:
    return pa.record_batch({PARTITION: pa.array(partitions, pa.int64())})


@given(
    steps=st.lists(st.integers(0, 2), min_size=1, max_size=len(SPLITS)),
    block_bytes=st.sampled_from([1, 1_000, 3_000, 1 << 20]),
)
def test_every_partition_finds_its_own_splits_and_their_numbers(
    steps: Sequence[int], block_bytes: int
) -> None:
    places = [sum(steps[: number + 1]) for number in range(len(steps))]
    given_splits = SPLITS[: len(places)]

    with patch("emberlake.spark.dealt_splits._BLOCK_BYTES", block_bytes):
        dealt = pickle.loads(pickle.dumps(DealtSplits.of(given_splits, places)))

    for partition in range(max(places) + 2):
        wanted = [n for n, place in enumerate(places) if place == partition]
        found = list(dealt.numbered([batch(partition)]))
        assert [number for number, _ in found] == wanted
        assert [split for _, split in found] == [given_splits[n] for n in wanted]


def test_a_task_opens_only_the_block_of_its_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlake.spark.dealt_splits._BLOCK_BYTES", 1_000)
    dealt = DealtSplits.of(SPLITS, range(len(SPLITS)))

    broken = tuple(
        block if 7 in block.partitions else replace(block, rows=b"not a stream")
        for block in dealt.blocks
    )

    assert len(dealt.blocks) > 2
    assert list(replace(dealt, blocks=broken).splits([batch(7)])) == [SPLITS[7]]


def test_splits_take_little_space() -> None:
    splits = some_splits(500)
    table, _ = split_table(splits)

    dealt = DealtSplits.of(splits, range(len(splits)))

    assert len(pickle.dumps(dealt)) < table.nbytes / 4
