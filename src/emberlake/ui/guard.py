"""Who gets in. Pure decisions about a request; the app only asks.

A page is for the person who started the program, in a browser on the same machine. Others that
could reach it are: other users of the machine, who do not know the key in the printed address;
other pages in the same browser, which can send requests but are told apart by the headers that
browsers set; and names of other hosts that suddenly lead to this machine (DNS rebinding), which are
told apart by the Host header.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

SECURITY_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LOCAL_NAMES: Final = frozenset({"localhost"})


@dataclass(frozen=True)
class Guard:
    """The rules of one server.

    Args:
        host: Where it listens.
        key: In the printed address, later in a cookie; without it nothing is shown.
        form_token: What every form sends back.
        names: More names by which browsers may call it.
    """

    host: str
    key: str = field(repr=False)
    form_token: str = field(repr=False)
    names: frozenset[str] = frozenset()

    def knows_key(self, given: str | None) -> bool:
        """Whether the person has the key."""
        return given is not None and _equal(given, self.key)

    def knows_token(self, given: str | None) -> bool:
        """Whether a form comes from one of our pages."""
        return given is not None and _equal(given, self.form_token)

    def refusal(self, method: str, headers: Mapping[str, str]) -> str | None:
        """Why a request is refused, no matter who makes it; None if it is not."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return (
                f"This server does not answer to the name {host!r}. Start it with --allow-host to "
                "reach it by another name."
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "The request comes from another site."
        site = headers.get("sec-fetch-site", "none")
        if site in ("same-origin", "none"):
            return None
        # A link on another page may lead here; nothing else may come from there.
        is_link = headers.get("sec-fetch-mode") == "navigate" and method == "GET"
        is_page = headers.get("sec-fetch-dest", "document") == "document"
        return None if is_link and is_page else "The request comes from another site."

    def _is_ours(self, host: str) -> bool:
        name = _host_name(host)
        if name is None:
            return False
        if name in self.names or name == self.host.lower():
            return True
        address = _address(name)
        if address is not None:
            # A Host header with an address names no host, so no name can have been rebound.
            return address.is_loopback or not is_loopback(self.host)
        return name in _LOCAL_NAMES


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach a host."""
    address = _address(host)
    return host.lower() in _LOCAL_NAMES if address is None else address.is_loopback


def _host_name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
