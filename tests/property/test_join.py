"""The index of a merge's keys finds what plain Python finds, whichever way it looks for keys."""

from dataclasses import dataclass
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from emberlake.rowops import join
from emberlake.rowops.join import KeyIndex

Keys = list[int | None]


@dataclass(frozen=True)
class Sides:
    """Key columns of the source and of the table, and for each whether null equals null."""

    types: list[pa.DataType]
    source: list[Keys]
    table: list[Keys]
    matches_null: list[bool]

    def arrays(self, columns: list[Keys]) -> list[pa.Array]:
        return [pa.array(c, kind) for c, kind in zip(columns, self.types, strict=True)]

    def pairs(self) -> list[tuple[int, int]]:
        """The rows of the table and of the source that match, found one by one."""
        rows, others = (list(zip(*side, strict=True)) for side in (self.table, self.source))
        places = product(range(len(rows)), range(len(others)))
        return [(at, other) for at, other in places if self._match(rows[at], others[other])]

    def _match(self, row: tuple, other: tuple) -> bool:
        compared = zip(row, other, self.matches_null, strict=True)
        return all(a == b and (a is not None or null) for a, b, null in compared)


@st.composite
def sides(draw: st.DrawFn) -> Sides:
    count = draw(st.integers(1, 3))
    types = [draw(st.sampled_from([pa.int8(), pa.int32(), pa.int64()])) for _ in range(count)]
    source, table = [], []
    sizes = draw(st.tuples(st.integers(0, 12), st.integers(0, 12)))
    for kind in types:
        high = (1 << (kind.bit_width - 1)) - 1
        near = draw(st.sampled_from([-high - 1, -70, high - 140]))
        # Near each other, so that there are pairs; now and then at the ends, or anywhere.
        value = st.one_of(
            st.integers(max(near, -high - 1), min(near + 140, high)),
            st.sampled_from([None, -high - 1, high]),
            st.integers(-high - 1, high),
        )
        for side, size in zip((source, table), sizes, strict=True):
            side.append(draw(st.lists(value, min_size=size, max_size=size)))
    return Sides(types, source, table, [draw(st.booleans()) for _ in types])


def found(index: KeyIndex, table: list[pa.Array]) -> list[tuple[int, int]]:
    rows, others = index.pairs(table)
    assert rows.tolist() == sorted(rows.tolist())
    return sorted(zip(rows.tolist(), others.tolist(), strict=True))


@examples(300)
@given(sides(), st.sampled_from([0, 64, join._MOST_BITS]), st.sampled_from([8, join._MOST_CODES]))
def test_integers_are_found_by_bits_and_by_search(both: Sides, bits: int, codes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "_MOST_BITS", bits)
        patch.setattr(join, "_MOST_CODES", codes)
        index = KeyIndex(both.arrays(both.source), both.matches_null)
        pairs = found(index, both.arrays(both.table))

    assert pairs == both.pairs()


@examples(100)
@given(sides())
def test_texts_are_found_where_integers_are(both: Sides) -> None:
    def texts(columns: list[Keys]) -> list[pa.Array]:
        return [column.cast(pa.string()) for column in both.arrays(columns)]

    by_hash = KeyIndex(texts(both.source), both.matches_null)
    by_bits = KeyIndex(both.arrays(both.source), both.matches_null)

    pairs = found(by_hash, texts(both.table))

    assert pairs == found(by_bits, both.arrays(both.table))
    assert by_hash.is_unique == by_bits.is_unique
