"""Credentials that end after seconds: an issuer of identities, and a service that takes them.

MinIO gives a role's credentials for no less than 15 minutes, but those for the token of an identity
end with that token. The issuer signs tokens with any life.
"""

import base64
import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from servers import Server, minio

CLIENT = "emberlake"
Keys = dict[str, Any]


@dataclass(frozen=True)
class TokenService:
    """A store that gives credentials to whoever has a token of its issuer."""

    server: Server
    issuer: str
    key: Path

    def wait_until_ready(self) -> None:
        """Wait for the part of the server that knows identities, which comes last."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.credentials(60)
            except urllib.error.HTTPError as error:
                message = error.read().decode()
                # On a busy machine it may know issuers before it knows its own policies.
                is_starting = error.code == 503 or "policies" in message
                if not is_starting or time.monotonic() > deadline:
                    raise RuntimeError(message) from error
                time.sleep(0.1)
            else:
                return

    def token(self, seconds: float) -> str:
        """The token of somebody who may do everything, for so long."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "somebody", "policy": "readwrite"}
        claims |= {"iat": now, "exp": now + seconds}
        signed = f"{encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': '1'})}.{encoded(claims)}"
        mark = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", str(self.key)],
            input=signed.encode(),
            capture_output=True,
            check=True,
        ).stdout
        return f"{signed}.{base64url(mark)}"

    def credentials(
        self, seconds: float, policy: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Keys that end after so long, as a provider returns them; with less rights by a policy."""
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "WebIdentityToken": self.token(seconds),
        }
        if policy is not None:
            form["Policy"] = json.dumps({"Version": "2012-10-17", "Statement": [policy]})
        request = urllib.request.Request(
            self.server.endpoint, urllib.parse.urlencode(form).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            said = answer.read().decode()

        def value_of(name: str) -> str:
            found = re.search(rf"<{name}>([^<]+)</{name}>", said)
            assert found is not None
            return found[1]

        return {
            "access_key_id": value_of("AccessKeyId"),
            "secret_access_key": value_of("SecretAccessKey"),
            "token": value_of("SessionToken"),
            "expires_at": datetime.fromisoformat(value_of("Expiration")),
        }


@contextmanager
def token_service(folder: Path) -> Iterator[TokenService]:
    """MinIO, and the issuer that it trusts."""
    key = folder / "issuer.pem"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    with issuing(key) as issuer:
        env = {
            "MINIO_IDENTITY_OPENID_CONFIG_URL": f"{issuer}/.well-known/openid-configuration",
            "MINIO_IDENTITY_OPENID_CLIENT_ID": CLIENT,
            "MINIO_IDENTITY_OPENID_CLAIM_NAME": "policy",
        }
        with minio(folder, env) as server:
            service = TokenService(server, issuer, key)
            service.wait_until_ready()
            yield service


@contextmanager
def issuing(key: Path) -> Iterator[str]:
    """The address of an issuer, which publishes the key that its tokens are signed with."""
    output = subprocess.run(
        ["openssl", "rsa", "-in", str(key), "-noout", "-modulus"], check=True, capture_output=True
    ).stdout.decode()
    modulus = base64url(bytes.fromhex(output.strip().partition("=")[2]))
    published = {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "e": "AQAB", "n": modulus}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            about = {"issuer": address, "jwks_uri": f"{address}/keys"}
            about |= dict.fromkeys(("authorization_endpoint", "token_endpoint"), f"{address}/none")
            text = json.dumps({"keys": [published]} if self.path == "/keys" else about)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None: ...

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield address
    finally:
        listening.shutdown()
        listening.server_close()


def encoded(value: object) -> str:
    return base64url(json.dumps(value).encode())


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
