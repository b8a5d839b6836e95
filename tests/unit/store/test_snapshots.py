import pytest

from emberlake.errors import CorruptFile, SnapshotNotFound
from emberlake.io import MemoryStorage
from emberlake.spec.layout import TableLayout
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.snapshots import SnapshotStore
from remote_storage import RemoteStorage


def a_snapshot(snapshot_id: int, time_millis: int | None = None) -> Snapshot:
    return Snapshot(
        id=snapshot_id,
        schema_id=0,
        base_manifest_list="base",
        delta_manifest_list="delta",
        commit_user="me",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=snapshot_id * 100 if time_millis is None else time_millis,
        total_record_count=1,
        delta_record_count=1,
    )


@pytest.fixture(params=[MemoryStorage, RemoteStorage])
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    return request.param()


@pytest.fixture
def store(storage: MemoryStorage) -> SnapshotStore:
    return SnapshotStore(storage, TableLayout("t"))


def publish(store: SnapshotStore, *ids: int) -> None:
    for snapshot_id in ids:
        assert store.publish(a_snapshot(snapshot_id))


def test_a_published_snapshot_is_loaded(store: SnapshotStore) -> None:
    publish(store, 1)

    assert store.load(1) == a_snapshot(1)
    assert store.latest() == a_snapshot(1)


def test_an_id_is_published_once(store: SnapshotStore) -> None:
    publish(store, 1)

    assert store.publish(a_snapshot(1, time_millis=7)) is False
    assert store.load(1) == a_snapshot(1)


def test_a_table_without_commits_has_no_snapshot(store: SnapshotStore) -> None:
    assert store.latest() is None
    assert store.latest_id() is None
    assert store.earliest_id() is None
    assert store.at_or_before(0) is None
    assert list(store.iter_back(3)) == []


def test_a_missing_snapshot_is_named_with_what_there_is(store: SnapshotStore) -> None:
    publish(store, 3, 4)

    with pytest.raises(SnapshotNotFound, match=r"snapshot 1 .*t/snapshot/snapshot-1.* 3 to 4"):
        store.load(1)


def test_a_broken_snapshot_is_named(store: SnapshotStore, storage: MemoryStorage) -> None:
    storage.put("t/snapshot/snapshot-1", b'{"id": 1}')

    with pytest.raises(CorruptFile, match="t/snapshot/snapshot-1"):
        store.load(1)


@pytest.mark.parametrize("hint", [b"3", b"1", b"9", b"", b"x", b"0", b"-1", None])
def test_the_latest_id_is_right_whatever_the_hint_says(
    store: SnapshotStore, storage: MemoryStorage, hint: bytes | None
) -> None:
    publish(store, 1, 2, 3)
    if hint is not None:
        storage.put("t/snapshot/LATEST", hint)

    assert store.latest_id() == 3


@pytest.mark.parametrize("hint", [b"2", b"1", b"9", b"", None])
def test_the_earliest_id_is_right_whatever_the_hint_says(
    store: SnapshotStore, storage: MemoryStorage, hint: bytes | None
) -> None:
    publish(store, 2, 3)
    if hint is not None:
        storage.put("t/snapshot/EARLIEST", hint)

    assert store.earliest_id() == 2


def test_hints_are_plain_digits(store: SnapshotStore, storage: MemoryStorage) -> None:
    store.write_latest_hint(12)
    store.write_earliest_hint(3)

    assert storage.read("t/snapshot/LATEST") == b"12"
    assert storage.read("t/snapshot/EARLIEST") == b"3"


def test_a_right_hint_saves_the_listing() -> None:
    storage = MemoryStorage()
    store = SnapshotStore(storage, TableLayout("t"))
    publish(store, 1, 2)
    store.write_latest_hint(2)
    storage.list = None  # type: ignore[assignment,method-assign]

    assert store.latest_id() == 2


def test_going_back_stops_at_the_first_gap(store: SnapshotStore) -> None:
    publish(store, 1, 3, 4, 5)

    assert [s.id for s in store.iter_back(5)] == [5, 4, 3]


@pytest.mark.parametrize(
    ("time_millis", "expected"),
    [(99, None), (100, 1), (150, 1), (200, 2), (599, 5), (600, 6), (9999, 6)],
)
def test_the_snapshot_of_a_time_is_the_newest_not_after_it(
    store: SnapshotStore, time_millis: int, expected: int | None
) -> None:
    publish(store, 1, 2, 5, 6)

    found = store.at_or_before(time_millis)

    assert (found and found.id) == expected


