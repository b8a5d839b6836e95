"""What each system table shows, over metadata written by hand into memory."""

import datetime as dt
import json
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.base.times import instant_ms, wall_clock_ms
from emberlake.errors import (
    ColumnNotFound,
    CorruptFile,
    FileNotFound,
    InvalidInput,
    SnapshotNotFound,
    TableNotFound,
)
from emberlake.inspect import SYSTEM_TABLES, SystemTable, open_system_table
from emberlake.io import MemoryStorage, Storage
from emberlake.options import TableOptions
from emberlake.predicates import PredicateBuilder
from emberlake.spec.binary_row import encode_row
from emberlake.spec.identifier import Identifier
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import (
    EMPTY_STATS,
    DataFile,
    DeletionVectorRange,
    FileKind,
    FileSource,
    IndexFile,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.spec.schema import TableSchema
from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.spec.stats import encode_stats
from emberlake.store.publishing import TableIdentity
from emberlake.store.table_store import TableStore
from emberlake.types import AtomicType, DataField

DAY = AtomicType("DATE")
KEY = AtomicType("BIGINT NOT NULL")
NAME = AtomicType("STRING")
MORNING = 1_750_000_000_000


def a_schema(**changes) -> TableSchema:
    values = {
        "id": 0,
        "fields": (DataField(0, "day", DAY), DataField(1, "id", KEY), DataField(2, "name", NAME)),
        "highest_field_id": 2,
        "partition_keys": ("day",),
        "primary_keys": ("day", "id"),
        "options": TableOptions({"bucket": "2"}),
        "time_millis": MORNING,
    }
    return TableSchema(**{**values, **changes})


def a_store(schema: TableSchema | None = None, storage: Storage | None = None) -> TableStore:
    layout = TableLayout("/w/db.db/t")
    identity = TableIdentity(Identifier("db", "t"))
    store = TableStore(storage or MemoryStorage(), layout, schema or a_schema(), identity=identity)
    store.schemas.create(store.schema)
    return store


def a_file(name: str, **changes) -> DataFile:
    values = {
        "file_name": name,
        "file_size": 100,
        "row_count": 10,
        "min_key": encode_row([KEY], [1]),
        "max_key": encode_row([KEY], [9]),
        "value_stats": encode_stats(
            [DAY, KEY, NAME], [20_000, 1, 'a"b'], [20_000, 9, None], [0, 0, 3]
        ),
        "min_sequence_number": 0,
        "max_sequence_number": 9,
        "schema_id": 0,
        "creation_time": MORNING,
    }
    return DataFile(**{**values, **changes})


def add(day: int | None, bucket: int, file: DataFile) -> ManifestEntry:
    partition = encode_row([DAY], [day])
    return ManifestEntry(
        kind=FileKind.ADD, partition=partition, bucket=bucket, total_buckets=2, file=file
    )


def delete(entry: ManifestEntry) -> ManifestEntry:
    return ManifestEntry(
        kind=FileKind.DELETE,
        partition=entry.partition,
        bucket=entry.bucket,
        total_buckets=entry.total_buckets,
        file=entry.file,
    )


def commit(store: TableStore, entries: list[ManifestEntry], **changes) -> Snapshot:
    latest = store.snapshots.latest()
    before = [] if latest is None else _manifests_of(store, latest)
    base, base_size = store.manifests.write_list(before)
    delta, delta_size = store.manifests.write_list(
        store.manifests.write_manifests(entries, store.partition_types)
    )
    values = {
        "id": 1 if latest is None else latest.id + 1,
        "schema_id": store.schema.id,
        "base_manifest_list": base,
        "base_manifest_list_size": base_size,
        "delta_manifest_list": delta,
        "delta_manifest_list_size": delta_size,
        "commit_user": "someone",
        "commit_identifier": 7,
        "commit_kind": CommitKind.APPEND,
        "time_millis": MORNING,
        "total_record_count": 10,
        "delta_record_count": 10,
    }
    snapshot = Snapshot(**{**values, **changes})
    assert store.snapshots.publish(snapshot)
    return snapshot


def _manifests_of(store: TableStore, snapshot: Snapshot):
    return [
        *store.manifests.read_list(snapshot.base_manifest_list),
        *store.manifests.read_list(snapshot.delta_manifest_list),
    ]


def system_table(store: TableStore, name: str) -> SystemTable:
    return open_system_table(name, Identifier.from_string(f"db.t${name}"), store)


def rows(store: TableStore, name: str, *, where=None, columns=None, limit=None) -> list[dict]:
    builder = system_table(store, name).new_read_builder()
    builder.with_filter(where).with_projection(columns).with_limit(limit)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()


def at(instant: int) -> dt.datetime:
    shown = dt.datetime.fromtimestamp(wall_clock_ms(instant) / 1000, tz=dt.UTC)
    return shown.replace(tzinfo=None)


@pytest.mark.parametrize("name", sorted(SYSTEM_TABLES))
def test_every_system_table_of_a_table_without_snapshots_can_be_read(name):
    table = system_table(a_store(), name)
    builder = table.new_read_builder()

    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    assert found.schema.names == table.field_names
    counts = {"schemas": 1, "options": 1, "aggregation_fields": 3}
    assert found.num_rows == counts.get(name, 0)


def test_an_unknown_system_table_is_refused_with_those_that_exist():
    with pytest.raises(
        TableNotFound, match="no system table 'x'; there are aggregation_fields, branches"
    ):
        system_table(a_store(), "x")
    with pytest.raises(TableNotFound, match=r"no system table 'snapshot'; did you mean snapshots"):
        system_table(a_store(), "snapshot")


def test_snapshots_are_shown_oldest_first_with_the_local_time():
    store = a_store()
    commit(store, [])
    commit(store, [], commit_kind=CommitKind.OVERWRITE, watermark=5, operation="DELETE")

    first, second = rows(store, "snapshots")

    assert (first["snapshot_id"], first["commit_kind"], first["watermark"]) == (1, "APPEND", None)
    assert (second["snapshot_id"], second["commit_kind"]) == (2, "OVERWRITE")
    assert (second["watermark"], second["operation"]) == (5, "DELETE")
    assert first["commit_time"] == at(MORNING)
    assert first["commit_identifier"] == 7


class ExpiringStorage(MemoryStorage):
    """Snapshot 1 expires between being listed and being read."""

    def read(self, path: str) -> bytes:
        if path.endswith("/snapshot-1"):
            raise FileNotFound(path)
        return super().read(path)


def test_a_snapshot_that_expires_while_it_is_listed_is_left_out():
    store = a_store(storage=ExpiringStorage())
    snapshot = commit(store, [])
    store.snapshots.publish(replace(snapshot, id=2))

    assert [row["snapshot_id"] for row in rows(store, "snapshots")] == [2]


def test_schemas_are_shown_as_json():
    store = a_store()
    store.schemas.create(a_schema(id=1, comment="two", options=TableOptions({"a": "b"})))

    first, second = rows(store, "schemas")

    assert [field["name"] for field in json.loads(first["fields"])] == ["day", "id", "name"]
    assert json.loads(first["primary_keys"]) == ["day", "id"]
    assert json.loads(first["partition_keys"]) == ["day"]
    assert (second["schema_id"], second["comment"]) == (1, "two")
    assert json.loads(second["options"]) == {"a": "b"}
    assert second["update_time"] == at(MORNING)


def test_options_are_shown_by_key():
    schema = a_schema(options=TableOptions({"z": "1", "bucket": "2"}))

    found = rows(a_store(schema), "options")

    assert found == [{"key": "bucket", "value": "2"}, {"key": "z", "value": "1"}]


def test_files_are_the_live_files_of_the_latest_snapshot():
    store = a_store()
    gone = add(20_000, 0, a_file("data-1.parquet"))
    commit(store, [gone, add(20_000, 1, a_file("data-2.parquet"))])
    commit(store, [delete(gone), add(None, 0, a_file("data-3.orc", level=5, row_count=4))])

    found = {row["file_path"]: row for row in rows(store, "files")}

    assert sorted(found) == [
        "/w/db.db/t/day=20000/bucket-1/data-2.parquet",
        "/w/db.db/t/day=__DEFAULT_PARTITION__/bucket-0/data-3.orc",
    ]
    row = found["/w/db.db/t/day=20000/bucket-1/data-2.parquet"]
    assert (row["partition"], row["bucket"], row["file_format"]) == ("day=2024-10-04", 1, "parquet")
    assert (row["min_key"], row["max_key"]) == ("[1]", "[9]")
    assert row["creation_time"] == dt.datetime.fromtimestamp(MORNING / 1000, dt.UTC).replace(
        tzinfo=None
    )
    assert (row["file_source"], row["deleteRowCount"]) == ("APPEND", 0)
    other = found["/w/db.db/t/day=__DEFAULT_PARTITION__/bucket-0/data-3.orc"]
    assert (other["partition"], other["level"], other["record_count"]) == (
        "day=__DEFAULT_PARTITION__",
        5,
        4,
    )


def test_statistics_of_files_are_json_objects_by_column():
    store = a_store()
    commit(store, [add(20_000, 0, a_file("data-1.parquet"))])

    (row,) = rows(store, "files")

    assert json.loads(row["null_value_counts"]) == {"day": 0, "id": 0, "name": 3}
    assert json.loads(row["min_value_stats"]) == {"day": "2024-10-04", "id": 1, "name": 'a"b'}
    assert json.loads(row["max_value_stats"]) == {"day": "2024-10-04", "id": 9, "name": None}


def test_statistics_follow_columns_by_id_through_schema_changes():
    store = a_store()
    changed = a_schema(
        id=1,
        fields=(
            DataField(0, "day", DAY),
            DataField(1, "key", KEY),
            DataField(3, "name", AtomicType("INT")),
        ),
        primary_keys=("day", "key"),
        highest_field_id=3,
    )
    store.schemas.create(changed)
    store = store.with_schema(changed)
    new_stats = encode_stats([AtomicType("INT")], [4], [5], [1])
    commit(
        store,
        [
            add(20_000, 0, a_file("old.parquet")),
            add(
                20_000,
                0,
                a_file(
                    "new.parquet", schema_id=1, value_stats=new_stats, value_stats_cols=("name",)
                ),
            ),
        ],
    )

    old, new = rows(store, "files")

    assert json.loads(old["min_value_stats"]) == {"day": "2024-10-04", "key": 1, "name": None}
    assert json.loads(old["null_value_counts"]) == {"day": 0, "key": 0, "name": 10}
    assert json.loads(new["min_value_stats"]) == {"day": None, "key": None, "name": 4}
    assert json.loads(new["null_value_counts"]) == {"day": None, "key": None, "name": 1}


def test_files_without_statistics_show_nulls():
    store = a_store()
    files = [
        a_file("none.parquet", value_stats=EMPTY_STATS, value_stats_cols=()),
        a_file("old.parquet", value_stats=EMPTY_STATS, value_stats_cols=None),
    ]
    commit(store, [add(1, 0, file) for file in files])

    for row in rows(store, "files"):
        assert json.loads(row["min_value_stats"]) == {"day": None, "id": None, "name": None}
        assert json.loads(row["null_value_counts"]) == {"day": None, "id": None, "name": None}


def test_files_of_append_tables_have_no_keys_and_no_partition():
    schema = a_schema(partition_keys=(), primary_keys=(), options=TableOptions())
    store = a_store(schema)
    file = DataFile(
        file_name="data-1.avro",
        file_size=1,
        row_count=2,
        min_sequence_number=0,
        max_sequence_number=1,
        schema_id=0,
        value_stats_cols=(),
        file_source=FileSource.COMPACT,
        external_path="/elsewhere/data-1.avro",
        first_row_id=5,
        write_cols=("id", "name"),
    )
    entry = ManifestEntry(
        kind=FileKind.ADD, partition=bytes(12), bucket=0, total_buckets=-1, file=file
    )
    commit(store, [entry])

    (row,) = rows(store, "files")

    assert (row["partition"], row["min_key"], row["max_key"]) == (None, None, None)
    assert row["file_path"] == "/elsewhere/data-1.avro"
    assert (row["file_format"], row["file_source"]) == ("avro", "COMPACT")
    assert (row["first_row_id"], row["write_cols"]) == (5, ["id", "name"])
    assert row["creation_time"] is None


def test_manifests_show_the_range_of_their_partitions():
    store = a_store()
    commit(store, [add(20_000, 0, a_file("a.parquet")), add(20_001, 0, a_file("b.parquet"))])
    commit(store, [add(20_002, 0, a_file("c.parquet"))])

    first, second = rows(store, "manifests")

    assert (first["num_added_files"], first["num_deleted_files"]) == (2, 0)
    assert (first["min_partition_stats"], first["max_partition_stats"]) == (
        "{2024-10-04}",
        "{2024-10-05}",
    )
    assert second["min_partition_stats"] == "{2024-10-06}"
    assert first["file_size"] > 0


def test_partitions_sum_up_their_files():
    store = a_store()
    commit(
        store,
        [
            add(20_001, 0, a_file("a.parquet", row_count=1)),
            add(20_001, 1, a_file("b.parquet", row_count=2, creation_time=MORNING + 5)),
            add(20_000, 0, a_file("c.parquet", row_count=4, creation_time=None)),
        ],
    )

    first, second = rows(store, "partitions")

    assert (first["partition"], first["record_count"], first["file_count"]) == (
        "day=2024-10-04",
        4,
        1,
    )
    assert first["last_update_time"] is None
    assert (second["record_count"], second["file_count"]) == (3, 2)
    assert second["file_size_in_bytes"] == 200
    assert second["last_update_time"].microsecond == 5000
    assert (second["total_buckets"], second["done"], second["deleted_record_count"]) == (
        2,
        False,
        0,
    )


def test_partitions_count_rows_that_deletion_vectors_hide():
    store = a_store(a_schema(options=TableOptions({"deletion-vectors.enabled": "true"})))
    days = [20_000, 20_001, 20_002]
    cardinalities = [(3, 4), (5, None), ()]
    index = store.manifests.write_index(
        [
            IndexManifestEntry(
                kind=FileKind.ADD,
                partition=encode_row([DAY], [day]),
                bucket=0,
                index_file=IndexFile(
                    index_type="DELETION_VECTORS",
                    file_name=f"index-{day}",
                    file_size=1,
                    row_count=len(counts),
                    deletion_vectors=tuple(
                        DeletionVectorRange(f"f{i}", 0, 1, count) for i, count in enumerate(counts)
                    ),
                ),
            )
            for day, counts in zip(days, cardinalities, strict=True)
        ]
    )
    commit(store, [add(day, 0, a_file(f"{day}.parquet")) for day in days], index_manifest=index)

    found = rows(store, "partitions", columns=["deleted_record_count"])

    assert [row["deleted_record_count"] for row in found] == [7, None, 0]


def test_an_unpartitioned_table_is_one_partition_without_a_name():
    store = a_store(a_schema(partition_keys=(), primary_keys=("id",)))
    entry = replace(add(1, 0, a_file("a.parquet")), partition=bytes(12))
    commit(store, [entry])

    (partition,), (bucket,) = rows(store, "partitions"), rows(store, "buckets")

    assert (partition["partition"], partition["record_count"]) == (None, 10)
    assert (bucket["partition"], bucket["bucket"]) == (None, 0)


def test_buckets_sum_up_their_files():
    store = a_store()
    commit(
        store,
        [
            add(20_001, 1, a_file("a.parquet", row_count=1)),
            add(20_001, 0, a_file("b.parquet", row_count=2)),
            add(20_000, 1, a_file("c.parquet", row_count=4)),
            add(20_001, 1, a_file("d.parquet", row_count=8)),
        ],
    )

    found = rows(store, "buckets", columns=["partition", "bucket", "record_count", "file_count"])

    assert [tuple(row.values()) for row in found] == [
        ("day=2024-10-04", 1, 4, 1),
        ("day=2024-10-05", 0, 2, 1),
        ("day=2024-10-05", 1, 9, 2),
    ]


def test_tags_show_retention_as_iso_durations():
    store = a_store()
    snapshot = commit(store, [])
    store.tags.create("plain", snapshot)
    kept = {"tagCreateTime": [2026, 6, 26, 10, 30], "tagTimeRetained": 129600.0}
    store.storage.put(store.layout.tag("kept"), json.dumps({**snapshot.to_json(), **kept}).encode())

    kept_row, plain_row = rows(store, "tags")

    assert (kept_row["tag_name"], kept_row["time_retained"]) == ("kept", "PT36H")
    assert kept_row["create_time"] == dt.datetime(2026, 6, 26, 10, 30)  # noqa: DTZ001
    assert (plain_row["snapshot_id"], plain_row["record_count"]) == (1, 10)
    assert (plain_row["create_time"], plain_row["time_retained"]) == (None, None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "PT0S"), (90, "PT1M30S"), (0.5, "PT0.5S"), (3661.0, "PT1H1M1S")]
)
def test_retentions_of_any_length_are_shown(seconds, text):
    store = a_store()
    raw = json.dumps({**commit(store, []).to_json(), "tagTimeRetained": seconds})
    store.storage.put(store.layout.tag("t"), raw.encode())

    assert rows(store, "tags")[0]["time_retained"] == text


