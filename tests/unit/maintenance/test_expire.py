"""Expiring snapshots: which go, which files go with them, and what is never touched."""

from contextlib import suppress
from datetime import UTC, datetime

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
    rows_of,
    upsert,
)
from emberlake.errors import InvalidInput, InvalidState, Unsupported
from emberlake.io import MemoryStorage
from emberlake.maintenance.expire import ExpireResult, Retention, first_to_leave, first_to_retain
from emberlake.store.consumers import ConsumerStore
from table_reads import (
    check_whole,
    data_files,
    files_under,
    manifest_files,
    read,
    read_ids,
    read_rows,
    referenced_manifests,
)
from watched_storage import WatchedStorage

HOUR_MS = 3_600_000


def a_table(overwrites=4, **options):
    """Snapshot n has the row n alone; every one but the first deletes the file before it."""
    table = create_table(options=options)
    for number in range(1, overwrites + 1):
        overwrite(table, rows_of([number]))
    return table


def at(table, snapshot_id):
    return read_ids(table.copy({"scan.snapshot-id": snapshot_id}))


# --- which snapshots ------------------------------------------------------------------------------


def retention(at_least=1, at_most=100, older_than_ms=0, limit=100):
    return Retention(at_least=at_least, at_most=at_most, older_than_ms=older_than_ms, limit=limit)


def first(rule, *, ids=range(1, 11), consumed_up_to=None):
    """Snapshot n was committed at time n."""
    ids = list(ids)
    due_end = first_to_retain(ids, rule, lambda n: n if n in ids else None, consumed_up_to)
    return first_to_leave(ids, due_end, rule.limit)


def test_young_snapshots_stay():
    assert first(retention(older_than_ms=0)) == 1


def test_a_snapshot_is_as_old_as_the_one_that_replaced_it():
    # 4 is replaced by 5 at time 5, which is not before 5.
    assert first(retention(older_than_ms=5)) == 4
    assert first(retention(older_than_ms=6)) == 5


def test_old_snapshots_stay_while_there_are_few():
    assert first(retention(at_least=3, older_than_ms=99)) == 8
    assert first(retention(at_least=20, older_than_ms=99)) == 1


def test_too_many_snapshots_go_however_young():
    assert first(retention(at_most=4)) == 7


def test_the_limit_bounds_one_run():
    assert first(retention(at_most=1, limit=3)) == 4
    assert first(retention(at_most=1, limit=0)) == 1


def test_what_a_consumer_has_yet_to_read_stays():
    assert first(retention(at_most=1), consumed_up_to=4) == 4
    assert first(retention(at_most=1), consumed_up_to=99) == 10


def test_a_gap_is_no_snapshot_to_retain():
    assert first(retention(at_most=1, limit=3), ids=[1, 2, 7, 8]) == 7


@pytest.mark.parametrize(
    "wrong", [{"at_least": 0}, {"at_least": 5, "at_most": 4}, {"limit": -1}], ids=str
)
def test_a_retention_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidInput):
        retention(**wrong)


def test_the_defaults_are_the_options_of_the_table():
    table = a_table(5, **{"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"})

    assert table.expire_snapshots().snapshots == (1, 2)


def test_without_options_ten_snapshots_and_an_hour_stay():
    world = FakeEnv()
    table = create_table(env=world.env())
    for number in range(12):
        append(table, rows_of([number]))

    assert table.expire_snapshots().snapshots == ()
    world.time_ms += HOUR_MS + 1
    assert table.expire_snapshots().snapshots == (1, 2)


def test_a_run_that_reaches_its_limit_says_how_many_more_are_due():
    table = a_table(7)

    runs = [table.expire_snapshots(retain_max=1, retain_min=1, max_deletes=4) for _ in range(3)]

    assert [(run.snapshots, run.remaining) for run in runs] == [
        ((1, 2, 3, 4), 2),
        ((5, 6), 0),
        ((), 0),
    ]


def test_a_run_that_may_delete_nothing_says_what_is_due():
    table = a_table(4)

    result = table.expire_snapshots(retain_max=1, retain_min=1, max_deletes=0)

    assert (result.snapshots, result.remaining) == ((), 3)


def test_the_times_of_many_snapshots_are_read_at_once():
    world = FakeEnv()
    table = create_table(env=world.env())
    for number in range(150):
        append(table, rows_of([number]))
    world.time_ms += 2 * HOUR_MS

    result = table.expire_snapshots(dry_run=True)

    assert (len(result.snapshots), result.remaining) == (50, 90)


