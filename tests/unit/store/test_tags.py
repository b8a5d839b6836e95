import json

import pytest

from emberlake.errors import InvalidIdentifier, TagAlreadyExists, TagNotFound
from emberlake.io import MemoryStorage
from emberlake.spec.layout import TableLayout
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.store.tags import TagStore


def a_snapshot(snapshot_id: int) -> Snapshot:
    return Snapshot(
        id=snapshot_id,
        schema_id=0,
        base_manifest_list="base",
        delta_manifest_list="delta",
        commit_user="me",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=1,
        total_record_count=1,
        delta_record_count=1,
    )


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def store(storage: MemoryStorage) -> TagStore:
    return TagStore(storage, TableLayout("t"))


def test_a_created_tag_is_loaded(store: TagStore, storage: MemoryStorage) -> None:
    store.create("v1", a_snapshot(3))

    assert store.load("v1") == a_snapshot(3)
    assert store.exists("v1")
    assert json.loads(storage.read("t/tag/tag-v1"))["id"] == 3


def test_a_tag_is_not_replaced(store: TagStore) -> None:
    store.create("v1", a_snapshot(3))

    with pytest.raises(TagAlreadyExists, match="v1"):
        store.create("v1", a_snapshot(4))
    store.create("v1", a_snapshot(4), ignore_if_exists=True)

    assert store.load("v1").id == 3


def test_a_missing_tag_is_named(store: TagStore) -> None:
    with pytest.raises(TagNotFound, match="'v1'"):
        store.load("v1")
    with pytest.raises(TagNotFound, match="'v1'"):
        store.rename("v1", "v2")


def test_a_deleted_tag_is_gone(store: TagStore) -> None:
    store.create("v1", a_snapshot(3))

    store.delete("v1")
    store.delete("v1")

    assert store.list() == {}


def test_a_renamed_tag_keeps_what_other_engines_wrote(
    store: TagStore, storage: MemoryStorage
) -> None:
    value = {**a_snapshot(3).to_json(), "tagTimeRetained": 129600.0}
    storage.put("t/tag/tag-v1", json.dumps(value).encode())

    store.rename("v1", "v2")

    assert json.loads(storage.read("t/tag/tag-v2")) == value
    assert list(store.list()) == ["v2"]


def test_a_tag_is_not_renamed_onto_another(store: TagStore) -> None:
    store.create("v1", a_snapshot(1))
    store.create("v2", a_snapshot(2))

    with pytest.raises(TagAlreadyExists, match="v2"):
        store.rename("v1", "v2")

    assert store.load("v1").id == 1


def test_tags_are_listed_in_the_order_of_their_snapshots(store: TagStore) -> None:
    for name, snapshot_id in (("b", 2), ("a", 2), ("z", 1)):
        store.create(name, a_snapshot(snapshot_id))

    assert [(name, s.id) for name, s in store.list().items()] == [("z", 1), ("a", 2), ("b", 2)]


@pytest.mark.parametrize("name", ["", "  ", "a/b"])
def test_names_that_no_engine_can_use_are_refused(store: TagStore, name: str) -> None:
    with pytest.raises(InvalidIdentifier, match="tag"):
        store.create(name, a_snapshot(1))
