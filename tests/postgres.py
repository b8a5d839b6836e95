"""A PostgreSQL for tests: on loopback, in a folder of its own, gone with the test run.

As root, its programs run as the user ``postgres``, since PostgreSQL refuses to be root.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from needs import lacking
from servers import free_ports


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; the newest, where Debian has several."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parts[-2])
    if debian:
        return debian[-1]
    found = shutil.which("initdb")
    return None if found is None else Path(found).parent


@contextmanager
def running_postgres() -> Iterator[str]:
    """A server; the address of a database without tables, as its superuser."""
    found = programs()
    if found is None:
        lacking("PostgreSQL is not installed; run .ci/postgres")
    assert found is not None
    # Not in pytest's own folder: nobody but its user may enter that.
    with tempfile.TemporaryDirectory(prefix="emberlake-postgres-") as folder:
        yield from _running(found, Path(folder))


def _running(found: Path, folder: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    data = folder / "data"
    _hand_over(folder)
    _run([found / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"])
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    _run([found / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"])
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        _run([found / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"])


def _hand_over(folder: Path) -> None:
    """Let the user postgres write into a folder."""
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)


def _run(command: Sequence[object]) -> None:
    words = [str(word) for word in command]
    if os.getuid() == 0:
        words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
