"""Check whether a store honours conditional writes, once for each bucket and process.

A store that ignores the condition would let two writers publish the same snapshot, and the commit
of one of them would be lost silently.
"""

import os
import time
import uuid
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Final

from emberlake.errors import Unsupported
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.failures import Failure, typed
from emberlake.io.object.location import Location
from emberlake.io.object.publish import create_once, delete_quietly, put_or_read
from emberlake.io.object.spellings import PREFIXES

PROBE_PREFIX: Final = ".emberlake-probe-"
_PAUSES_S: Final = (0.05, 0.5, 2.0)


@dataclass
class _Process:
    """What this process has found out: reset in the child of a fork."""

    lock: Any = field(default_factory=Lock)
    honoured: set[tuple[str, str]] = field(default_factory=set)  # endpoint, bucket


_process = _Process()


def check_conditions(config: StoreConfig, location: Location) -> None:
    """Refuse a store that overwrites an existing object when it should only create one.

    Args:
        config: how to reach the store.
        location: the object that will be published; the probe is written beside it.

    Raises:
        Unsupported: the store ignores the condition.
        StorageError: the store cannot be written to.
    """
    store = (config.endpoint, location.root)
    if config.is_single_writer or store in _process.honoured:
        return
    with _process.lock:
        if store not in _process.honoured:
            _probe(config, location)
            _process.honoured.add(store)


def _probe(config: StoreConfig, location: Location) -> None:
    folder = location.key.rpartition("/")[0]
    name = f"{PROBE_PREFIX}{uuid.uuid4()}"
    probe = replace(location, key=f"{folder}/{name}" if folder else name)
    try:
        # If the object exists, it is ours, whatever the answer was: the name is unique.
        put_or_read(config, probe, b"1", subject=location)
        second = _create_again(config, probe)
    finally:
        delete_quietly(config, probe)
    if not isinstance(second, Failure):
        prefix = PREFIXES[config.cloud][0]
        raise Unsupported(
            f"{config.endpoint} ignores the condition of a write (If-None-Match), so that two "
            "writers could publish the same snapshot and one commit would be lost; use a store "
            f"that honours it, or set {prefix}single-writer=true if no other process ever writes "
            f"to {location.root}"
        )
    if not second.is_taken:
        raise typed(second, config, location, "create")


def _create_again(config: StoreConfig, probe: Location) -> Failure | str | None:
    """How the store refuses a second object of the same name; the etag if it accepts it."""
    for pause in _PAUSES_S:
        said = create_once(config, probe, b"2")
        if not isinstance(said, Failure) or said.is_taken or said.is_refusal:
            return said
        time.sleep(pause)  # without an answer we know nothing
    return create_once(config, probe, b"2")


def _after_fork() -> None:
    # The lock may be held by a thread that is not in this process.
    _process.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_after_fork)
