"""Profiles in the files of Amazon's tools, usually ``~/.aws/credentials`` and ``~/.aws/config``.

A profile has keys, or names a program that prints them, and may name a region and an endpoint. The
files are read where the catalog is opened, so workers on other machines need not have them.
"""

import configparser
import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from emberlake.base.names import choices
from emberlake.errors import InvalidOption

_DEFAULT: Final = "default"
_PROCESS_S: Final = 60.0
_NO_DEFAULTS: Final = "\n"  # no section has this name, so none supplies defaults for the others


@dataclass(frozen=True)
class Profile:
    """What both files say about a profile. Where they differ, the credentials file wins."""

    name: str
    values: Mapping[str, str] = field(repr=False)

    def text(self, name: str) -> str | None:
        """The value of a setting; None if it is empty or missing."""
        return self.values.get(name) or None


class CredentialProcessFailed(Exception):
    """A program did not print the credentials that it should have printed."""


@dataclass(frozen=True)
class ProcessKeys:
    """Asks a program for keys (``credential_process``), again whenever they expire."""

    profile: str
    command: str = field(repr=False)

    def __call__(self) -> Mapping[str, Any]:
        """The keys as a provider returns them. No error repeats what the program printed."""
        try:
            done = subprocess.run(  # noqa: S603 - the user's own file names it
                shlex.split(self.command),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROCESS_S,
                check=False,
            )
            found = json.loads(done.stdout) if done.returncode == 0 else None
            if not isinstance(found, dict) or found.get("Version") != 1:
                raise CredentialProcessFailed
            return {
                "access_key_id": found["AccessKeyId"],
                "secret_access_key": found["SecretAccessKey"],
                "token": found.get("SessionToken"),
                "expires_at": _time(found.get("Expiration")),
            }
        except (OSError, ValueError, KeyError, subprocess.SubprocessError):
            raise CredentialProcessFailed from None


def read_profile(name: str | None, environment: Mapping[str, str]) -> Profile | None:
    """The profile with this name. Without a name: ``AWS_PROFILE``, or ``default`` if it exists.

    Raises:
        InvalidOption: there is no profile with this name, or a file cannot be read.
    """
    wanted = name or environment.get("AWS_PROFILE") or _DEFAULT
    known: dict[str, dict[str, str]] = {}
    for section, values in (
        *_profiles(_file("AWS_CONFIG_FILE", "config", environment), is_config=True),
        *_profiles(_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", environment)),
    ):
        known[section] = {**known.get(section, {}), **values}
    if wanted in known:
        return Profile(wanted, known[wanted])
    if wanted == _DEFAULT and name is None:
        return None
    raise InvalidOption(
        f"there is no profile {wanted} in the files of Amazon's tools; "
        f"{choices(wanted, sorted(known), 'there are')}"
    )


def _file(variable: str, name: str, environment: Mapping[str, str]) -> Path | None:
    if environment.get(variable):
        return Path(environment[variable]).expanduser()
    home = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(home, ".aws", name) if home else None


def _profiles(
    file: Path | None, *, is_config: bool = False
) -> Iterator[tuple[str, Mapping[str, str]]]:
    # A home that this user may not enter has no such file. Many containers have such homes.
    if file is None or not os.path.isfile(file):  # noqa: PTH113 - Path's raises
        return
    parser = configparser.RawConfigParser(default_section=_NO_DEFAULTS, strict=False)
    try:
        parser.read_string(file.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        # Without the message: it repeats the line, which may be a secret.
        kind = type(error).__name__
        raise InvalidOption(f"{file} cannot be read as a file of profiles ({kind})") from None
    for section in parser.sections():
        name = _profile_name(section) if is_config else section
        if name is not None:
            yield name, dict(parser[section])


def _profile_name(section: str) -> str | None:
    """The profile that a section of the config file is for: ``[default]``, ``[profile name]``."""
    if section == _DEFAULT:
        return section
    kind, _, name = section.partition(" ")
    return name.strip().strip("\"'") if kind == "profile" else None


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    ends = datetime.fromisoformat(text)
    return ends if ends.tzinfo else ends.replace(tzinfo=UTC)
