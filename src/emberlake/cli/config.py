"""Finds the catalog: from flags, then the environment, then a configuration file.

Flags always win: a profile or a file that is named by a flag overrides a warehouse that is set in
the environment.

A configuration file is TOML with a table per profile; its keys are catalog options:

    [default]
    warehouse = "/data/warehouse"

    [staging]
    warehouse = "../staging"      # relative to the file

    [prod]
    metastore = "rest"            # here the warehouse is a name that the server knows
    uri = "https://catalog.example.com"
    warehouse = "lake"
    token.env = "LAKE_TOKEN"

The file is ``--config``, EMBERLAKE_CONFIG, ``emberlake.toml`` in the current folder or the nearest
one above it, or ``emberlake/config.toml`` in the user's configuration folder.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from emberlake.base.names import choices
from emberlake.cli.failures import UsageError

CONFIG_NAME: Final = "emberlake.toml"
DEFAULT_PROFILE: Final = "default"
ENV_CONFIG: Final = "EMBERLAKE_CONFIG"
ENV_PROFILE: Final = "EMBERLAKE_PROFILE"
ENV_WAREHOUSE: Final = "EMBERLAKE_WAREHOUSE"
_WAREHOUSE: Final = "warehouse"
_METASTORE: Final = "metastore"
_FILESYSTEM: Final = "filesystem"
_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The common options of a command; those that were not typed are None or empty."""

    warehouse: str | None = None
    profile: str | None = None
    config: Path | None = None
    catalog_options: Mapping[str, str] = field(default_factory=dict)
    as_json: bool = False
    debug: bool = False

    def over(self, outer: "Settings") -> "Settings":
        """These settings, with those of ``outer`` (typed before the command) where unset."""
        return Settings(
            warehouse=self.warehouse or outer.warehouse,
            profile=self.profile or outer.profile,
            config=self.config or outer.config,
            catalog_options={**outer.catalog_options, **self.catalog_options},
            as_json=self.as_json or outer.as_json,
            debug=self.debug or outer.debug,
        )


def load_catalog_options(
    settings: Settings, environ: Mapping[str, str] = os.environ, folder: Path | None = None
) -> dict[str, str]:
    """The options to open the catalog with.

    Raises:
        UsageError: no warehouse is known, or the configuration file is invalid.
    """
    path = find_config(settings, environ, folder or Path.cwd())
    profile = settings.profile or environ.get(ENV_PROFILE) or None
    if path is None and profile is not None:
        raise UsageError(
            f"profile {profile!r} needs a configuration file, but there is no {CONFIG_NAME} here "
            "or in a folder above; give --config FILE"
        )
    options = {} if path is None else _load_profile(path, profile)
    is_file_typed = settings.profile is not None or settings.config is not None
    if environ.get(ENV_WAREHOUSE) and not (is_file_typed and _WAREHOUSE in options):
        options[_WAREHOUSE] = environ[ENV_WAREHOUSE]
    if settings.warehouse:
        options[_WAREHOUSE] = settings.warehouse
    options.update(settings.catalog_options)
    if _WAREHOUSE not in options and _METASTORE not in options:
        raise UsageError(
            f"no warehouse is known; give --warehouse FOLDER, set {ENV_WAREHOUSE}, "
            f"or write it into {CONFIG_NAME}"
        )
    return options


def find_config(settings: Settings, environ: Mapping[str, str], folder: Path) -> Path | None:
    """The configuration file to read; None if there is none.

    Raises:
        UsageError: the named file does not exist.
    """
    named = settings.config or (Path(environ[ENV_CONFIG]) if environ.get(ENV_CONFIG) else None)
    if named is not None:
        if not named.is_file():
            raise UsageError(f"the configuration file {named} does not exist")
        return named
    candidates = [parent / CONFIG_NAME for parent in (folder, *folder.parents)]
    home = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    candidates.append(Path(home) / "emberlake" / "config.toml")
    return next((path for path in candidates if path.is_file()), None)


def profiles_of(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names of the profiles that can be chosen."""
    path = find_config(settings, environ, Path.cwd())
    return [] if path is None else list(_load_profiles(path))


def _load_profiles(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error


def _load_profile(path: Path, profile: str | None) -> dict[str, str]:
    profiles = _load_profiles(path)
    loose = [key for key, value in profiles.items() if not isinstance(value, dict)]
    if loose:
        raise UsageError(
            f"{path}: {', '.join(loose)} must be in a profile; write [{DEFAULT_PROFILE}] above it"
        )
    if profile is not None and profile not in profiles:
        raise UsageError(
            f"{path} has no profile {profile!r}; {choices(profile, list(profiles), 'it has:')}"
        )
    options = dict(_option_texts(profiles.get(profile or DEFAULT_PROFILE, {})))
    warehouse = options.get(_WAREHOUSE)
    is_folder = options.get(_METASTORE, _FILESYSTEM).lower() == _FILESYSTEM
    if warehouse is not None and is_folder and not _SCHEME.match(warehouse):
        # Relative to the file, so that a project works from any of its folders.
        options[_WAREHOUSE] = str(path.parent / os.path.expanduser(warehouse))  # noqa: PTH111
    return options


def _option_texts(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Options with dots in their names are TOML tables: ``table-default.bucket = 4``."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _option_texts(value, f"{prefix}{key}.")
        else:
            yield prefix + key, str(value).lower() if isinstance(value, bool) else str(value)
