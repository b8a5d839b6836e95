"""Tables in memory whose files are on disk: everything that a table can do finds them there."""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from builders import append, numbered, prepare, rows_of, upsert
from emberlake import Schema, SchemaChange, Table
from emberlake.catalog import FileSystemCatalog
from emberlake.errors import EmberlakeWarning, InvalidSchema, Unsupported
from emberlake.io import MemoryStorage
from emberlake.scan.files import live_entries
from table_reads import check_whole, latest_snapshot, read, read_ids

KEYED = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())
])  # fmt: skip
PLAIN = pa.schema([("id", pa.int64()), ("day", pa.string())])
PATHS = "data-file.external-paths"


@pytest.fixture
def catalog() -> FileSystemCatalog:
    catalog = FileSystemCatalog(MemoryStorage(), "memory://home/warehouse")
    catalog.create_database("db")
    return catalog


def outside(folder: Path, strategy: str = "round-robin", **more: str) -> dict[str, str]:
    paths = f"file://{folder}/one,file://{folder}/two"
    return {PATHS: paths, f"{PATHS}.strategy": strategy, **more}


def create(
    catalog: FileSystemCatalog,
    options: Mapping[str, str],
    columns: pa.Schema = PLAIN,
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = (),
) -> Table:
    keys = {"partition_keys": list(partition_keys), "primary_keys": list(primary_keys)}
    schema = Schema.from_pyarrow_schema(columns, options=dict(options), **keys)
    return catalog.create_table("db.t", schema)


def key_table(catalog: FileSystemCatalog, options: Mapping[str, str]) -> Table:
    return create(catalog, {"bucket": "1", **options}, KEYED, primary_keys=["id"])


def on_disk(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def at_home(table: Table) -> list[str]:
    """The table's own files that are no metadata."""
    found = table.store.storage.list_all(table.table_path)
    return [info.path for info in found if "/index/" in info.path or "/bucket-" in info.path]


def listed(table: Table) -> set[str | None]:
    entries = live_entries(table.store, latest_snapshot(table)).entries()
    return {entry.file.external_path for entry in entries}


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject", "weight-robin"])
def test_files_are_written_outside_and_read_from_there(
    catalog: FileSystemCatalog, tmp_path: Path, strategy: str
) -> None:
    table = create(catalog, outside(tmp_path, strategy), partition_keys=["day"])
    append(table, [*rows_of([1, 2], "mon"), *rows_of([3], "tue")])

    assert read_ids(table) == [1, 2, 3]
    assert not at_home(table)
    assert {f"file:{path}" for path in on_disk(tmp_path)} == listed(table)
    assert {path.relative_to(tmp_path).parts[1] for path in on_disk(tmp_path)} == {
        "day=mon",
        "day=tue",
    }
    check_whole(table)


def test_files_take_turns(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path, **{"target-file-row-num": "1"}))
    append(table, rows_of([1, 2, 3, 4]))

    names = [path.relative_to(tmp_path).parts[:2] for path in on_disk(tmp_path)]
    assert names == [("one", "bucket-0")] * 2 + [("two", "bucket-0")] * 2


def test_paths_without_a_strategy_change_nothing(
    catalog: FileSystemCatalog, tmp_path: Path
) -> None:
    table = create(catalog, {PATHS: f"file://{tmp_path}"})
    append(table, rows_of([1]))

    assert len(at_home(table)) == 1
    assert not on_disk(tmp_path)


def test_files_stay_where_they_are_when_the_options_change(
    catalog: FileSystemCatalog, tmp_path: Path
) -> None:
    table = create(catalog, {"data-file.path-directory": "data"})
    append(table, rows_of([1]))
    changes = [SchemaChange.set_option(*option) for option in outside(tmp_path).items()]
    catalog.alter_table("db.t", changes)
    append(catalog.get_table("db.t"), rows_of([2]))
    catalog.alter_table("db.t", [SchemaChange.remove_option(key) for key in outside(tmp_path)])
    table = catalog.get_table("db.t")
    append(table, rows_of([3]))

    assert read_ids(table) == [1, 2, 3]
    assert len(at_home(table)) == 2
    assert [path.relative_to(tmp_path).parts[1:3] for path in on_disk(tmp_path)] == [
        ("data", "bucket-0")
    ]


def test_a_worker_opens_the_storages_itself(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path))
    append(table, rows_of([1]))

    assert read_ids(pickle.loads(pickle.dumps(table))) == [1]


def test_what_is_not_committed_is_deleted(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path, **{"write-buffer-size": "1 b"}))
    builder = table.new_batch_write_builder()
    messages = prepare(table, rows_of([1]), builder=builder)
    assert on_disk(tmp_path)
    builder.new_commit().abort(messages)
    assert not on_disk(tmp_path)

    with builder.new_write() as write:
        write.write_arrow(pa.Table.from_pylist(rows_of([1]), PLAIN))
        assert on_disk(tmp_path)
        write.abort()
    assert not on_disk(tmp_path)


def test_compaction_and_expiry_of_append_tables(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path))
    for number in range(6):
        append(table, rows_of([number]))
    table.compact(full=True)
    assert len(on_disk(tmp_path)) == 7

    table.expire_snapshots(retain_max=1, retain_min=1)

    assert [f"file:{path}" for path in on_disk(tmp_path)] == [*listed(table)]
    assert read_ids(table) == [*range(6)]
    assert table.check().ok


