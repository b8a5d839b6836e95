"""Records of key tables that are not rows: a newer record replaced them, or they are deletes.

They are the same in every query of a snapshot. So they are found once, as one bit for each record
by its place in the files, and DuckDB reads all files as one plain source with one filter: no join,
and no second source that would hide the files from its optimizer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.sql.on_duckdb.native import EVERYWHERE, FILE, POSITION

# DuckDB copies a constant for each vector of 2048 rows that is compared with it, so constants are
# kept small; but each takes a while to hand over.
_PIECE_ROWS: Final = 1 << 20


@dataclass(frozen=True)
class Piece:
    """Some records of a file, from one position to that of the next piece."""

    file: int
    start: int
    bits: bytes  # the first record is the highest bit of the first byte; empty: no record is dead


@dataclass(frozen=True)
class DeadRecords:
    """The dead records of some files, in order."""

    pieces: tuple[Piece, ...]

    @property
    def byte_count(self) -> int:
        return sum(len(piece.bits) for piece in self.pieces)

    def named(self, prefix: str) -> Mapping[str, bytes]:
        """The variables that ``condition`` needs."""
        named = ((_name(prefix, piece), piece.bits) for piece in self.pieces)
        return {name: bits for name, bits in named if bits}

    def condition(self, prefix: str) -> str | None:
        """A condition of DuckDB that keeps the other records; None if there are no dead ones."""
        if not self.byte_count:
            return None
        bit = _bit(self.pieces, prefix)
        if len(self.pieces) == 1:
            bit = f"CASE WHEN {EVERYWHERE} THEN {bit} END"
        return f"{bit} = 0"


def collect_dead(places: Iterable[pa.RecordBatch], row_counts: Sequence[int]) -> DeadRecords:
    """Dead records by their places, which are pairs of a file and a position, in any order.

    Args:
        places: The pairs.
        row_counts: The number of records in each file.
    """
    sizes = [(count + 7) // 8 for count in row_counts]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    bits = np.zeros(int(starts[-1]), np.uint8)
    for batch in places:
        files, positions = (batch.column(at).to_numpy() for at in (0, 1))
        masks = (128 >> (positions & 7)).astype(np.uint8)
        np.bitwise_or.at(bits, starts[files] + (positions >> 3), masks)
    return DeadRecords(
        tuple(
            Piece(file, at * 8, part.tobytes() if part.any() else b"")
            for file, size in enumerate(sizes)
            for at in range(0, size, _PIECE_ROWS // 8)
            for part in [bits[starts[file] :][:size][at : at + _PIECE_ROWS // 8]]
        )
    )


def _bit(pieces: Sequence[Piece], prefix: str) -> str:
    """The bit of a record. The piece is searched by halves: a vector takes one way at each turn."""
    if not any(piece.bits for piece in pieces):
        return "0"
    if len(pieces) == 1:
        (piece,) = pieces
        place = f"CAST({POSITION} - {piece.start} AS INTEGER)"
        return f"get_bit(CAST(getvariable('{_name(prefix, piece)}') AS BIT), {place})"
    half = len(pieces) // 2
    first = pieces[half]
    is_before = f"{FILE} < {first.file}"
    if first.start:
        is_before += f" OR ({FILE} = {first.file} AND {POSITION} < {first.start})"
    before, after = _bit(pieces[:half], prefix), _bit(pieces[half:], prefix)
    return f"CASE WHEN {is_before} THEN {before} ELSE {after} END"


def _name(prefix: str, piece: Piece) -> str:
    return f"{prefix}_{piece.file}_{piece.start}"
