"""Snapshots, tags and branches as programs for pypaimon ask for them."""

import datetime as dt
import json

import pytest

from builders import (
    COLUMNS,
    FakeEnv,
    alter,
    append,
    create_key_table,
    create_table,
    open_catalog,
    rows_of,
)
from emberlake import AtomicType, Schema, SchemaChange, Table
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import (
    BranchAlreadyExists,
    BranchNotFound,
    InvalidIdentifier,
    InvalidInput,
    SnapshotNotFound,
    TableNotFound,
    TagAlreadyExists,
    TagNotFound,
)
from emberlake.io import open_storage
from table_reads import read_ids

HOUR = 3_600_000


@pytest.fixture
def world() -> FakeEnv:
    return FakeEnv()


@pytest.fixture
def table(world: FakeEnv) -> Table:
    """Three snapshots, an hour apart, each with one more row."""
    made = create_table(env=world.env())
    for number in (1, 2, 3):
        append(made, rows_of([number]))
        world.time_ms += HOUR
    return made


# --- snapshots ------------------------------------------------------------------------------------


def test_snapshots_are_found_by_the_names_of_pypaimon(table: Table) -> None:
    manager = table.snapshot_manager()
    first, second, third = (manager.load(number) for number in (1, 2, 3))

    assert manager.get_latest_snapshot() == third
    assert manager.get_snapshot_by_id(2) == second
    assert manager.get_snapshot_by_id(9) is None
    assert manager.try_get_earliest_snapshot() == first
    assert manager.list_snapshots() == [first, second, third]
    assert manager.get_snapshots_batch([2, 9]) == {2: second, 9: None}
    assert manager.earlier_or_equal_time_mills(second.time_millis) == second
    assert manager.earlier_or_equal_time_mills(first.time_millis - 1) is None
    assert manager.later_or_equal_watermark(0) is None
    assert manager.get_snapshot_path(2) == f"{manager.snapshot_dir}/snapshot-2"
    assert manager.latest_file == f"{manager.snapshot_dir}/LATEST"


def test_snapshots_of_another_branch_are_asked_for_by_its_name(table: Table) -> None:
    table.create_branch("b")

    manager = table.snapshot_manager().copy_with_branch("b")

    assert manager.branch == "b"
    assert manager.get_latest_snapshot() is None
    assert manager.try_get_earliest_snapshot() is None


def test_an_earliest_snapshot_after_the_last_that_counts_is_none(table: Table) -> None:
    table.store.snapshots.delete(1)

    assert table.snapshot_manager().try_get_earliest_snapshot(1) is None
    assert table.snapshot_manager().try_get_earliest_snapshot(2).id == 2


def test_a_table_goes_back_to_a_time(table: Table) -> None:
    then = table.snapshot_manager().load(2).time_millis

    with pytest.raises(SnapshotNotFound):
        table.rollback_to_timestamp(then - 2 * HOUR)
    table.rollback_to_timestamp(then + 1)

    assert read_ids(table) == [1, 2]


def test_a_table_goes_back_to_a_watermark(table: Table) -> None:
    folder = table.store.layout
    for number, watermark in ((1, -(2**63)), (2, 20), (3, 30)):
        path = folder.snapshot(number)
        text = json.loads(table.store.storage.read(path))
        table.store.storage.delete(path)
        text["watermark"] = watermark
        table.store.storage.create(path, json.dumps(text).encode())
    table = table.copy({})

    with pytest.raises(SnapshotNotFound, match="watermark of 19"):
        table.rollback_to_watermark(19)
    table.rollback_to_watermark(29)

    assert read_ids(table) == [1, 2]


def test_a_rollback_wants_an_id_or_a_name(table: Table) -> None:
    with pytest.raises(InvalidInput, match="neither"):
        table.rollback_to(2.5)


# --- tags -----------------------------------------------------------------------------------------


