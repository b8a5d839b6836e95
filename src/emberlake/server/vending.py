"""Storage credentials for clients: for one table, for a limited time, within their grants."""

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from emberlake.base.env import Env
from emberlake.errors import InvalidInput, Unsupported
from emberlake.io.object.config import StoreConfig, parse_config
from emberlake.io.object.location import Cloud, locate
from emberlake.io.object.roles import TemporaryKeys
from emberlake.io.object.sts import Role, assume_role
from emberlake.io.registry import scheme_of
from emberlake.server.warehouses import Warehouse

_NO_END_MS: Final = 24 * 3_600_000  # the life of a token without credentials
_MOST_KEPT: Final = 10_000
_SESSION: Final = re.compile(r"[^A-Za-z0-9_=,.@-]")
_READ: Final = ("s3:GetObject",)
_WRITE: Final = (*_READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


@dataclass(frozen=True, kw_only=True)
class VendingRules:
    """Whose credentials are handed out, and how."""

    role: Role
    seconds: int = 3600
    # Clients ask again when less than an hour is left, so they would ask for credentials of one
    # hour before every request. This much is added to the expiry that they are told.
    said_longer_ms: int = 0


class LocalVending:
    """Files of a local disk need no credentials; other storages have none to hand out here."""

    def __init__(self, env: Env) -> None:
        self._env = env

    def is_enabled(self, warehouse: Warehouse) -> bool:
        """Whether clients are told to ask for credentials."""
        del warehouse
        return False

    def credentials(
        self, warehouse: Warehouse, path: str, *, writes: bool, principal: str
    ) -> tuple[Mapping[str, str], int]:
        """No credentials, valid for as long as clients like."""
        del path, writes, principal
        if not warehouse.is_local:
            raise Unsupported(
                "this server hands out no storage credentials; configure them in the client"
            )
        return {}, self._env.now_ms() + _NO_END_MS


class RoleVending(LocalVending):
    """Credentials of a role on S3, cut down to the folder of a table.

    Credentials are kept until half of their life is over, and shared by all who may do the same.
    """

    def __init__(self, env: Env, rules: VendingRules) -> None:
        super().__init__(env)
        self._env = env
        self._rules = rules
        self._guard = threading.Lock()
        self._kept: dict[tuple[str, bool, str], tuple[int, TemporaryKeys]] = {}

    def is_enabled(self, warehouse: Warehouse) -> bool:
        """Whether clients are told to ask for credentials."""
        return not warehouse.is_local

    def credentials(
        self, warehouse: Warehouse, path: str, *, writes: bool, principal: str
    ) -> tuple[Mapping[str, str], int]:
        """The options of a storage that reach a path, and when they end."""
        if scheme_of(path) == "file":
            return super().credentials(warehouse, path, writes=writes, principal=principal)
        config = _config(warehouse, path)
        keys = self._keys(config, path, writes=writes, principal=principal)
        return _options(config, keys), keys.expires_at_ms + self._rules.said_longer_ms

    def _keys(
        self, config: StoreConfig, path: str, *, writes: bool, principal: str
    ) -> TemporaryKeys:
        key, now = (path, writes, principal), self._env.now_ms()
        with self._guard:
            known = self._kept.get(key)
        if known is not None and now < known[0]:
            return known[1]
        keys = assume_role(
            config,
            locate(path),
            self._rules.role,
            name=_session_name(principal),
            policy=json.dumps(table_policy(path, writes=writes), separators=(",", ":")),
            seconds=self._rules.seconds,
        )
        half = now + max(0, keys.expires_at_ms - now) // 2
        with self._guard:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (half, keys)
        return keys


def table_policy(path: str, *, writes: bool) -> dict[str, Any]:
    """What may be done with the folder of a table, and with nothing else."""
    location = locate(path)
    key = location.key.strip("/")
    if not key or "*" in key or "?" in key or "${" in key:
        raise InvalidInput(f"{path} cannot be named in a policy")
    bucket = f"arn:aws:s3:::{location.bucket}"
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": list(_WRITE if writes else _READ),
                "Resource": [f"{bucket}/{key}/*"],
            },
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [bucket],
                # Without the slash it would list `t2` with `t`.
                "Condition": {"StringLike": {"s3:prefix": [f"{key}/*"]}},
            },
        ],
    }


def _config(warehouse: Warehouse, path: str) -> StoreConfig:
    location = locate(path)
    if location.cloud is not Cloud.S3:
        raise Unsupported(f"{path}: only stores of S3's protocol hand out credentials here")
    return parse_config(location, warehouse.files.options)


def _options(config: StoreConfig, keys: TemporaryKeys) -> dict[str, str]:
    """The names that clients of all languages read."""
    settings = dict(config.settings)
    options = {
        "s3.access-key": keys.access_key_id,
        "s3.secret-key": keys.secret_access_key,
        "s3.session.token": keys.token,
        "fs.s3.accessKeyId": keys.access_key_id,
        "fs.s3.accessKeySecret": keys.secret_access_key,
        "fs.s3.securityToken": keys.token,
    }
    if config.region:
        options |= dict.fromkeys(("s3.region", "s3.endpoint.region", "fs.s3.region"), config.region)
    if settings.get("endpoint"):
        options |= dict.fromkeys(("s3.endpoint", "fs.s3.endpoint"), settings["endpoint"])
        is_path_style = settings.get("virtual_hosted_style_request") != "true"
        options["s3.path.style.access"] = str(is_path_style).lower()
        options["s3.path-style-access"] = str(is_path_style).lower()
    return options


def _session_name(principal: str) -> str:
    """The name of a principal in a form that token services accept; names stay distinct."""
    plain = _SESSION.sub("_", principal)
    if plain == principal and 2 <= len(plain) <= 64:
        return plain
    return f"{plain[:40]}-{hashlib.sha256(principal.encode()).hexdigest()[:16]}"
