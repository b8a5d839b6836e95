import io
import threading
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import StorageError
from emberlake.io.object.reading import AHEAD_BYTES, END_BYTES, ObjectFile, RangedInput, pieces_of


class Bytes:
    """An object whose bytes tell where they are; knows what was fetched of it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fetched: list[tuple[int, int]] = []
        self.ends = 0
        self._lock = threading.Lock()

    def at(self, start: int, length: int) -> bytes:
        stop = min(start + length, self.size)
        first, last = start // 8, -(-stop // 8)
        data = b"".join(n.to_bytes(8, "little") for n in range(first, last))
        return data[start - first * 8 : stop - first * 8]

    def fetch(self, start: int, length: int) -> memoryview:
        with self._lock:
            self.fetched.append((start, length))
        return memoryview(self.at(start, length))

    def end(self) -> tuple[int, int, memoryview]:
        self.ends += 1
        start = max(self.size - END_BYTES, 0)
        return self.size, start, memoryview(self.at(start, END_BYTES))

    def open(self, said_size: int | None = None) -> RangedInput:
        return RangedInput(self.fetch, self.end, said_size)


def test_what_lies_close_together_is_one_piece() -> None:
    gap = MEBIBYTE

    assert pieces_of([(10, 20), (20, 30)]) == [(10, 30)]
    assert pieces_of([(gap + 30, gap + 40), (10, 20)]) == [(10, 20), (gap + 30, gap + 40)]
    assert pieces_of([(gap + 20, gap + 40), (10, 20)]) == [(10, gap + 40)]
    assert pieces_of([(0, 100), (10, 20)]) == [(0, 100)]
    assert pieces_of([]) == []


def test_ranges_are_cut_only_if_they_are_too_long_for_one_piece() -> None:
    m = MEBIBYTE

    assert pieces_of([(0, 5 * m), (5 * m, 10 * m)]) == [(0, 5 * m), (5 * m, 10 * m)]
    assert pieces_of([(0, 9 * m), (9 * m, 12 * m)]) == [(0, 8 * m), (8 * m, 12 * m)]
    assert pieces_of([(0, 6 * m), (4 * m, 10 * m)]) == [(0, 6 * m), (6 * m, 10 * m)]


def test_a_range_that_was_not_cut_is_handed_out_without_a_copy() -> None:
    source = Bytes(40 * MEBIBYTE)
    opened = source.open()
    ranges = [(0, 5 * MEBIBYTE), (5 * MEBIBYTE, 10 * MEBIBYTE)]

    for _ in opened.each_part([ranges]):
        opened.seek(5 * MEBIBYTE)
        second = opened.read(5 * MEBIBYTE)
        opened.seek(4 * MEBIBYTE)
        across = opened.read(2 * MEBIBYTE)
        assert second.obj is opened._pieces[1].bytes_of(*ranges[1]).obj
        assert bytes(across) == source.at(4 * MEBIBYTE, 2 * MEBIBYTE)

    assert sorted(source.fetched) == [(0, 5 * MEBIBYTE), (5 * MEBIBYTE, 5 * MEBIBYTE)]


def test_parts_are_there_in_their_turn_and_nothing_else_is_fetched() -> None:
    source = Bytes(40 * MEBIBYTE)
    opened = source.open()
    parts = [[(8, 24), (100, 108)], [(20 * MEBIBYTE, 20 * MEBIBYTE + 16)]]

    for number in opened.each_part(parts):
        for start, stop in parts[number]:
            opened.seek(start)
            assert bytes(opened.read(stop - start)) == source.at(start, stop - start)

    assert sorted(source.fetched) == [(8, 100), (20 * MEBIBYTE, 16)]
    assert source.ends == 0


def test_a_long_range_comes_in_pieces() -> None:
    source = Bytes(40 * MEBIBYTE)
    opened = source.open()
    start, stop = 5, 5 + 17 * MEBIBYTE

    for _ in opened.each_part([[(start, stop)]]):
        opened.seek(start)
        assert bytes(opened.read(stop - start)) == source.at(start, stop - start)

    assert sorted(source.fetched) == [
        (5, 8 * MEBIBYTE),
        (5 + 8 * MEBIBYTE, 8 * MEBIBYTE),
        (5 + 16 * MEBIBYTE, MEBIBYTE),
    ]


def test_no_more_than_the_bound_is_fetched_ahead() -> None:
    part = 8 * MEBIBYTE
    source = Bytes(100 * part)
    opened = source.open()
    source.at = lambda start, length: b""  # type: ignore[method-assign] # only how much counts
    turns = opened.each_part([[(n * 10 * part, n * 10 * part + part)] for n in range(10)])

    begun = []
    for _ in turns:
        begun.append(sum(piece.stop - piece.start for piece in opened._pieces))

    assert max(begun) == AHEAD_BYTES
    assert begun[-1] == part
    assert opened._pieces == []


def test_a_part_that_is_larger_than_that_is_fetched_all_the_same() -> None:
    opened = Bytes(1 << 40).open()
    opened._fetch = lambda start, length: memoryview(b"")

    turns = [*opened.each_part([[(0, 2 * AHEAD_BYTES)], [(4 * AHEAD_BYTES, 4 * AHEAD_BYTES + 1)]])]

    assert turns == [0, 1]


def test_a_failure_is_raised_to_who_reads_the_part() -> None:
    opened = Bytes(40 * MEBIBYTE).open()

    def fail(start: int, length: int) -> memoryview:
        raise KeyError("no answer")

    opened._fetch = fail
    for _ in opened.each_part([[(0, 8)]]):
        with pytest.raises(KeyError, match="no answer"):
            opened.read(8)


def test_who_stops_in_the_middle_does_not_fetch_the_rest() -> None:
    part = 8 * MEBIBYTE
    opened = Bytes(1 << 40).open()
    gate, fetched = threading.Event(), []

    def fetch(start: int, length: int) -> memoryview:
        gate.wait(5)
        fetched.append(start)
        return memoryview(b"")

    opened._fetch = fetch
    turns = opened.each_part([[(0, 100 * part)]])
    next(turns)
    pieces = opened._pieces
    turns.close()
    gate.set()
    for piece in pieces:
        piece.bytes_of(0, 1)

    assert len(fetched) <= 16  # which were under way


def test_a_failure_of_the_store_reaches_who_reads_with_arrow() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": range(100_000)}), sink, compression="none", use_dictionary=False)
    raw = sink.getvalue()

    def fail(start: int, length: int) -> memoryview:
        raise StorageError("cannot read: no answer")

    end = (len(raw), len(raw) - END_BYTES, memoryview(raw)[-END_BYTES:])
    with ObjectFile(RangedInput(fail, lambda: end)) as file:
        parquet = pq.ParquetFile(file)
        with pytest.raises(StorageError, match="no answer"):
            parquet.read()


def test_what_was_not_asked_for_before_is_fetched_when_it_is_read() -> None:
    source = Bytes(MEBIBYTE)
    opened = source.open()

    pieces = [opened.read(1000) for _ in range(5)]

    assert b"".join(pieces) == source.at(0, 5000)
    assert len(source.fetched) == 1
    assert all(len(one) == len(two) for one, two in pairwise(pieces))


def test_a_given_size_is_trusted_until_somebody_asks() -> None:
    source = Bytes(1000)
    opened = source.open(said_size=2000)

    assert opened.seek(0, io.SEEK_END) == 2000
    assert source.ends == 0
    assert opened.size == 1000
    assert opened.seek(-10, io.SEEK_END) == 990
    assert bytes(opened.read()) == source.at(990, 10)


def test_arrow_reads_it() -> None:
    source = Bytes(MEBIBYTE)

    with ObjectFile(source.open()) as file:
        assert file.size() == MEBIBYTE
        file.seek(MEBIBYTE - 8)
        assert file.read() == source.at(MEBIBYTE - 8, 8)
