"""Splits survive the way to a worker; bytes that are no split are refused by a typed error."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import append, create_table, rows_of
from emberlake import CatalogFactory, Table
from emberlake.errors import InvalidInput, Unsupported
from emberlake.scan.split_form import split_from_bytes, split_to_bytes
from emberlake.scan.splits import DataSplit
from golden.reads import Golden, GoldenRead, reads_of, row_reads
from table_reads import read_rows

READS = reads_of("append_", "bucketed_", "types_", "pk_", "key_", "kinds_")


def a_split() -> DataSplit:
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    return splits_of(table)[0]


def splits_of(table: Table, where: str | None = None) -> list[DataSplit]:
    return table.new_read_builder().with_filter(where).new_scan().plan().splits()


def open_golden(golden: Golden, read: GoldenRead) -> Table:
    options = dict(read.options)
    branch = options.pop("branch", None)
    name = f"golden.{read.table}" + (f"$branch_{branch}" if branch else "")
    return CatalogFactory.create({"warehouse": golden.warehouse}).get_table(name).copy(options)


def without_its_predicate(split: DataSplit | None) -> DataSplit | None:
    return None if split is None else replace(split, predicate=None)


@pytest.mark.parametrize("read", READS, ids=str)
def test_every_split_of_a_golden_table_survives(golden: Golden, read: GoldenRead) -> None:
    for split in splits_of(open_golden(golden, read)):
        expected = replace(split, before=without_its_predicate(split.before))

        assert split_from_bytes(split_to_bytes(split), split.predicate) == expected


@pytest.mark.parametrize("name", ["de_dv_partitioned", "de_evolved", "rt_dv_compacted"])
def test_splits_of_rows_with_ids_survive(golden_rows: Golden, name: str) -> None:
    read = next(read for read in row_reads() if read.table == name)
    for split in splits_of(open_golden(golden_rows, read), "_ROW_ID > 1"):
        sent = split_to_bytes(split)

        assert split_from_bytes(sent, split.predicate) == split
        assert sent[4] == (2 if split.is_grouped else 1)


def test_a_split_keeps_which_of_its_files_match_as_a_whole() -> None:
    table = create_table()
    append(table, rows_of([1, 2]))
    append(table, rows_of([2, 3]))
    (split,) = splits_of(table, "id >= 2")
    assert split.is_exact == (False, True)

    arrived = split_from_bytes(split_to_bytes(split), split.predicate)

    assert arrived == split
    assert arrived.predicate == split.predicate
    read = table.new_read_builder().with_filter("id >= 2").new_read()
    assert read.to_arrow([arrived]).to_pylist() == read_rows(table, "id >= 2")


def test_a_key_that_is_not_known_is_ignored() -> None:
    split = a_split()
    raw = split_to_bytes(split)
    form = json.loads(raw[5:])
    form["state"]["colour"] = form["more"] = [1]

    assert split_from_bytes(raw[:5] + json.dumps(form).encode(), None) == split


def test_a_version_that_is_not_known_is_refused() -> None:
    raw = bytearray(split_to_bytes(a_split()))
    raw[4] = 3

    with pytest.raises(Unsupported, match="split version 3"):
        split_from_bytes(bytes(raw), None)


@pytest.mark.parametrize(
    "change",
    [
        {"bucket": 2**40},
        {"bucket": "0"},
        {"partition": "no base64!"},
        {"files": [{}]},
        {"files": {}},
        {"snapshot_id": None},
    ],
)
def test_values_that_no_split_has_are_refused(change: dict[str, object]) -> None:
    raw = split_to_bytes(a_split())
    form = json.loads(raw[5:])
    form["state"].update(change)

    with pytest.raises(InvalidInput, match="not a split"):
        split_from_bytes(raw[:5] + json.dumps(form).encode(), None)


@pytest.mark.parametrize("raw", [b"", b"EMBS", b"EMBM\x01{}", b"EMBS\x01", b"EMBS\x01[]"])
def test_bytes_that_are_no_split_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput, match="not a split"):
        split_from_bytes(raw, None)


RAW = split_to_bytes(a_split())


@given(st.integers(0, len(RAW) - 1), st.integers(0, 255))
def test_a_damaged_byte_is_a_typed_error_or_another_split(at: int, byte: int) -> None:
    damaged = bytearray(RAW)
    damaged[at] = byte

    try:
        split = split_from_bytes(bytes(damaged), None)
    except (InvalidInput, Unsupported):
        return
    assert isinstance(split, DataSplit)


@given(st.integers(0, len(RAW) - 1))
def test_a_split_that_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(InvalidInput):
        split_from_bytes(RAW[:length], None)
