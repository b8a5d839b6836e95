"""The files that writes to primary-key tables make."""

import weakref

import numpy as np
import pyarrow as pa
import pytest

from builders import create_key_table, data_of, prepare, upsert
from emberlake.errors import DataMismatch, InvalidState
from emberlake.formats import open_reader
from emberlake.spec.binary_row import decode_row
from emberlake.spec.key_value import SEQUENCE, key_value_fields
from emberlake.spec.manifest import FileSource
from emberlake.spec.snapshot import CommitKind
from emberlake.types import AtomicType
from emberlake.write.key_bucket import RecordBuffer
from table_reads import all_records, data_files, live_files, records_in, records_of

BIGINT, STRING = AtomicType("BIGINT"), AtomicType("STRING")


def test_rows_are_sorted_by_key_and_the_last_of_a_key_stays() -> None:
    table = create_key_table()

    upsert(table, [(3, "a"), (1, "b"), (3, "c"), (2, "d"), (1, "e")])

    assert list(all_records(table)) == [(1, "e", 4, "+I"), (2, "d", 3, "+I"), (3, "c", 2, "+I")]


def test_the_manifest_says_what_is_in_the_file() -> None:
    table = create_key_table({"a": "STRING", "b": "BIGINT", "v": "INT"}, ["b", "a"])
    long = "x" * 200

    upsert(table, [(long, 7, 1), ("q", -2, None)])
    upsert(table, [("q", -2, None)], "-D")

    first, second = (entry.file for entry in live_files(table))
    keys = [BIGINT, STRING]
    assert decode_row(keys, first.min_key) == (-2, "q")
    assert decode_row(keys, first.max_key) == (7, long)
    assert decode_row(keys, first.key_stats.min_values) == (-2, "q")
    assert decode_row(keys, first.key_stats.max_values) == (7, "x" * 127 + "y")
    assert first.key_stats.null_counts == (0, 0)
    assert first.value_stats.null_counts == (0, 0, 1)
    assert (first.level, first.row_count, first.delete_row_count) == (0, 2, 0)
    assert (first.min_sequence_number, first.max_sequence_number) == (0, 1)
    assert first.file_source is FileSource.APPEND
    assert (second.row_count, second.delete_row_count) == (1, 1)
    assert (second.min_sequence_number, second.max_sequence_number) == (2, 2)


def test_key_statistics_are_there_even_when_columns_have_none() -> None:
    table = create_key_table(**{"metadata.stats-mode": "none"})

    upsert(table, [(1, "a")])

    file = live_files(table)[0].file
    assert decode_row([BIGINT], file.key_stats.min_values) == (1,)
    assert file.value_stats_cols == ()


def test_files_repeat_the_key_unless_they_are_thin() -> None:
    columns = []
    for thin in ("false", "true"):
        table = create_key_table(**{"data-file.thin-mode": thin})
        upsert(table, [(1, "a")])
        entry = live_files(table)[0]
        path = table.store.data_file_path(entry.partition, entry.bucket, entry.file)
        fields = key_value_fields(table.store.schema)
        columns.append([f.name for f in fields])
        with open_reader(table.store.storage, path, fields, "parquet") as reader:
            assert reader.num_rows == 1
            assert reader.read_table(fields).column(0).null_count == 0

    assert columns == [
        ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "v"],
        ["_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "v"],
    ]


def test_a_thin_file_keeps_long_statistics_of_its_keys() -> None:
    table = create_key_table(
        {"k": "STRING", "v": "STRING"}, ["k"], **{"data-file.thin-mode": "true"}
    )

    upsert(table, [("k" * 50, "v" * 50)])

    stats = live_files(table)[0].file.value_stats
    assert decode_row([STRING, STRING], stats.min_values) == ("k" * 50, "v" * 16)


