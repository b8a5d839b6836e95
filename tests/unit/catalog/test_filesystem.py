"""What is particular to the catalog on a filesystem: folders, broken files, failing storage."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from emberlake.catalog import CatalogFactory, FileSystemCatalog
from emberlake.errors import (
    BranchNotFound,
    CommitConflict,
    CorruptFile,
    DatabaseNotEmpty,
    DatabaseNotFound,
    InvalidInput,
    InvalidOption,
    StorageError,
    TableAlreadyExists,
    Unsupported,
)
from emberlake.io import LocalStorage, MemoryStorage, StorageTraits
from emberlake.io.wrapped import WrappedStorage
from emberlake.spec.layout import TableLayout
from emberlake.spec.schema import Schema
from emberlake.spec.schema_change import SchemaChange
from emberlake.types import AtomicType, DataField

SCHEMA = Schema([DataField(0, "id", AtomicType("BIGINT"))])
LAYOUT = TableLayout("/w/db.db/t")


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def catalog(storage) -> FileSystemCatalog:
    made = FileSystemCatalog(storage, "/w")
    made.create_database("db")
    return made


# --- layout ---------------------------------------------------------------------------------------


def test_databases_and_tables_are_folders(catalog, storage):
    catalog.create_table("db.t", SCHEMA)

    assert [info.path for info in storage.list("/w")] == ["/w/db.db"]
    assert [info.path for info in storage.list("/w/db.db/t/schema")] == [LAYOUT.schema(0)]


def test_folders_that_are_no_databases_or_tables_are_not_listed(catalog, storage):
    storage.make_folder("/w/notes")
    storage.put("/w/file.db", b"")
    storage.make_folder("/w/db.db/no_schema")
    storage.put("/w/db.db/t/schema/schema-x", b"")
    storage.put("/w/db.db/.hidden/schema/schema-0", b"")

    assert catalog.list_databases() == ["db"]
    assert catalog.list_tables("db") == []


def test_a_warehouse_that_does_not_exist_has_no_databases(tmp_path):
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / "none")})

    assert catalog.list_databases() == []


def test_a_database_with_foreign_files_is_dropped_only_by_cascade(catalog, storage):
    storage.put("/w/db.db/notes.txt", b"mine")

    with pytest.raises(DatabaseNotEmpty, match=r"notes\.txt"):
        catalog.drop_database("db")
    assert storage.exists("/w/db.db/notes.txt")


def test_a_table_without_a_database_says_how_to_get_one(catalog):
    schema = pa.schema([("id", pa.int64())])

    with pytest.raises(DatabaseNotFound, match=r"create_database\('shop'\) creates it"):
        catalog.create_table("shop.orders", schema)


def test_long_listings_are_shortened_in_errors(catalog):
    for n in range(7):
        catalog.create_table(f"db.t{n}", SCHEMA)

    with pytest.raises(DatabaseNotEmpty, match="t0, t1, t2, t3, t4 and 2 more"):
        catalog.drop_database("db")


def test_properties_of_a_database_are_refused_not_forgotten(catalog):
    with pytest.raises(Unsupported, match="cannot store the properties comment"):
        catalog.create_database("new", properties={"comment": "hello"})
    assert catalog.list_databases() == ["db"]
    catalog.create_database("new", properties={})


# --- tables in bad shape --------------------------------------------------------------------------


def test_a_table_with_a_broken_schema_can_be_dropped(catalog, storage):
    storage.put(LAYOUT.schema(0), b"{ not json")

    with pytest.raises(CorruptFile, match="schema-0"):
        catalog.get_table("db.t")
    assert catalog.list_tables("db") == ["t"]
    catalog.drop_table("db.t")

    assert not storage.exists(LAYOUT.root)


def test_a_table_with_a_broken_schema_still_exists(catalog, storage):
    storage.put(LAYOUT.schema(0), b"{ not json")

    with pytest.raises(TableAlreadyExists):
        catalog.create_table("db.t", SCHEMA)
    catalog.rename_table("db.t", "db.u")
    assert catalog.list_tables("db") == ["u"]


def test_a_table_is_not_created_over_old_snapshots(catalog, storage):
    storage.put(LAYOUT.snapshot(3), b"{}")

    with pytest.raises(InvalidInput, match="has snapshots but no schema; move or delete"):
        catalog.create_table("db.t", SCHEMA)
    assert not storage.exists(LAYOUT.schema(0))


def test_a_table_is_not_renamed_onto_a_folder(catalog, storage):
    catalog.create_table("db.t", SCHEMA)
    storage.put("/w/db.db/u/file", b"mine")

    with pytest.raises(TableAlreadyExists, match=r"its folder /w/db\.db/u"):
        catalog.rename_table("db.t", "db.u")


class WithoutMoves(WrappedStorage):
    """As object stores are: a folder is moved file by file."""

    @property
    def traits(self) -> StorageTraits:
        return replace(super().traits, moves_folders=False)


def test_a_table_is_not_renamed_where_it_could_be_seen_under_two_names(catalog, storage):
    catalog.create_table("db.t", SCHEMA)

    with pytest.raises(Unsupported, match=r"cannot move a folder in one step; create db\.u"):
        FileSystemCatalog(WithoutMoves(storage), "/w").rename_table("db.t", "db.u")
    assert catalog.list_tables("db") == ["t"]


def test_branches_need_no_moves(catalog, storage):
    catalog.create_table("db.t", SCHEMA)
    table = FileSystemCatalog(WithoutMoves(storage), "/w").get_table("db.t")

    table.create_branch("a")
    table.rename_branch("a", "b")
    table.create_branch("c")
    table.delete_branch("c")

    assert catalog.list_branches("db.t") == ["b"]


class FailingDeletes(MemoryStorage):
    """Refuses to delete one folder."""

    refused = ""

    def delete_folder(self, path: str) -> None:
        if path == self.refused:
            raise StorageError(f"cannot delete {path}")
        super().delete_folder(path)


class RecordedDeletes(MemoryStorage):
    """Remembers which folders were deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[str] = []

    def delete_folder(self, path: str) -> None:
        self.deleted.append(path)
        super().delete_folder(path)


