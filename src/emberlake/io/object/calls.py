"""The one way to call the client library: aside, with our own errors, retried with new keys."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from emberlake.errors import EmberlakeError
from emberlake.io.object.aside import run_aside
from emberlake.io.object.clients import (
    Purpose,
    client_of,
    forget_clients,
    library,
    note_reached,
)
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.credentials import FixedKeys
from emberlake.io.object.failures import Failure, typed
from emberlake.io.object.location import Location

_T = TypeVar("_T")
_PAUSE_S: Final = 0.1
_MOST_REPEATS: Final = 3
# What the library raises besides its own errors: for missing objects, and for names it refuses.
_RAISED = (OSError, ValueError)


class Failed(Exception):
    """A call failed; the caller has to find out whether it took effect."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


def mark_of(found: Mapping[str, Any]) -> str | None:
    """The etag of an object. Azure puts quotes around etags in answers, but not in listings."""
    etag: str | None = found.get("e_tag")
    return None if etag is None else etag.strip('"')


def attempt(
    config: StoreConfig,
    location: Location,
    work: Callable[[Any, Any], _T],
    purpose: Purpose = Purpose.DATA,
    *,
    is_repeatable: bool = True,
) -> _T:
    """What ``work(obstore, client)`` returns.

    Args:
        config: How to reach the store.
        location: The object or folder that the call is about.
        work: Calls the library, once.
        purpose: What the client is for.
        is_repeatable: Whether ``work`` can be called again, with new keys. An upload cannot: it
            continues with the client that it began with.

    Raises:
        Failed: the library raised.
    """
    obs = library(config.cloud)

    def call() -> _T:
        return work(obs, client_of(config, location, purpose))

    provider, keeper = config.credentials.provider, config.credentials.keeper
    can_renew = is_repeatable and provider is not None and not isinstance(provider, FixedKeys)
    while True:
        if keeper is not None:
            keeper.make_ready()  # its own errors say more than what the library turns them into
        try:
            answer = run_aside(call)
        except (obs.exceptions.BaseError, *_RAISED) as error:
            if isinstance(error, EmberlakeError):
                raise
            failure = Failure.of(error)
        else:
            note_reached(config, location)
            return answer
        if failure.is_answer and not failure.is_refusal:
            note_reached(config, location)
        if not (can_renew and failure.may_have_ended):
            raise Failed(failure) from None
        # The library asks a provider only when credentials are about to end, by their own date.
        can_renew = False
        if keeper is not None:
            keeper.forget()
        forget_clients(config)


def ask(
    config: StoreConfig,
    location: Location,
    action: str,
    work: Callable[[Any, Any], _T],
    purpose: Purpose = Purpose.DATA,
    *,
    is_repeatable: bool = True,
) -> _T:
    """What ``work(obstore, client)`` returns; failures are errors of emberlake."""
    try:
        return attempt(config, location, work, purpose, is_repeatable=is_repeatable)
    except Failed as failed:
        raise typed(failed.failure, config, location, action) from None


def ask_again(
    config: StoreConfig,
    location: Location,
    action: str,
    work: Callable[[Any, Any], _T],
    *,
    only_broken_off: bool = False,
) -> _T:
    """The same for work that may be done twice, but that the library does not repeat by itself.

    The library does repeat listings, except those that break off: ``only_broken_off``.
    """
    pause = _PAUSE_S
    for _ in range(min(config.max_retries, _MOST_REPEATS)):
        try:
            return attempt(config, location, work)
        except Failed as failed:
            is_final = failed.failure.is_refusal or failed.failure.is_missing
            if is_final or (only_broken_off and not failed.failure.has_broken_off):
                raise typed(failed.failure, config, location, action) from None
        time.sleep(pause)
        pause *= 2
    return ask(config, location, action, work)
