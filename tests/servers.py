"""Object-store servers for tests: on loopback, at free ports, each with one bucket.

``.ci/object-stores`` installs the programs. What is not installed skips the test and says why; with
CI=true in the environment it fails instead. A server ends with the process that started it, however
that ends.
"""

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any

USER, SECRET, REGION, BUCKET = "emberroot", "embersecret", "us-east-1", "lake"
HOME = Path(os.environ.get("EMBERLAKE_SERVERS", "~/.cache/emberlake/servers")).expanduser()
PROXY = Path(__file__).with_name("fault_proxy.py")


@dataclass(frozen=True)
class Server:
    """A server of S3's protocol."""

    endpoint: str
    bucket: str = BUCKET

    @property
    def port(self) -> int:
        return int(self.endpoint.rpartition(":")[2])

    @property
    def root(self) -> str:
        return f"s3://{self.bucket}"

    @property
    def options(self) -> dict[str, str]:
        """The catalog options that reach it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key": USER,
            "s3.secret-key": SECRET,
            "s3.region": REGION,
            "s3.path.style.access": "true",
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as variables of the environment, as Amazon's own tools read them."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
        }


@dataclass(frozen=True)
class Proxy:
    """A proxy in front of a server that loses answers on demand; see ``fault_proxy.py``."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fail(self, **rule: object) -> None:
        self._get(f"__rule?{urllib.parse.urlencode(rule)}")

    def delay(self, milliseconds: int) -> None:
        self._get(f"__delay?{milliseconds}")

    def clear(self) -> list[dict[str, str]]:
        """End all failures; those that never happened."""
        return [rule for rule in self._get("__clear") if "fired" not in rule]

    def broken(self) -> int:
        """How many requests the failures that were asked for have broken so far."""
        return sum(int(rule.get("fired", "0")) for rule in self._get("__rules"))

    def seed(self, number: int) -> None:
        """Decide what chance will do."""
        self._get(f"__seed?{number}")

    def held(self) -> list[str]:
        """The paths of requests that wait."""
        held: list[str] = self._get("__held")
        return held

    def release(self) -> None:
        self._get("__release")

    def put_aside(self, match: str) -> None:
        """Do not count some requests: nobody waits for them."""
        self._get(f"__aside?match={urllib.parse.quote(match)}")

    def wait_until_held(self) -> None:
        """Wait until a rule holds a request."""
        deadline = time.monotonic() + 20
        while not self._get("__held"):
            assert time.monotonic() < deadline, "no request has come"
            time.sleep(0.01)

    def counted(self) -> dict[str, Any]:
        """The requests since the last call."""
        counted: dict[str, Any] = self._get("__count")
        return counted

    def _get(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.endpoint}/{what}", timeout=5) as answer:
            return json.load(answer)


def missing(what: str) -> None:
    from needs import lacking  # noqa: PLC0415 - the demo starts servers without pytest

    lacking(f"{what} is not installed; run .ci/object-stores")


def program(name: str) -> str:
    """The newest version of a program that ``.ci/object-stores`` has installed."""
    found = sorted(HOME.glob(f"bin/{name}-*"))
    return str(found[-1]) if found else (shutil.which(name) or "")


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


# On Linux: SIGKILL (PR_SET_PDEATHSIG) when the test run is gone, however it went. A program of its
# own does it, not a function between fork and exec: libraries in this process object to forks.
_DYING_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"
)


def dying_with_parent(command: Sequence[str]) -> list[str]:
    """The command of a program that ends when this process does."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-S", "-E", "-c", _DYING_WITH_PARENT, *command]


@contextmanager
def running(
    command: Sequence[str],
    url: str,
    log: Path,
    env: Mapping[str, str] | None = None,
    ready: Callable[[int], bool] = lambda status: True,
    patience: float = 5,
) -> Iterator[None]:
    """A program in a process group of its own, which is ended whatever happens."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            dying_with_parent(command),
            stdout=sink,
            stderr=sink,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 60
        while not (status := _status_of(url)) or not ready(status):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        for sign, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5)):
            try:
                os.killpg(process.pid, sign)
                process.wait(seconds)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
            break