def test_branches_and_consumers_are_listed_from_their_folders():
    store = a_store()
    branch = store.layout.for_branch("b1")
    store.storage.put(branch.schema(0), a_schema().encode())
    store.storage.put(store.layout.consumer("me"), b'{"nextSnapshot": 4}')

    assert [row["branch_name"] for row in rows(store, "branches")] == ["b1"]
    assert rows(store, "consumers") == [{"consumer_id": "me", "next_snapshot_id": 4}]


def test_a_broken_consumer_file_is_named():
    store = a_store()
    store.storage.put(store.layout.consumer("me"), b"{}")

    with pytest.raises(CorruptFile, match="consumer-me"):
        rows(store, "consumers")


def test_filters_need_not_be_among_the_projected_columns():
    store = a_store()
    commit(store, [add(1, 0, a_file(f"{n}.parquet", row_count=n)) for n in range(5)])

    found = rows(store, "files", where="record_count >= 3 AND level = 0", columns=["file_format"])

    assert found == [{"file_format": "parquet"}] * 2


def test_predicates_may_come_from_a_builder():
    store = a_store()
    for _ in range(3):
        commit(store, [])
    builder = system_table(store, "snapshots").new_read_builder()
    predicates = builder.new_predicate_builder()

    assert isinstance(predicates, PredicateBuilder)
    found = rows(store, "snapshots", where=predicates.greater_than("snapshot_id", 1))

    assert [row["snapshot_id"] for row in found] == [2, 3]