def test_sequence_numbers_continue_from_what_is_there() -> None:
    table = create_key_table(bucket="2")

    upsert(table, [(n, "a") for n in range(10)])
    upsert(table, [(n, "b") for n in range(10)])

    by_bucket: dict[int, list[int]] = {}
    for entry in live_files(table):
        numbers = [record[-2] for record in records_in(table, entry)]
        by_bucket.setdefault(entry.bucket, []).extend(sorted(numbers))
    assert sorted(by_bucket) == [0, 1]
    assert all(numbers == list(range(len(numbers))) for numbers in by_bucket.values())


def test_an_overwrite_counts_from_zero() -> None:
    table = create_key_table()
    upsert(table, [(1, "a"), (2, "b")])

    builder = table.new_batch_write_builder().overwrite()
    builder.new_commit().commit(prepare(table, [(5, "c")], builder=builder))

    assert list(all_records(table)) == [(5, "c", 0, "+I")]


def test_a_stream_goes_on_after_what_it_has_not_committed_yet() -> None:
    table = create_key_table()
    builder = table.new_stream_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(data_of(table, [(1, "a")]))
        first = write.prepare_commit(1)
        write.write_arrow(data_of(table, [(1, "b")]))
        second = write.prepare_commit(2)
        commit.commit(first, 1)
        commit.commit(second, 2)

    assert list(all_records(table)) == [(1, "a", 0, "+I"), (1, "b", 1, "+I")]


def test_a_stream_stays_newer_than_what_others_committed_meanwhile() -> None:
    table = create_key_table()
    builder = table.new_stream_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(data_of(table, [(1, "ours")]))
        commit.commit(write.prepare_commit(1), 1)
        upsert(table, [(n, "theirs") for n in range(5)])
        write.write_arrow(data_of(table, [(1, "ours again")]))
        commit.commit(write.prepare_commit(2), 2)

    assert max(all_records(table), key=lambda record: record[2])[1] == "ours again"


def test_a_full_buffer_is_written_and_no_file_has_a_key_twice() -> None:
    table = create_key_table(**{"write-buffer-size": "1 b"})
    builder = table.new_batch_write_builder()

    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(data_of(table, [(2, "a"), (1, "b"), (2, "c")]))
        write.write_arrow(data_of(table, [(2, "d")]))
        commit.commit(write.prepare_commit())

    files = [records_in(table, entry) for entry in live_files(table)]
    assert files == [[(1, "b", 1, "+I"), (2, "c", 2, "+I")], [(2, "d", 3, "+I")]]


def test_one_flush_makes_several_files_that_follow_each_other() -> None:
    table = create_key_table(**{"target-file-row-num": "2"})

    upsert(table, [(n, "a") for n in (5, 3, 1, 4, 2)])

    keys = sorted([r[0] for r in records_in(table, entry)] for entry in live_files(table))
    assert keys == [[1, 2], [3, 4], [5]]


def test_deletes_stay_in_the_file() -> None:
    table = create_key_table()

    upsert(table, [(1, "a"), (2, "b")])
    upsert(table, [(2, None), (9, None)], "-D")

    assert records_in(table, live_files(table)[1]) == [(2, None, 2, "-D"), (9, None, 3, "-D")]


def test_records_of_a_key_are_folded_by_their_sequence_field() -> None:
    table = create_key_table({"id": "INT", "t": "INT", "v": "STRING"}, **{"sequence.field": "t"})

    upsert(table, [(1, 5, "new"), (1, 3, "old"), (1, None, "oldest")])

    assert list(all_records(table)) == [(1, 5, "new", 0, "+I")]


