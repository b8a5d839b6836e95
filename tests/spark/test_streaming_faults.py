"""Queries that are killed in the middle of batches, and started again: every row is there once."""

from itertools import cycle
from pathlib import Path

import pytest

from servers import Server
from spark.drivers.faulty_sink import Kill
from spark.killed_flows import MOMENTS, prepare

TWO_KILLS = [Kill("sums", 0, "written", "worker"), Kill("sums", 1, "after", "driver")]


def check_all_happened(folder: Path, batches: int, kills: list[Kill], warehouses: object) -> None:
    flows = prepare(folder, batches, kills, warehouses)

    drivers = flows.run()

    assert drivers == sum(kill.victim == "driver" for kill in kills)
    assert flows.planned == 0
    flows.check(batches)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_stream_that_is_killed_twice_loses_no_row_and_brings_none_twice(tmp_path: Path) -> None:
    check_all_happened(tmp_path, 2, TWO_KILLS, tmp_path)


def many_kills() -> list[Kill]:
    kills = []
    for sink, first in (("append", 0), ("sums", 1), ("vectors", 2)):
        moments = cycle(MOMENTS[first:] + MOMENTS[:first])
        for batch in range(20):
            victim = "driver" if batch % 6 == first else "worker"
            kills.append(Kill(sink, batch, next(moments), victim))
    return kills


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("place", ["disk", "s3"])
def test_streams_that_are_killed_twenty_times_lose_no_row_and_bring_none_twice(
    request: pytest.FixtureRequest, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouses = str(tmp_path)
    if place == "s3":
        server: Server = request.getfixturevalue("s3")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        warehouses = f"{server.root}/{tmp_path.name}"

    check_all_happened(tmp_path, 21, many_kills(), warehouses)
