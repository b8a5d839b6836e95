"""How files are cut into the parts of an upload: decided by what a file is meant to become."""

import pytest

from emberlake.base.option_texts import MEBIBYTE
from emberlake.io.object.upload import (
    MOST_BYTES,
    MOST_PARTS,
    PART_BYTES,
    part_bytes,
    parts_at_once,
)

GIGABYTE = 10**9


@pytest.mark.parametrize(
    ("target", "size"),
    [
        (None, 8 * MEBIBYTE),
        (0, 8 * MEBIBYTE),
        (256 * MEBIBYTE, 8 * MEBIBYTE),
        (40 * GIGABYTE, 8 * MEBIBYTE),
        (80 * GIGABYTE, 16 * MEBIBYTE),
        (1000 * GIGABYTE, 191 * MEBIBYTE),
        (MOST_BYTES, 525 * MEBIBYTE),
        (100 * MOST_BYTES, 525 * MEBIBYTE),
    ],
)
def test_parts_grow_with_the_file_that_is_wanted(target: int | None, size: int) -> None:
    assert part_bytes(target) == size


@pytest.mark.parametrize("target", [1, 50 * GIGABYTE, 600 * GIGABYTE, 2 * 1024**4, MOST_BYTES])
def test_a_file_has_room_for_twice_its_target_up_to_what_a_store_takes(target: int) -> None:
    assert part_bytes(target) * MOST_PARTS >= min(2 * target, MOST_BYTES)


@pytest.mark.parametrize("target", [None, 100 * GIGABYTE, 1000 * GIGABYTE, MOST_BYTES])
def test_what_is_under_way_is_bounded_by_bytes_or_is_one_part(target: int | None) -> None:
    size = part_bytes(target)

    assert size * parts_at_once(size) <= max(64 * MEBIBYTE, size)
    assert parts_at_once(PART_BYTES) == 4