def test_a_result_is_short_however_many_snapshots_went():
    many = ExpireResult(snapshots=tuple(range(1, 4991)), metadata_files=9, bytes=5, remaining=7)

    assert repr(many) == (
        "ExpireResult(snapshots=4990 (1 to 4990), data_files=0, metadata_files=9, bytes=5, "
        "remaining=7, dry_run=False)"
    )
    assert repr(ExpireResult()).startswith("ExpireResult(snapshots=0, ")


def test_older_than_is_a_moment_or_milliseconds():
    world = FakeEnv()
    table = create_table(env=world.env())
    for number in range(4):
        append(table, rows_of([number]))
        world.time_ms += 1000
    moment = datetime.fromtimestamp(table.snapshot_manager().load(3).time_millis / 1000, tz=UTC)
    millis = table.snapshot_manager().load(3).time_millis

    by_moment = table.expire_snapshots(older_than=moment, retain_min=1, dry_run=True)
    by_millis = table.expire_snapshots(older_than=millis, retain_min=1, dry_run=True)

    assert by_moment == by_millis
    assert by_moment.snapshots == (1,)


def test_a_table_without_snapshots_has_nothing_to_expire():
    assert create_table().expire_snapshots(retain_max=1, retain_min=1).snapshots == ()


# --- which files ----------------------------------------------------------------------------------


def test_files_that_only_expired_snapshots_need_are_gone():
    table = a_table(4)

    result = table.expire_snapshots(retain_max=2, retain_min=1)

    assert result.snapshots == (1, 2)
    assert result.data_files == 2
    assert table.snapshot_manager().list_ids() == (3, 4)
    assert at(table, 3) == [3]
    assert at(table, 4) == [4]
    assert len(data_files(table)) == 2
    assert manifest_files(table) == referenced_manifests(table)
    assert table.store.storage.read(table.store.layout.earliest_hint) == b"3"
    check_whole(table)


def test_files_that_later_snapshots_have_stay():
    table = create_table()
    for number in range(1, 6):
        append(table, rows_of([number]))

    result = table.expire_snapshots(retain_max=1, retain_min=1)

    assert result.snapshots == (1, 2, 3, 4)
    assert result.data_files == 0
    assert read_ids(table) == [1, 2, 3, 4, 5]
    check_whole(table)


def test_the_result_has_bytes_and_a_dry_run_deletes_nothing():
    table = a_table(4)
    before = files_under(table.store.storage, "")

    planned = table.expire_snapshots(retain_max=1, retain_min=1, dry_run=True)
    assert files_under(table.store.storage, "") == before
    done = table.expire_snapshots(retain_max=1, retain_min=1)

    assert planned.dry_run
    assert not done.dry_run
    assert (planned.snapshots, planned.bytes) == (done.snapshots, done.bytes)
    gone = before - files_under(table.store.storage, "")
    assert len(gone) == done.data_files + done.metadata_files
    assert done.bytes > 0


def test_progress_is_reported_for_every_file():
    table = a_table(4)
    calls = []

    done = table.expire_snapshots(
        retain_max=1, retain_min=1, progress=lambda *args: calls.append(args)
    )

    total = done.data_files + done.metadata_files
    assert calls == [(number, total) for number in range(1, total + 1)]


def test_a_tag_keeps_its_files_and_no_others():
    table = a_table(5)
    table.create_tag("v2", snapshot_id=2)

    result = table.expire_snapshots(retain_max=1, retain_min=1)

    assert result.snapshots == (1, 2, 3, 4)
    assert result.data_files == 3
    assert read(table, **{"scan.tag-name": "v2"}) == rows_of([2])
    assert read_ids(table) == [5]