def test_tags_are_managed_by_the_names_of_pypaimon(table: Table) -> None:
    tags, snapshot = table.tag_manager(), table.snapshot_manager().load(2)

    tags.create_tag(snapshot, "v2")
    with pytest.raises(TagAlreadyExists) as refused:
        tags.create_tag(snapshot, "v2")
    tags.create_tag(snapshot, "v2", ignore_if_exists=True)
    tags.rename_tag("v2", "v3")

    assert refused.value.tag == "v2"
    assert (tags.list_tags(), tags.tag_exists("v3"), tags.get("v2")) == (["v3"], True, None)
    assert tags.get_or_throw("v3").trim_to_snapshot() == snapshot
    assert tags.tag_path("v3") == f"{tags.tag_directory()}/tag-v3"
    assert [tags.delete_tag("v3"), tags.delete_tag("v3")] == [True, False]


def test_a_tag_is_replaced(table: Table) -> None:
    table.create_tag("v", snapshot_id=1)

    table.replace_tag("v", 2)
    assert table.tag_manager().get("v").id == 2
    table.replace_tag("v", time_retained="12 h")

    assert table.tag_manager().get("v").id == 3
    assert table.tag_manager().get("v").tag_time_retained == dt.timedelta(hours=12)
    with pytest.raises(TagNotFound):
        table.replace_tag("w")
    with pytest.raises(SnapshotNotFound):
        table.replace_tag("v", 9)


@pytest.mark.parametrize("retained", ["2 h", dt.timedelta(hours=2), None])
def test_a_tag_goes_when_its_time_is_over(world: FakeEnv, retained) -> None:
    """What is not said comes from the table's options."""
    table = create_table(env=world.env(), options={"tag.default-time-retained": "2 h"})
    append(table, rows_of([1]))
    table.create_tag("short", time_retained=retained)
    table.tag_manager().create_tag(table.latest_snapshot(), "for good")

    world.time_ms += 2 * HOUR
    assert table.expire_tags() == []
    world.time_ms += 1
    assert table.expire_tags(dry_run=True) == ["short"]
    assert table.list_tags() == ["for good", "short"]
    assert table.expire_tags() == ["short"]

    assert table.list_tags() == ["for good"]


def test_old_tags_go_on_request_whatever_they_say(table: Table, world: FakeEnv) -> None:
    table.create_tag("kept", time_retained="100 d")
    world.time_ms += HOUR

    assert table.expire_tags(older_than=world.time_ms - HOUR) == []
    assert table.expire_tags(older_than=world.time_ms) == ["kept"]


def test_a_tag_that_is_kept_for_good_is_as_old_as_its_file(table: Table) -> None:
    table.create_tag("plain")
    written = next(iter(table.store.storage.list(table.tag_manager().tag_directory()))).modified_ms

    assert table.expire_tags(older_than=written) == []
    assert table.expire_tags(older_than=written + 1) == ["plain"]


@pytest.mark.parametrize("retained", ["1 ns", "soon", "", f"{10**12} d"])
def test_a_time_that_is_none_is_refused_and_makes_no_tag(table: Table, retained: str) -> None:
    with pytest.raises(InvalidInput, match="time_retained"):
        table.create_tag("v", time_retained=retained)

    assert table.list_tags() == []


def test_a_tag_is_not_kept_for_less_than_no_time(table: Table) -> None:
    with pytest.raises(InvalidInput, match="time_retained=-1 day"):
        table.create_tag("v", time_retained=dt.timedelta(days=-1))
    assert table.list_tags() == []

    table.create_tag("v", time_retained=dt.timedelta(0))
    with pytest.raises(InvalidInput, match="less than 0"):
        table.replace_tag("v", time_retained=dt.timedelta(microseconds=-1))


def test_a_branch_of_a_tag_keeps_its_time_but_not_in_the_snapshot(table: Table) -> None:
    table.create_tag("v", time_retained="1 d")
    table.create_branch("b", "v")
    store = table.store
    branch = store.layout.for_branch("b")

    assert store.storage.read(branch.tag("v")) == store.storage.read(store.layout.tag("v"))
    assert "tagCreateTime" not in json.loads(store.storage.read(branch.snapshot(3)))


def test_a_snapshot_that_a_tag_brings_back_is_no_tag(table: Table) -> None:
    table.create_tag("v", 1, time_retained="1 d")
    table.store.snapshots.delete(1)

    table.rollback_to("v")

    raw = table.store.storage.read(table.store.layout.snapshot(1))
    assert "tagCreateTime" not in json.loads(raw)


# --- branches -------------------------------------------------------------------------------------


