"""Every way to overwrite, on every kind of table, against a model of what it replaces."""

import pyarrow as pa
import pytest

from builders import copy_of, open_catalog, open_table
from emberlake import Schema
from emberlake.errors import InvalidInput
from emberlake.io import MemoryStorage
from overwrite_cases import (
    APPEND,
    BEFORE,
    BUILDER_CALLS,
    CASES,
    COMMIT_CALLS,
    Case,
    Refused,
    Row,
    expected,
)
from table_reads import check_whole, read

pytestmark = pytest.mark.thorough

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), False), pa.field("day", pa.string(), False), ("v", pa.string())]
)
KINDS = {
    "append": (["day"], [], {}),
    "append, unpartitioned": ([], [], {}),
    "key": (["day"], ["day", "id"], {"bucket": "1"}),
    "key, unpartitioned": ([], ["id"], {"bucket": "2"}),
}
# Where the rows of a plain writer depend on those that are to go, it cannot replace.
DEPENDENT_KINDS = {
    "dynamic buckets": (["day"], ["day", "id"], {"bucket": "-1"}),
    "deletion vectors": (
        ["day"],
        ["day", "id"],
        {"bucket": "1", "deletion-vectors.enabled": "true"},
    ),
}


def as_arrow(rows):
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=COLUMNS)


def three_days(partition_keys, primary_keys, options) -> MemoryStorage:
    storage = MemoryStorage()
    catalog = open_catalog(storage)
    catalog.create_database("db")
    catalog.create_table(
        "db.t", Schema.from_pyarrow_schema(COLUMNS, partition_keys, primary_keys, options)
    )
    write(catalog.get_table("db.t"), Case("append", "commit()", True, "no data"), BEFORE)
    return storage


def write(table, case, rows):
    builder = table.new_batch_write_builder()
    if BUILDER_CALLS[case.builder_call] != APPEND:
        builder.overwrite(BUILDER_CALLS[case.builder_call])
    with builder.new_write() as writer, builder.new_commit() as commit:
        if rows:
            writer.write_arrow(as_arrow(rows))
        messages = writer.prepare_commit()
        if COMMIT_CALLS[case.commit_call] == APPEND:
            commit.commit(messages)
        else:
            commit.overwrite(messages, COMMIT_CALLS[case.commit_call])


def check(storage: MemoryStorage, case: Case, want) -> None:
    option = {"dynamic-partition-overwrite": case.is_dynamic}
    table = open_table(copy_of(storage)).copy(option)
    try:
        write(table, case, case.rows)
    except InvalidInput:
        found = Refused
    else:
        found = [Row(**row) for row in read(table)]
        check_whole(table)
    if want is Refused:
        assert [Row(**row) for row in read(table)] == sorted(BEFORE)
    assert found == want


def wanted(case: Case, *, has_partitions: bool, has_key: bool):
    try:
        return expected(case, has_partitions=has_partitions, has_key=has_key)
    except Refused:
        return Refused


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def plain(request):
    return request.param, three_days(*request.param)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_overwrite_replaces_what_the_table_of_calls_says(plain, case):
    (partition_keys, primary_keys, _), storage = plain

    check(
        storage,
        case,
        wanted(case, has_partitions=bool(partition_keys), has_key=bool(primary_keys)),
    )


@pytest.fixture(scope="module", params=DEPENDENT_KINDS.values(), ids=DEPENDENT_KINDS)
def dependent(request):
    return three_days(*request.param)


@pytest.mark.parametrize("case", [case for case in CASES if case.is_dynamic], ids=str)
def test_plain_messages_replace_only_where_they_can(dependent, case):
    is_plain = (
        BUILDER_CALLS[case.builder_call] == APPEND
        and COMMIT_CALLS[case.commit_call] != APPEND
        and case.rows
    )
    want = Refused if is_plain else wanted(case, has_partitions=True, has_key=True)

    check(dependent, case, want)
