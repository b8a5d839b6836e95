"""The options of a REST catalog, read once into a session."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from emberlake._version import __version__
from emberlake.base.option_texts import parse_duration_ms, parse_int
from emberlake.errors import InvalidOption
from emberlake.io.rest.auth import Auth, BearerAuth, DlfAuth, TokenFile, TokenText, TokenVariable
from emberlake.io.rest.connections import HttpSettings
from emberlake.io.rest.dlf_keys import ECS_METADATA, DlfFile, DlfInstance, DlfKeys
from emberlake.io.rest.sending import Session
from emberlake.rest.option_names import (
    CLIENT,
    HEADER,
    TOKEN,
    TOKEN_ENV,
    TOKEN_FILE,
    TOKEN_PROVIDER,
    TOKEN_SOURCES,
    URI,
)
from emberlake.rest.signing_dlf import DlfAlgorithm, DlfCredentials, algorithm_for, region_of

_T = TypeVar("_T")

_BEAR: Final = ("bear", "bearer")


def headers_of(options: Mapping[str, str]) -> dict[str, str]:
    """The headers that options set: ``header.X-Tenant`` sets ``X-Tenant``."""
    found = {k.removeprefix(HEADER): v for k, v in options.items() if k.startswith(HEADER)}
    broken = [name for name, value in found.items() if set("\r\n") & set(name + value)]
    if broken:
        raise InvalidOption(f"{HEADER}{broken[0]!r} has a line break in it")
    return found


def parse_session(options: Mapping[str, str]) -> Session:
    """The session that options ask for, before the server has given its prefix.

    Raises:
        InvalidOption: an option is missing, has no usable value, or contradicts another.
    """
    uri = _uri(options)
    headers = {"User-Agent": f"emberlake/{__version__}", **headers_of(options)}
    return Session(
        uri=uri,
        auth=_auth(options, uri),
        headers=tuple(sorted(headers.items())),
        http=_http(options),
    )


def _uri(options: Mapping[str, str]) -> str:
    text = options.get(URI, "").strip()
    if not text:
        raise InvalidOption(f"a REST catalog needs the option {URI!r}: the address of its server")
    if "://" not in text:
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - it is parsed when it is asked for
    except ValueError:
        parts = None
    if parts is None or parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise InvalidOption(f"the option {URI!r} is not an address; write https://host:port")
    if "@" in parts.netloc:  # every error would show it
        raise InvalidOption(f"the option {URI!r} has a user in it; credentials are options")
    if parts.query or parts.fragment:
        raise InvalidOption(f"the option {URI!r} has a query in it; write https://host:port")
    return f"{parts.scheme.lower()}://{parts.netloc}{parts.path.rstrip('/')}"


def _auth(options: Mapping[str, str], uri: str) -> Auth:
    provider = options.get(TOKEN_PROVIDER, "").strip().lower()
    if not provider and any(key in options for key in TOKEN_SOURCES):
        provider = _BEAR[0]
    if provider in _BEAR:
        return _bearer(options)
    if provider == "dlf":
        return _dlf(options, uri)
    if not provider:
        raise InvalidOption(
            f"the option {TOKEN_PROVIDER!r} is missing: bear (with {TOKEN}, {TOKEN_ENV} or "
            f"{TOKEN_FILE}) or dlf"
        )
    raise InvalidOption(f"{TOKEN_PROVIDER}={provider}: there are bear and dlf")


def _bearer(options: Mapping[str, str]) -> BearerAuth:
    given = [key for key in TOKEN_SOURCES if options.get(key, "").strip()]
    if len(given) != 1:
        found = f"{' and '.join(given)} contradict each other" if given else "there is no token"
        raise InvalidOption(
            f"{found}: give {TOKEN} (its text), {TOKEN_ENV} (the name of an environment variable) "
            f"or {TOKEN_FILE} (a file)"
        )
    value = options[given[0]].strip()
    match given[0]:
        case "token.env":
            return BearerAuth(TokenVariable(value))
        case "token.file":
            return BearerAuth(TokenFile(value))
        case _:
            if set("\r\n") & set(value):
                raise InvalidOption(f"the option {TOKEN!r} has a line break in it")
            return BearerAuth(TokenText(value))


def _dlf(options: Mapping[str, str], uri: str) -> DlfAuth:
    region = options.get("dlf.region") or region_of(uri)
    if region is None:
        raise InvalidOption("the option 'dlf.region' is missing, and the uri names no region")
    named = options.get("dlf.signing-algorithm")
    try:
        algorithm = algorithm_for(urlsplit(uri).netloc) if named is None else DlfAlgorithm(named)
    except ValueError as error:
        known = ", ".join(DlfAlgorithm)
        raise InvalidOption(f"dlf.signing-algorithm={named}: there are {known}") from error
    return DlfAuth(_dlf_keys(options), region, algorithm)


def _dlf_keys(options: Mapping[str, str]) -> DlfKeys:
    loader, path = options.get("dlf.token-loader"), options.get("dlf.token-path")
    if loader == "ecs":
        url = options.get("dlf.token-ecs-metadata-url", ECS_METADATA)
        return DlfKeys(DlfInstance(url, options.get("dlf.token-ecs-role-name")))
    if loader not in (None, "local_file"):
        raise InvalidOption(f"dlf.token-loader={loader}: there are ecs and local_file")
    if path is not None:
        return DlfKeys(DlfFile(path))
    if loader is not None:
        raise InvalidOption(f"dlf.token-loader={loader} needs dlf.token-path")
    key, secret = options.get("dlf.access-key-id"), options.get("dlf.access-key-secret")
    if not key or not secret:
        raise InvalidOption(
            "there are no keys: give dlf.access-key-id and dlf.access-key-secret, dlf.token-path, "
            "or dlf.token-loader=ecs"
        )
    return DlfKeys(DlfCredentials(key, secret, options.get("dlf.security-token")))


def _http(options: Mapping[str, str]) -> HttpSettings:
    ca_file = options.get(f"{CLIENT}ca-file")
    retries = _parsed(options, "max-retries", parse_int, 5)
    if retries < 0:
        raise InvalidOption(f"{CLIENT}max-retries={retries}: give 0 or more")
    return HttpSettings(
        connect_timeout_ms=_parsed(options, "connection-timeout", parse_duration_ms, 10_000),
        read_timeout_ms=_parsed(options, "read-timeout", parse_duration_ms, 60_000),
        max_retries=retries,
        proxy_url=options.get(f"{CLIENT}proxy"),
        ca_pem=None if ca_file is None else _read_pem(ca_file),
    )


def _parsed(options: Mapping[str, str], name: str, parse: Callable[[str], _T], default: _T) -> _T:
    text = options.get(f"{CLIENT}{name}")
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidOption(f"{CLIENT}{name}={text!r}: {error}") from error


def _read_pem(file: str) -> bytes:
    # Read here, so that workers on other machines need not have the file.
    try:
        return Path(file).expanduser().read_bytes()
    except OSError as error:
        raise InvalidOption(f"{CLIENT}ca-file={file} cannot be read: {error.strerror}") from error
