import pickle
import weakref
from dataclasses import replace

import pytest

from emberlake.base.byte_cache import ByteCache
from emberlake.errors import CorruptFile, SchemaNotFound
from emberlake.io import MemoryStorage
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import TableSchema
from emberlake.store import metadata_cache
from emberlake.store.schemas import SchemaStore
from emberlake.types import DataField
from emberlake.types.data_types import AtomicType

FIELDS = (DataField(0, "id", AtomicType("INT")),)


def a_schema(schema_id: int) -> TableSchema:
    return TableSchema(id=schema_id, fields=FIELDS, highest_field_id=0)


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def store(storage: MemoryStorage) -> SchemaStore:
    return SchemaStore(storage, TableLayout("t"))


def test_a_created_schema_is_loaded(store: SchemaStore) -> None:
    assert store.create(a_schema(0)) is True

    assert store.load(0) == a_schema(0)


def test_a_schema_is_never_replaced(store: SchemaStore) -> None:
    store.create(a_schema(0))

    assert store.create(TableSchema(id=0, fields=(), highest_field_id=-1)) is False
    assert store.load(0) == a_schema(0)


def test_the_latest_schema_has_the_greatest_id(store: SchemaStore, storage: MemoryStorage) -> None:
    for schema_id in (0, 2, 10, 9):
        store.create(a_schema(schema_id))
    storage.put("t/schema/.schema-11.x.tmp", b"")
    storage.put("t/schema/schema-x", b"")

    assert store.list_ids() == (0, 2, 9, 10)
    latest = store.latest()
    assert latest is not None
    assert latest.id == 10


def test_a_folder_without_schemas_has_no_latest(store: SchemaStore) -> None:
    assert store.latest() is None


def test_a_missing_schema_is_named(store: SchemaStore) -> None:
    with pytest.raises(SchemaNotFound, match=r"schema 7 .*t/schema/schema-7"):
        store.load(7)


def test_a_broken_schema_is_named(store: SchemaStore, storage: MemoryStorage) -> None:
    storage.put("t/schema/schema-0", b"{")

    with pytest.raises(CorruptFile, match="t/schema/schema-0"):
        store.load(0)


def test_a_loaded_schema_is_remembered(store: SchemaStore, storage: MemoryStorage) -> None:
    store.create(a_schema(0))
    loaded = store.load(0)
    storage.delete("t/schema/schema-0")

    assert store.load(0) is loaded


def test_what_is_remembered_of_schemas_is_bounded(
    store: SchemaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        store.create(a_schema(number))
    room = 50 * len(a_schema(0).encode())
    monkeypatch.setattr(metadata_cache, "CACHE", ByteCache(lambda: room))
    loaded = [weakref.ref(store.load(number)) for number in range(100)]

    assert 0 < metadata_cache.CACHE.held_bytes <= room
    assert 0 < sum(schema() is not None for schema in loaded) < 50


def test_a_table_that_was_created_again_is_not_mistaken_for_the_old_one(
    storage: MemoryStorage,
) -> None:
    for comment in ("old", "new"):
        store = SchemaStore(storage, TableLayout("t"))
        storage.delete_folder("t")
        store.create(replace(a_schema(0), comment=comment))
        assert store.load(0).comment == comment


def test_a_branch_has_schemas_of_its_own(storage: MemoryStorage) -> None:
    SchemaStore(storage, TableLayout("t", "dev")).create(a_schema(3))

    assert SchemaStore(storage, TableLayout("t")).latest() is None
    assert storage.exists("t/branch/branch-dev/schema/schema-3")


def test_a_store_survives_pickling(store: SchemaStore) -> None:
    store.create(a_schema(0))

    assert pickle.loads(pickle.dumps(store)).load(0) == a_schema(0)