def test_snapshots_are_dropped_first_and_schemas_last():
    storage = RecordedDeletes()
    catalog = FileSystemCatalog(storage, "/w")
    catalog.create_database("db")
    catalog.create_table("db.t", SCHEMA)
    for path in (LAYOUT.snapshot(1), "/w/db.db/t/bucket-0/data", "/w/db.db/t/manifest/m"):
        storage.put(path, b"")

    catalog.drop_table("db.t")

    assert storage.deleted[0] == "/w/db.db/t/snapshot"
    assert not {"/w/db.db/t", "/w/db.db/t/schema"} & set(storage.deleted)
    assert not storage.exists("/w/db.db/t")


class LeavesFolders(MemoryStorage):
    """As stores with objects that stand for folders."""

    def delete_folder(self, path: str) -> None:
        super().delete_folder(path)
        self.make_folder(path)


def test_a_database_that_is_still_there_is_not_reported_as_dropped():
    catalog = FileSystemCatalog(LeavesFolders(), "/w")
    catalog.create_database("db")

    with pytest.raises(StorageError, match="'db' is empty, but it is still there"):
        catalog.drop_database("db")


@pytest.mark.parametrize("refused", ["/w/db.db/t/snapshot", "/w/db.db/t/bucket-0"])
def test_a_drop_that_fails_half_way_can_be_repeated(refused):
    storage = FailingDeletes()
    catalog = FileSystemCatalog(storage, "/w")
    catalog.create_database("db")
    catalog.create_table("db.t", SCHEMA)
    storage.put(LAYOUT.snapshot(1), b"{}")
    storage.put("/w/db.db/t/bucket-0/data", b"")
    storage.put("/w/db.db/t/stray", b"")
    storage.refused = refused

    with pytest.raises(StorageError):
        catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []

    storage.refused = ""
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == []
    assert not storage.exists(LAYOUT.root)


# --- concurrency ----------------------------------------------------------------------------------


class Overtaken(MemoryStorage):
    """Lets somebody else publish the same file first, a number of times."""

    times = 0
    other = b""

    def put_if_absent(self, path: str, data: bytes, after: Sequence[str] = ()) -> bool:
        if self.times and "/schema/" in path:
            self.times -= 1
            version = int(path.rpartition("-")[2])
            self.put(path, self.other.replace(b'"id": 0', b'"id": %d' % version, 1))
        return super().put_if_absent(path, data, after)


def an_overtaken_table() -> tuple[Overtaken, FileSystemCatalog]:
    storage = Overtaken()
    catalog = FileSystemCatalog(storage, "/w")
    catalog.create_database("db")
    catalog.create_table("db.t", SCHEMA)
    storage.other = storage.read(LAYOUT.schema(0)).replace(
        b'"options": {}', b'"options": {"theirs": "kept"}'
    )
    return storage, catalog


def test_a_change_that_was_overtaken_is_made_on_top_of_the_winner():
    storage, catalog = an_overtaken_table()
    storage.times = 2

    catalog.alter_table("db.t", [SchemaChange.set_option("ours", "too")])

    schema = catalog.get_table("db.t").table_schema
    assert schema.id == 3
    assert (schema.options["theirs"], schema.options["ours"]) == ("kept", "too")


def test_a_change_that_is_always_overtaken_gives_up():
    storage, catalog = an_overtaken_table()
    storage.times = 10_000

    with pytest.raises(CommitConflict, match="attempts"):
        catalog.alter_table("db.t", [SchemaChange.set_option("ours", "too")])