def test_a_tag_of_an_earlier_time_keeps_files_for_good():
    table = a_table(3)
    table.create_tag("v1", snapshot_id=1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    overwrite(table, rows_of([9]))

    table.expire_snapshots(retain_max=1, retain_min=1)

    assert read(table, **{"scan.tag-name": "v1"}) == rows_of([1])


def test_a_branch_keeps_its_files():
    table = a_table(3)
    table.create_tag("v2", snapshot_id=2)
    table.create_branch("b", "v2")
    table.delete_tag("v2")
    overwrite(table, rows_of([9]))
    branch = open_catalog(table.store.storage).get_table(f"{NAME}$branch_b")
    branch.delete_tag("v2")

    table.expire_snapshots(retain_max=1, retain_min=1)

    assert read_ids(branch) == [2]
    check_whole(branch)


def test_a_branch_that_expires_leaves_the_table_its_files():
    table = a_table(2)
    table.create_tag("v2", snapshot_id=2)
    table.create_branch("b", "v2")
    branch = open_catalog(table.store.storage).get_table(f"{NAME}$branch_b")
    branch.delete_tag("v2")
    overwrite(branch, rows_of([7]))

    result = branch.expire_snapshots(retain_max=1, retain_min=1)

    assert result.snapshots == (2,)
    assert read_ids(branch) == [7]
    assert at(table, 2) == [2]
    assert at(table, 1) == [1]


def test_a_consumer_keeps_what_it_has_yet_to_read():
    table = a_table(5)
    ConsumerStore(table.store.storage, table.store.layout).save("c", 3)

    assert table.expire_snapshots(retain_max=1, retain_min=1).snapshots == (1, 2)


def test_a_file_that_came_back_is_not_deleted():
    # Another engine may restore an old state as a new snapshot.
    table = a_table(2)
    old = table.snapshot_manager().load(1)
    restored = old.__class__(
        **{
            name: getattr(old, name)
            for name in old.__dataclass_fields__
            if name not in ("id", "commit_identifier")
        },
        id=3,
        commit_identifier=99,
    )
    table.store.snapshots.publish(restored)

    table.expire_snapshots(retain_max=1, retain_min=1)

    assert table.snapshot_manager().list_ids() == (3,)
    assert read_ids(table) == [1]


def test_compacted_key_tables_lose_the_files_of_before():
    table = create_key_table(NUMBERED, **{"num-sorted-run.compaction-trigger": "2"})
    for turn in range(4):
        upsert(table, numbered(range(5), value=f"t{turn}-"))
    table.compact(full=True)
    before = len(data_files(table))

    result = table.expire_snapshots(retain_max=1, retain_min=1)

    assert result.data_files == before - 1
    assert len(data_files(table)) == 1
    assert [row["v"] for row in read_rows(table)] == [f"t3-{n}" for n in range(5)]


def test_deletion_vectors_of_before_are_gone_and_those_of_now_stay():
    table = create_key_table(
        NUMBERED, **{"deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "2"}
    )
    for turn in range(4):
        upsert(table, numbered(range(turn, 20, 2 + turn), value=f"t{turn}-"))
    expected = read_rows(table)
    folder = table.store.layout.index_folder
    had = files_under(table.store.storage, folder)

    table.expire_snapshots(retain_max=1, retain_min=1)

    kept = files_under(table.store.storage, folder)
    latest = table.latest_snapshot()
    named = table.store.manifests.read_index(latest.index_manifest)
    assert kept == {table.store.layout.index(entry.index_file.file_name) for entry in named}
    assert kept < had
    assert read_rows(table) == expected


@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_changelog_files_go_with_their_snapshot(producer):
    table = create_key_table(NUMBERED, **{"changelog-producer": producer})
    for turn in range(3):
        upsert(table, numbered([turn]))
    changelogs = {path for path in data_files(table) if "changelog-" in path}

    table.expire_snapshots(retain_max=1, retain_min=1)
    removed = table.remove_orphan_files(older_than=table.store.env.now_ms())

    assert len(changelogs) == 3
    assert len({path for path in data_files(table) if "changelog-" in path}) == 1
    assert removed.paths == ()
    assert manifest_files(table) >= referenced_manifests(table)
    assert table.check().ok


def test_a_tag_does_not_keep_the_changelog_of_its_snapshot():
    table = create_key_table(NUMBERED, **{"changelog-producer": "input"})
    for turn in range(3):
        upsert(table, numbered([turn]))
    table.create_tag("v1", snapshot_id=1)
    table.create_branch("b", "v1")

    table.expire_snapshots(retain_max=1, retain_min=1)

    # The branch has the snapshot itself, and so its changelog.
    assert len({path for path in data_files(table) if "changelog-" in path}) == 2
    table.delete_branch("b")
    upsert(table, numbered([9]))
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.remove_orphan_files(older_than=table.store.env.now_ms())
    assert read_rows(table.copy({"scan.tag-name": "v1"})) == numbered([0])
    assert table.check().problems == ()


def test_writing_and_expiring_go_on():
    table = create_table(options={"manifest.merge-min-count": "2"}, partition_keys=["day"])
    for number in range(12):
        append(table, rows_of([number], f"d{number % 3}"))
        table.expire_snapshots(retain_max=2, retain_min=1)
        check_whole(table)

    assert read_ids(table) == list(range(12))
    assert manifest_files(table) == referenced_manifests(table)


# --- when it cannot be done -----------------------------------------------------------------------


def test_changelogs_that_outlive_snapshots_are_refused():
    table = a_table(3, **{"changelog.num-retained.min": "20"})

    with pytest.raises(Unsupported, match=r"changelog\.num-retained\.min"):
        table.expire_snapshots(retain_max=1, retain_min=1)


def test_nothing_is_deleted_when_the_needed_files_are_unknown():
    table = a_table(3)
    table.create_tag("v1", snapshot_id=1)
    store = table.store
    store.storage.delete(store.layout.manifest(store.tags.load("v1").delta_manifest_list))
    before = files_under(store.storage, "")

    with pytest.raises(InvalidState, match="nothing was deleted"):
        open_table(_fresh(store.storage)).expire_snapshots(retain_max=1, retain_min=1)

    assert files_under(store.storage, "") == before


OTHERS = {
    "a commit": lambda table: overwrite(table, rows_of([99])),
    "an expiration": lambda table: table.expire_snapshots(retain_max=2, retain_min=1),
    "a removal of orphans": lambda table: _or_refuse(
        lambda: table.remove_orphan_files(older_than=table.store.env.now_ms())
    ),
    "a tag": lambda table: table.create_tag("t", snapshot_id=5),
    "a branch": lambda table: table.create_branch("b", "v3", ignore_if_exists=True),
}


def _or_refuse(act):
    with suppress(InvalidState):
        act()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.slow), 6], ids=["every call", "every sixth call"]
)
@pytest.mark.parametrize("name", OTHERS)
def test_whatever_others_do_in_the_middle_what_is_retained_stays_whole(name, step):
    storage = MemoryStorage(FakeEnv(time_ms=1).env())
    table = create_table(storage)
    for number in range(1, 7):
        overwrite(table, rows_of([number]))
    table.create_tag("v3", snapshot_id=3)
    template = _contents(storage)

    at_call, is_over = 0, False
    while not is_over:
        at_call += step
        storage = MemoryStorage(FakeEnv(time_ms=1).env())
        for path, data in template.items():
            storage.put(path, data)
        watched = WatchedStorage(storage)
        table = open_table(watched)
        watched.calls.clear()
        watched.watch = _once_at(at_call, lambda: OTHERS[name](open_table(storage)))  # noqa: B023
        _or_refuse(lambda: table.expire_snapshots(retain_max=2, retain_min=1))  # noqa: B023
        is_over = len(watched.calls) < at_call

        table = open_table(storage)
        check_whole_from(table, 5)
        assert read(table, **{"scan.tag-name": "v3"}) == rows_of([3])
        table.expire_snapshots(retain_max=2, retain_min=1)
        assert read_ids(table) in ([6], [99])
        check_whole(table)


