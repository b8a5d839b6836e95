"""Uploads that were neither finished nor given up, for example because their process was killed.

No listing of objects shows their parts, but the parts cost money. The client library knows only the
uploads of its own process, so these requests are made and signed here. This is only for S3 and its
compatibles: Azure drops the parts by itself after a week, and for GCS and OSS a rule of the bucket
does.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, Final
from xml.etree import ElementTree as ET

from emberlake.base.requests import ask_all
from emberlake.errors import (
    CredentialsExpired,
    FileNotFound,
    InvalidInput,
    StorageError,
    Unsupported,
)
from emberlake.io.object.calls import ask_again
from emberlake.io.object.clients import AskedProvider, ProviderFailed, with_bucket
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.location import Cloud, Location, locate
from emberlake.io.object.sending import Sender
from emberlake.io.object.signing import Keys, encoded_path, encoded_query, signed_headers
from emberlake.io.object.spellings import PREFIXES
from emberlake.io.storage import Upload

_LIST: Final = "list the unfinished uploads of"
_AT_ONCE: Final = 8  # each has a connection of its own
_Query = Sequence[tuple[str, str]]


def unfinished_uploads(config: StoreConfig, folder: Location) -> Iterator[Upload]:
    """The uploads of a folder, at any depth, with one request per 1,000.

    Raises:
        Unsupported: this store or these credentials do not let emberlake list uploads.
        StorageError: the store refused. Listing never has an effect.
    """
    if config.cloud is Cloud.AZURE:
        return
    _check_support(config, folder)
    calls = _Calls(config)
    prefix = f"{folder.key}/" if folder.key else ""
    turn = _Turn()
    while True:
        query = [("uploads", ""), ("prefix", prefix), *turn.after]
        try:
            page = _list(config, folder, calls, query)
        except StorageError as error:
            again = None if isinstance(error, CredentialsExpired) else turn.by_keys()
            if again is None or not error.had_no_effect:
                raise
            turn = again
            continue
        found = [_upload(folder, one) for one in page.iterfind("{*}Upload")]
        uploads = [upload for upload in found if upload is not None and upload not in turn.listed]
        # Some stores ignore the prefix and list the whole bucket.
        yield from (one for one in uploads if one.path.startswith(f"{folder.path}/"))
        if page.findtext("{*}IsTruncated", "").strip() != "true":
            return
        last, turn = turn, turn.next(page, uploads)
        if turn.after == last.after:
            raise Unsupported(f"{config.endpoint} cannot {_LIST} {folder.path}: pages never end")


@dataclass(frozen=True)
class _Turn:
    """Where a listing continues.

    Usually it continues at the markers that the store gave. versitygw refuses its own markers and
    accepts only a key. A page may end between two uploads of one key, so such a listing continues
    after the last key but one, and uploads that were already listed are left out.
    """

    after: _Query = ()
    listed: frozenset[Upload] = frozenset()
    keys: Sequence[str] = ()  # the last two of the previous page
    of_last_key: frozenset[Upload] = frozenset()
    is_by_key: bool = False

    def next(self, page: ET.Element, uploads: Sequence[Upload]) -> "_Turn":
        keys = sorted({one.findtext("{*}Key", "") for one in page.iterfind("{*}Upload")})[-2:]
        last = frozenset(one for one in uploads if locate(one.path).key == keys[-1])
        turn = _Turn(_next_page(page), keys=keys, of_last_key=last, is_by_key=self.is_by_key)
        return (turn.by_keys(again=True) or turn) if self.is_by_key else turn

    def by_keys(self, *, again: bool = False) -> "_Turn | None":
        """The same place, found by keys alone; None if that is not possible."""
        if len(self.keys) < 2 or (self.is_by_key and not again):
            return None
        after = [("key-marker", self.keys[0])]
        return replace(self, after=after, listed=self.of_last_key, is_by_key=True)


def end_uploads(config: StoreConfig, uploads: Iterable[Upload]) -> None:
    """Give up uploads, with their parts; no error for uploads that have ended.

    Raises:
        Unsupported: this store or these credentials do not let emberlake end uploads.
    """
    calls = _Calls(config)

    def end(upload: Upload) -> None:
        location = locate(upload.path)
        _check_support(config, location)
        url = f"{_address(config, location)}?{encoded_query([('uploadId', upload.id)])}"
        with suppress(FileNotFound):
            calls.ask(location, "end the unfinished upload of", "DELETE", url)

    ask_all((partial(end, upload) for upload in uploads), _AT_ONCE)


def _check_support(config: StoreConfig, location: Location) -> None:
    if config.cloud is not Cloud.S3:
        raise Unsupported(
            f"emberlake cannot {_LIST} {location.path} on {config.cloud}; set a lifecycle rule of "
            "the bucket that ends them"
        )
    is_anonymous = dict(config.credentials.settings).get("skip_signature") == "true"
    if config.credentials.provider is None and not is_anonymous:
        raise Unsupported(
            f"emberlake cannot {_LIST} {location.path} with credentials that the cloud gives to "
            f"the machine or its role; give {PREFIXES[config.cloud][0]}credentials-provider, or "
            "set a lifecycle rule of the bucket that ends them"
        )


class _Calls:
    """Signed requests. The keys are fetched once, and again when they have expired."""

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self._sender = Sender(config)
        self._lock = Lock()
        self._client: Any = None
        self._keys: Keys | None = None

    def ask(self, location: Location, action: str, method: str, url: str) -> bytes:
        """The answer to a request, which may be sent twice."""

        def work(obs: Any, client: Any) -> bytes:
            keys = self._keys_for(obs, client)
            region = str(self._config.region)
            now = datetime.now(UTC)
            headers = {} if keys is None else signed_headers(method, url, keys, region, now)
            return self._sender.send(obs, method, url, headers)

        return ask_again(self._config, location, action, work)

    def _keys_for(self, obs: Any, client: Any) -> Keys | None:
        with self._lock:
            if client is not self._client:  # a new client means new keys
                self._keys = keys_of(obs, self._config)
                self._client = client
            return self._keys


def keys_of(obs: Any, config: StoreConfig) -> Keys | None:
    """The current keys of the provider; None if requests are not signed."""
    if config.credentials.provider is None:
        return None
    try:
        given = AskedProvider(config.cloud, config.credentials.provider)()
    except ProviderFailed as error:
        raise obs.exceptions.GenericError(f"ProviderFailed: {error}") from None
    keys = (given.get("access_key_id"), given.get("secret_access_key"))
    token = given.get("token")
    if not all(isinstance(key, str) for key in keys) or not isinstance(token, str | None):
        raise obs.exceptions.UnauthenticatedError("no keys")
    return Keys(str(keys[0]), str(keys[1]), token)


def _address(config: StoreConfig, location: Location) -> str:
    """The URL of a bucket, or of an object in it."""
    settings = dict(config.settings)
    endpoint = settings.get("endpoint") or f"https://s3.{config.region}.amazonaws.com"
    if settings["virtual_hosted_style_request"] == "true":
        return f"{with_bucket(endpoint, location.bucket)}/{encoded_path(location.key)}"
    path = f"{location.bucket}/{location.key}" if location.key else location.bucket
    return f"{endpoint}/{encoded_path(path)}"


def _list(config: StoreConfig, folder: Location, calls: _Calls, query: _Query) -> ET.Element:
    url = f"{_address(config, replace(folder, key=''))}?{encoded_query(query)}"
    page: ET.Element | None = None
    with suppress(FileNotFound, ET.ParseError):
        body = calls.ask(folder, _LIST, "GET", url)
        page = ET.fromstring(body)  # noqa: S314 - expat bounds what entities expand to
    # A store that does not know this request may list the objects instead.
    if page is None or page.tag.rpartition("}")[2] != "ListMultipartUploadsResult":
        raise Unsupported(
            f"{config.endpoint} cannot {_LIST} {folder.path}: it answered something else"
        )
    return page


def _upload(folder: Location, found: ET.Element) -> Upload | None:
    """A listed upload; None if its key cannot be a path of ours."""
    key, upload_id = found.findtext("{*}Key", ""), found.findtext("{*}UploadId", "")
    location = replace(folder, key=key)
    try:
        if locate(location.path).key != key or not upload_id:
            return None
    except InvalidInput:
        return None
    return Upload(location.path, upload_id, _millis(location, found.findtext("{*}Initiated", "")))


def _millis(location: Location, text: str) -> int:
    try:
        begun = datetime.fromisoformat(text.strip())
    except ValueError as error:
        reason = f"the upload of {location.path} began at {text!r}, which is not a time"
        raise StorageError(reason, had_no_effect=True) from error
    return int((begun if begun.tzinfo else begun.replace(tzinfo=UTC)).timestamp() * 1000)


def _next_page(page: ET.Element) -> _Query:
    return [
        ("key-marker", page.findtext("{*}NextKeyMarker", "")),
        ("upload-id-marker", page.findtext("{*}NextUploadIdMarker", "")),
    ]