def test_records_of_a_key_are_folded_with_the_merge_engine() -> None:
    table = create_key_table(
        {"id": "INT", "n": "INT", "s": "STRING"},
        **{"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    )

    upsert(table, [(1, 2, "a"), (1, 3, None), (2, None, None)])

    assert list(all_records(table)) == [(1, 5, "a", 1, "+I"), (2, None, None, 2, "+I")]


def test_the_changelog_holds_the_rows_as_they_came() -> None:
    table = create_key_table(**{"changelog-producer": "input"})
    data = data_of(table, [(2, "a"), (1, "b"), (2, "a"), (2, "c")])
    kinds = pa.array(["+I", "+I", "-U", "+U"])

    upsert(table, data.append_column("_row_kind", kinds))

    (message,) = prepare(table, data)
    assert message.changelog_files[0].file_name.startswith("changelog-")
    snapshot = table.store.snapshots.latest()
    assert snapshot is not None
    assert snapshot.changelog_record_count == 4
    manifests = table.store.manifests
    (entry,) = manifests.read_manifests(
        manifests.read_list(snapshot.changelog_manifest_list)
    ).entries()
    assert records_of(table, entry.partition, entry.bucket, entry.file) == [
        (1, "b", 1, "+I"),
        (2, "a", 0, "+I"),
        (2, "a", 2, "-U"),
        (2, "c", 3, "+U"),
    ]
    assert list(all_records(table)) == [(1, "b", 1, "+I"), (2, "c", 3, "+U")]


def test_changelog_files_have_a_format_of_their_own() -> None:
    options = {"changelog-producer": "input", "changelog-file.format": "avro"}
    table = create_key_table(**options, **{"changelog-file.prefix": "log-"})

    (message,) = prepare(table, [(1, "a")])

    assert message.changelog_files[0].file_name.startswith("log-")
    assert message.changelog_files[0].file_name.endswith(".avro")
    assert message.new_files[0].file_name.endswith(".parquet")


def test_an_overwrite_writes_no_changelog() -> None:
    table = create_key_table(**{"changelog-producer": "input"})
    builder = table.new_batch_write_builder().overwrite()

    (message,) = prepare(table, [(1, "a")], builder=builder)

    assert message.changelog_files == ()
    assert len(data_files(table)) == 1


def test_a_null_key_is_refused_before_anything_is_written() -> None:
    table = create_key_table({"id": "BIGINT", "k": "STRING", "v": "STRING"}, ["id", "k"])
    schema = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.string())])
    data = pa.Table.from_pylist([{"id": 1, "k": "a"}, {"id": None, "k": None}], schema)

    with pytest.raises(DataMismatch, match=r"id: holds 1 null(.|\n)*k: holds 1 null"):
        upsert(table, data)

    assert data_files(table) == set()


def test_a_nullable_key_may_be_null() -> None:
    table = create_key_table(**{"primary-key.nullable": "true"})

    upsert(table, [(2, "a"), (None, "b"), (None, "c")])

    assert list(all_records(table)) == [(None, "c", 2, "+I"), (2, "a", 0, "+I")]


REFUSING = {
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"},
    "first-row": {"merge-engine": "first-row"},
}


@pytest.mark.parametrize("kind", ["-U", "-D"])
@pytest.mark.parametrize("engine", REFUSING)
def test_kinds_that_no_read_could_merge_are_refused_before_anything_is_written(
    engine: str, kind: str
) -> None:
    table = create_key_table({"id": "BIGINT", "n": "INT"}, **REFUSING[engine])
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(data_of(table, [(1, 1), (2, 2)]))

    with pytest.raises(DataMismatch, match=rf"{engine} accepts no {kind} records"):
        write.write_arrow(data_of(table, [(1, 1), (3, 3)]), kind)

    (message,) = write.prepare_commit()
    assert message.row_count == 2


def test_rows_that_cannot_be_folded_undo_the_whole_write() -> None:
    sums = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    table = create_key_table({"id": "BIGINT", "n": "INT"}, **sums)
    data = data_of(table, [(1, 2**31 - 1), (1, 1)])
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(data)

    with pytest.raises(DataMismatch, match="INT"):
        write.prepare_commit()

    assert data_files(table) == set()
    with pytest.raises(InvalidState):
        write.write_arrow(data)


