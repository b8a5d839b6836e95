"""Credentials that end soon, as a token service hands them out; workers import this module."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from servers import SECRET, USER

# The server knows them (``guests``), and the proxy ends each after some requests (``life``).
ACCESS_KEYS: Final = [f"guest{number:03}" for number in range(400)]


@dataclass(frozen=True)
class TokenService:
    """Other keys at every call, in whichever process it is made; a file for each of them."""

    folder: Path

    def __call__(self) -> dict[str, str]:
        for key in ACCESS_KEYS:
            try:
                (self.folder / key).touch(exist_ok=False)
            except FileExistsError:
                continue
            return {"access_key_id": key, "secret_access_key": SECRET}
        raise AssertionError("all keys were given out")


def lasting_keys() -> dict[str, str]:
    """Those of the server itself; options that are text name this function."""
    return {"access_key_id": USER, "secret_access_key": SECRET}
