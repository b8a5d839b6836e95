"""A profile with which a job could only fail or wait forever is refused before it starts."""

from typing import Any

import pytest

from emberlake import InvalidInput, Unsupported
from emberlake.spark.resources import Requests, check, parse

DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}
LOCAL_CLUSTER = {"spark.master": "local-cluster[2,1,1024]"}
YARN = {"spark.master": "yarn"}
STANDALONE = {"spark.master": "spark://host:7077"}


def checked(asked: dict[str, Any], settings: dict[str, str]) -> Requests:
    requests = parse(asked, settings.get)
    check(requests, settings.get)
    return requests


def test_a_dict_says_what_a_task_and_its_executor_have() -> None:
    settings = {**YARN, **DYNAMIC, "spark.executor.resource.gpu.amount": "4"}
    asked = {"cpus": 2, "gpu": 0.5, "cores": 4, "memory": "1g", "memory_overhead": "512"}

    requests = checked(asked, settings)

    assert requests.task == {"cpus": 2, "gpu": 0.5}
    assert requests.executor == {"cores": 4, "memory": 1024, "memoryOverhead": 512, "gpu": 4}


def test_every_key_and_value_that_means_nothing_is_named() -> None:
    asked = {"cpu": 1, "cpus": True, "gpu": 1.5, "memory": "much", "pyspark_memory": 2}

    with pytest.raises(InvalidInput) as refused:
        checked(asked, STANDALONE)

    said = str(refused.value)
    assert (
        "cpu is not one of cpus, gpu, fpga, cores, memory, memory_overhead, pyspark_memory" in said
    )
    for key in ("cpus must be a whole", "gpu must be a whole", "memory must be a size such as"):
        assert key in said
    assert "pyspark_memory must be a size such as '512m' or '2g', not 2" in said


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_in_one_process_there_are_no_profiles(master: str) -> None:
    with pytest.raises(Unsupported, match="all tasks run in one process"):
        checked({"cpus": 1}, {"spark.master": master})


@pytest.mark.parametrize(
    ("asked", "settings"),
    [
        ({"cpus": 1}, LOCAL_CLUSTER),
        ({"cpus": 64}, STANDALONE),  # how large its workers are is not known here
        ({"cpus": 2}, {**YARN, "spark.executor.cores": "2"}),
        ({"cpus": 2, "cores": 2, "memory": "1g"}, {**YARN, **DYNAMIC}),
        ({"gpu": 1}, {**YARN, "spark.executor.resource.gpu.amount": "1"}),
        ({"gpu": 1}, {**YARN, **DYNAMIC}),
    ],
)
def test_what_an_executor_can_have_is_taken(
    asked: dict[str, Any], settings: dict[str, str]
) -> None:
    checked(asked, settings)


@pytest.mark.parametrize(
    ("asked", "settings", "problem"),
    [
        ({"cpus": 2}, LOCAL_CLUSTER, "asks for 2 cpus, but an executor has 1 cores"),
        ({"cpus": 2}, YARN, "asks for 2 cpus, but an executor has 1 cores"),
        ({"cpus": 3}, {**STANDALONE, "spark.executor.cores": "2"}, "an executor has 2 cores"),
        ({"cpus": 3, "cores": 2}, {**YARN, **DYNAMIC}, "an executor has 2 cores"),
        ({"cores": 2}, {**LOCAL_CLUSTER, **DYNAMIC}, "needs 2 cores, but a worker .* has 1"),
        ({"memory": "2g"}, {**LOCAL_CLUSTER, **DYNAMIC}, "asks for 2048 MiB, but a worker"),
        ({"memory": "1g"}, STANDALONE, "the session keeps those that it has: set spark.dynamic"),
        ({"gpu": 1}, STANDALONE, "asks for 1 gpu, but executors have none"),
        ({"gpu": 2}, {**YARN, "spark.executor.resource.gpu.amount": "1"}, "executors have 1"),
        ({"gpu": 1}, {**LOCAL_CLUSTER, **DYNAMIC}, "no worker has 1 gpu"),
    ],
)
def test_what_no_executor_can_ever_have_is_refused(
    asked: dict[str, Any], settings: dict[str, str], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        checked(asked, settings)
