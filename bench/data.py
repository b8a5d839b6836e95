"""The data of the benchmarks: seeded, so that every run and every engine gets the same rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SEED = 20260626
EPOCH_US = 1_750_000_000_000_000


def rows(count: int, *, partitions: int = 5) -> pa.Table:
    """`count` rows of eight columns, and a column `p` to partition by."""
    rng = np.random.default_rng(SEED)
    cities = pa.array([f"city-{number:03}" for number in range(1000)])
    flags = rng.random(count) < 0.3
    return pa.table(
        {
            "id": pa.array(np.arange(count, dtype=np.int64)),
            "a": pa.array(rng.integers(-(2**31), 2**31 - 1, count, dtype=np.int32)),
            "b": pa.array(rng.normal(0, 1000, count)),
            "c": cities.take(pa.array(rng.integers(0, 1000, count))),
            "d": _unique_texts(rng.permutation(count)),
            "e": pa.array(EPOCH_US + rng.integers(0, 10**14, count)).cast(pa.timestamp("us")),
            "f": _decimals(rng.integers(0, 10**10, count)),
            "g": pa.array(flags),
            "p": pa.array(rng.integers(0, partitions, count, dtype=np.int32)),
        }
    )


def shuffled(table: pa.Table) -> pa.Table:
    """The same rows in random order: keys do not arrive sorted."""
    order = np.random.default_rng(SEED).permutation(table.num_rows)
    return table.take(pa.array(order))


def changing_rows(count: int) -> pa.Table:
    """Rows whose column `a` has each number below `count` once, in random order."""
    table = rows(count).drop_columns("p")
    numbers = np.random.default_rng(SEED + 1).permutation(count).astype(np.int32)
    return table.set_column(1, "a", pa.array(numbers))


def merge_source(target_rows: int, count: int, new_share: int) -> pa.Table:
    """Rows for known ids, spread over the whole table, and one of `new_share` for a new id."""
    rng = np.random.default_rng(SEED + 2)
    new = count // new_share
    known = rng.choice(target_rows, count - new, replace=False)
    ids = rng.permutation(np.concatenate([known, target_rows + np.arange(new)]))
    return rows(count).drop_columns("p").set_column(0, "id", pa.array(ids.astype(np.int64)))


def tiny_rows(partitions: int) -> pa.Table:
    """One row for each of `partitions` partitions: a commit of that many files."""
    numbers = np.arange(partitions)
    return pa.table({"p": pa.array(numbers.astype(np.int32)), "id": pa.array(numbers)})


def save(table: pa.Table, path: Path) -> None:
    """Save as one batch: pypaimon-rust takes batches, and is fastest with large ones."""
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table.combine_chunks())


def _unique_texts(numbers: np.ndarray) -> pa.Array:
    """Distinct texts of 16 characters that do not compress to nothing."""
    digits = pa.array((numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.int64))
    text = pc.replace_substring(digits.cast(pa.string()), "-", "7")
    return pc.utf8_slice_codeunits(pc.utf8_lpad(text, 20, "x"), 4, 20)


def _decimals(cents: np.ndarray) -> pa.Array:
    # Through the bytes of a decimal128: low word, then sign word (all values are positive).
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(words)])