def test_a_limit_cuts_after_the_filter():
    store = a_store()
    for _ in range(3):
        commit(store, [])

    found = rows(store, "snapshots", where="snapshot_id > 1", limit=1)

    assert [row["snapshot_id"] for row in found] == [2]


def test_columns_come_in_the_order_of_the_projection():
    assert list(rows(a_store(), "options", columns=["value", "key"])[0]) == ["value", "key"]


def test_unknown_columns_and_negative_limits_are_refused():
    builder = system_table(a_store(), "options").new_read_builder()

    with pytest.raises(ColumnNotFound, match=r"no column nope; its columns are key, value"):
        builder.with_projection(["nope"])
    with pytest.raises(InvalidInput, match="-1"):
        builder.with_limit(-1)


def test_a_plan_keeps_its_snapshot():
    store = a_store()
    commit(store, [add(1, 0, a_file("a.parquet"))])
    builder = system_table(store, "files").new_read_builder().with_projection(["file_path"])
    plan = builder.new_scan().plan()
    commit(store, [add(1, 0, a_file("b.parquet"))])

    assert plan.snapshot_id == 1
    assert builder.new_read().to_arrow(plan.splits()).num_rows == 1


def test_options_travel_to_another_snapshot():
    store = a_store()
    first = commit(store, [add(1, 0, a_file("a.parquet"))])
    store.tags.create("kept", first)
    commit(store, [add(1, 0, a_file("b.parquet"))])
    store.snapshots.delete(1)  # as expiration does; the tag keeps its files

    table = system_table(store, "files").copy({"scan.tag-name": "kept"})
    builder = table.new_read_builder()

    assert builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows == 1
    assert table.options["scan.tag-name"] == "kept"


