"""The file of the statistics of a table."""

import json

from emberlake.spec.statistics import TableStatistics


def test_columns_are_in_the_order_of_javas_hash_maps() -> None:
    names = ["id", "v", "d", "day"]

    written = TableStatistics(1, 0, 3, 99, {name: {} for name in names}).to_bytes()

    assert list(json.loads(written)["colStats"]) == ["d", "v", "id", "day"]


def test_many_columns_are_all_there() -> None:
    names = [f"größe{number}" for number in range(40)]

    written = TableStatistics(1, 0, 3, 99, {name: {} for name in names}).to_bytes()

    assert sorted(json.loads(written)["colStats"]) == sorted(names)
