"""Turn errors of the client library into errors that say what is wrong and what to do.

The texts of the library are long and hold addresses and headers. We take only the status and the
code of the store from them, and never show the texts themselves.
"""

import re
from dataclasses import dataclass
from typing import Final

from emberlake.errors import (
    CredentialsExpired,
    EmberlakeError,
    FileNotFound,
    InvalidInput,
    StorageError,
    Unsupported,
)
from emberlake.io.object.config import StoreConfig
from emberlake.io.object.credentials import FixedKeys
from emberlake.io.object.location import Location
from emberlake.io.object.profiles import ProcessKeys
from emberlake.io.object.roles import AssumedRole
from emberlake.io.object.spellings import PREFIXES

_STATUS: Final = re.compile(r"status code: (\d{3})|status: (\d{3})")
_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_REGION: Final = re.compile(r"<Region>([a-z0-9-]+)</Region>|expecting '([a-z0-9-]+)'")
_WRONG_KEYS: Final = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "XAdminUserNotFound",
        "AuthenticationFailed",
        "InvalidAuthenticationInfo",
    }
)
_ENDED: Final = frozenset(
    {"ExpiredToken", "InvalidToken", "InvalidTokenId", "TokenRefreshRequired"}
)
# Codes of some stores for expired keys: that they do not know them, or only that they are bad.
_FORGOTTEN: Final = _WRONG_KEYS - {"SignatureDoesNotMatch"}
_WRONG_REGION: Final = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect"})
_NO_BUCKET: Final = frozenset({"NoSuchBucket", "ContainerNotFound"})
_WITHOUT_OBJECT: Final = ("create", "write", "list")  # these do not require that an object exists
_FOR_NOW: Final = frozenset({"RequestTimeout"})  # S3 says 400 when a body came too slowly
_CERTIFICATE: Final = re.compile(
    r"UnknownIssuer|NotValidForName|InvalidCertificate|invalid peer certificate|CaUsedAsEndEntity"
)
_HTTP: Final = re.compile(r"HttpError \{\s*kind: (\w+)")
_TLS_MIX: Final = re.compile(r"InvalidContentType|corrupt message|InvalidMessage|unexpected EOF")


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known about a request that failed."""

    kind: str  # the class that the library raised
    status: int | None
    code: str | None
    region: str | None
    text: str

    @staticmethod
    def of(error: BaseException) -> "Failure":
        text = str(error)
        status, code, region = _STATUS.search(text), _CODE.search(text), _REGION.search(text)
        return Failure(
            type(error).__name__,
            int(status[1] or status[2]) if status else None,
            code[1] if code else None,
            (region[1] or region[2]) if region else None,
            text,
        )

    @property
    def http(self) -> str | None:
        """Where a request without an answer broke off: Connect, Timeout and so on."""
        found = _HTTP.search(self.text)
        return found[1] if found else None

    @property
    def is_refusal(self) -> bool:
        """Whether the store understood the request and said no, so nothing was done."""
        if self.code in _FOR_NOW:
            return False
        return (
            self.code in {*_WRONG_KEYS, *_ENDED, *_WRONG_REGION, *_NO_BUCKET, "ObjectParentIsFile"}
            or self.status in (301, 400, 401, 403, 405, 501)
            or self.is_unsent
        )

    @property
    def is_unsent(self) -> bool:
        """Whether the request never left: there was no connection, address or credential."""
        return (
            self.http == "Connect"
            or _TLS_MIX.search(self.text) is not None
            or _CERTIFICATE.search(self.text) is not None
            or "builder error" in self.text
            or "ProviderFailed" in self.text
        )

    @property
    def has_broken_off(self) -> bool:
        """Whether the connection ended in the middle of an answer."""
        return self.status is None and self.http == "Interrupted"

    @property
    def is_missing(self) -> bool:
        is_other = self.code in {*_NO_BUCKET, *_WRONG_KEYS}
        return not is_other and (self.kind in ("FileNotFoundError", "NotFoundError"))

    @property
    def is_taken(self) -> bool:
        """Whether the store said that an object of this name exists."""
        return self.kind in ("AlreadyExistsError", "PreconditionError") or self.status in (409, 412)

    @property
    def is_of_range(self) -> bool:
        """Whether the store could not, or would not, answer with the range that was asked for."""
        return self.status == 416 or "non-partial response" in self.text

    @property
    def has_ended(self) -> bool:
        """Whether the credentials were valid before and have expired."""
        return self.code in _ENDED

    @property
    def may_have_ended(self) -> bool:
        """Whether new credentials are worth a try. A refused HEAD has no body that says why."""
        is_untold = self.code is None and self.status in (400, 403)
        return self.has_ended or self.code in _FORGOTTEN or self.status == 401 or is_untold

    @property
    def is_answer(self) -> bool:
        """Whether the store itself was reached."""
        return self.status is not None or self.is_missing


def typed(failure: Failure, config: StoreConfig, location: Location, action: str) -> EmberlakeError:
    """The error to raise."""
    if _lacks_bucket(failure, action):
        reason = f"there is no bucket {location.bucket} at {config.endpoint}"
        return StorageError(reason, had_no_effect=True)
    if failure.is_missing:
        return FileNotFound(location.path)
    if failure.kind in ("ValueError", "InvalidPathError"):
        return InvalidInput(f"cannot {action} {location.path}: it is not a valid object name")
    if failure.kind == "NotSupportedError" or failure.status in (405, 501):
        return Unsupported(f"{config.endpoint} cannot {action} {location.path}")
    reason = _reason(failure, config, location, action)
    if failure.has_ended:
        return CredentialsExpired(reason, had_no_effect=True)
    return StorageError(reason, had_no_effect=failure.is_refusal)


def _lacks_bucket(failure: Failure, action: str) -> bool:
    # Some stores only say 404. If we write or list, it can mean nothing else.
    is_bare = failure.status == 404 and failure.code is None and action in _WITHOUT_OBJECT
    return failure.code in _NO_BUCKET or is_bare


def _reason(failure: Failure, config: StoreConfig, location: Location, action: str) -> str:
    endpoint, prefix = config.endpoint, PREFIXES[config.cloud][0]
    if failure.code in _WRONG_KEYS:
        return f"{endpoint} does not accept the credentials: {_wrong_key(failure, config)}"
    if failure.has_ended:
        return f"the credentials for {endpoint} are no longer valid ({failure.code}); get new ones"
    if failure.code in _WRONG_REGION or failure.status == 301:
        remedy = f"{prefix}region={failure.region}" if failure.region else f"{prefix}region"
        return (
            f"the bucket {location.bucket} of {endpoint} is not in the region {config.region}; "
            f"set {remedy}"
        )
    if failure.code == "RequestTimeTooSkewed":
        return f"this machine's clock differs too much from that of {endpoint}; correct it"
    code = failure.code or failure.status
    if failure.status == 401:
        return f"{endpoint} does not accept the credentials ({code}); get new ones"
    if failure.status == 403:
        return f"these credentials may not {action} {location.path} at {endpoint} ({code})"
    return _network_reason(failure, config, location, action)


def _wrong_key(failure: Failure, config: StoreConfig) -> str:
    match failure.code:
        case "SignatureDoesNotMatch":
            return f"the secret key does not match the access key ({failure.code})"
        case "AuthenticationFailed":  # Azure says no more
            return f"the key or the signature is wrong, or it has expired ({failure.code})"
        case _:
            provider = config.credentials.provider
            is_temporary = isinstance(provider, FixedKeys) and provider.token is not None
            ended = ", or they have expired; get new ones" if is_temporary else ""
            return f"it does not know the access key ({failure.code}){ended}"


def _provider_reason(failure: Failure, config: StoreConfig) -> str:
    """Why there are no credentials: their provider failed, or returned something unusable."""
    provider = config.credentials.provider
    raised = re.search(r"ProviderFailed: (\w+)", failure.text)
    outcome = f"failed{f' with {raised[1]}' if raised else ''}"
    if "ProviderFailed" not in failure.text:
        outcome = "returned no usable credentials"
    elif not isinstance(provider, AssumedRole):
        outcome += "; call it yourself to see why"
    match provider:
        case ProcessKeys():
            return f"the credential_process of the profile {provider.profile} {outcome}"
        case AssumedRole():
            return f"assuming the role {provider.role} at {provider.service.address} {outcome}"
        case _:
            return f"the {PREFIXES[config.cloud][0]}credentials-provider function {outcome}"


def _network_reason(failure: Failure, config: StoreConfig, location: Location, action: str) -> str:
    endpoint, prefix = config.endpoint, PREFIXES[config.cloud][0]
    if "ProviderFailed" in failure.text or failure.kind == "UnauthenticatedError":
        return _provider_reason(failure, config)
    if _CERTIFICATE.search(failure.text):
        return (
            f"the certificate of {endpoint} is not trusted; name the file with its authority's "
            f"certificate in {prefix}ssl.ca-file"
        )
    if _TLS_MIX.search(failure.text):
        return f"{endpoint} does not speak TLS; write http:// if it is meant to be plain"
    if "builder error" in failure.text:
        return f"{endpoint} is not a valid store address; write http://host:port or https://host"
    if failure.status is not None:
        answer = f"{failure.status} {failure.code or ''}".strip()
        hint = " (is it https://?)" if failure.status == 400 and config.is_plain_http else ""
        return f"cannot {action} {location.path}: {endpoint} answered {answer}{hint}"
    match failure.http:
        case "Connect":
            return f"cannot reach {endpoint} to {action} {location.path}; is the address right?"
        case "Timeout":
            return f"cannot {action} {location.path}: {endpoint} did not answer in time"
        case None:
            return f"cannot {action} {location.path}: {endpoint} failed ({failure.kind})"
        case _:
            hint = "; is it https://?" if config.is_plain_http else ""
            end = f"{endpoint} closed the connection without an answer{hint}"
            return f"cannot {action} {location.path}: {end}"