def test_travelling_to_what_does_not_exist_is_an_error_at_once():
    with pytest.raises(SnapshotNotFound):
        system_table(a_store(), "files").copy({"scan.snapshot-id": "7"})


def test_options_given_for_a_read_are_not_options_of_the_table():
    store = a_store()
    commit(store, [])
    table = system_table(store, "options").copy({"scan.snapshot-id": "1"})
    builder = table.new_read_builder().with_projection(["key"])

    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    assert found.to_pydict() == {"key": ["bucket"]}


def test_splits_of_another_table_are_refused():
    store = a_store()
    splits = system_table(store, "tags").new_read_builder().new_scan().plan().splits()

    with pytest.raises(InvalidInput, match=r"not a split of db\.t\$options"):
        system_table(store, "options").new_read_builder().new_read().to_arrow(splits)


def test_rows_come_in_every_form():
    store = a_store()
    builder = system_table(store, "options").new_read_builder()
    splits, read = builder.new_scan().plan().splits(), builder.new_read()
    expected = pa.table({"key": ["bucket"], "value": ["2"]}).to_pylist()

    assert read.to_arrow_batch_reader(splits).read_all().to_pylist() == expected
    assert read.to_pandas(splits).to_dict("records") == expected
    assert read.to_polars(splits).to_dicts() == expected
    assert list(read.to_iterator(splits)) == [("bucket", "2")]
    assert next(read.to_iterator(splits)).get_field(0) == "bucket"
    connection = read.to_duckdb(splits, "o")
    assert connection.execute("SELECT key FROM o").fetchall() == [("bucket",)]


