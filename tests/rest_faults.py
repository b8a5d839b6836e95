"""Breaks the requests of a client of REST catalogs, each in every way, and checks what came of it.

Whoever answers: a small server of the tests, Java's or pypaimon's, or ``emberlake serve``.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from builders import COLUMNS, FakeEnv, Rows, append, overwrite, rows_of
from emberlake.catalog import RestCatalog
from emberlake.errors import CommitUnknown, EmberlakeError
from emberlake.table import Table
from interop.judges import Warehouse, catalog_options
from rest_server import Fault
from servers import Proxy
from table_reads import check_whole, read_ids

GONE = {"resourceType": "TABLE", "resourceName": "t", "message": "gone", "code": 404}
STATUSES = (400, 401, 403, 404, 405, 409, 413, 429, 500, 501, 502, 503, 504)
OLD, FIRST = [1, 2], 1000
Change = Callable[[Table, Rows], object]


class Breakable(Protocol):
    """A server whose answers can be broken."""

    def open(self) -> Table:
        """The table of the test, by new connections that may break."""

    def table(self) -> Table:
        """The same table, by connections that never break."""

    def fail(self, fault: Fault) -> None:
        """Break a request."""

    def heal(self) -> int:
        """Break nothing any more; how many faults have had no request to break."""

    def asked(self) -> int:
        """How many requests were made since the last call."""


@dataclass
class Proxied:
    """A server behind a proxy, which breaks the connections to it."""

    served: Warehouse
    proxy: Proxy
    name: str

    def open(self) -> Table:
        return self._connect(self.proxy.endpoint)

    def table(self) -> Table:
        return self._connect(self.served.options["uri"])

    def create(self) -> None:
        """Make the table that the faults are tried on."""
        catalog = connect(self._options(self.served.options["uri"]))
        catalog.create_database(self.name.partition(".")[0], ignore_if_exists=True)
        append(catalog.create_table(self.name, COLUMNS), rows_of(OLD))

    def fail(self, fault: Fault) -> None:
        how = "drop" if fault.is_dropped else str(fault.status)
        body = "" if fault.body is None else json.dumps(fault.body)
        self.proxy.fail(how=how, when=fault.when, skip=fault.skips, times=fault.times, body=body)

    def heal(self) -> int:
        return len(self.proxy.clear())

    def asked(self) -> int:
        return int(self.proxy.counted()["requests"])

    def _options(self, uri: str) -> dict[str, str]:
        return {**catalog_options(self.served), "uri": uri, "rest.client.max-retries": "3"}

    def _connect(self, uri: str) -> Table:
        return connect(self._options(uri)).get_table(self.name)


@dataclass
class Tried:
    """What became of operations whose requests were broken one after the other."""

    attempts: int = 0
    failures: int = 0  # errors that the user has seen
    unknown: int = 0  # of them, those that could not say whether a commit was made

    def note(self, error: EmberlakeError | None) -> None:
        self.attempts += 1
        self.failures += error is not None
        self.unknown += isinstance(error, CommitUnknown)


def connect(options: dict[str, str]) -> RestCatalog:
    """A catalog whose waiting takes no time."""
    return RestCatalog.connect(options, FakeEnv().env())


def faults_at(number: int) -> Iterator[Fault]:
    """All that can become of one request, before and after it has had its effect."""
    for when in ("before", "after"):
        fault = Fault(skips=number, when=when)
        yield replace(fault, is_dropped=True)
        for status in STATUSES:
            yield replace(fault, status=status)
        yield replace(fault, status=404, body=GONE)
        yield replace(fault, status=200)  # an answer that says nothing
        yield replace(fault, status=200, body={"unheard": "of"})


def break_writes(server: Breakable, change: Change = append, step: int = 1) -> Tried:
    """Break every request of a write; no commit is lost, and none is made twice.

    Args:
        server: Has a table with the rows ``OLD``.
        change: Adds rows to the table, or replaces those that are there.
        step: 1 for all faults, more for a sample.
    """
    tried = Tried()
    faults = _faults(server, lambda: change(server.open(), rows_of([FIRST])), step)
    expected, made = read_ids(server.table()), _snapshots(server)

    for new, fault in enumerate(faults, start=FIRST + 1):
        error = _attempt(server, fault, lambda new=new: change(server.open(), rows_of([new])))

        found = read_ids(server.table())
        has_landed = error is None or (isinstance(error, CommitUnknown) and new in found)
        if has_landed:
            expected, made = ([] if change is overwrite else expected) + [new], made + 1
        what = f"{fault}: {error!r}"
        assert (found, _snapshots(server)) == (expected, made), what
        tried.note(error)
    check_whole(server.table())
    return tried


def break_reads(server: Breakable, step: int = 1) -> Tried:
    """Break every request of a read; the user gets an error, or the right rows."""
    tried = Tried()
    faults = _faults(server, lambda: read_ids(server.open()), step)
    expected = read_ids(server.table())

    for fault in faults:
        found: list[int] = []
        error = _attempt(server, fault, lambda found=found: found.extend(read_ids(server.open())))

        assert error is not None or found == expected, fault
        tried.note(error)
    return tried


def _faults(server: Breakable, attempt: Callable[[], object], step: int) -> list[Fault]:
    """The faults of an operation: as many times all of them as it makes requests."""
    server.asked()
    attempt()
    requests = server.asked()
    assert requests >= 2  # who it is that answers, and the table
    return [fault for number in range(requests) for fault in faults_at(number)][::step]


def _attempt(
    server: Breakable, fault: Fault, attempt: Callable[[], object]
) -> EmberlakeError | None:
    server.fail(fault)
    try:
        attempt()
    except EmberlakeError as error:
        return error
    finally:
        assert server.heal() == 0, f"{fault} has broken nothing"
    return None


def _snapshots(server: Breakable) -> int:
    latest = server.table().latest_snapshot()
    assert latest is not None
    return latest.id
