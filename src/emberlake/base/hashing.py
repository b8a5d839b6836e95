"""Murmur3 (32 bits) over four-byte little-endian words, for one byte string and for many at once.

The format hashes serialized rows whose length is a multiple of four, so the tail step of Murmur
is needed only for names of files. Many rows are hashed in lockstep: ``mix_word`` takes the next
word of every row.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

U32 = npt.NDArray[np.uint32]

DEFAULT_SEED: Final = 42
C1: Final = 0xCC9E2D51
C2: Final = 0x1B873593
ADD: Final = 0xE6546B64
_FINAL_1: Final = 0x85EBCA6B
_FINAL_2: Final = 0xC2B2AE35
_MASK: Final = 0xFFFFFFFF


def murmur3(raw: bytes, seed: int = DEFAULT_SEED) -> int:
    """The signed 32-bit hash of bytes whose length is a multiple of four."""
    if len(raw) % 4:
        raise ValueError(f"{len(raw)} bytes are not a whole number of four-byte words")
    return murmur3_of_bytes(raw, seed)


def murmur3_of_bytes(raw: bytes, seed: int = 0) -> int:
    """The signed 32-bit hash of any bytes: Murmur3 with its tail step, as for names of files."""
    state, whole = seed, len(raw) - len(raw) % 4
    for at in range(0, whole, 4):
        state = mix_scalar(state, int.from_bytes(raw[at : at + 4], "little"))
    if whole < len(raw):
        state ^= _scrambled(int.from_bytes(raw[whole:], "little"))
    state ^= len(raw)
    state ^= state >> 16
    state = state * _FINAL_1 & _MASK
    state ^= state >> 13
    state = state * _FINAL_2 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def mix_scalar(state: int, word: int) -> int:
    """The state of one hash after its next word."""
    state ^= _scrambled(word)
    state = (state << 13 | state >> 19) & _MASK
    return (state * 5 + ADD) & _MASK


def _scrambled(word: int) -> int:
    word = word * C1 & _MASK
    word = (word << 15 | word >> 17) & _MASK
    return word * C2 & _MASK


def mix_word(states: U32, words: U32 | int) -> None:
    """Advance many hashes in place by one word each; a plain number is the same for all."""
    if isinstance(words, int):
        _mix_constant(states, words)
        return
    word = words * np.uint32(C1)
    _rotate_left(word, 15)
    word *= np.uint32(C2)
    states ^= word
    _advance(states)


def finish_hashes(states: U32, lengths: U32 | int) -> npt.NDArray[np.int32]:
    """Turn states, in place, into signed hashes of rows of the given byte lengths."""
    states ^= np.uint32(lengths) if isinstance(lengths, int) else lengths
    states ^= states >> np.uint32(16)
    states *= np.uint32(_FINAL_1)
    states ^= states >> np.uint32(13)
    states *= np.uint32(_FINAL_2)
    states ^= states >> np.uint32(16)
    return states.view(np.int32)


def _mix_constant(states: U32, word: int) -> None:
    if word:  # a zero word leaves nothing to mix in
        states ^= np.uint32(_scrambled(word))
    _advance(states)


def _advance(states: U32) -> None:
    _rotate_left(states, 13)
    states *= np.uint32(5)
    states += np.uint32(ADD)


def _rotate_left(values: U32, bits: int) -> None:
    high = values << np.uint32(bits)
    values >>= np.uint32(32 - bits)
    values |= high
