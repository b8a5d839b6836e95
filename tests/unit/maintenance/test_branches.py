"""Branches: made of a tag or of nothing, written to by themselves, and taken over."""

from contextlib import suppress

import pytest

from builders import (
    NAME,
    NUMBERED,
    alter,
    append,
    copy_of,
    create_key_table,
    create_table,
    numbered,
    open_catalog,
    open_table,
    overwrite,
    rows_of,
    upsert,
)
from emberlake import AtomicType, SchemaChange
from emberlake.errors import (
    BranchAlreadyExists,
    BranchNotFound,
    InvalidIdentifier,
    InvalidInput,
    InvalidState,
    SnapshotNotFound,
    StorageError,
    TagNotFound,
)
from table_reads import check_whole, files_under, read, read_ids, read_rows
from watched_storage import FaultyStorage, WatchedStorage


def a_table():
    table = create_table()
    for number in (1, 2, 3):
        append(table, rows_of([number]))
    table.create_tag("v2", snapshot_id=2)
    return table


def branch_of(table, name="b"):
    return open_catalog(table.store.storage).get_table(f"{NAME}$branch_{name}")


# --- making and deleting --------------------------------------------------------------------------


def test_a_branch_begins_with_what_its_tag_keeps():
    table = a_table()

    table.create_branch("b", "v2")

    branch = branch_of(table)
    assert read_ids(branch) == [1, 2]
    assert branch.snapshot_manager().list_ids() == (2,)
    assert branch.list_tags() == ["v2"]
    assert table.list_branches() == ["b"]
    folder = f"{table.table_path}/branch/branch-b"
    assert files_under(table.store.storage, f"{table.table_path}/branch") == {
        f"{folder}/schema/schema-0",
        f"{folder}/snapshot/snapshot-2",
        f"{folder}/tag/tag-v2",
    }


def test_a_branch_of_nothing_is_empty():
    table = alter(a_table(), SchemaChange.add_column("n", AtomicType("INT")))

    table.create_branch("b")

    branch = branch_of(table)
    assert read_ids(branch) == []
    assert branch.field_names == ["id", "day", "n"]
    assert branch.store.schemas.list_ids() == (0, 1)


def test_a_branch_has_the_schemas_up_to_its_tag():
    table = alter(a_table(), SchemaChange.add_column("n", AtomicType("INT")))

    table.create_branch("b", "v2")

    assert branch_of(table).field_names == ["id", "day"]


def test_a_tag_whose_snapshot_has_expired_will_do():
    table = a_table()
    table.expire_snapshots(retain_max=1, retain_min=1)

    table.create_branch("b", "v2")

    assert read_ids(branch_of(table)) == [1, 2]


def test_a_branch_is_written_to_by_itself():
    table = a_table()
    table.create_branch("b", "v2")
    branch = branch_of(table)

    assert append(branch, rows_of([7])).snapshot_id == 3

    assert read_ids(branch) == [1, 2, 7]
    assert read_ids(table) == [1, 2, 3]
    check_whole(branch)
    check_whole(table)
    assert branch.check().ok
    assert table.check().ok


def test_a_branch_of_a_key_table_is_compacted_by_itself():
    table = create_key_table(NUMBERED)
    upsert(table, numbered(range(4)))
    upsert(table, numbered(range(2), value="b"))
    table.create_tag("v2")
    table.create_branch("b", "v2")
    branch = branch_of(table)

    upsert(branch, numbered([0], value="c"))
    branch.compact(full=True)

    assert [row["v"] for row in read_rows(branch)] == ["c0", "b1", "a2", "a3"]
    assert [row["v"] for row in read_rows(table)] == ["b0", "b1", "a2", "a3"]


def test_a_name_that_is_taken_is_refused_or_ignored():
    table = a_table()
    table.create_branch("b", "v2")

    with pytest.raises(BranchAlreadyExists, match="'b'"):
        table.create_branch("b")
    table.create_branch("b", ignore_if_exists=True)

    assert read_ids(branch_of(table)) == [1, 2]


@pytest.mark.parametrize("name", ["main", "12", "", "a/b", "..", "a$b"])
def test_a_name_that_no_branch_can_have_is_refused(name):
    table = a_table()

    with pytest.raises(InvalidIdentifier):
        table.create_branch(name)
    with pytest.raises(InvalidIdentifier):
        table.delete_branch(name)

    assert table.list_branches() == []


def test_an_unknown_tag_or_branch_is_refused():
    table = a_table()

    with pytest.raises(TagNotFound, match="v2"):
        table.create_branch("b", "v9")
    with pytest.raises(BranchNotFound, match="none"):
        table.delete_branch("b")
    with pytest.raises(BranchNotFound):
        table.fast_forward("b")

    assert table.list_branches() == []


def test_a_deleted_branch_is_gone_and_can_be_made_again():
    table = a_table()
    table.create_branch("b", "v2")

    table.delete_branch("b")

    assert table.list_branches() == []
    assert files_under(table.store.storage, f"{table.table_path}/branch") == set()
    with pytest.raises(BranchNotFound):
        branch_of(table)
    table.create_branch("b", "v2")
    assert read_ids(branch_of(table)) == [1, 2]


