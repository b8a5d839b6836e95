import numpy as np
import pytest

from emberlake.base.hashing import finish_hashes, mix_scalar, mix_word, murmur3


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("0000000000000000", -1670924195),
        ("00000000000000000100000000000000", 1465514398),
        ("0000000000000000f9ffffffffffffff", 1145478327),
    ],
)
def test_bytes_hash_as_in_the_reference(raw: str, expected: int) -> None:
    assert murmur3(bytes.fromhex(raw)) == expected


def test_many_hashes_in_step_equal_one_after_the_other() -> None:
    words = np.random.default_rng(1).integers(0, 2**32, (5, 100), dtype=np.uint32)

    states = np.full(100, 42, dtype=np.uint32)
    for word in words:
        mix_word(states, word)
    hashes = finish_hashes(states, 20)

    assert hashes.tolist() == [murmur3(row.astype("<u4").tobytes()) for row in words.T]


@pytest.mark.parametrize("word", [0, 1, 0xFFFFFFFF])
def test_a_word_that_all_share_is_mixed_as_if_each_had_it(word: int) -> None:
    alone = np.arange(10, dtype=np.uint32)
    shared = alone.copy()

    mix_word(alone, np.full(10, word, dtype=np.uint32))
    mix_word(shared, word)

    assert shared.tolist() == alone.tolist() == [mix_scalar(i, word) for i in range(10)]


def test_bytes_that_are_not_whole_words_are_refused() -> None:
    with pytest.raises(ValueError, match="four-byte words"):
        murmur3(b"abc")
