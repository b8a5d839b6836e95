"""Checking a table: every kind of damage is found, and tables without damage have none."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from builders import (
    NAME,
    NUMBERED,
    FakeEnv,
    alter,
    append,
    copy_of,
    create_key_table,
    create_table,
    delete_rows,
    lift,
    numbered,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    publish,
    rows_of,
    upsert,
)
from emberlake import AtomicType, CatalogFactory, SchemaChange
from emberlake.errors import CorruptFile, SnapshotNotFound, StorageError, Unsupported
from emberlake.formats import open_writer
from emberlake.io import MemoryStorage
from emberlake.maintenance.check import CheckReport, ProblemKind
from emberlake.options import TableOptions
from emberlake.scan.files import live_entries
from emberlake.spec.key_value import key_value_fields
from emberlake.types import arrow_schema
from golden.reads import Golden
from table_reads import files_under, latest_snapshot, live_files
from watched_storage import WatchedStorage

MISSING, CORRUPT = ProblemKind.MISSING, ProblemKind.CORRUPT
OVERLAPPING, UNREFERENCED = ProblemKind.OVERLAPPING, ProblemKind.UNREFERENCED
INCONSISTENT = ProblemKind.INCONSISTENT


def an_append_table(**options):
    table = create_table(partition_keys=["day"], options=options)
    append(table, [*rows_of([1, 2], "mon"), *rows_of([3], "tue")])
    append(table, rows_of([4], "mon"))
    return table


def a_key_table(options=None):
    table = create_key_table(NUMBERED, **{"bucket": "2", **(options or {})})
    upsert(table, numbered(range(10)))
    upsert(table, numbered(range(5, 15), value="b"))
    return table


def kinds(report: CheckReport) -> set[str]:
    return {problem.kind for problem in report.problems}


def only_problem(report: CheckReport):
    (problem,) = report.problems
    return problem


def a_data_file(table) -> str:
    return path_of(table, live_files(table)[0])


def path_of(table, entry) -> str:
    return table.store.data_file_path(entry.partition, entry.bucket, entry.file)


# --- nothing wrong --------------------------------------------------------------------------------


def test_a_table_without_damage_has_no_problems():
    table = an_append_table()
    table.create_tag("v1", snapshot_id=1)

    report = table.check()

    assert report.ok
    assert report.problems == ()
    assert (report.snapshots, report.rows) == (2, 4)  # the tag is one of them
    # Two data files of the first commit, one of the second; a manifest and two lists for each.
    assert report.files == 3 + 2 + 4
    assert report.bytes > 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"deletion-vectors.enabled": "true"},
        {"merge-engine": "first-row"},
        {"bucket": "-1"},
        {"bucket": "-2"},
        {"data-file.thin-mode": "true"},
        {"file.format": "orc", "changelog-producer": "input"},
        {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
        {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "1"},
        {"metadata.stats-mode": "none"},
    ],
    ids=str,
)
def test_key_tables_without_damage_have_no_problems(options):
    table = a_key_table(options)
    table.compact(full=True)
    upsert(table, numbered(range(3)), row_kind="-D" if "merge-engine" not in options else None)

    assert table.check().problems == ()


@pytest.mark.thorough
def test_what_java_wrote_has_no_problems(golden: Golden) -> None:
    catalog = CatalogFactory.create({"warehouse": golden.warehouse})
    found = {}
    for name in catalog.list_tables("golden"):
        try:
            report = catalog.get_table(f"golden.{name}").check()
        except Unsupported:
            continue
        found[name] = {p for p in report.problems if p.kind is not UNREFERENCED}

    assert len(found) > 80
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_a_table_of_several_schemas_has_no_problems():
    table = alter(an_append_table(), SchemaChange.add_column("n", AtomicType("INT")))
    append(table, [{"id": 1, "day": "mon", "n": 5}])

    assert table.check().problems == ()


def test_an_empty_table_has_no_problems():
    report = create_table().check()

    assert report.ok
    assert report.snapshots == report.files == 0


def test_progress_is_reported_for_every_file():
    calls = []

    an_append_table().check(progress=lambda *args: calls.append(args))

    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_one_snapshot_can_be_checked_by_itself():
    table = an_append_table()
    path = a_data_file(table)
    overwrite(table, rows_of([9], "mon"))
    table.store.storage.delete(path)

    assert kinds(table.check()) == kinds(table.check(snapshot_id=1)) == {MISSING}
    assert table.check(snapshot_id=3).ok  # it does not have the file
    assert table.check(snapshot_id=1).snapshots == 1
    with pytest.raises(SnapshotNotFound, match="9"):
        table.check(snapshot_id=9)


# --- files ----------------------------------------------------------------------------------------


def test_a_missing_data_file_is_found_without_reading():
    table = an_append_table()
    path = a_data_file(table)
    table.store.storage.delete(path)

    problem = only_problem(table.check(read_data=False))

    assert (problem.kind, problem.path) == (MISSING, path)
    assert str(problem).startswith(f"missing: {path}")


def test_a_data_file_of_another_size_is_found_without_reading():
    table = an_append_table()
    path = a_data_file(table)
    table.store.storage.put(path, table.store.storage.read(path)[:-1])

    problem = only_problem(table.check(read_data=False))

    assert (problem.kind, problem.path) == (CORRUPT, path)


@pytest.mark.parametrize("table", [an_append_table, a_key_table], ids=["append", "key"])
def test_bytes_that_changed_are_found_by_reading(table):
    table = table()
    path = a_data_file(table)
    raw = bytearray(table.store.storage.read(path))
    raw[: len(raw) - 8] = bytes(len(raw) - 8)
    table.store.storage.put(path, bytes(raw))

    assert table.check(read_data=False).ok
    problem = only_problem(table.check())
    assert (problem.kind, problem.path) == (CORRUPT, path)


def test_files_of_a_storage_that_fails_are_corrupt():
    table = an_append_table()
    watched = WatchedStorage(table.store.storage)
    path = a_data_file(table)
    table = open_table(watched)

    def fail(call):
        if call.path == path and call.method == "open_input":
            raise StorageError("cannot read: Input/output error")

    watched.watch = fail

    assert CORRUPT in kinds(table.check())


@pytest.mark.parametrize("part", ["base_manifest_list", "delta_manifest_list"])
@pytest.mark.parametrize("kind", [MISSING, CORRUPT])
def test_a_damaged_manifest_list_is_found_in_any_snapshot(part, kind):
    table = an_append_table()
    path = table.store.layout.manifest(getattr(table.snapshot_manager().load(1), part))
    damage(table.store.storage, path, kind)

    # This process may remember what it has read; the file counts.
    problem = only_problem(table.check())

    assert (problem.kind, problem.path) == (kind, path)


@pytest.mark.parametrize("kind", [MISSING, CORRUPT])
def test_a_damaged_manifest_is_found(kind):
    table = an_append_table()
    (path,) = [
        path
        for path in sorted(files_under(table.store.storage, f"{table.table_path}/manifest"))
        if "manifest-list" not in path
    ][:1]
    damage(table.store.storage, path, kind)

    report = table.check()

    assert {(p.kind, p.path) for p in report.problems} == {(kind, path)}


def damage(storage, path: str, kind: ProblemKind) -> None:
    if kind is MISSING:
        storage.delete(path)
    else:
        storage.put(path, bytes(len(storage.read(path))))


def test_a_damaged_snapshot_or_tag_is_found():
    table = an_append_table()
    table.create_tag("v1", snapshot_id=1)
    layout = table.store.layout
    for path in (layout.snapshot(1), layout.tag("v1")):
        table.store.storage.put(path, b"{")

    report = table.check()

    assert {(p.kind, p.path) for p in report.problems} == {
        (CORRUPT, layout.snapshot(1)),
        (CORRUPT, layout.tag("v1")),
    }
    assert report.rows == 4


def test_a_missing_schema_is_found():
    table = alter(an_append_table(), SchemaChange.add_column("n", AtomicType("INT")))
    append(table, [{"id": 1, "day": "mon", "n": 5}])
    path = table.store.layout.schema(0)
    table.store.storage.delete(path)

    report = open_table(table.store.storage).check()

    assert MISSING in kinds(report)
    assert path in {p.path for p in report.problems}


def test_a_missing_extra_file_is_found():
    table = an_append_table()
    entries = live_files(table)
    publish(table, [replace(entries[0], file=replace(entries[0].file, extra_files=("x.index",)))])

    problems = table.check().problems

    assert (MISSING, f"{a_data_file(table).rpartition('/')[0]}/x.index") in {
        (p.kind, p.path) for p in problems
    }


def test_orphans_are_found_when_they_are_old():
    world = FakeEnv()
    storage = MemoryStorage(world.env())
    table = create_table(storage, env=world.env())
    append(table, rows_of([1]))
    (message,) = prepare(table, rows_of([2]))

    assert table.check().ok
    world.time_ms += 2 * 86_400_000
    problem = only_problem(table.check())
    assert problem.kind is UNREFERENCED
    assert problem.path.endswith(message.new_files[0].file_name)
    assert table.check(snapshot_id=1).ok


def test_what_damages_a_branch_is_found_from_the_table():
    world = FakeEnv()
    storage = MemoryStorage(world.env())
    table = create_table(storage, env=world.env())
    append(table, rows_of([1]))
    table.create_tag("v1")
    table.create_branch("b", "v1")
    branch = open_catalog(storage, world.env()).get_table(f"{NAME}$branch_b")
    append(branch, rows_of([2]))
    path = table.store.layout.manifest(latest_snapshot(branch).delta_manifest_list)
    copy = MemoryStorage(world.env())
    for name in files_under(storage, "") - {path}:
        copy.put(name, storage.read(name))
    world.time_ms += 2 * 86_400_000

    problem = only_problem(open_table(copy, world.env()).check())

    assert (problem.kind, problem.path) == (MISSING, path)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_whatever_bytes_are_damaged_a_check_reports_and_does_not_raise(seed):
    chance = random.Random(seed)
    table = a_key_table({"deletion-vectors.enabled": "true", "changelog-producer": "input"})
    table.compact(full=True)
    storage = table.store.storage
    for path in sorted(files_under(storage, table.table_path)):
        whole = storage.read(path)
        if "/schema/" in path:
            continue  # a table without a schema cannot be opened
        raw = bytearray(whole)
        for _ in range(3):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        damaged = raw[: chance.randrange(1, len(raw) + 1)] if chance.random() < 0.3 else raw
        storage.put(path, bytes(damaged))

        report = table.check()

        is_hint = path.endswith(("LATEST", "EARLIEST"))
        assert is_hint or len(damaged) == len(whole) or not report.ok, path
        storage.put(path, whole)
    assert table.check().ok


# --- contents -------------------------------------------------------------------------------------


def told_otherwise(table, **changes):
    """The table after its manifest says something else of its first file."""
    entries = live_files(table)
    publish(table, [replace(entries[0], file=replace(entries[0].file, **changes)), *entries[1:]])
    return table


def of_rows(report: CheckReport):
    """Problems but for totals and the chain, which a forged manifest does not keep."""
    return [
        p
        for p in report.problems
        if "RecordCount" not in p.detail and p.kind is not ProblemKind.OVERWRITTEN
    ]


def test_a_row_count_that_is_wrong_is_found():
    table = told_otherwise(an_append_table(), row_count=7)

    report = table.check()

    assert {p.kind for p in report.problems} == {INCONSISTENT, ProblemKind.OVERWRITTEN}
    assert any("its manifest says 7" in p.detail for p in report.problems)
    assert any("totalRecordCount" in p.detail for p in report.problems)


def test_statistics_that_are_wrong_are_found():
    table = create_table()
    append(table, rows_of([1, 2, 3]))
    append(table, rows_of([10, 20, 30]))
    first, second = (entry.file.value_stats for entry in live_files(table))

    told_otherwise(table, value_stats=second)
    (below,) = of_rows(table.check())
    told_otherwise(table, value_stats=replace(first, null_counts=(0, 2)))
    (nulls,) = of_rows(table.check())

    assert below.kind is INCONSISTENT
    assert below.detail == "id goes down to 1, its statistics to 10"
    assert nulls.detail == "day has 0 nulls, its statistics say 2"


def test_rows_in_the_wrong_partition_are_found():
    table = an_append_table()
    monday, tuesday = (
        next(e for e in live_files(table) if day.encode() in e.partition) for day in ("mon", "tue")
    )
    storage = table.store.storage
    storage.put(path_of(table, tuesday), storage.read(path_of(table, monday)))
    forged = replace(tuesday, file=replace(monday.file, file_name=tuesday.file.file_name))
    publish(table, [forged])

    assert [p.detail for p in of_rows(table.check())] == [
        "2 rows belong to other partitions by their day"
    ]


def test_rows_in_the_wrong_bucket_are_found():
    table = create_table(options={"bucket": "2", "bucket-key": "id"})
    append(table, rows_of(range(10)))
    entries = live_files(table)
    (zero,) = (e for e in entries if e.bucket == 0)
    store = table.store
    store.storage.put(
        path_of(table, replace(zero, bucket=1)), store.storage.read(path_of(table, zero))
    )
    publish(table, [replace(zero, bucket=1)])

    (problem,) = of_rows(table.check())

    assert problem.kind is INCONSISTENT
    assert "belong to other buckets than 1 of 2" in problem.detail


def test_sequence_numbers_and_deletes_that_are_wrong_are_found():
    table = told_otherwise(
        create_one_bucket(), min_sequence_number=3, max_sequence_number=4, delete_row_count=2
    )

    details = [p.detail for p in of_rows(table.check())]

    assert details == [
        "0 of its rows are deletes, its manifest says 2",
        "its sequence numbers are 0 to 9, its manifest says 3 to 4",
    ]


def create_one_bucket():
    table = create_key_table(NUMBERED)
    upsert(table, numbered(range(10)))
    return table


def test_keys_outside_of_their_range_are_found():
    table = create_one_bucket()
    upsert(table, numbered(range(20, 30)))
    later = live_files(table)[1].file

    told_otherwise(table, min_key=later.min_key, max_key=later.max_key)

    assert any(
        "outside the smallest and the largest key" in p.detail for p in of_rows(table.check())
    )


@pytest.mark.parametrize("ids", [[0, 2, 1, 3], [0, 1, 1, 3]], ids=["unsorted", "twice"])
def test_keys_in_disorder_are_found(ids):
    table = create_key_table(NUMBERED)
    upsert(table, numbered(range(4)))
    (entry,) = live_files(table)
    size = rewrite(table, entry, numbered(ids))

    told_otherwise(table, file_size=size)

    assert any("not in order" in p.detail for p in of_rows(table.check()))


def rewrite(table, entry, rows) -> int:
    """Put other rows into a data file; its new size."""
    store, path = table.store, path_of(table, entry)
    store.storage.delete(path)
    fields = key_value_fields(store.schema)
    values = [
        {"_KEY_id": row["id"], "_SEQUENCE_NUMBER": place, "_VALUE_KIND": 0, **row}
        for place, row in enumerate(rows)
    ]
    writer = open_writer(store.storage, path, fields, TableOptions(), "parquet")
    writer.write(pa.Table.from_pylist(values, schema=arrow_schema(fields)))
    return writer.close()


def test_files_of_a_level_that_share_keys_are_found():
    table = create_key_table(NUMBERED)
    for ids in (range(10), range(5), range(7, 9), range(20, 30)):
        upsert(table, numbered(ids))
    lift(table, {0: 4, 1: 4, 2: 4, 3: 4})

    problems = [p for p in table.check().problems if p.kind is OVERLAPPING]

    assert len(problems) == 2
    lift(table, {0: 4, 1: 3, 2: 2, 3: 1})
    assert OVERLAPPING not in kinds(table.check())


def test_a_file_that_is_there_twice_is_found():
    table = an_append_table()
    entries = live_files(table)
    publish(table, [*entries, entries[0]])

    assert OVERLAPPING in kinds(table.check())


def test_a_deletion_of_nothing_is_found():
    table = an_append_table()
    first, *rest = live_files(table)
    publish(table, [replace(first, kind=first.kind.__class__.DELETE), *rest])

    problems = table.check().problems

    assert any("none adds it" in p.detail for p in problems)


# --- indexes --------------------------------------------------------------------------------------


def a_table_with_vectors():
    table = create_table()
    append(table, rows_of(range(10)))
    (entry,) = live_files(table)
    delete_rows(table, {entry.file.file_name: [1, 2]})
    return table


def test_deletion_vectors_without_damage_have_no_problems():
    assert a_table_with_vectors().check().problems == ()


def an_index_file(table) -> str:
    (path,) = files_under(table.store.storage, table.store.layout.index_folder)
    return path


def test_a_damaged_deletion_vector_is_found():
    table = a_table_with_vectors()
    path = an_index_file(table)
    raw = bytearray(table.store.storage.read(path))
    raw[-6] ^= 1
    table.store.storage.put(path, bytes(raw))

    problem = only_problem(table.check())

    assert (problem.kind, problem.path) == (CORRUPT, path)


def test_a_missing_index_file_is_found():
    table = a_table_with_vectors()
    path = an_index_file(table)
    table.store.storage.delete(path)

    problem = only_problem(table.check())

    assert (problem.kind, problem.path) == (MISSING, path)


def test_an_index_of_hashes_of_another_number_is_found():
    table = create_key_table(NUMBERED, bucket="-1")
    upsert(table, numbered(range(10)))
    store, latest = table.store, latest_snapshot(table)
    (entry,) = store.manifests.read_index(latest.index_manifest)
    forged = replace(entry, index_file=replace(entry.index_file, row_count=7))
    publish(table, index_manifest=store.manifests.write_index([forged]))

    (problem,) = of_rows(table.check())

    assert problem.kind is INCONSISTENT
    assert "7 hashes" in problem.detail


# --- overwritten snapshots ------------------------------------------------------------------------


def overwritten_table(theirs: list[int], **options: str):
    """Snapshot 2 of two writers: the third one was built on ours, then theirs took its place."""
    table = create_table(options=options)
    append(table, rows_of([1]))
    other = open_table(copy_of(table.store.storage.storage))
    append(other, rows_of(theirs))
    append(table, rows_of([2]))
    append(table, rows_of([3]))
    for path in files_under(other.store.storage, ""):
        if path.endswith("snapshot-2") or not table.store.storage.exists(path):
            table.store.storage.put(path, other.store.storage.read(path))
    return table


@pytest.mark.parametrize(
    ("theirs", "detail"),
    [
        ([8, 9], "it found 2 rows, this one has 3"),
        ([9], "both have 2 rows, but in other files"),
    ],
)
def test_a_snapshot_that_the_next_one_was_not_built_on_was_overwritten(theirs, detail):
    table = overwritten_table(theirs)

    problem = only_problem(table.check(read_data=False))

    assert problem.kind is ProblemKind.OVERWRITTEN
    assert problem.path == table.store.layout.snapshot(2)
    assert problem.detail.startswith(f"snapshot 3 was built on another one: {detail}")


def test_an_overwritten_snapshot_is_found_by_totals_where_manifests_are_gone():
    table = overwritten_table([8, 9])
    layout, storage = table.store.layout, table.store.storage
    storage.delete(layout.manifest(table.store.snapshots.load(2).delta_manifest_list))

    problems = {p.kind: p for p in table.check(read_data=False).problems}

    assert set(problems) == {MISSING, ProblemKind.OVERWRITTEN}
    assert "it found 2 rows, this one has 3" in problems[ProblemKind.OVERWRITTEN].detail


def test_files_below_a_snapshot_that_was_overwritten_are_looked_for():
    """They are in no other snapshot of the chain."""
    table = overwritten_table([9])
    append(table, rows_of([4]))
    (lost,) = [e for e in live_files(table) if e.file.file_name not in names_before(table)]
    path = path_of(table, lost)
    overwrite(table, rows_of([5]))  # the latest snapshot has none of them
    table.store.storage.delete(path)

    problems = table.check(read_data=False).problems

    assert (MISSING, path) in {(p.kind, p.path) for p in problems}


def names_before(table) -> set[str]:
    """The files of snapshot 2, and those that the snapshots after it have added."""
    store = table.store
    known = {e.file.file_name for e in store_files(table, 2)}
    for snapshot_id in (3, 4):
        delta = store.manifests.read_list(store.snapshots.load(snapshot_id).delta_manifest_list)
        known |= set(store.manifests.read_manifests(delta).file_name.to_pylist())
    return known


def store_files(table, snapshot_id: int):
    return live_entries(table.store, table.store.snapshots.load(snapshot_id)).entries()


def test_merged_manifests_and_rollbacks_are_no_overwrites():
    table = create_table(options={"manifest.merge-min-count": "2"})
    for number in range(4):
        append(table, rows_of([number]))
        if number == 1:
            table.create_tag("kept")
    table.rollback_to(3)
    table.create_tag("third")
    table.rollback_to(1)
    append(table, rows_of([9]))
    overwrite(table, rows_of([10]))

    assert table.check().problems == ()


def test_a_bit_that_flipped_inside_a_page_is_found_by_its_checksum():
    value = 0x1122334455667788
    columns = pa.schema([("v", pa.int64())])
    table = create_table(columns=columns, options={"file.compression": "none"})
    table.append(pa.table({"v": [1, value, 2**62]}))
    path = a_data_file(table)
    raw = bytearray(table.store.storage.read(path))
    raw[raw.index(value.to_bytes(8, "little"))] ^= 1
    table.store.storage.put(path, bytes(raw))

    problem = only_problem(table.check())

    assert (problem.kind, problem.path) == (CORRUPT, path)
    assert "CRC" in problem.detail
    with pytest.raises(CorruptFile, match="CRC"):
        table.copy({"parquet.verify-page-checksums": "true"}).to_arrow()