def test_a_creation_that_was_overtaken_says_so():
    storage, catalog = an_overtaken_table()
    catalog.drop_table("db.t")
    storage.times = 1

    with pytest.raises(TableAlreadyExists):
        catalog.create_table("db.t", SCHEMA)
    catalog.drop_table("db.t")
    storage.times = 1
    catalog.create_table("db.t", SCHEMA, ignore_if_exists=True)
    assert catalog.get_table("db.t").table_schema.options["theirs"] == "kept"


# --- branches and kinds ---------------------------------------------------------------------------


def test_a_branch_is_opened_with_its_own_schema(catalog, storage):
    catalog.create_table("db.t", SCHEMA)
    raw = storage.read(LAYOUT.schema(0))
    branch = LAYOUT.for_branch("b")
    storage.put(branch.schema(0), raw.replace(b'"options": {}', b'"options": {"of": "branch"}'))

    assert catalog.get_table("db.t$branch_b").table_schema.options["of"] == "branch"
    assert "of" not in catalog.get_table("db.t").table_schema.options
    assert catalog.get_table("db.t$branch_b$options").options["of"] == "branch"
    with pytest.raises(BranchNotFound):
        catalog.get_table("db.t$branch_c$options")


def test_changes_of_a_branch_leave_the_main_branch_alone(catalog, storage):
    catalog.create_table("db.t", SCHEMA)
    storage.put(LAYOUT.for_branch("b").schema(0), storage.read(LAYOUT.schema(0)))

    catalog.alter_table("db.t$branch_b", [SchemaChange.set_option("a", "b")])

    assert catalog.get_table("db.t$branch_b").table_schema.id == 1
    assert catalog.get_table("db.t").table_schema.id == 0


def test_tables_of_other_kinds_are_refused(catalog, storage):
    catalog.create_table("db.t", SCHEMA)
    raw = storage.read(LAYOUT.schema(0))
    storage.put(
        LAYOUT.schema(0), raw.replace(b'"options": {}', b'"options": {"type": "object-table"}')
    )

    with pytest.raises(Unsupported, match="object-table"):
        catalog.get_table("db.t")


# --- the factory ----------------------------------------------------------------------------------


def test_the_factory_opens_a_folder(tmp_path):
    catalog = CatalogFactory.create({"warehouse": tmp_path, "metastore": "filesystem"})

    assert isinstance(catalog, FileSystemCatalog)
    assert isinstance(catalog.storage, LocalStorage)
    assert catalog.options == {"warehouse": str(tmp_path), "metastore": "filesystem"}
    assert repr(catalog) == f"FileSystemCatalog({str(tmp_path)!r})"


def test_what_the_factory_cannot_open_is_refused():
    with pytest.raises(InvalidOption, match="needs the option 'warehouse'"):
        CatalogFactory.create({})
    with pytest.raises(InvalidOption, match=r"needs the option 'warehouse': .*, not 'warehous'"):
        CatalogFactory.create({"warehous": "/data"})
    with pytest.raises(InvalidInput, match=r'such as \{"warehouse": "/data/lake"\}, not by \'/d\''):
        CatalogFactory.create("/d")
    with pytest.raises(InvalidOption, match="without a value: warehouse"):
        CatalogFactory.create({"warehouse": None})
    with pytest.raises(Unsupported, match="jdbc"):
        CatalogFactory.create({"metastore": "jdbc", "uri": "http://localhost"})
    with pytest.raises(InvalidOption, match="magic"):
        CatalogFactory.create({"metastore": "magic"})
    with pytest.raises(Unsupported, match="hdfs"):
        CatalogFactory.create({"warehouse": "hdfs://bucket/folder"})


def test_new_tables_get_the_default_options_of_the_catalog(storage):
    catalog = FileSystemCatalog(
        storage, "/w/", {"table-default.file.format": "orc", "table-default.a": "1"}
    )
    catalog.create_database("db")
    catalog.create_table("db.t", Schema(SCHEMA.fields, options={"a": "2"}))

    assert dict(catalog.get_table("db.t").table_schema.options) == {"file.format": "orc", "a": "2"}


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    catalog = CatalogFactory.create({"warehouse": "~/lake"})

    assert catalog.warehouse == f"{tmp_path}/lake"


def test_one_change_of_a_schema_needs_no_list(catalog: FileSystemCatalog) -> None:
    catalog.create_table("db.one", SCHEMA)

    catalog.alter_table("db.one", SchemaChange.add_column("tax", "DOUBLE"))

    assert catalog.get_table("db.one").field_names == ["id", "tax"]
    with pytest.raises(InvalidInput, match=r"catalog\.sql takes ALTER TABLE"):
        catalog.alter_table("db.one", "ADD COLUMN tax DOUBLE")
