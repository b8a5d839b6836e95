"""How a client proves who it is. These values travel to workers; their reprs show no secret."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from emberlake.base.env import Env
from emberlake.errors import NotAuthenticated
from emberlake.io.rest.dlf_keys import DlfKeys
from emberlake.rest.paths import Endpoint
from emberlake.rest.signing_dlf import DlfAlgorithm, DlfRequest, sign_dlf


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A request before it is signed: the path as it is sent, the query not yet encoded."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    host: str = ""
    endpoint: Endpoint | None = None


class Auth(Protocol):
    """Signs requests. A frozen value that pickles."""

    def headers(self, request: Outgoing, env: Env) -> Mapping[str, str]:
        """The headers that identify the caller."""


@dataclass(frozen=True)
class TokenText:
    """A token that the user gave as text."""

    token: str = field(repr=False)

    def read(self) -> str:
        return self.token


@dataclass(frozen=True)
class TokenVariable:
    """A token in an environment variable of whichever process asks."""

    variable: str

    def read(self) -> str:
        found = os.environ.get(self.variable, "").strip()
        if not found:
            raise NotAuthenticated(
                f"the environment variable {self.variable}, which token.env names, is not set in "
                "this process; on Spark the executors need it, too",
                had_no_effect=True,
            )
        return found


@dataclass(frozen=True)
class TokenFile:
    """A token in a file. A file may be replaced while a program runs, so it is read every time."""

    path: str

    def read(self) -> str:
        try:
            found = Path(self.path).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotAuthenticated(
                f"the file {self.path}, which token.file names, cannot be read in this process: "
                f"{type(error).__name__}",
                had_no_effect=True,
            ) from None
        if not found:
            raise NotAuthenticated(f"the token file {self.path} is empty", had_no_effect=True)
        return found


@dataclass(frozen=True)
class BearerAuth:
    """``Authorization: Bearer <token>``."""

    source: TokenText | TokenVariable | TokenFile

    def headers(self, request: Outgoing, env: Env) -> Mapping[str, str]:
        del request, env
        return {"Authorization": f"Bearer {self.source.read()}"}


@dataclass(frozen=True)
class DlfAuth:
    """Signatures of Alibaba Cloud's Data Lake Formation."""

    keys: DlfKeys
    region: str
    algorithm: DlfAlgorithm

    def headers(self, request: Outgoing, env: Env) -> Mapping[str, str]:
        signed = DlfRequest(
            method=request.method,
            path=request.path,
            query=request.query,
            body=request.body,
            host=request.host,
            endpoint=request.endpoint,
        )
        return sign_dlf(
            self.algorithm,
            signed,
            self.keys.current(env),
            region=self.region,
            now_ms=env.now_ms(),
            nonce=env.new_id(),
        )