def test_of_two_that_make_the_same_branch_one_wins():
    table = a_table()
    storage = table.store.storage
    watched = WatchedStorage(storage)

    def overtake(call):
        is_claiming = call.method == "put_if_absent" and ".unfinished-b" in call.path
        if is_claiming and not call.is_done and not table.list_branches():
            table.create_branch("b")

    watched.watch = overtake
    with pytest.raises(BranchAlreadyExists):
        open_table(watched).create_branch("b", "v2")

    assert read_ids(branch_of(table)) == []
    assert len(files_under(storage, f"{table.table_path}/branch")) == 1


# --- cut off while making or deleting -------------------------------------------------------------

HOW = pytest.mark.parametrize(
    ("after_effect", "for_good"), [(False, False), (True, False), (False, True), (True, True)]
)
ACTIONS = {
    "make": lambda table: table.create_branch("new", "v2"),
    "delete": lambda table: table.delete_branch("b"),
    "rename": lambda table: table.rename_branch("b", "new"),
}


def marker_of(table, name="b"):
    return f"{table.store.layout.branch_folder}/.unfinished-{name}"


@pytest.mark.thorough
@HOW
@pytest.mark.parametrize("action", ACTIONS)
def test_cut_off_anywhere_a_branch_is_there_as_a_whole_or_not_at_all(
    action, after_effect, for_good
):
    prepared = a_table()
    prepared.create_branch("b", "v2")
    append(branch_of(prepared), rows_of([7]))
    counting = WatchedStorage(copy_of(prepared.store.storage))
    table = open_table(counting)
    counting.calls.clear()
    ACTIONS[action](table)
    rows = {"b": [1, 2, 7], "new": [1, 2] if action == "make" else [1, 2, 7]}

    for fail_at in range(1, len(counting.calls) + 1):
        storage = copy_of(prepared.store.storage)
        faulty = FaultyStorage(storage, 0, after_effect=after_effect, for_good=for_good)
        broken = open_table(faulty)
        faulty.calls.clear()
        faulty.fail_at = fail_at
        with suppress(StorageError):  # an answer that got lost may be found out
            ACTIONS[action](broken)

        table = open_table(storage)
        there = table.list_branches()
        for name in ("b", "new"):
            if name in there:
                assert read_ids(branch_of(table, name)) == rows[name]
            else:
                with pytest.raises(BranchNotFound):
                    branch_of(table, name)
                with pytest.raises(BranchNotFound):
                    table.copy({"branch": name})
        if action == "rename":
            assert there, "a branch that is renamed has one name at least"
        # What was left is deleted by name, and the name is free again.
        name = "b" if action == "delete" else "new"
        with suppress(BranchNotFound):
            table.delete_branch(name)
        table.create_branch(name, "v2")
        assert read_ids(branch_of(table, name)) == [1, 2]


def test_a_branch_that_is_being_made_cannot_be_seen():
    table = a_table()
    watched = WatchedStorage(table.store.storage)
    seen = []
    watched.watch = lambda call: seen.append((table.list_branches(), call.path))

    open_table(watched).create_branch("b", "v2")

    assert seen[-1] == (["b"], marker_of(table))
    assert [names for names, _ in seen[:-1]] == [[]] * (len(seen) - 1)


def test_schemas_come_last_and_go_first_for_engines_that_do_not_know_the_marker():
    table = alter(a_table(), SchemaChange.add_column("n", AtomicType("INT")))
    watched = WatchedStorage(table.store.storage)
    folder = f"{table.table_path}/branch/branch-b"

    table = open_table(watched)
    table.create_branch("b")
    table.delete_branch("b")

    paths = [call.path for call in watched.calls if call.method in ("put_if_absent", "delete")]
    schemas = [path for path in paths if path.startswith(folder)]
    assert schemas[:2] == [f"{folder}/schema/schema-1", f"{folder}/schema/schema-0"]
    assert {*schemas[2:4]} == {*schemas[:2]}


def test_an_unfinished_branch_is_refused_until_it_is_deleted():
    table = a_table()
    table.create_branch("b", "v2")
    table.store.storage.put(marker_of(table), b"unfinished 1")

    assert table.list_branches() == []
    with pytest.raises(BranchNotFound):
        branch_of(table)
    for ignore in (False, True):
        with pytest.raises(BranchAlreadyExists, match=r"unfinished.*delete it"):
            table.create_branch("b", ignore_if_exists=ignore)
    table.delete_branch("b")
    table.create_branch("b")

    assert table.list_branches() == ["b"]
    assert not table.store.storage.exists(marker_of(table))


def test_who_only_looked_whether_a_name_is_free_hides_nothing():
    table = a_table()
    table.create_branch("b", "v2")
    table.store.storage.put(marker_of(table), b"claimed 1")

    assert table.list_branches() == ["b"]
    assert read_ids(branch_of(table)) == [1, 2]
    table.delete_branch("b")
    assert files_under(table.store.storage, f"{table.table_path}/branch") == set()