def _once_at(number, act):
    def watch(call):
        if call.number == number and not call.is_done:
            act()

    return watch


def check_whole_from(table, snapshot_id):
    """The snapshots from there on can be read, and the tags."""
    for number in table.snapshot_manager().list_ids():
        if number >= snapshot_id:
            at(table, number)
    for tag in table.list_tags():
        read(table, **{"scan.tag-name": tag})


def _contents(storage):
    return {path: storage.read(path) for path in files_under(storage, "")}


def test_a_tag_that_comes_before_anything_is_deleted_stops_it():
    storage = MemoryStorage()
    table = create_table(storage)
    for number in range(1, 5):
        overwrite(table, rows_of([number]))
    watched = WatchedStorage(storage)

    def tag(call):
        # Manifests are read when everybody who needs files is known.
        is_manifest = "/manifest-" in call.path and "manifest-list" not in call.path
        if is_manifest and not table.list_tags():
            table.create_tag("late", snapshot_id=1)

    watched.watch = tag
    before = files_under(storage, "")
    with pytest.raises(InvalidState, match="tag-late is new"):
        open_table(watched).expire_snapshots(retain_max=2, retain_min=1)

    assert files_under(storage, "") - before == {table.store.layout.tag("late")}
    assert read(table, **{"scan.tag-name": "late"}) == rows_of([1])


def _fresh(storage):
    """The same files in a storage of which nothing is remembered."""
    copy = MemoryStorage()
    for path in files_under(storage, ""):
        copy.put(path, storage.read(path))
    return copy


def test_snapshots_that_were_cut_off_while_expiring_can_be_expired():
    table = a_table(4)
    store = table.store
    snapshot = store.snapshots.load(1)
    storage = _fresh(store.storage)
    for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
        storage.delete(store.layout.manifest(name))
    table = open_table(storage)

    assert table.expire_snapshots(retain_max=1, retain_min=1).snapshots == (1, 2, 3)
    assert read_ids(table) == [4]