def test_a_system_table_is_read_in_one_call():
    options = TableOptions({"bucket": "2", "file.format": "orc"})
    table = system_table(a_store(a_schema(options=options)), "options")
    expected = [{"key": "file.format", "value": "orc"}]

    assert table.to_arrow(filter="value = 'orc'").to_pylist() == expected
    assert table.to_batches(filter="value = 'orc'").read_all().to_pylist() == expected
    assert table.to_pandas(filter="value = 'orc'").to_dict("records") == expected
    assert table.to_polars(filter="value = 'orc'").to_dicts() == expected
    assert table.to_duckdb(["value"], "value = 'orc'").fetchall() == [("orc",)]
    assert (table.count(), table.count("value = 'orc'")) == (2, 1)


def test_one_call_reads_the_metadata_of_an_earlier_snapshot():
    store = a_store()
    commit(store, [add(1, 0, a_file("a.parquet"))])
    commit(store, [add(1, 0, a_file("b.parquet"))])
    files = system_table(store, "files")

    assert (files.count(), len(files.to_arrow(snapshot=1))) == (2, 1)
    with pytest.raises(SnapshotNotFound):
        files.to_arrow(snapshot=9)
    with pytest.raises(InvalidInput, match="snapshot or tag"):
        files.to_arrow(snapshot=1, tag="v1")


