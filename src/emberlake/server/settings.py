"""What a server is started with."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from emberlake.errors import InvalidInput
from emberlake.server.vending import VendingRules
from emberlake.server.warehouses import Warehouse

MEBIBYTE: Final = 1024 * 1024
DAY_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one client may take from the others."""

    body_bytes: int = 32 * MEBIBYTE
    body_seconds: float = 30.0  # until all of a body has come
    head_seconds: float = 15.0  # until all headers have come
    answer_seconds: float = 150.0  # until most of an answer has been read
    work_seconds: float = 150.0  # until a request is answered; clients wait for 180
    threads: int = 16
    waiting: int = 256  # requests that wait for a thread; further ones must try again later


@dataclass(frozen=True, kw_only=True)
class Oidc:
    """An identity provider whose tokens are accepted."""

    issuer: str
    audience: str
    keys_url: str  # of its key set (JWKS)
    name_claim: str = "sub"
    groups_claim: str = "groups"
    admin_group: str | None = None
    prefix: str = "oidc:"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is started with; everything but secrets, which come from the environment."""

    warehouses: tuple[Warehouse, ...]
    database: str = field(repr=False)  # its address may have a password
    host: str = "127.0.0.1"
    port: int = 8080
    anonymous: bool = False
    keep_dropped_ms: int = 7 * DAY_MS
    remember_ms: int = 1000
    limits: Limits = Limits()
    oidc: Oidc | None = None
    vending: VendingRules | None = None

    def __post_init__(self) -> None:
        names = [warehouse.name for warehouse in self.warehouses]
        if not names:
            raise InvalidInput("a server needs a warehouse: --warehouse NAME=PATH")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidInput(
                f"two warehouses have the name {', '.join(twice)}; give them names: NAME=PATH"
            )
        if self.anonymous and not is_loopback(self.host):
            raise InvalidInput(
                f"--anonymous lets everybody do everything, so it is only for this machine: use "
                f"--host 127.0.0.1, not {self.host}"
            )


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def default_database(warehouses: tuple[Warehouse, ...]) -> str:
    """Where the server's database is by default: in the first local warehouse."""
    for warehouse in warehouses:
        folder = warehouse.storage.local_file(warehouse.location)
        if folder is not None:
            return str(Path(folder) / ".emberlake" / "server.db")
    raise InvalidInput(
        "no warehouse is on a local disk, so the server's database needs a place: "
        "--database FILE or --database postgresql://..."
    )
