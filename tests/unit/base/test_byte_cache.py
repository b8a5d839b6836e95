"""A cache that counts what it holds."""

import sys

from emberlake.base.byte_cache import ByteCache


def a_cache(limit: int) -> ByteCache:
    return ByteCache(lambda: limit)


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache = a_cache(25_000)
    cache.keep(("a",), "A", 10_000)
    cache.keep(("b",), "B", 10_000)
    cache.find(("a",))

    cache.keep(("c",), "C", 10_000)

    assert [cache.find((name,)) for name in "abc"] == ["A", None, "C"]
    assert cache.held_bytes <= 25_000


def test_keys_count_as_well_as_values() -> None:
    cache = a_cache(1_000_000)
    key = (bytes(50_000), "path")

    cache.keep(key, "value", 0)

    assert cache.held_bytes >= 50_000 + sys.getsizeof(key)


def test_what_is_too_large_drives_nothing_out() -> None:
    cache = a_cache(10_000)
    cache.keep(("small",), "S", 100)

    cache.keep(("large",), "L", 20_000)

    assert (cache.find(("small",)), cache.find(("large",))) == ("S", None)


def test_a_limit_of_nothing_remembers_nothing() -> None:
    cache = a_cache(0)

    cache.keep(("a",), "A", 0)

    assert (len(cache), cache.held_bytes) == (0, 0)


def test_the_limit_is_asked_for_again_after_everything_was_forgotten() -> None:
    limits = iter([0, 10_000])
    cache = ByteCache(lambda: next(limits))
    cache.keep(("a",), "A", 0)

    cache.clear()
    cache.keep(("a",), "A", 0)

    assert cache.find(("a",)) == "A"