def test_branches_are_managed_by_the_names_of_pypaimon(table: Table) -> None:
    branches = table.branch_manager()

    branches.create_branch("a")
    branches.create_branch("b")
    with pytest.raises(BranchAlreadyExists) as taken:
        branches.rename_branch("a", "b")
    with pytest.raises(BranchNotFound) as missing:
        branches.rename_branch("x", "y")
    with pytest.raises(InvalidIdentifier):
        branches.rename_branch("main", "y")
    branches.rename_branch("a", "c")
    branches.drop_branch("b")

    assert (taken.value.branch, missing.value.branch) == ("b", "x")
    assert (branches.branches(), branches.current_branch) == (["c"], "main")
    assert [branches.branch_exists(name) for name in ("main", "c", "a")] == [True, True, False]
    assert branches.branch_path("c") == f"{table.table_path}/branch/branch-c"


def test_a_renamed_branch_keeps_its_rows(table: Table) -> None:
    table.create_tag("v1", 1)
    table.create_branch("b", "v1")

    table.rename_branch("b", "c")

    assert read_ids(open_catalog(table.store.storage).get_table("db.t$branch_c")) == [1]


def test_a_copy_with_another_branch_is_that_branch(table: Table) -> None:
    table.create_tag("v2", 2)
    table.create_branch("b", "v2")
    alter(table, SchemaChange.add_column("later", AtomicType("INT")))

    branch = table.copy({"branch": "b", "read.batch-size": "10"})
    append(branch, rows_of([9]))

    assert (branch.current_branch(), str(branch.identifier)) == ("b", "db.t$branch_b")
    assert branch.options["read.batch-size"] == "10"
    assert (branch.field_names, read_ids(branch)) == (["id", "day"], [1, 2, 9])
    main = branch.copy({"branch": "main"})
    assert (main.current_branch(), main.identifier, read_ids(main)) == (
        "main",
        table.identifier,
        [1, 2, 3],
    )
    assert main.options["read.batch-size"] == "10"
    with pytest.raises(BranchNotFound):
        table.copy({"branch": "x"})


def test_a_copy_travels_on_the_branch_that_it_names(table: Table) -> None:
    table.create_tag("v1", 1)
    table.create_branch("b", "v1")
    append(table.copy({"branch": "b"}), rows_of([9]))

    assert read_ids(table.copy({"scan.snapshot-id": "2", "branch": "b"})) == [1, 9]


# --- what a table says of itself ------------------------------------------------------------------


@pytest.mark.parametrize("comment", ["all orders", None])
def test_a_comment_is_a_text_and_can_be_called(table: Table, comment: str | None) -> None:
    alter(table, SchemaChange.update_comment(comment))
    opened = open_catalog(table.store.storage).get_table("db.t")

    assert opened.comment == (comment or "")
    assert opened.comment() == comment


def test_schemas_are_found_by_the_names_of_pypaimon(table: Table) -> None:
    alter(table, SchemaChange.add_column("later", AtomicType("INT")))
    manager = table.schema_manager

    assert [schema.id for schema in manager.list_all()] == [0, 1]
    assert manager.latest() == manager.get_schema(1)
    assert manager.get_schema(9) is None
    assert table.schema() == table.table_schema


def test_a_table_is_opened_by_its_folder(tmp_path) -> None:
    storage, warehouse = open_storage(str(tmp_path), {})
    catalog = FileSystemCatalog(storage, warehouse)
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS))
    append(catalog.get_table("db.t"), rows_of([1]))

    opened = Table.from_path(str(tmp_path / "db.db" / "t"))

    assert (str(opened.identifier), read_ids(opened)) == ("db.t", [1])
    with pytest.raises(TableNotFound, match="no schema"):
        Table.from_path(str(tmp_path / "db.db"))


def test_columns_and_keys_have_the_names_of_pypaimon() -> None:
    table = create_key_table(COLUMNS, ["day", "id"], ["day"])

    assert list(table.field_dict) == table.field_names
    assert [field.name for field in table.primary_keys_fields] == ["day", "id"]
    assert [field.name for field in table.partition_keys_fields] == ["day"]
    assert table.trimmed_primary_keys == ["id"]
    assert [field.name for field in table.trimmed_primary_keys_fields] == ["id"]
    assert table.total_buckets == int(table.options["bucket"])