def test_abort_deletes_what_was_flushed() -> None:
    table = create_key_table(
        **{"write-buffer-size": "1 b", "changelog-producer": "input", "bucket": "2"}
    )
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(data_of(table, [(n, "a") for n in range(9)]))
    assert len(data_files(table)) == 4

    write.abort()

    assert data_files(table) == set()


# --- postponed buckets ----------------------------------------------------------------------------


def test_postponed_rows_are_written_as_they_come() -> None:
    table = create_key_table(bucket="-2")
    builder = table.new_batch_write_builder()

    messages = prepare(table, [(2, "a"), (1, "b"), (2, "c")], builder=builder)
    result = builder.new_commit().commit(messages)

    (message,) = messages
    (file,) = message.new_files
    assert (message.bucket, message.total_buckets) == (-2, -2)
    assert file.file_name.startswith(f"data--u-{builder.commit_user}-s-")
    assert file.file_name.endswith("-0.avro")
    assert file.value_stats_cols == ()
    assert all("/bucket-postpone/" in path for path in data_files(table))
    assert result.rows_added == 3
    assert [record[:2] for record in all_records(table)] == [(2, "a"), (1, "b"), (2, "c")]
    snapshot = table.store.snapshots.latest()
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.APPEND


def test_postponed_rows_that_avro_cannot_keep_are_in_the_format_of_the_table() -> None:
    table = create_key_table({"id": "INT", "t": "TIMESTAMP(9)"}, bucket="-2")

    (message,) = prepare(table, [(1, None)])

    assert message.new_files[0].file_name.endswith(".parquet")


def test_a_buffer_is_written_before_it_is_more_than_arrow_can_join(monkeypatch) -> None:
    monkeypatch.setattr("emberlake.write.key_bucket._MAX_JOINED_BYTES", 100)
    table = create_key_table(**{"write-buffer-size": "8 gb", "write-only": "true"})
    builder = table.new_batch_write_builder()

    with builder.new_write() as write, builder.new_commit() as commit:
        for number in range(3):
            write.write_arrow(data_of(table, [(number, "x" * 80)]))
        commit.commit(write.prepare_commit())

    assert [entry.file.row_count for entry in live_files(table)] == [2, 1]


def test_batches_of_a_stream_do_not_stay_in_memory_until_the_buffer_is_written(monkeypatch) -> None:
    # The columns of a batch share its memory: it would be there until the last one is copied.
    monkeypatch.setattr("emberlake.write.key_bucket._COPIED_BYTES", 256 * 1024)
    buffer = RecordBuffer(0)
    batch = pa.table({"a": np.arange(4096), "b": np.arange(4096)})
    streamed = pa.BufferOutputStream()
    with pa.ipc.new_stream(streamed, batch.schema) as sink:
        sink.write_table(batch)
    raw = streamed.getvalue()
    holders: list[weakref.ref[np.ndarray]] = []

    for _ in range(20):
        memory = np.frombuffer(raw, np.uint8).copy()
        holders.append(weakref.ref(memory))
        buffer.add(pa.ipc.open_stream(pa.py_buffer(memory)).read_all())
        del memory

    assert sum(holder() is not None for holder in holders) < 4
    rows = buffer.take()
    assert rows is not None
    assert rows.column("a").to_pylist() == list(range(4096)) * 20
    assert rows.column(SEQUENCE).to_pylist() == list(range(20 * 4096))
    assert buffer.take() is None


def test_levels_may_have_formats_of_their_own() -> None:
    table = create_key_table(**{"file.format": "orc", "file.format.per.level": "0:avro"})

    for value in "ab":
        upsert(table, [(1, value)])
    new = live_files(table)
    table.compact(full=True)
    (top,) = live_files(table)

    assert all(entry.file.file_name.endswith(".avro") for entry in new)
    assert top.file.file_name.endswith(".orc")
