"""Does a store honour conditional writes? Asked once for each bucket and process.

A store that ignores the condition would let two writers publish the same snapshot, and the commit
of one of them would be lost without a word.
"""

import uuid
from dataclasses import replace
from threading import Lock
from typing import Final

from emberlake.errors import Unsupported
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.failures import typed
from emberlake.io.object.location import Location
from emberlake.io.object.publish import create_once, delete_quietly, put_if_absent
from emberlake.io.object.spellings import PREFIXES

PROBE_PREFIX: Final = ".emberlake-probe-"
_lock = Lock()
_honoured: set[tuple[str, str]] = set()  # endpoint, bucket


def check_conditions(config: StoreConfig, location: Location) -> None:
    """Refuse a store that overwrites what is to be created.

    Args:
        config: how to reach the store.
        location: of the object that will be published; the probe is written beside it.

    Raises:
        Unsupported: the store ignores the condition.
        StorageError: the store cannot be written to.
    """
    store = (config.endpoint, location.root)
    if config.is_single_writer or store in _honoured:
        return
    with _lock:
        if store not in _honoured:
            _probe(config, location)
            _honoured.add(store)


def _probe(config: StoreConfig, location: Location) -> None:
    folder = location.key.rpartition("/")[0]
    name = f"{PROBE_PREFIX}{uuid.uuid4()}"
    probe = replace(location, key=f"{folder}/{name}" if folder else name)
    try:
        # Ours if it is there, whatever the answer was: the name is unique.
        put_if_absent(config, probe, b"1", told=location)
        second = create_once(config, probe, b"2")
    finally:
        delete_quietly(config, probe)
    if second is None:
        prefix = PREFIXES[config.cloud][0]
        raise Unsupported(
            f"{config.endpoint} ignores the condition of a write (If-None-Match), so that two "
            "writers could publish the same snapshot and one commit would be lost; use a store "
            f"that honours it, or set {prefix}single-writer=true if no other process ever writes "
            f"to {location.root}"
        )
    if not second.is_taken:
        raise typed(second, config, location, "create")
