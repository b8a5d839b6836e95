"""Forks, and Ctrl-C."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.io import Storage
from servers import Proxy, Server

FORK = """
import os, sys
from emberlake.io import open_storage

storage, root = open_storage("s3://lake", {options!r})
if {is_used}:
    storage.put(root + "/{name}", b"parent")
pid = os.fork()
if pid == 0:
    try:
        storage.put(root + "/{name}", b"child")
        print(storage.read(root + "/{name}").decode(), flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""

UNPICKLE = """
import pickle

print(pickle.loads({pickled!r}).to_arrow()["n"].to_pylist())
"""

COMMIT = """
import pyarrow as pa
from emberlake import CatalogFactory

table = CatalogFactory.create({options!r}).get_table("db.t")
for n in range(10):
    table.append(pa.table({{"n": [{first} + n]}}))
"""

UPLOAD = """
import os, resource
from emberlake.io import open_storage

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

storage, root = open_storage("{root}", {options!r})
with storage.open_output(root + "/warm") as output:
    output.write(os.urandom(9_000_000))
before = peak()
with storage.open_output(root + "/large") as output:
    for _ in range(100):
        output.write(os.urandom(4_000_000))
print(peak() - before)
"""

WAIT = """
from emberlake.io import open_storage

storage, root = open_storage("s3://lake", {options!r})
storage.exists(root)
print("waiting", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

GIVE_UP = """
from emberlake.io import open_storage

storage, root = open_storage("s3://lake", {options!r})
storage.exists(root)
outputs = [storage.open_output(root + f"/given-up-{{n}}") for n in range(3)]
for output in outputs:
    output.write(bytes(10_000_000))
print("waiting", flush=True)
try:
    for output in outputs:
        output.abort()
    print("given up", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def run(program: str, options: Mapping[str, str], **names: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program.format(options=dict(options), **names)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def test_the_child_of_a_process_that_used_a_store_gets_an_error(s3: Server) -> None:
    with run(FORK, s3.options, is_used=True, name="forked-used") as process:
        said, _ = process.communicate(timeout=30)

    assert said.startswith("InvalidState this process was forked from one that had used")
    assert "spawn" in said


def test_the_child_of_a_process_that_only_opened_a_store_uses_it(s3: Server) -> None:
    with run(FORK, s3.options, is_used=False, name="forked-unused") as process:
        said, _ = process.communicate(timeout=30)

    assert said == "child\n"


def test_a_table_goes_to_another_process_and_makes_its_own_clients_there(
    s3: Server, root: str
) -> None:
    catalog = CatalogFactory.create({"warehouse": root, **s3.options})
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("n", pa.int64())]))
    table.append(pa.table({"n": [1, 2, 3]}))

    with run(UNPICKLE, {}, pickled=pickle.dumps(table)) as process:
        said, _ = process.communicate(timeout=60)

    assert said == "[1, 2, 3]\n"


@pytest.mark.slow
def test_a_large_upload_takes_the_memory_of_a_few_parts(
    s3: Server, plain: Storage, root: str
) -> None:
    with run(UPLOAD, s3.options, root=root) as process:
        said, _ = process.communicate(timeout=120)

    assert plain.size(f"{root}/large") == 400_000_000
    assert int(said) < 120


@pytest.mark.slow
def test_committers_in_many_processes_lose_nothing(s3: Server, root: str) -> None:
    options = {"warehouse": root, **s3.options}
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    catalog.create_table("db.t", pa.schema([("n", pa.int64())]))

    started = [run(COMMIT, options, first=100 * process) for process in range(4)]
    for process in started:
        with process:
            assert process.wait(timeout=120) == 0

    table = catalog.get_table("db.t")
    expected = [100 * process + n for process in range(4) for n in range(10)]
    assert sorted(table.to_arrow()["n"].to_pylist()) == expected
    assert table.snapshot_manager().latest_id() == 40


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("GET", "storage.read(root + '/reached')"),
        ("PUT", "storage.put(root + '/never', b'1')"),
    ],
)
def test_ctrl_c_ends_a_wait_at_once(
    open_proxied: Callable[..., Storage], s3: Server, proxy: Proxy, method: str, call: str
) -> None:
    open_proxied().put(f"{s3.root}/reached", b"1")
    proxy.fail(method=method, match="reached|never", how="hang", when="before", seconds=20)
    options = {**s3.options, "s3.endpoint": proxy.endpoint}

    with run(WAIT, options, call=call) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        said, _ = process.communicate(timeout=30)

    assert said == "interrupted\n"
    assert time.monotonic() - begin < 10  # the store hangs for 20
    assert process.returncode == 0


@pytest.mark.parametrize(("is_interrupted", "said"), [(False, "given up"), (True, "interrupted")])
def test_uploads_to_a_store_that_hangs_are_given_up_within_seconds(
    s3: Server, proxy: Proxy, *, is_interrupted: bool, said: str
) -> None:
    for method in ("PUT", "DELETE"):
        proxy.fail(method=method, match="given-up", how="hang", when="before", times=9, seconds=20)
    options = {**s3.options, "s3.endpoint": proxy.endpoint}

    with run(GIVE_UP, options) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        begin = time.monotonic()
        if is_interrupted:
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
        answer, _ = process.communicate(timeout=60)

    assert answer == f"{said}\n"
    assert time.monotonic() - begin < 15  # the store hangs for 20
    assert [rule["method"] for rule in proxy.clear()] in ([], ["DELETE"])  # parts were under way
