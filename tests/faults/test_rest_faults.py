"""A request to the server of a catalog fails, any of them, before or after its effect.

No commit is lost, none is doubled, and nothing that a snapshot needs is deleted.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from builders import COLUMNS, FakeEnv, Rows, append, as_arrow, overwrite, prepare, rows_of
from emberlake.catalog import RestCatalog
from emberlake.errors import (
    CommitUnknown,
    EmberlakeError,
    NoPermission,
    NotAuthenticated,
    ServerError,
    TableNotFound,
)
from emberlake.table import Table
from rest_faults import (
    GONE,
    OLD,
    Change,
    break_reads,
    break_writes,
    faults_at,
)
from rest_server import Fault, RestServer, serving
from table_reads import check_whole, data_files, manifest_files, read_ids, referenced_manifests

NEW = [7, 8]
COMMIT = "POST .*/commit$"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    with serving(tmp_path) as made:
        yield made


def connect(server: RestServer) -> RestCatalog:
    return RestCatalog.connect(server.options, FakeEnv().env())


def a_table(server: RestServer) -> Table:
    catalog = connect(server)
    catalog.create_database("db", ignore_if_exists=True)
    catalog.drop_table("db.t", ignore_if_not_exists=True)
    table = catalog.create_table("db.t", COLUMNS)
    append(table, rows_of(OLD))
    server.log.clear()
    return table


def write(server: RestServer, ids: Sequence[int] = NEW) -> None:
    append(connect(server).get_table("db.t"), rows_of(ids))


def ids_in(server: RestServer) -> list[int]:
    """The ids in the table, read without faults."""
    return read_ids(server.catalog.get_table("db.t"))


def outcome_of(server: RestServer, attempt: Callable[[], None]) -> EmberlakeError | None:
    try:
        attempt()
    except EmberlakeError as error:
        return error
    finally:
        server.faults.clear()
    return None


class Own:
    """The server of the tests, whose answers break where they are made."""

    def __init__(self, server: RestServer) -> None:
        self.server = server

    def open(self) -> Table:
        return connect(self.server).get_table("db.t")

    def table(self) -> Table:
        return self.server.catalog.get_table("db.t")

    def fail(self, fault: Fault) -> None:
        self.server.faults.append(fault)

    def heal(self) -> int:
        left = sum(fault.times > 0 for fault in self.server.faults)
        self.server.faults.clear()
        return left

    def asked(self) -> int:
        count = len(self.server.log)
        self.server.log.clear()
        return count


def merge(table: Table, rows: Rows) -> object:
    """Add rows by an operation on rows, which reads the table before it commits."""
    return table.merge(as_arrow(rows), on=["id"]).when_not_matched_insert_all().execute()


def grow(table: Table, rows: Rows) -> object:
    """Add rows that bring a column of their own: the schema is changed before the commit."""
    given = as_arrow(rows)
    name = f"of_{given.column('id')[0].as_py()}"
    return table.append(given.append_column(name, given.column("id")), merge_schema=True)


SLOW = [pytest.param(change, marks=pytest.mark.slow) for change in (overwrite, merge)]


@pytest.mark.parametrize("change", [append, *SLOW])
def test_whichever_request_of_a_write_fails_nothing_is_lost_or_doubled(
    server: RestServer, change: Change
) -> None:
    a_table(server)

    tried = break_writes(Own(server), change)

    assert tried.attempts >= 4 * len([*faults_at(0)])  # config, table, latest, commit
    assert tried.failures > 0
    assert tried.unknown == 0  # one failure alone is always found out


@pytest.mark.slow
def test_a_sample_of_failures_of_writes_that_bring_columns(server: RestServer) -> None:
    a_table(server)

    tried = break_writes(Own(server), grow, step=7)  # every try makes the table wider

    assert tried.failures > 0
    assert tried.unknown == 0


def test_a_failed_request_of_a_read_is_reported_or_the_rows_are_right(
    server: RestServer,
) -> None:
    a_table(server)

    assert break_reads(Own(server)).failures > 0


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("status", [0, 500, 502, 503, 504, 429, 403])
def test_a_commit_that_fails_for_good_is_reported_as_such(
    server: RestServer, status: int, when: str
) -> None:
    a_table(server)
    server.fail(COMMIT, status=status, is_dropped=status == 0, when=when, times=1000)

    error = outcome_of(server, lambda: write(server))

    if when == "after":
        assert error is None  # the snapshot was found
        assert ids_in(server) == OLD + NEW
    else:
        assert isinstance(error, ServerError if status in (403, 429) else CommitUnknown)
        assert ids_in(server) == OLD
    check_whole(connect(server).get_table("db.t"))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_is_gone_from_the_commit_on_makes_nobody_delete_files(
    server: RestServer, when: str
) -> None:
    table = a_table(server)
    gone = partial(server.fail, is_dropped=True, times=1000)
    server.fail(COMMIT, is_dropped=True, when=when, then=gone)

    error = outcome_of(server, lambda: append(table, rows_of(NEW)) and None)

    if when == "after":
        assert error is None  # its file tells
        assert ids_in(server) == OLD + NEW
    else:
        assert isinstance(error, CommitUnknown)
        assert len(manifest_files(table)) > len(referenced_manifests(table))


@pytest.mark.parametrize("status", [400, 401, 403, 409, 501])
def test_a_commit_that_is_refused_is_tried_once_and_leaves_no_files(
    server: RestServer, status: int
) -> None:
    table = a_table(server)
    server.fail(COMMIT, status=status, times=1000)

    with pytest.raises(ServerError) as refused:
        append(table, rows_of(NEW))

    assert refused.value.code == status
    kinds = {401: NotAuthenticated, 403: NoPermission}
    assert type(refused.value) is kinds.get(status, ServerError)
    assert len(server.asked(COMMIT)) == 1
    assert set(manifest_files(table)) == set(referenced_manifests(table))


def test_a_refused_write_of_one_call_leaves_no_data_files(server: RestServer) -> None:
    table = a_table(server)
    before = set(data_files(table))
    server.fail(COMMIT, status=403, times=1000)

    with pytest.raises(NoPermission):
        table.append(as_arrow(rows_of(NEW)))

    assert set(data_files(table)) == before


@pytest.mark.parametrize("when", ["before", "after"])
def test_another_writer_comes_between_a_lost_answer_and_the_look(
    server: RestServer, when: str
) -> None:
    table = a_table(server)
    other = server.catalog.get_table("db.t")
    server.fail(COMMIT, is_dropped=True, when=when, then=lambda: append(other, rows_of([99])))

    append(table, rows_of(NEW))

    assert read_ids(table) == [1, 2, 7, 8, 99]
    check_whole(table)


@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_commit_is_found_again_on_a_server_that_forgets_uuids(
    server: RestServer, is_dropped: bool
) -> None:
    table = a_table(server)
    server.forgets_uuids = True
    server.fail(COMMIT, is_dropped=is_dropped, when="after")

    append(table, rows_of(NEW))

    assert ids_in(server) == OLD + NEW


def test_a_commit_that_lost_goes_on_top_of_the_winner(server: RestServer) -> None:
    table = a_table(server)
    other = server.catalog.get_table("db.t")
    late = prepare(table, rows_of(NEW))
    commit = table.new_batch_write_builder().new_commit()
    append(other, rows_of([5]))

    result = commit.commit(late)

    assert result.snapshot_id == 3
    assert read_ids(table) == [1, 2, 5, 7, 8]


def test_the_same_commit_is_sent_again_byte_for_byte(server: RestServer) -> None:
    table = a_table(server)
    server.fail(COMMIT, status=503, when="before", times=2, headers={"Retry-After": "2"})

    append(table, rows_of(NEW))

    first, second, third = server.asked(COMMIT)
    assert first == second == third
    assert read_ids(table) == OLD + NEW


def test_a_table_that_was_created_again_takes_no_commit_of_the_old_one(server: RestServer) -> None:
    table = a_table(server)
    late = prepare(table, rows_of(NEW))
    catalog = connect(server)
    server.fail(COMMIT, when="before", status=404, body=GONE, times=1000)

    with pytest.raises(TableNotFound):
        table.new_batch_write_builder().new_commit().commit(late)

    assert len(server.asked(COMMIT)) == 1
    assert read_ids(catalog.get_table("db.t")) == OLD


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_dropped", [False, True])
def test_an_overwrite_whose_answer_is_lost_is_made_once(
    server: RestServer, when: str, is_dropped: bool
) -> None:
    table = a_table(server)
    server.fail(COMMIT, is_dropped=is_dropped, when=when)

    overwrite(table, rows_of(NEW))

    assert ids_in(server) == NEW
    assert table.latest_snapshot().id == 2
