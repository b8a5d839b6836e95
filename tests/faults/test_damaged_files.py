"""Files that are missing, torn, garbage or of a later version: one typed error, nothing changed."""

import json
from collections.abc import Callable

import pytest

from builders import append, create_table, open_table, overwrite, rows_of
from emberlake.errors import (
    CorruptFile,
    EmberlakeError,
    FileNotFound,
    SnapshotNotFound,
    Unsupported,
)
from emberlake.io import Storage
from emberlake.scan.files import manifests_of
from emberlake.store.manifests import forget_manifests
from emberlake.table import Table
from table_reads import data_files, files_under, latest_snapshot, read

Damage = Callable[[Storage, str], None]


def a_table() -> Table:
    table = create_table(options={"manifest.merge-min-count": "1000"})
    append(table, rows_of([1]))
    append(table, rows_of([2]))
    return table


def remove(storage: Storage, path: str) -> None:
    storage.delete(path)


def tear(storage: Storage, path: str) -> None:
    raw = storage.read(path)
    storage.put(path, raw[: len(raw) // 2])


def empty(storage: Storage, path: str) -> None:
    storage.put(path, b"")


def garble(storage: Storage, path: str) -> None:
    storage.put(path, b"\x00garbage\xff" * (storage.size(path) // 9 + 1))


def garble_same_size(storage: Storage, path: str) -> None:
    storage.put(path, b"\xa5" * storage.size(path))


def modernise(storage: Storage, path: str) -> None:
    value = json.loads(storage.read(path))
    storage.put(path, json.dumps({**value, "version": 99}).encode())


def manifest_of(table: Table) -> str:
    store = table.store
    return store.layout.manifest(manifests_of(store, latest_snapshot(table))[0].file_name)


PATHS: dict[str, Callable[[Table], str]] = {
    "snapshot": lambda t: t.store.layout.snapshot(2),
    "base list": lambda t: t.store.layout.manifest(latest_snapshot(t).base_manifest_list),
    "delta list": lambda t: t.store.layout.manifest(latest_snapshot(t).delta_manifest_list),
    "manifest": manifest_of,
    "data file": lambda t: min(data_files(t)),
}
CONTENT = [tear, empty, garble, garble_same_size]
CASES = [
    *[(place, damage, CorruptFile) for place in PATHS for damage in CONTENT],
    *[(place, remove, FileNotFound) for place in PATHS if place != "snapshot"],
    ("snapshot", modernise, Unsupported),
]


def damaged(place: str, damage: Damage) -> tuple[Table, str]:
    table = a_table()
    path = PATHS[place](table)
    damage(table.store.storage, path)
    forget_manifests()
    return open_table(table.store.storage), path


@pytest.mark.also_on_s3
@pytest.mark.parametrize(
    ("place", "damage", "error"), CASES, ids=lambda v: getattr(v, "__name__", v)
)
def test_reading_a_damaged_table_names_the_file(place, damage, error):
    table, path = damaged(place, damage)

    with pytest.raises(error) as caught:
        read(table)
    assert path.rpartition("/")[2] in str(caught.value)


@pytest.mark.parametrize(
    ("place", "damage", "error"),
    [case for case in CASES if case[0] != "data file"],  # a commit does not open data files
    ids=lambda v: getattr(v, "__name__", v),
)
def test_an_overwrite_of_damaged_metadata_changes_nothing(place, damage, error):
    table, _ = damaged(place, damage)
    before = files_under(table.store.storage, table.table_path)

    with pytest.raises(error):
        overwrite(table, rows_of([9]))

    left = files_under(table.store.storage, table.table_path) - before
    assert all("/bucket-" in path for path in left)  # what was written stays to be aborted


@pytest.mark.parametrize("damage", [*CONTENT, remove])
def test_a_damaged_data_file_is_in_nobodys_way_but_its_readers(damage):
    table, _ = damaged("data file", damage)

    append(table, rows_of([3]))
    overwrite(table, rows_of([9]))

    assert read(table) == rows_of([9])


def test_a_snapshot_that_is_gone_is_not_found_by_its_id():
    table = a_table()
    table.store.snapshots.delete(1)

    with pytest.raises(SnapshotNotFound, match="snapshot 1 does not exist"):
        read(table, **{"scan.snapshot-id": 1})
    assert read(table) == [*rows_of([1]), *rows_of([2])]


@pytest.mark.parametrize("hint", [b"", b"x", b"0", b"-1", b"99", b"1"])
def test_a_wrong_hint_misleads_nobody(hint):
    table = a_table()
    for path in (table.store.layout.latest_hint, table.store.layout.earliest_hint):
        table.store.storage.put(path, hint)

    result = append(table, rows_of([3]))

    assert result.snapshot_id == 3
    assert len(read(table)) == 3


@pytest.mark.parametrize(
    ("damage", "error"),
    [(tear, CorruptFile), (empty, CorruptFile), (garble, CorruptFile), (modernise, Unsupported)],
)
def test_a_table_whose_schema_cannot_be_read_is_not_opened(damage, error):
    table = a_table()
    damage(table.store.storage, table.store.layout.schema(0))

    with pytest.raises(error) as caught:
        open_table(table.store.storage)
    assert isinstance(caught.value, EmberlakeError)


@pytest.mark.parametrize(("damage", "error"), [(tear, CorruptFile), (modernise, Unsupported)])
def test_a_schema_that_cannot_be_read_stops_a_commit_before_it_is_visible(damage, error):
    table = a_table()
    storage = table.store.storage
    writer = open_table(storage)  # it knows schema 0
    storage.put(table.store.layout.schema(1), storage.read(table.store.layout.schema(0)))
    damage(storage, table.store.layout.schema(1))

    with pytest.raises(error):
        append(writer, rows_of([3]))

    assert writer.snapshot_manager().list_ids() == (1, 2)


# --- files that belong elsewhere ------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "lance"])
def test_a_data_file_of_another_size_or_with_other_rows_is_corrupt(file_format):
    table = create_table(options={"file.format": file_format})
    append(table, rows_of([1]))
    (mine,) = data_files(table)
    append(table, rows_of([2, 3]))
    other = next(path for path in data_files(table) if path != mine)
    table.store.storage.put(mine, table.store.storage.read(other))

    with pytest.raises(CorruptFile, match="but its manifest says") as caught:
        read(table)

    assert caught.value.path == mine


def test_a_snapshot_under_the_name_of_another_is_corrupt():
    table = a_table()
    layout, storage = table.store.layout, table.store.storage
    storage.put(layout.snapshot(2), storage.read(layout.snapshot(1)))

    with pytest.raises(CorruptFile, match="it says that it is snapshot 1"):
        read(table)


def test_a_schema_under_the_name_of_another_is_corrupt():
    table = a_table()
    layout, storage = table.store.layout, table.store.storage
    storage.put(layout.schema(1), storage.read(layout.schema(0)))

    with pytest.raises(CorruptFile, match="it says that it is schema 0"):
        open_table(storage)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"partitionKeys": []', b'"partitionKeys": ["nobody"]'),
        (b'"name": "day"', b'"name": "id"'),
        (b'"id": 1,', b'"id": 0,'),
        (b'"highestFieldId": 1', b'"highestFieldId": 1e999'),
    ],
)
def test_a_schema_that_contradicts_itself_is_corrupt(old, new):
    table = a_table()
    path, storage = table.store.layout.schema(0), table.store.storage
    assert old in storage.read(path)
    storage.put(path, storage.read(path).replace(old, new))

    with pytest.raises(CorruptFile, match="schema-0"):
        open_table(storage)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", "2"),
        ("baseManifestList", 7),
        ("deltaManifestList", "../../x"),
        ("timeMillis", True),
        ("commitIdentifier", 2**63),
    ],
)
def test_a_snapshot_with_values_of_the_wrong_kind_is_corrupt(key, value):
    table = a_table()
    path, storage = table.store.layout.snapshot(2), table.store.storage
    storage.put(path, json.dumps({**json.loads(storage.read(path)), key: value}).encode())

    with pytest.raises(CorruptFile, match=key):
        read(table)


def test_a_hint_of_many_digits_misleads_nobody():
    table = a_table()
    table.store.storage.put(table.store.layout.latest_hint, b"9" * 10_000)

    assert len(read(table)) == 2