def test_of_snapshots_of_one_time_the_newest_counts(store: SnapshotStore) -> None:
    for snapshot_id in (1, 2, 3):
        store.publish(a_snapshot(snapshot_id, time_millis=100))

    found = store.at_or_before(100)

    assert found is not None
    assert found.id == 3


def test_snapshots_that_expire_during_a_search_are_skipped(
    store: SnapshotStore, storage: MemoryStorage
) -> None:
    publish(store, 1, 2, 3, 4, 5)
    ids = store.list_ids()
    for snapshot_id in (1, 2, 3):
        store.delete(snapshot_id)
    store.list_ids = lambda: ids  # type: ignore[method-assign]

    assert store.at_or_before(350) is None
    found = store.at_or_before(450)
    assert found is not None
    assert found.id == 4


def test_other_files_in_the_folder_are_no_snapshots(
    store: SnapshotStore, storage: MemoryStorage
) -> None:
    publish(store, 1)
    storage.put("t/snapshot/.snapshot-2.x.tmp", b"")
    storage.put("t/snapshot/LATEST", b"")

    assert store.list_ids() == (1,)


# --- where requests take long ---------------------------------------------------------------------


@pytest.fixture
def remote() -> RemoteStorage:
    return RemoteStorage()


def test_the_latest_is_found_by_one_listing_and_read_once(remote: RemoteStorage) -> None:
    publish(SnapshotStore(remote, TableLayout("t")), 1, 2)
    remote.put("t/snapshot/LATEST", b"1")

    first = SnapshotStore(remote, TableLayout("t")).latest()
    second = SnapshotStore(remote, TableLayout("t")).latest()

    assert first == second == a_snapshot(2)
    assert remote.calls == ["list t/snapshot", "read t/snapshot/snapshot-2", "list t/snapshot"]


def test_a_snapshot_that_was_replaced_is_read_again(remote: RemoteStorage) -> None:
    store = SnapshotStore(remote, TableLayout("t"))
    publish(store, 1)
    assert store.latest() == a_snapshot(1)

    remote.put("t/snapshot/snapshot-1", a_snapshot(1, time_millis=7).encode())

    assert store.latest() == a_snapshot(1, time_millis=7)
    assert [*store.find_each([1, 2])] == [a_snapshot(1, time_millis=7), None]


def test_one_that_is_replaced_while_it_is_read_is_not_taken_for_the_listed_one() -> None:
    old, new = a_snapshot(1), a_snapshot(1, time_millis=7)
    replacing = [new]

    def replace_it(path: str) -> None:
        if replacing:
            remote.storage.put(path, replacing.pop().encode())

    remote = RemoteStorage(before_read=replace_it)
    store = SnapshotStore(remote, TableLayout("t"))
    publish(store, 1)

    assert store.latest() == new
    remote.storage.put("t/snapshot/snapshot-1", old.encode())
    assert store.latest() == old


def test_with_more_snapshots_than_one_request_lists_the_hints_count(remote: RemoteStorage) -> None:
    store = SnapshotStore(remote, TableLayout("t"))
    publish(store, *range(1, 1002))
    store.write_latest_hint(1001)
    store.write_earliest_hint(1)

    assert store.latest_id() == 1001
    assert store.earliest_id() == 1
    store.write_latest_hint(900)
    assert store.latest_id() == 1001
    assert store.latest() == a_snapshot(1001)


def test_a_replaced_snapshot_is_read_again_among_many(remote: RemoteStorage) -> None:
    store = SnapshotStore(remote, TableLayout("t"))
    publish(store, *range(1, 1002))
    store.write_latest_hint(1001)
    store.list_ids()
    assert store.latest() == a_snapshot(1001)

    remote.put("t/snapshot/snapshot-1001", a_snapshot(1001, time_millis=7).encode())

    assert store.latest() == a_snapshot(1001, time_millis=7)


def test_claiming_an_id_returns_whose_it_is(store: SnapshotStore) -> None:
    ours, theirs = a_snapshot(1), a_snapshot(1, time_millis=7)

    assert store.claim(ours) == ours
    assert store.claim(theirs) == ours


def test_what_was_claimed_is_known(remote: RemoteStorage) -> None:
    store = SnapshotStore(remote, TableLayout("t"))
    store.claim(a_snapshot(1))

    assert store.last_latest() == a_snapshot(1)
    assert store.latest() == a_snapshot(1)
    assert remote.calls == ["list t/snapshot"]
