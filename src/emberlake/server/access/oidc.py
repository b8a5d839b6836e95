"""Tokens of an identity provider: JSON Web Tokens, verified against its key set.

Names of such principals begin with a prefix, so that nobody becomes somebody else by choosing a
name at the provider.
"""

import time
from typing import Any, Final

import jwt
from jwt import PyJWKClient

from emberlake.errors import InvalidInput, NotAuthenticated
from emberlake.server.access.authentication import Identity
from emberlake.server.settings import Oidc, is_loopback

# Signatures with a shared secret are never accepted: the key set would be that secret.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
_LEEWAY_S: Final = 30
_KEYS_S: Final = 3600  # how long a key set is kept; an unknown key id asks again
_MAX_CHARACTERS: Final = 16_384
_GROUP: Final = "group:"  # between the prefix and the name of a group
_AGAIN_S: Final = 10  # before a key set that could not be fetched is asked for again


class OidcProvider:
    """Verifies tokens of one issuer, for one audience."""

    def __init__(self, oidc: Oidc) -> None:
        host = oidc.keys_url.partition("://")[2].partition("/")[0].rpartition(":")[0]
        is_here = oidc.keys_url.startswith("http://") and is_loopback(host)
        if not oidc.keys_url.startswith("https://") and not is_here:
            raise InvalidInput(f"{oidc.keys_url}: a key set is only fetched over https")
        self._oidc = oidc
        # Not key by key: entries of that cache never expire, so a withdrawn key would stay valid.
        self._keys = PyJWKClient(oidc.keys_url, cache_keys=False, lifespan=_KEYS_S, timeout=5)
        self._failed_at = -float("inf")

    def verify(self, token: str) -> Identity:
        """Whose token it is.

        Raises:
            NotAuthenticated: it is not a token of the issuer for this server, or has expired.
        """
        if token.count(".") != 2 or len(token) > _MAX_CHARACTERS:
            raise NotAuthenticated("the token is not valid")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key_of(token),
                algorithms=list(_ALGORITHMS),
                audience=self._oidc.audience,
                issuer=self._oidc.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.ExpiredSignatureError:
            raise NotAuthenticated("the token has expired") from None
        except jwt.PyJWTError:
            raise NotAuthenticated("the token is not valid") from None
        return self._identity(claims)

    def _key_of(self, token: str) -> Any:
        if time.monotonic() < self._failed_at + _AGAIN_S:
            raise NotAuthenticated("the key set of the identity provider cannot be fetched")
        try:
            return self._keys.get_signing_key_from_jwt(token).key
        except jwt.PyJWKClientConnectionError:
            self._failed_at = time.monotonic()
            raise

    def _identity(self, claims: dict[str, Any]) -> Identity:
        name = claims.get(self._oidc.name_claim)
        if not isinstance(name, str) or not name:
            raise NotAuthenticated(f"the token has no claim {self._oidc.name_claim!r}")
        if not name.isprintable():
            raise NotAuthenticated("the name in the token has characters that cannot be shown")
        if name.startswith(_GROUP):  # it would have the grants of that group
            raise NotAuthenticated(f"the name in the token begins with {_GROUP!r}")
        found = claims.get(self._oidc.groups_claim) or ()
        groups = found if isinstance(found, list) else [found]
        names = tuple(each for each in groups if isinstance(each, str) and each.isprintable())
        return Identity(
            f"{self._oidc.prefix}{name}",
            tuple(f"{self._oidc.prefix}{_GROUP}{each}" for each in names),
            is_admin=self._oidc.admin_group is not None and self._oidc.admin_group in names,
            expires_at=int(claims["exp"]) * 1000,
        )
