"""Removing orphans: what nothing refers to goes, and nothing else ever does."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders import (
    NAME,
    NUMBERED,
    FakeEnv,
    append,
    create_key_table,
    create_table,
    numbered,
    open_catalog,
    open_table,
    overwrite,
    prepare,
    rows_of,
    upsert,
)
from emberlake import CatalogFactory, Schema
from emberlake.errors import (
    CredentialsExpired,
    EmberlakeError,
    EmberlakeWarning,
    InvalidInput,
    InvalidOption,
    InvalidState,
    StorageError,
    Unsupported,
)
from emberlake.io import LocalStorage, MemoryStorage, Upload
from emberlake.maintenance.orphans import OrphanResult, remove_orphan_files
from emberlake.spark.job_files import open_job
from table_reads import check_whole, files_under, read, read_ids
from watched_storage import WatchedStorage

DAY_MS = 86_400_000


class World:
    """A table in a world where a day can pass."""

    def __init__(self, **arguments) -> None:
        self.fake = FakeEnv()
        self.storage = MemoryStorage(self.fake.env())
        self.table = create_table(self.storage, env=self.fake.env(), **arguments)

    def pass_days(self, days: float) -> None:
        self.fake.time_ms += int(days * DAY_MS)

    def files(self) -> set[str]:
        return files_under(self.storage, self.table.table_path)


def a_world(**arguments) -> World:
    world = World(**arguments)
    for number in (1, 2):
        append(world.table, rows_of([number]))
    return world


def test_a_healthy_table_has_no_orphans():
    world = a_world(partition_keys=["day"])
    overwrite(world.table, rows_of([3]))
    world.table.create_tag("v1", snapshot_id=1)
    world.pass_days(2)
    before = world.files()

    result = world.table.remove_orphan_files()

    assert result.paths == ()
    assert world.files() == before


def test_files_of_a_write_that_was_never_committed_go():
    world = a_world(partition_keys=["day"])
    before = world.files()
    prepare(world.table, rows_of([9], "tue"))
    lost = world.files() - before
    world.pass_days(2)

    result = world.table.remove_orphan_files()

    assert set(result.paths) == lost
    assert result.bytes > 0
    assert world.files() == before
    check_whole(world.table)


def test_files_that_may_be_being_written_stay():
    world = a_world()
    prepare(world.table, rows_of([9]))
    world.pass_days(0.9)
    before = world.files()

    assert world.table.remove_orphan_files().paths == ()
    assert world.files() == before


def test_older_than_is_a_moment_or_milliseconds():
    world = a_world()
    prepare(world.table, rows_of([9]))
    written = world.fake.time_ms
    world.pass_days(0.5)
    moment = datetime.fromtimestamp((written + 1) / 1000, tz=UTC)

    assert world.table.remove_orphan_files(older_than=written, dry_run=True).paths == ()
    assert world.table.remove_orphan_files(older_than=moment, dry_run=True).paths
    assert world.table.remove_orphan_files(older_than=written + 1).paths


def test_the_future_is_refused():
    world = a_world()

    with pytest.raises(InvalidInput, match="future"):
        world.table.remove_orphan_files(older_than=world.fake.time_ms + 1)


def test_a_dry_run_deletes_nothing_and_progress_is_reported_for_every_file():
    world = a_world()
    prepare(world.table, rows_of([9]))
    world.pass_days(2)
    before = world.files()
    calls = []

    planned = world.table.remove_orphan_files(dry_run=True)
    assert world.files() == before
    done = world.table.remove_orphan_files(progress=lambda *args: calls.append(args))

    assert planned.paths == done.paths
    assert calls == [(n, len(done.paths)) for n in range(1, len(done.paths) + 1)]


def test_what_a_rollback_left_goes_and_what_a_tag_keeps_stays():
    world = a_world()
    overwrite(world.table, rows_of([3]))
    world.table.create_tag("v2", snapshot_id=2)
    world.table.rollback_to(2)
    world.pass_days(2)

    world.table.remove_orphan_files()

    assert read_ids(world.table) == [1, 2]
    assert read(world.table, **{"scan.tag-name": "v2"}) == rows_of([1, 2])
    check_whole(world.table)
    assert world.table.remove_orphan_files().paths == ()


def test_what_a_branch_refers_to_stays_until_the_branch_goes():
    world = a_world()
    world.table.create_tag("v1", snapshot_id=1)
    world.table.create_branch("b", "v1")
    branch = open_catalog(world.storage, world.fake.env()).get_table(f"{NAME}$branch_b")
    append(branch, rows_of([7]))
    world.pass_days(2)

    assert world.table.remove_orphan_files().paths == ()
    assert branch.remove_orphan_files().paths == ()
    assert read_ids(branch) == [1, 7]
    world.table.delete_branch("b")
    assert len(world.table.remove_orphan_files().paths) >= 3
    assert read_ids(world.table) == [1, 2]


def test_files_that_an_expired_changelog_keeps_stay():
    table = create_key_table(NUMBERED, **{"changelog-producer": "input"})
    for turn in range(3):
        upsert(table, numbered([turn]))
    store = table.store
    expired = store.snapshots.load(1)
    store.storage.put(f"{store.layout.changelog_folder}/changelog-1", expired.encode())
    store.snapshots.delete(1)
    before = files_under(store.storage, table.table_path)

    table.remove_orphan_files(older_than=store.env.now_ms())

    assert files_under(store.storage, table.table_path) == before


def test_what_lost_spark_jobs_left_goes():
    world = a_world()
    before = world.files()
    job = open_job(world.table.store, "j1")
    job.__enter__()
    prepare(world.table, rows_of([9]))
    world.pass_days(2)

    paths = world.table.remove_orphan_files().paths

    assert f"{world.table.table_path}/manifest/job-j1" in paths
    assert world.files() == before


def test_unfinished_files_go_and_the_tables_own_stay():
    world = a_world()
    layout = world.table.store.layout
    own = world.files()
    unfinished = {
        f"{folder}/.thing.01234567-89ab-cdef-0123-456789abcdef.tmp"
        for folder in (layout.snapshot_folder, layout.schema_folder, layout.tag_folder)
    }
    unfinished |= {f"{layout.snapshot_folder}/left-over"}
    marker = f"{layout.branch_folder}/.unfinished-b"
    unfinished |= {layout.for_branch("b").schema(0), layout.for_branch("b").snapshot(1)}
    for path in unfinished:
        world.storage.put(path, b"")
    world.storage.put(marker, b"unfinished 1")
    strangers = {
        f"{layout.root}/notes.txt",
        f"{layout.root}/bucket-0/x.managed.blob",
        f"{layout.root}/stuff/bucket-0/data.parquet",
        f"{layout.schema_folder}/readme",
        f"{layout.consumer_folder}/consumer-c",
    }
    for path in strangers:
        world.storage.put(path, b"")
    world.pass_days(2)

    assert set(world.table.remove_orphan_files().paths) == unfinished | {marker}
    assert list(world.storage.list(layout.branch_folder)) == []
    assert world.files() == own | strangers


def test_an_unfinished_branch_stays_while_somebody_may_be_at_it():
    world = a_world()
    layout = world.table.store.layout.for_branch("b")
    world.storage.put(layout.schema(0), b"")
    world.storage.put(layout.tag("v1"), b"")
    world.pass_days(2)
    world.storage.put(f"{layout.branch_folder}/.unfinished-b", b"unfinished 1")
    world.storage.put(f"{layout.branch_folder}/.unfinished-c", b"claimed 1")
    before = world.files()

    assert world.table.remove_orphan_files().paths == ()
    assert world.files() == before

    world.pass_days(2)
    assert world.table.remove_orphan_files(dry_run=True).paths == tuple(
        sorted(path for path in before if path.startswith(layout.branch_folder))
    )
    world.table.remove_orphan_files()
    assert list(world.storage.list(layout.branch_folder)) == []


def test_an_unfinished_branch_goes_before_its_marker():
    world = a_world()
    layout = world.table.store.layout.for_branch("b")
    marker = f"{layout.branch_folder}/.unfinished-b"
    world.storage.put(layout.schema(0), b"")
    world.storage.put(marker, b"unfinished 1")
    world.pass_days(2)
    watched = WatchedStorage(world.storage)
    seen = []
    watched.watch = lambda call: seen.append(world.table.list_branches())

    open_table(watched, world.fake.env()).remove_orphan_files()

    assert seen == [[]] * len(seen)
    assert not world.storage.exists(layout.metadata_root)


def test_files_of_buckets_are_found_by_the_depth_of_the_partitions():
    world = a_world(partition_keys=["day"])
    root = world.table.store.layout.root
    orphans = {f"{root}/day=mon/bucket-0/lost", f"{root}/day=x/bucket-postpone/lost"}
    strangers = {
        f"{root}/bucket-0/mine",
        f"{root}/day=mon/mine",
        f"{root}/day=mon/h=1/bucket-0/mine",
        f"{root}/day=mon/bucket-0/deeper/mine",
        f"{root}/day=mon/other/mine",
        f"{root}/manifest/deeper/mine",
    }
    for path in orphans | strangers:
        world.storage.put(path, b"")
    world.pass_days(2)

    assert set(world.table.remove_orphan_files().paths) == orphans


def test_nothing_is_deleted_when_a_snapshot_cannot_be_read():
    world = a_world()
    prepare(world.table, rows_of([9]))
    world.pass_days(2)
    layout = world.table.store.layout
    world.storage.put(layout.snapshot(1), b"{")
    before = world.files()

    with pytest.raises(Exception, match="snapshot-1"):
        world.table.remove_orphan_files()

    assert world.files() == before


@pytest.mark.parametrize("path", ["snapshot/snapshot-1", "tag/tag-v1"])
def test_a_snapshot_or_tag_that_vanishes_meanwhile_stops_it(path):
    world = a_world()
    world.table.create_tag("v1", snapshot_id=1)
    prepare(world.table, rows_of([9]))
    world.pass_days(2)
    watched = WatchedStorage(world.storage)
    table = open_table(watched, world.fake.env())
    vanishing = f"{table.table_path}/{path}"
    before = world.files() - {vanishing}

    def vanish(call):
        if call.path == vanishing and not call.is_done:
            world.storage.delete(vanishing)

    watched.watch = vanish
    with pytest.raises(InvalidState, match="nothing was deleted"):
        table.remove_orphan_files()

    assert world.files() == before


def test_a_storage_that_fails_while_it_is_read_stops_it():
    world = a_world()
    prepare(world.table, rows_of([9]))
    world.pass_days(2)
    watched = WatchedStorage(world.storage)
    table = open_table(watched, world.fake.env())
    before = world.files()

    def fail(call):
        if "manifest-list" in call.path and call.method == "read":
            raise StorageError("broken")

    watched.watch = fail
    with pytest.raises(StorageError):
        table.remove_orphan_files()

    assert world.files() == before


def test_folders_outside_of_the_table_are_refused():
    store = a_world().table.store
    schema = store.schema.with_options({"data-file.path-directory": "../elsewhere"})

    with pytest.raises(InvalidOption, match="out of the table"):
        remove_orphan_files(store.with_schema(schema))


def test_on_a_disk_the_same_is_found(tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    world = a_world(partition_keys=["day"])
    schema = Schema(world.table.fields, ["day"])
    catalog.create_table("db.t", schema)
    table = catalog.get_table("db.t")
    append(table, rows_of([1]))
    before = files_under(LocalStorage(), str(tmp_path))
    prepare(table, rows_of([2], "tue"))
    lost = files_under(LocalStorage(), str(tmp_path)) - before

    result = table.remove_orphan_files(older_than=table.store.env.now_ms())

    # Files that are as young as the clock's last tick may stay.
    assert set(result.paths) <= lost
    assert read_ids(table) == [1]


def test_a_result_is_short_however_many_files_went():
    many = OrphanResult(paths=tuple(f"t/bucket-0/data-{n}" for n in range(5000)), bytes=5)

    assert (
        repr(many)
        == "OrphanResult(paths=5000 (first: t/bucket-0/data-0), bytes=5, uploads=0, dry_run=False)"
    )
    assert repr(OrphanResult()) == "OrphanResult(paths=0, bytes=0, uploads=0, dry_run=False)"


class Uploading(MemoryStorage):
    """Has uploads, or an error instead of them."""

    def __init__(self, fake):
        super().__init__(fake.env())
        self.begun = []
        self.error = None
        self.asked = []

    def unfinished_uploads(self, path):
        self.asked.append(path)
        yield from self.begun
        if self.error is not None:
            raise self.error

    def end_uploads(self, uploads):
        self.begun = [upload for upload in self.begun if upload not in [*uploads]]


def a_world_with_uploads() -> World:
    world = a_world()
    storage = Uploading(world.fake)
    world.storage = storage
    world.table = create_table(storage, env=world.fake.env())
    root, now = world.table.table_path, world.fake.time_ms
    ages = {"old": DAY_MS + 1, "young": DAY_MS - 1}
    storage.begun = [
        Upload(f"{root}/bucket-0/{name}", "1", now - age) for name, age in ages.items()
    ]
    return world


def test_uploads_that_began_a_day_ago_are_ended():
    world = a_world_with_uploads()
    old, young = world.storage.begun

    preview = world.table.remove_orphan_files(dry_run=True)
    assert (preview.uploads, preview.upload_paths) == (1, (old.path,))
    assert world.storage.begun == [old, young]

    assert world.table.remove_orphan_files().upload_paths == (old.path,)
    assert world.storage.begun == [young]
    assert set(world.storage.asked) == {world.table.table_path}


def test_uploads_are_as_old_as_files_have_to_be():
    world = a_world_with_uploads()

    result = world.table.remove_orphan_files(older_than=world.fake.time_ms - 2 * DAY_MS)
    assert (result.uploads, len(world.storage.begun)) == (0, 2)

    assert world.table.remove_orphan_files(older_than=world.fake.time_ms).uploads == 2


@pytest.mark.parametrize(
    "error", [Unsupported("why"), StorageError("why", had_no_effect=True)], ids=type
)
def test_uploads_that_cannot_be_listed_leave_the_search_for_orphans_as_it_is(error: EmberlakeError):
    world = a_world_with_uploads()
    world.storage.error, world.storage.begun = error, []
    prepare(world.table, rows_of([9]))
    world.pass_days(2)

    with pytest.warns(EmberlakeWarning, match="were not searched for: why") as warned:
        result = world.table.remove_orphan_files()

    assert warned[0].filename == __file__
    assert (len(result.paths), result.uploads) == (1, 0)


def test_uploads_that_were_listed_before_a_refusal_are_ended():
    world = a_world_with_uploads()
    old, young = world.storage.begun
    world.storage.error = StorageError("no second page", had_no_effect=True)

    with pytest.warns(EmberlakeWarning, match="were listed only in part: no second page"):
        result = world.table.remove_orphan_files()

    assert result.upload_paths == (old.path,)
    assert world.storage.begun == [young]


@pytest.mark.parametrize(
    "error", [StorageError("why"), CredentialsExpired("why", had_no_effect=True)], ids=type
)
def test_a_failure_that_may_pass_is_an_error_and_nothing_is_deleted(error: EmberlakeError):
    world = a_world_with_uploads()
    world.storage.error = error
    prepare(world.table, rows_of([9]))
    world.pass_days(2)
    before = world.files()

    with pytest.raises(StorageError, match="why"):
        world.table.remove_orphan_files()

    assert world.files() == before
