"""Modes of primary-key tables that engines treat specially: postponed buckets, first-row, keys.

What everybody does in turn is in test_key_turns.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from canonical import canonical_rows, sorted_rows
from emberlake import Table
from emberlake.scan.files import live_entries
from interop.engines import (
    COMPACTORS,
    DELETERS,
    NAME,
    READERS,
    WRITERS,
    arrow_rows,
    canonical,
    create,
)
from interop.judges import java_judge, known_gap, peer
from interop.samples import ATOMIC, NESTED, Sample
from table_reads import latest_snapshot, live_files, records_in

pytestmark = pytest.mark.interop

COLUMNS = {"id": "INT", "day": "STRING", "n": "INT"}
POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "3"}
FIRST = [(1, "mon", 1), (2, "tue", None), (3, "", 3), (1, "mon", 4)]
SECOND = [(3, "wed", 5), (4, None, 6)]


def check_all_read(warehouse: Path, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    seen = {reader: read(warehouse) for reader, read in READERS.items()}
    assert seen == dict.fromkeys(READERS, canonical(table, rows))


def names_in_order(table: Table) -> list[str]:
    """The names of all files, in the order in which they were committed."""
    entries = live_entries(table.store, latest_snapshot(table)).entries()
    return [entry.file.file_name for entry in entries]


# --- postponed buckets: what is in them -----------------------------------------------------------


def test_java_understands_what_we_postponed(tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **POSTPONED)
    WRITERS["emberlake"](tmp_path, arrow_rows(table, FIRST))
    WRITERS["emberlake"](tmp_path, arrow_rows(table, SECOND), "-D")

    records = java_judge().postponed(tmp_path, NAME)

    writers = [int(name.split("-s-")[1].split("-")[0]) for name in names_in_order(table)]
    assert [record.writer for record in records] == [writers[0]] * 4 + [writers[1]] * 2
    assert [record.key for record in records] == [[row[0]] for row in (*FIRST, *SECOND)]
    assert [record.sequence for record in records] == [0, 1, 2, 3, 0, 1]
    expected = [["+I", *row] for row in FIRST] + [["-D", *row] for row in SECOND]
    assert [record.row for record in records] == expected
    (bucket,) = java_judge().read(tmp_path, f"{NAME}$buckets").rows
    assert bucket[2:4] == [-2, 6]


@pytest.mark.parametrize("writer", ["java", "pypaimon", "rust"])
def test_we_understand_what_others_postponed(writer: str, tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **POSTPONED)
    WRITERS[writer](tmp_path, arrow_rows(table, FIRST))
    if writer in DELETERS:
        WRITERS[writer](tmp_path, arrow_rows(table, SECOND), "-D")
    check_all_read(tmp_path, table, [])

    entries = live_files(table)

    expected = [(*row, "+I") for row in FIRST]
    expected += [(*row, "-D") for row in SECOND if writer in DELETERS]
    found = [(*r[:3], r[-1]) for entry in entries for r in records_in(table, entry)]
    assert found == expected
    builder = table.new_stream_read_builder().with_include_row_kind()
    plan = builder.new_streaming_scan().plan()
    assert plan is not None
    rows = builder.new_read().to_arrow(plan.splits()).to_pylist()
    assert [(r["id"], r["day"], r["n"], r["_row_kind"]) for r in rows] == expected


# --- postponed buckets: compaction ----------------------------------------------------------------


@pytest.mark.parametrize("compactor", COMPACTORS)
def test_all_put_a_row_into_the_same_bucket(compactor: str, tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **POSTPONED)
    rows = [(n, "mon", n) for n in range(50)]
    WRITERS["emberlake"](tmp_path, arrow_rows(table, rows))
    fixed = tmp_path / "fixed"
    WRITERS["java"](fixed, arrow_rows(create(fixed, COLUMNS, bucket="3"), rows))

    COMPACTORS[compactor](tmp_path, full=False)

    found, expected = (java_judge().read(place, NAME) for place in (tmp_path, fixed))
    assert found.rows == expected.rows
    assert found.buckets == expected.buckets
    assert {entry.total_buckets for entry in live_files(table)} == {3}


NANOSECONDS = [sample for sample in ATOMIC if sample.name.startswith("timestamp9")]
TYPES: dict[str, Sequence[Sample]] = {
    "atomic": [sample for sample in ATOMIC if sample not in NANOSECONDS],
    "nanoseconds": NANOSECONDS,  # which Avro cannot keep
    "nested": [sample for sample in NESTED if sample.name != "multiset"],  # pypaimon has none
}
NO_NANOSECONDS = "pypaimon postpones in Avro whatever the types are, which has no nanoseconds"
TYPE_GAPS = {
    ("nanoseconds", "pypaimon", "emberlake"): NO_NANOSECONDS,
    ("nanoseconds", "pypaimon", "java"): NO_NANOSECONDS,
    (
        "nanoseconds",
        "rust",
        "java",
    ): "Java 1.4 reads no nanoseconds that are INT64, as Rust has them",
    ("nested", "pypaimon", "emberlake"): "pypaimon does not write maps to Avro",
    ("nested", "pypaimon", "java"): "pypaimon does not write maps to Avro",
}


def rows_of_all(samples: Sequence[Sample]) -> pa.Table:
    """A column of every type, all values of it one below the other, then nulls."""
    count = max(sample.data.num_rows for sample in samples)
    columns = {"id": pa.array(range(count), pa.int32())}
    for sample in samples:
        values = sample.data.column("c").combine_chunks()
        padding = pa.nulls(count - len(values), values.type)
        columns[sample.name] = pa.concat_arrays([values, padding])
    return pa.table(columns)


@pytest.mark.parametrize("compactor", COMPACTORS)
@pytest.mark.parametrize(
    ("types", "writer"),
    # The judge itself takes no nested values.
    [case for case in itertools.product(TYPES, WRITERS) if case != ("nested", "java")],
)
def test_values_of_every_type_go_through_postponed_files(
    request: pytest.FixtureRequest, types: str, writer: str, compactor: str, tmp_path: Path
) -> None:
    if (types, writer, compactor) in TYPE_GAPS:
        known_gap(request, TYPE_GAPS[types, writer, compactor])
    samples = TYPES[types]
    create(tmp_path, {"id": "INT", **{s.name: s.type for s in samples}}, **POSTPONED)
    rows = rows_of_all(samples)

    WRITERS[writer](tmp_path, rows)
    COMPACTORS[compactor](tmp_path, full=True)

    seen = {reader: read(tmp_path) for reader, read in READERS.items()}
    assert seen == dict.fromkeys(READERS, sorted_rows(canonical_rows(rows)))


@pytest.mark.parametrize("compactor", COMPACTORS)
def test_postponed_rows_of_partitions_are_each_in_theirs(compactor: str, tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, ["day", "id"], ["day"], **POSTPONED)
    for number, writer in enumerate(WRITERS):
        rows = [(n, f"{'p=1'[n % 2 :]}", number) for n in range(number, number + 6)]
        WRITERS[writer](tmp_path, arrow_rows(table, rows))
        if writer == "java":
            COMPACTORS[compactor](tmp_path, full=False)
    COMPACTORS[compactor](tmp_path, full=True)

    expected = {n: (n, f"{'p=1'[n % 2 :]}", min(n, 3)) for n in range(9)}
    check_all_read(tmp_path, table, list(expected.values()))


@pytest.mark.parametrize("writer", ["pypaimon", "rust"])
def test_rows_that_others_did_not_postpone_are_there_at_once(writer: str, tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **POSTPONED)
    rows = [(n, "theirs", 0) for n in range(10)]
    peer(writer).write(tmp_path, NAME, arrow_rows(table, rows), in_fixed_buckets=True)
    check_all_read(tmp_path, table, rows)
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(3, "ours", 1), (10, "ours", 1)]))
    check_all_read(tmp_path, table, rows)

    table.compact()

    ours = [(3, "ours", 1), (10, "ours", 1)]
    check_all_read(tmp_path, table, [*(row for row in rows if row[0] != 3), *ours])
    assert {entry.total_buckets for entry in live_files(table)} == {3}


def test_all_read_what_we_did_not_postpone(tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **POSTPONED)
    first = [(n, "first", 0) for n in range(10)]
    second = [(n, "second", 1) for n in range(5, 15)]
    for rows in (first, second):
        builder = table.new_postpone_fixed_bucket_write_builder()
        with builder.new_write() as write, builder.new_commit() as commit:
            write.write_arrow(arrow_rows(table, rows))
            commit.commit(write.prepare_commit())

    check_all_read(tmp_path, table, [*first[:5], *second])


@pytest.mark.parametrize("compactor", COMPACTORS)
def test_an_overwrite_takes_away_what_is_postponed_too(compactor: str, tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **POSTPONED)
    WRITERS["emberlake"](tmp_path, arrow_rows(table, FIRST))
    COMPACTORS[compactor](tmp_path, full=False)
    WRITERS["java"](tmp_path, arrow_rows(table, SECOND))
    builder = table.new_batch_write_builder().overwrite()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(arrow_rows(table, [(9, "new", 9)]))
        commit.commit(write.prepare_commit())
    check_all_read(tmp_path, table, [])

    COMPACTORS[compactor](tmp_path, full=False)

    check_all_read(tmp_path, table, [(9, "new", 9)])


@pytest.mark.parametrize("compactor", COMPACTORS)
def test_a_changelog_comes_with_the_compaction(compactor: str, tmp_path: Path) -> None:
    table = create(tmp_path, COLUMNS, **{**POSTPONED, "changelog-producer": "input"})
    WRITERS["emberlake"](tmp_path, arrow_rows(table, FIRST))
    WRITERS["java"](tmp_path, arrow_rows(table, SECOND), "-D")
    builder = table.new_stream_read_builder().with_include_row_kind()
    scan = builder.new_streaming_scan()
    start = scan.plan()
    assert start is not None
    assert not start.splits()

    COMPACTORS[compactor](tmp_path, full=True)

    expected = sorted_rows([["+I", *row] for row in FIRST] + [["-D", *row] for row in SECOND])
    options = {"incremental-between": "0,3", "incremental-between-scan-mode": "changelog"}
    assert sorted_rows(java_judge().read(tmp_path, NAME, options).rows) == expected
    plan = scan.plan()
    assert plan is not None
    rows = builder.new_read().to_arrow(plan.splits()).to_pylist()
    ours = [[row["_row_kind"], row["id"], row["day"], row["n"]] for row in rows]
    assert sorted_rows(ours) == expected


# --- first-row ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compactor", COMPACTORS)
def test_deletes_of_a_first_row_table_are_ignored_by_all(compactor: str, tmp_path: Path) -> None:
    options = {"merge-engine": "first-row", "ignore-delete": "true", "bucket": "1"}
    table = create(tmp_path, COLUMNS, **options)
    for number, writer in enumerate(WRITERS):
        WRITERS[writer](tmp_path, arrow_rows(table, [(1, writer, 0), (2 + number, writer, 0)]))
        if writer in DELETERS:
            WRITERS[writer](tmp_path, arrow_rows(table, [(1, writer, 0), (99, writer, 0)]), "-D")
    COMPACTORS[compactor](tmp_path, full=True)

    expected = [(1, "emberlake", 0), *((2 + n, writer, 0) for n, writer in enumerate(WRITERS))]
    check_all_read(tmp_path, table, expected)


# --- keys and values that not everybody takes for the same ----------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_keys_that_differ_by_their_sign_alone_are_two(
    request: pytest.FixtureRequest, reader: str, tmp_path: Path
) -> None:
    if reader in ("java", "pypaimon"):
        known_gap(request, f"to {reader} 0.0 and -0.0 are one key; Java 2 tells them apart")
    table = create(tmp_path, {"id": "DOUBLE", "n": "INT"}, bucket="1")
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(-1.0, 1), (-0.0, 2), (1.0, 3)]))
    WRITERS["emberlake"](tmp_path, arrow_rows(table, [(-1.0, 4), (0.0, 5), (1.0, 6)]))

    rows = [(-1.0, 4), (-0.0, 2), (0.0, 5), (1.0, 6)]
    assert READERS[reader](tmp_path) == canonical(table, rows)


@pytest.mark.parametrize("reader", READERS)
def test_the_greatest_boolean_is_true(
    request: pytest.FixtureRequest, reader: str, tmp_path: Path
) -> None:
    if reader == "java":
        known_gap(request, "Java 1.4 has no order of booleans; Java 2 has")
    options = {"merge-engine": "aggregation", "fields.b.aggregate-function": "max", "bucket": "1"}
    table = create(tmp_path, {"id": "INT", "b": "BOOLEAN"}, **options)
    for value in (False, True, False):
        WRITERS["emberlake"](tmp_path, arrow_rows(table, [(1, value)]))

    assert READERS[reader](tmp_path) == canonical(table, [(1, True)])