def _status_of(url: str) -> int | None:
    context = ssl._create_unverified_context() if url.startswith("https:") else None
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@contextmanager
def versitygw(
    folder: Path, tls: tuple[Path, Path] | None = None, guests: Sequence[str] = ()
) -> Iterator[Server]:
    """Versity's gateway on a folder; ``tls`` is a certificate and its key.

    ``guests`` are more access keys, all with the same secret.
    """
    data, meta, (port,) = folder / "objects", folder / "sidecar", free_ports(1)
    (data / BUCKET).mkdir(parents=True)  # a folder is a bucket
    meta.mkdir()
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    secured = ["--cert", str(tls[0]), "--key", str(tls[1])] if tls else []
    command = [program("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", *secured, "posix"]
    env = {"ROOT_ACCESS_KEY": USER, "ROOT_SECRET_KEY": SECRET}
    if guests:
        accounts = {key: {"access": key, "secret": SECRET, "role": "admin"} for key in guests}
        env["VGW_IAM_DIR"] = str(folder / "accounts")
        (folder / "accounts").mkdir()
        users = json.dumps({"accessAccounts": accounts})
        (folder / "accounts" / "users.json").write_text(users)
    with running([*command, "--sidecar", str(meta), str(data)], url, folder / "versitygw.log", env):
        yield Server(url)


@contextmanager
def seaweedfs(folder: Path, guests: Sequence[str] = ()) -> Iterator[Server]:
    """SeaweedFS: four services, each with an HTTP and a gRPC port."""
    data = folder / "weed"
    data.mkdir()
    config = folder / "weed-s3.json"
    identity = {
        "name": "root",
        "credentials": [{"accessKey": key, "secretKey": SECRET} for key in (USER, *guests)],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config.write_text(json.dumps({"identities": [identity]}))
    names = ("master", "volume", "filer", "s3")
    ports = free_ports(8)
    listening = [
        f"-{name}.port{kind}={ports[2 * place + (kind != '')]}"
        for place, name in enumerate(names)
        for kind in ("", ".grpc")
    ]
    url = f"http://127.0.0.1:{ports[6]}"
    command = [
        *(program("weed"), "-logtostderr=true", "-v=0", "server"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-master.telemetry=false"),
        *("-master.volumeSizeLimitMB=1024", "-volume.max=0", "-volume.preStopSeconds=0"),
        *("-filer", f"-filer.localSocket={data}/filer.sock"),
        *("-s3", f"-s3.localSocket={data}/s3.sock", f"-s3.config={config}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"),
        *listening,
    ]
    # It takes 8 seconds to stop by itself.
    with running(
        command, f"{url}/healthz", folder / "weed.log", None, lambda s: s == 200, patience=0.5
    ):
        create_bucket(url)
        yield Server(url)


@contextmanager
def rclone(folder: Path) -> Iterator[Server]:
    """rclone's S3 server, which ignores conditions: for the tests that want to see it refused."""
    if not program("rclone"):
        missing("rclone")
    data, (port,) = folder / "rclone", free_ports(1)
    (data / BUCKET).mkdir(parents=True)
    url = f"http://127.0.0.1:{port}"
    command = [program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}"]
    command += ["--auth-key", f"{USER},{SECRET}", "--config", os.devnull, str(data)]
    with running(command, url, folder / "rclone.log"):
        yield Server(url)


@contextmanager
def s3_server(folder: Path, guests: Sequence[str] = ()) -> Iterator[Server]:
    """A server that honours conditions: versitygw, or SeaweedFS where it is missing."""
    if program("versitygw"):
        with versitygw(folder, guests=guests) as server:
            yield server
    elif program("weed"):
        with seaweedfs(folder, guests) as server:
            yield server
    else:
        missing("a server for S3")


@contextmanager
def proxy_of(server: Server, folder: Path) -> Iterator[Proxy]:
    """A proxy in front of a server."""
    (port,) = free_ports(1)
    command = [sys.executable, str(PROXY), str(port), str(server.port)]
    with running(command, f"http://127.0.0.1:{port}/__count", folder / f"proxy-{port}.log"):
        yield Proxy(port)


def create_bucket(url: str) -> None:
    """PUT /bucket, signed by ourselves."""
    for _ in range(40):
        try:
            urllib.request.urlopen(signed_v4("PUT", url, f"/{BUCKET}"), timeout=20).close()
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return
            if error.code < 500:
                raise
            time.sleep(0.25)
        else:
            return
    raise RuntimeError(f"{url} makes no bucket")


def signed_v4(method: str, url: str, path: str, query: str = "") -> urllib.request.Request:
    path = urllib.parse.quote(path)
    host = url.partition("//")[2]
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    day, digest = when[:8], hashlib.sha256(b"").hexdigest()
    names = "host;x-amz-content-sha256;x-amz-date"
    heads = f"host:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{when}\n"
    canonical = f"{method}\n{path}\n{query}\n{heads}\n{names}\n{digest}"
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in (day, REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    mark = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={USER}/{scope}, SignedHeaders={names}, Signature={mark}"
    return urllib.request.Request(
        f"{url}{path}?{query}" if query else url + path,
        method=method,
        headers={
            "x-amz-date": when,
            "x-amz-content-sha256": digest,
            "Authorization": f"AWS4-HMAC-SHA256 {credential}",
        },
    )


def begin_upload(server: Server, path: str) -> None:
    """Begin an upload and leave it, as a lost process of any program does."""
    key = path.removeprefix(server.root)
    begin = signed_v4("POST", server.endpoint, f"/{server.bucket}{key}", "uploads=")
    urllib.request.urlopen(begin, timeout=5).close()


# --- other clouds ---------------------------------------------------------------------------------

AZURE_ACCOUNT = "devstoreaccount1"  # the emulator's, which is the same everywhere, with its key
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@dataclass(frozen=True)
class AzureServer(Server):
    """A server of Azure's protocol; the account is in the path of its endpoint."""

    @property
    def port(self) -> int:
        return int(self.endpoint.removesuffix(f"/{AZURE_ACCOUNT}").rpartition(":")[2])

    @property
    def root(self) -> str:
        return f"abfss://{self.bucket}@{AZURE_ACCOUNT}.dfs.core.windows.net"

    @property
    def options(self) -> dict[str, str]:
        return {"azure.endpoint": self.endpoint, "azure.account-key": AZURE_KEY}


@dataclass(frozen=True)
class GcsServer(Server):
    """A server of Google's protocol, which takes any token."""

    @property
    def root(self) -> str:
        return f"gs://{self.bucket}"

    @property
    def options(self) -> dict[str, str]:
        return {"gs.endpoint": self.endpoint, "gs.token": "any"}


@contextmanager
def azurite(folder: Path) -> Iterator[AzureServer]:
    """Azurite, Microsoft's emulator, with its objects in memory."""
    if not program("azurite-blob") or not shutil.which("node"):
        missing("Azurite")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [program("azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with running(command, url, folder / "azurite.log"):
        create_container(f"{url}/{AZURE_ACCOUNT}", BUCKET)
        yield AzureServer(f"{url}/{AZURE_ACCOUNT}")


def create_container(endpoint: str, name: str) -> None:
    """PUT /container, signed by ourselves."""
    when, version = formatdate(usegmt=True), "2021-08-06"
    signed = f"x-ms-date:{when}\nx-ms-version:{version}\n"
    text = f"PUT{chr(10) * 12}{signed}/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{name}\nrestype:container"
    key = base64.b64decode(AZURE_KEY)
    mark = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    request = urllib.request.Request(
        f"{endpoint}/{name}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": when,
            "x-ms-version": version,
            "Authorization": f"SharedKey {AZURE_ACCOUNT}:{mark}",
        },
    )
    urllib.request.urlopen(request, timeout=20).close()


@contextmanager
def fake_gcs(folder: Path) -> Iterator[GcsServer]:
    """fake-gcs-server, with its objects in memory, behind ``gcs_shim.py``."""
    if not program("fake-gcs-server"):
        missing("fake-gcs-server")
    port, front = free_ports(2)
    inner, url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{front}"
    command = [program("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1"]
    command += ["-port", str(port), "-backend", "memory", "-log-level", "error"]
    command += ["-public-host", f"127.0.0.1:{port}", "-external-url", inner]
    shim = [sys.executable, str(Path(__file__).with_name("gcs_shim.py")), str(front), str(port)]
    with (
        running(command, f"{inner}/_internal/healthcheck", folder / "gcs.log"),
        running(shim, f"{url}/none", folder / "gcs-shim.log"),
    ):
        bucket = urllib.request.Request(
            f"{inner}/storage/v1/b",
            data=json.dumps({"name": BUCKET}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(bucket, timeout=20).close()
        yield GcsServer(url)


# --- credentials that end -------------------------------------------------------------------------


@contextmanager
def minio(folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """MinIO, whose token service hands out credentials that end; see ``token_service.py``."""
    if not program("minio"):
        missing("MinIO")
    data, (port,) = folder / "minio", free_ports(1)
    (data / BUCKET).mkdir(parents=True)  # a folder is a bucket
    url = f"http://127.0.0.1:{port}"
    quiet = {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off", "MINIO_CI_CD": "1"}
    root = {"MINIO_ROOT_USER": USER, "MINIO_ROOT_PASSWORD": SECRET}
    command = [program("minio"), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(data)]
    with running(
        command,
        f"{url}/minio/health/ready",
        folder / "minio.log",
        {**quiet, **root, **(env or {})},
        lambda status: status == 200,
    ):
        yield Server(url)
