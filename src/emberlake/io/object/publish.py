"""Put-if-absent on object stores: one conditional write, settled by reading the object back.

The store's condition decides who is first. But no answer except a plain success proves anything: an
answer can be lost after the write, and a write that is repeated then finds its own object. So if
the answer is not a success, the bytes in the store settle it. Equal bytes are ours: what is
published names its writer.
"""

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from emberlake.errors import EmberlakeError, StorageError
from emberlake.io.object.calls import Failed, ask, attempt, mark_of
from emberlake.io.object.clients import Purpose, has_reached
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.failures import Failure, typed
from emberlake.io.object.location import Cloud, Location
from emberlake.io.storage import Standing

_PATIENCE_S: Final = 60.0
_FIRST_PATIENCE_S: Final = 5.0  # with a store that never answered: its options may be wrong
_SMALL_BYTES: Final = 1024 * 1024  # what a slow line can send in the time that publishing has
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


def put_or_read(
    config: StoreConfig, location: Location, data: bytes, *, subject: Location | None = None
) -> Standing:
    """Create an object with these bytes, or read the one that is there.

    Args:
        config: how to reach the store.
        location: where the object is to be.
        data: its bytes.
        subject: what errors name instead of the object, if given.

    Raises:
        StorageError: the store refused, and nothing was done; or it could not be found out whether
            the write took effect.
    """
    if config.is_single_writer:
        return _put_alone(config, location, data)
    begin = time.monotonic()
    pause = _PAUSE_S
    may_be_under_way = False
    while True:
        try:
            failure = create_once(config, location, data)
        except StorageError as unready:  # there were no credentials for this attempt
            unready.had_no_effect = unready.had_no_effect and not may_be_under_way
            raise
        if not isinstance(failure, Failure):
            return Standing(data, failure, is_ours=True)
        standing = _standing(config, location, data)
        if standing is not None:
            return standing
        is_refusal = failure.is_refusal or failure.is_missing  # of the bucket
        may_be_under_way = may_be_under_way or not is_refusal
        is_known = has_reached(config, location)
        patience = _PATIENCE_S if is_known else _FIRST_PATIENCE_S
        is_final = is_refusal and not (failure.is_unsent and is_known)
        if is_final or time.monotonic() - begin > patience:
            error = typed(failure, config, subject or location, "create")
            if isinstance(error, StorageError):
                error.had_no_effect = not may_be_under_way
            raise error
        # The condition makes it safe to repeat a write that may still be under way.
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def create_once(config: StoreConfig, location: Location, data: bytes) -> Failure | str | None:
    """Make one conditional write; returns the etag of the new object if it succeeds."""
    # OSS has its own header for the condition. The client for publishing sends it.
    mode = "overwrite" if config.cloud is Cloud.OSS else "create"
    purpose = Purpose.PUBLISH if len(data) <= _SMALL_BYTES else Purpose.CREATE

    def write(obs: Any, client: Any) -> str | None:
        return mark_of(obs.put(client, location.key, data, mode=mode, use_multipart=False))

    try:
        return attempt(config, location, write, purpose)
    except Failed as failed:
        return failed.failure


def delete_quietly(config: StoreConfig, location: Location) -> None:
    """Delete an object that nobody refers to, if possible."""
    with suppress(EmberlakeError):
        ask(config, location, "delete", lambda obs, client: obs.delete(client, location.key))


def _put_alone(config: StoreConfig, location: Location, data: bytes) -> Standing:
    """For stores without conditional writes: the user vouches that nobody else writes."""

    def standing() -> Standing | None:
        found = ask(config, location, "read", lambda obs, client: _read(obs, client, location.key))
        return None if found is None else Standing(*found, is_ours=found[0] == data)

    before = standing()
    if before is not None:
        return replace(before, is_ours=False)

    def write(obs: Any, client: Any) -> str | None:
        return mark_of(obs.put(client, location.key, data, use_multipart=False))

    try:
        return Standing(data, ask(config, location, "create", write), is_ours=True)
    except StorageError as error:
        # The library repeats requests: an earlier one than the last may have succeeded.
        try:
            found = standing()
        except EmberlakeError:
            error.had_no_effect = False
            raise error from None
        if found is None or not found.is_ours:
            raise
        return found


def _standing(config: StoreConfig, location: Location, ours: bytes) -> Standing | None:
    """The object with this name; None if there is none, or if the store cannot be asked."""
    with suppress(EmberlakeError):
        found = ask(config, location, "read", lambda obs, client: _read(obs, client, location.key))
        return None if found is None else Standing(*found, is_ours=found[0] == ours)
    return None


def _read(obs: Any, client: Any, key: str) -> tuple[bytes, str | None] | None:
    try:
        found = obs.get(client, key)
        return bytes(found.bytes()), mark_of(found.meta)
    except FileNotFoundError as error:
        if Failure.of(error).is_missing:
            return None
        raise