def test_a_branch_that_is_deleted_while_it_is_made_is_reported():
    table = a_table()
    watched = WatchedStorage(table.store.storage)

    def delete(call):
        if call.path.endswith("branch-b/tag/tag-v2") and call.is_done:
            table.delete_branch("b")

    watched.watch = delete
    with pytest.raises(InvalidState, match="deleted while it was being created; delete it again"):
        open_table(watched).create_branch("b", "v2")


def test_a_write_to_a_branch_that_is_renamed_is_reported_and_kept():
    table = a_table()
    table.create_branch("b", "v2")
    watched = WatchedStorage(table.store.storage)

    def commit(call):
        if call.method == "delete" and call.path == marker_of(table, "new") and call.is_done:
            watched.watch = lambda call: None
            append(branch_of(table), rows_of([7]))

    watched.watch = commit
    with pytest.raises(InvalidState, match="while it was being renamed"):
        open_table(watched).rename_branch("b", "new")

    assert table.list_branches() == ["b"]
    assert read_ids(branch_of(table)) == [1, 2, 7]


# --- taking a branch over -------------------------------------------------------------------------


def test_the_table_takes_the_history_of_the_branch():
    table = a_table()
    table.create_branch("b", "v2")
    branch = branch_of(table)
    append(branch, rows_of([7]))
    overwrite(branch, rows_of([8]))

    table.fast_forward("b")

    assert read_ids(table) == [8]
    assert table.snapshot_manager().list_ids() == (1, 2, 3, 4)
    assert read(table, **{"scan.snapshot-id": 3}) == rows_of([1, 2, 7])
    assert read(table, **{"scan.snapshot-id": 1}) == rows_of([1])
    assert table.list_tags() == ["v2"]
    assert table.store.storage.read(table.store.layout.latest_hint) == b"4"
    check_whole(table)
    append(table, rows_of([9]))
    assert read_ids(table) == [8, 9]


def test_tags_of_what_is_dropped_go_and_those_of_the_branch_come():
    table = a_table()
    table.create_tag("v1", snapshot_id=1)
    table.create_tag("v3", snapshot_id=3)
    table.create_branch("b", "v2")
    branch = branch_of(table)
    append(branch, rows_of([7]))
    branch.create_tag("mine")

    table.fast_forward("b")

    assert table.list_tags() == ["mine", "v1", "v2"]
    assert read(table, **{"scan.tag-name": "mine"}) == rows_of([1, 2, 7])


def test_the_schemas_of_the_branch_replace_those_of_the_table():
    table = a_table()
    table.create_branch("b", "v2")
    catalog = open_catalog(table.store.storage)
    catalog.alter_table(f"{NAME}$branch_b", [SchemaChange.add_column("mine", AtomicType("INT"))])
    catalog.alter_table(NAME, [SchemaChange.add_column("theirs", AtomicType("STRING"))])
    catalog.alter_table(NAME, [SchemaChange.add_column("more", AtomicType("STRING"))])
    append(branch_of(table), [{"id": 7, "day": "mon", "mine": 1}])

    table.fast_forward("b")

    table = open_table(table.store.storage)
    assert table.field_names == ["id", "day", "mine"]
    assert table.store.schemas.list_ids() == (0, 1)
    assert read_ids(table) == [1, 2, 7]


def test_a_branch_that_began_empty_replaces_everything():
    table = a_table()
    table.create_branch("b")
    append(branch_of(table), rows_of([7]))

    table.fast_forward("b")

    assert read_ids(table) == [7]
    assert table.snapshot_manager().list_ids() == (1,)
    assert table.list_tags() == []


def test_a_snapshot_that_has_expired_in_the_table_lives_on_in_the_branch():
    table = a_table()
    table.create_branch("b", "v2")
    table.delete_tag("v2")
    table.expire_snapshots(retain_max=1, retain_min=1)

    table.fast_forward("b")

    assert read_ids(table) == [1, 2]
    assert table.snapshot_manager().list_ids() == (2,)
    check_whole(table)


def test_an_empty_branch_and_the_branch_itself_are_refused():
    table = a_table()
    table.create_branch("empty")

    with pytest.raises(SnapshotNotFound, match="empty"):
        table.fast_forward("empty")
    with pytest.raises(InvalidInput, match="already"):
        branch_of(table, "empty").fast_forward("empty")

    assert read_ids(table) == [1, 2, 3]


def test_a_commit_in_between_is_reported_and_the_next_try_takes_over():
    table = a_table()
    table.create_branch("b", "v2")
    branch = branch_of(table)
    append(branch, rows_of([7]))
    watched = WatchedStorage(table.store.storage)
    layout = table.store.layout

    def commit(call):
        is_publishing = call.method == "put_if_absent" and call.path == layout.snapshot(3)
        if is_publishing and not call.is_done and not table.snapshot_manager().exists(3):
            append(table, rows_of([99]))

    watched.watch = commit
    with pytest.raises(InvalidState, match="again"):
        open_table(watched).fast_forward("b")

    assert read_ids(table) == [1, 2, 99]
    table.fast_forward("b")
    assert read_ids(table) == [1, 2, 7]