def test_tables_and_splits_pickle():
    store = a_store()
    commit(store, [])
    table = pickle.loads(pickle.dumps(system_table(store, "snapshots")))
    builder = table.new_read_builder()
    splits = pickle.loads(pickle.dumps(builder.new_scan().plan().splits()))

    assert builder.new_read().to_arrow(splits).num_rows == 1


def test_a_system_table_says_what_it_is():
    table = system_table(a_store(), "options")

    assert repr(table) == "SystemTable(db.t$options: key, value)"
    assert (table.name, table.field_names) == ("options", ["key", "value"])
    assert [field.type for field in table.fields] == [AtomicType("STRING NOT NULL")] * 2
    assert (table.primary_keys, table.partition_keys) == (["key"], [])
    assert dict(table.options) == {"bucket": "2"}


@pytest.mark.parametrize("instant", [0, MORNING, MORNING + 180 * 86_400_000])
def test_wall_clock_and_instant_are_inverse(instant):
    assert instant_ms(wall_clock_ms(instant)) == instant


def test_files_of_moved_rows_show_the_values_of_their_own_columns(tmp_path):
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    columns = pa.schema([("id", pa.int32()), ("tags", pa.list_(pa.string()))])
    table = catalog.create_table("db.t", columns, options={"row-tracking.enabled": "true"})
    for number in (1, 2):
        table.append(pa.table({"id": [number], "tags": [["x"]]}, schema=columns))
    table.copy({"compaction.min.file-num": "2"}).compact()

    (row,) = catalog.get_table("db.t$files").to_arrow().to_pylist()

    assert row["write_cols"] == ["id", "tags", "_ROW_ID", "_SEQUENCE_NUMBER"]
    assert json.loads(row["min_value_stats"]) == {"id": 1, "tags": None}
    assert json.loads(row["max_value_stats"]) == {"id": 2, "tags": None}


def test_statistics_may_leave_out_the_hidden_columns_of_moved_rows():
    schema = a_schema(partition_keys=(), primary_keys=(), options=TableOptions())
    store = a_store(schema)
    types = [field.type for field in schema.fields]
    columns = ("day", "id", "name", "_ROW_ID")
    all_of_them = encode_stats([*types, KEY], [1, 2, "a", 0], [1, 2, "a", 0], [0, 0, 0, 0])
    own = encode_stats(types, [1, 2, "a"], [1, 2, "a"], [0, 0, 0])
    files = [
        replace(a_file(name), value_stats=stats, value_stats_cols=None, write_cols=columns)
        for name, stats in (("a.parquet", all_of_them), ("b.parquet", own))
    ]
    commit(store, [replace(add(1, 0, file), partition=bytes(12)) for file in files])

    for row in rows(store, "files"):
        assert json.loads(row["min_value_stats"]) == {"day": "1970-01-02", "id": 2, "name": "a"}
