"""The resources of every write task, checked before anything starts.

Spark accepts a profile that no executor can ever satisfy, and waits forever for one. If the master
does not support profiles, Spark fails in the middle of a job. So the profile is checked first
against the session's settings. What the settings do not say, such as the size of a standalone
worker, is not checked.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.resource import (
    ExecutorResourceRequests,
    ResourceProfile,
    ResourceProfileBuilder,
    TaskResourceRequests,
)
from pyspark.sql import SparkSession

from emberlake.errors import InvalidInput, Unsupported

_CPUS: Final = "cpus"
_CORES: Final = "cores"
_MEMORY: Final = "memory"
_DEVICES: Final = ("gpu", "fpga")
# Our keys for executor resources -> Spark's.
_SIZES: Final = {
    _MEMORY: "memory",
    "memory_overhead": "memoryOverhead",
    "pyspark_memory": "pyspark.memory",
    "offheap_memory": "offHeap",
}
_CHOICES: Final = (_CPUS, *_DEVICES, _CORES, *_SIZES)
_SIZE: Final = re.compile(r"(\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
_MIB: Final = {"": 1.0, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20, "p": 2.0**30}
_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
# Masters whose executors have one core by default.
_ONE_CORE: Final = ("yarn", "k8s://")

Setting = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Requests:
    """What a task needs, and what its executor must have; sizes in MiB, by Spark's names."""

    task: Mapping[str, float] = field(default_factory=dict)
    executor: Mapping[str, int] = field(default_factory=dict)


def find_profile(
    asked: ResourceProfile | Mapping[str, object] | None, spark: SparkSession
) -> ResourceProfile | None:
    """The profile that was asked for, if the session can satisfy it.

    Args:
        asked: A Spark profile, or its content: ``cpus`` and devices (``gpu``, ``fpga``) of a task;
            ``cores``, ``memory``, ``memory_overhead``, ``pyspark_memory`` and ``offheap_memory`` of
            its executor.
        spark: The session.

    Raises:
        Unsupported: the master cannot have profiles.
        InvalidInput: it is not a profile, or no executor of the session can satisfy it.
    """
    if asked is None:
        return None

    def setting(key: str) -> str | None:
        return spark.conf.get(key, None)

    if isinstance(asked, ResourceProfile):
        check(_requests_of(asked), setting)
        return asked
    if not isinstance(asked, Mapping):
        raise InvalidInput(
            "resource_profile is a Spark ResourceProfile or a dict such as "
            f"{{'cpus': 2}}, not {type(asked).__name__}"
        )
    if not asked:
        return None
    requests = parse(asked, setting)
    check(requests, setting)
    return _build(requests, setting)


def parse(asked: Mapping[str, object], setting: Setting) -> Requests:
    """What a dict asks for.

    Raises:
        InvalidInput: names every unknown key and every invalid value.
    """
    problems: list[str] = []
    task: dict[str, float] = {}
    executor: dict[str, int] = {}
    for key, value in asked.items():
        try:
            if key == _CPUS:
                task[key] = _whole(value)
            elif key in _DEVICES:
                task[key] = _share(value)
            elif key == _CORES:
                executor[key] = _whole(value)
            elif key in _SIZES:
                executor[_SIZES[key]] = _size(value)
            else:
                problems.append(f"{key} is not one of {', '.join(_CHOICES)}")
        except ValueError as error:
            problems.append(f"{key} must be {error}, not {value!r}")
    if problems:
        raise InvalidInput(f"resource_profile: {'; '.join(problems)}")
    if _is_dynamic(setting):  # otherwise only existing executors are used, as they are
        for name in task.keys() - {_CPUS}:
            known = setting(f"spark.executor.resource.{name}.amount")
            executor[name] = max(math.ceil(task[name]), int(known or 0))
    return Requests(task, executor)


def _whole(value: object) -> int:
    if type(value) is not int or value < 1:  # a bool is an int
        raise ValueError("a whole number of 1 or more")
    return value