@pytest.mark.parametrize("in_data_dir", [False, True])
def test_deletion_vectors_lie_where_index_files_do(
    catalog: FileSystemCatalog, tmp_path: Path, in_data_dir: bool
) -> None:
    options = {"deletion-vectors.enabled": "true", "changelog-producer": "none"}
    if in_data_dir:
        options["index-file-in-data-file-dir"] = "true"
    table = key_table(catalog, outside(tmp_path, **options))
    upsert(table, numbered(range(100)))
    table.compact(full=True)
    upsert(table, numbered([7], "b"))
    upsert(table, numbered([8], "c"))

    assert [row["v"] for row in read(table)][6:10] == ["a6", "b7", "c8", "a9"]
    names = {path.name[:6] for path in on_disk(tmp_path)}
    assert ("index-" in names) is in_data_dir
    assert bool(at_home(table)) is not in_data_dir
    assert table.check().ok


def test_changelog_files_lie_outside_too(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = key_table(catalog, outside(tmp_path, **{"changelog-producer": "input"}))
    upsert(table, numbered([1]))

    assert {path.name.split("-")[0] for path in on_disk(tmp_path)} == {"data", "changelog"}
    assert not at_home(table)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.check().ok


def test_an_index_has_a_folder_of_its_own(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    options = {"bucket": "-1", "global-index.external-path": f"file://{tmp_path}/index"}
    table = key_table(catalog, options)
    upsert(table, numbered([1, 2]))
    upsert(table, numbered([2, 3], "b"))

    assert [row["v"] for row in read(table)] == ["a1", "b2", "b3"]
    assert {path.parent.name for path in on_disk(tmp_path)} == {"index"}
    assert table.check().ok


def test_the_files_table_shows_where_files_are(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path))
    append(table, rows_of([1]))

    files = read(catalog.get_table("db.t$files"))
    assert [row["file_path"] for row in files] == [f"file:{path}" for path in on_disk(tmp_path)]


def test_damage_outside_is_found(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path))
    append(table, rows_of([1]))
    [file] = on_disk(tmp_path)
    file.unlink()

    [problem] = table.check().problems
    assert problem.path == f"file:{file}"


def test_orphans_outside_are_left_alone(catalog: FileSystemCatalog, tmp_path: Path) -> None:
    table = create(catalog, outside(tmp_path))
    prepare(table, rows_of([1]))

    assert table.remove_orphan_files(older_than=table.store.env.now_ms()).paths == ()
    assert len(on_disk(tmp_path)) == 1


def test_a_dropped_table_takes_its_files_outside_along_and_no_others(
    catalog: FileSystemCatalog, tmp_path: Path
) -> None:
    options = {"index-file-in-data-file-dir": "true", "deletion-vectors.enabled": "true"}
    options = outside(tmp_path, **options, **{"changelog-producer": "none"})
    table = key_table(catalog, options)
    upsert(table, numbered(range(100)))
    table.compact(full=True)
    table.create_tag("first")
    table.create_branch("b", "first")
    upsert(table, numbered([7], "b"))
    table.compact(full=True)
    other = catalog.create_table("db.other", PLAIN, options=outside(tmp_path))
    append(other, rows_of([1]))
    catalog.alter_table("db.t", [SchemaChange.remove_option(PATHS)])
    assert len(on_disk(tmp_path)) > 4

    catalog.drop_table("db.t")

    assert {f"file:{path}" for path in on_disk(tmp_path)} == listed(other)
    assert read_ids(other) == [1]


def test_a_file_in_a_folder_that_no_schema_names_stays_when_the_table_goes(
    catalog: FileSystemCatalog, tmp_path: Path
) -> None:
    table = create(catalog, outside(tmp_path / "known"))
    elsewhere = outside(tmp_path / "elsewhere")
    append(table.copy(elsewhere), rows_of([1]))
    append(table, rows_of([2]))
    assert read_ids(table) == [1, 2]

    catalog.drop_table("db.t")

    assert [path.relative_to(tmp_path).parts[0] for path in on_disk(tmp_path)] == ["elsewhere"]


def test_a_database_is_dropped_with_all_that_is_outside(
    catalog: FileSystemCatalog, tmp_path: Path
) -> None:
    append(create(catalog, outside(tmp_path)), rows_of([1]))

    catalog.drop_database("db", cascade=True)

    assert not on_disk(tmp_path)


def test_a_damaged_table_is_dropped_and_reports_what_stays(
    catalog: FileSystemCatalog, tmp_path: Path
) -> None:
    table = create(catalog, outside(tmp_path))
    append(table, rows_of([1]))
    catalog.storage.delete_folder(f"{table.table_path}/manifest")

    with pytest.warns(EmberlakeWarning, match=r"db\.t is dropped, but its files outside"):
        catalog.drop_table("db.t")

    assert catalog.list_tables("db") == []
    assert len(on_disk(tmp_path)) == 1


def test_a_table_with_a_broken_schema_can_be_dropped(catalog: FileSystemCatalog) -> None:
    table = create(catalog, {})
    catalog.storage.put(f"{table.table_path}/schema/schema-0", b"{")

    catalog.drop_table("db.t")

    assert catalog.list_tables("db") == []


def test_a_table_whose_paths_make_no_sense_is_not_created(catalog: FileSystemCatalog) -> None:
    with pytest.raises(InvalidSchema, match="/ext has no scheme"):
        create(catalog, {PATHS: "/ext", f"{PATHS}.strategy": "round-robin"})


def test_a_scheme_without_a_storage_is_refused_before_anything_is_written(
    catalog: FileSystemCatalog,
) -> None:
    table = create(catalog, {PATHS: "gopher://b/x", f"{PATHS}.strategy": "round-robin"})

    with pytest.raises(Unsupported, match="no storage for gopher"):
        append(table, rows_of([1]))
    assert not at_home(table)