def _share(value: object) -> float:
    """Spark divides a device among tasks, or gives a task whole devices."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        amount = float(value)
        if 0 < amount <= 1 or (amount > 1 and amount.is_integer()):
            return amount
    raise ValueError("a whole number of 1 or more, or a fraction of one device")


def _size(value: object) -> int:
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    mib = float(found[1]) * _MIB[found[2].lower()] if found else 0
    if mib < 1:
        raise ValueError("a size such as '512m' or '2g'")
    return math.ceil(mib)


def _requests_of(profile: ResourceProfile) -> Requests:
    return Requests(
        {name: float(request.amount) for name, request in profile.taskResources.items()},
        {name: int(request.amount) for name, request in profile.executorResources.items()},
    )


def check(requests: Requests, setting: Setting) -> None:
    """Refuse requests that the session cannot satisfy for any task."""
    master = setting("spark.master") or ""
    if master.startswith("local") and not master.startswith("local-cluster"):
        raise Unsupported(
            f"resource_profile: with the master {master} all tasks run in one process and share "
            "what it has; leave it out, or use a cluster"
        )
    problems = list(_problems(requests, master, setting))
    if problems:
        raise InvalidInput(f"resource_profile: {'; '.join(problems)}")


def _problems(requests: Requests, master: str, setting: Setting) -> Iterator[str]:
    asked = requests.executor
    if asked and not _is_dynamic(setting):
        yield (
            f"it asks for executors with {', '.join(f'{k}={v}' for k, v in asked.items())}, but "
            "the session keeps those that it has: set spark.dynamicAllocation.enabled=true, or "
            "configure all executors when the session starts, such as with spark.executor.memory"
        )
        return
    worker = _LOCAL_CLUSTER.fullmatch(master)
    yield from _core_problems(requests, master, setting, int(worker[2]) if worker else None)
    if worker and asked.get(_MEMORY, 0) > int(worker[3]):
        yield f"it asks for {asked[_MEMORY]} MiB, but a worker of {master} has {worker[3]}"
    for name in sorted(requests.task.keys() - {_CPUS}):
        yield from _device_problems(name, requests, setting, has_workers=worker is not None)


def _core_problems(
    requests: Requests, master: str, setting: Setting, of_worker: int | None
) -> Iterator[str]:
    known = setting("spark.executor.cores")
    usual = 1 if master.startswith(_ONE_CORE) else of_worker
    cores = requests.executor.get(_CORES) or (int(known) if known else usual)
    cpus = requests.task.get(_CPUS, 1)
    if cores is not None and cpus > cores:
        yield f"a task asks for {cpus:g} cpus, but an executor has {cores} cores"
    if cores is not None and of_worker is not None and cores > of_worker:
        yield f"an executor needs {cores} cores, but a worker of {master} has {of_worker}"


def _device_problems(
    name: str, requests: Requests, setting: Setting, *, has_workers: bool
) -> Iterator[str]:
    key = f"spark.executor.resource.{name}.amount"
    amount = requests.task[name]
    has = requests.executor.get(name, int(setting(key) or 0))
    if has < amount:
        have = f"have {has}" if has else "have none"
        yield f"a task asks for {amount:g} {name}, but executors {have} ({key})"
    elif has_workers and int(setting(f"spark.worker.resource.{name}.amount") or 0) < has:
        yield f"no worker has {has} {name} (spark.worker.resource.{name}.amount)"


def _is_dynamic(setting: Setting) -> bool:
    return (setting("spark.dynamicAllocation.enabled") or "").lower() == "true"


def _build(requests: Requests, setting: Setting) -> ResourceProfile:
    builder = ResourceProfileBuilder()
    task = TaskResourceRequests()
    for name, amount in requests.task.items():
        task = task.cpus(int(amount)) if name == _CPUS else task.resource(name, amount)
    if requests.task:
        builder = builder.require(task)
    executor = ExecutorResourceRequests()
    for name, number in requests.executor.items():
        executor = _with_request(executor, name, number, setting)
    if requests.executor:
        builder = builder.require(executor)
    return builder.build


def _with_request(
    executor: ExecutorResourceRequests, name: str, amount: int, setting: Setting
) -> ExecutorResourceRequests:
    if name == _CORES:
        return executor.cores(amount)
    sizes = {
        "memory": executor.memory,
        "memoryOverhead": executor.memoryOverhead,
        "pyspark.memory": executor.pysparkMemory,
        "offHeap": executor.offheapMemory,
    }
    if name in sizes:
        return sizes[name](f"{amount}m")
    key = f"spark.executor.resource.{name}"
    script, vendor = setting(f"{key}.discoveryScript") or "", setting(f"{key}.vendor") or ""
    return executor.resource(name, amount, script, vendor)
