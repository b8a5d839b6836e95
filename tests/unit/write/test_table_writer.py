"""Files that roll, memory that is bounded, and writes that leave nothing behind."""

import threading

import numpy as np
import pyarrow as pa
import pytest

from builders import append, as_arrow, create_table, open_table, prepare, rows_of
from emberlake.errors import DataMismatch, InvalidState
from emberlake.scan.files import live_entries
from emberlake.write import fitting, table_writer
from emberlake.write.table_writer import TableWriter
from table_reads import data_files, latest_snapshot, read_ids
from watched_storage import WatchedStorage

NUMBERS = pa.schema([("id", pa.int64()), ("day", pa.string())])


def noise(count, days=("mon",)):
    """Rows that do not compress well."""
    ids = np.random.default_rng(7).integers(0, 2**62, count)
    return pa.table({"id": ids, "day": [days[n % len(days)] for n in range(count)]}, NUMBERS)


def files_of(table):
    entries = live_entries(table.store, latest_snapshot(table)).entries()
    return sorted((e.file for e in entries), key=lambda f: f.min_sequence_number)


# --- rolling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_file_ends_at_its_number_of_rows(file_format):
    options = {"target-file-row-num": "4", "file.format": file_format}
    table = create_table(options=options)

    append(table, rows_of(range(10)))

    assert [f.row_count for f in files_of(table)] == [4, 4, 2]
    assert read_ids(table) == list(range(10))


def test_files_that_are_full_end_across_writes():
    table = create_table(options={"target-file-row-num": "4"})
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        for number in range(10):
            write.write_arrow(as_arrow(rows_of([number])))
        builder.new_commit().commit(write.prepare_commit())

    assert [f.row_count for f in files_of(table)] == [4, 4, 2]


def test_a_file_ends_at_its_size():
    target = 64 * 1024
    table = create_table(options={"target-file-size": f"{target} b", "file.compression": "none"})
    data = noise(60_000)

    append(table, data)

    sizes = [f.file_size for f in files_of(table)]
    assert sum(f.row_count for f in files_of(table)) == 60_000
    # A row group takes at most the target in memory, so no file takes much more than twice that.
    assert len(sizes) > 3
    assert max(sizes) <= 2.5 * target
    assert min(sizes[:-1]) >= target
    assert read_ids(table) == sorted(data.column("id").to_pylist())


def test_sequence_numbers_go_on_from_file_to_file():
    table = create_table(options={"target-file-row-num": "4"})

    append(table, rows_of(range(10)))

    ranges = [(f.min_sequence_number, f.max_sequence_number) for f in files_of(table)]
    assert ranges == [(0, 3), (4, 7), (8, 9)]


def test_sequence_numbers_of_a_bucket_go_on_from_commit_to_commit():
    table = create_table(options={"bucket": "1", "bucket-key": "id"})
    append(table, rows_of(range(3)))
    append(table, rows_of(range(2)))

    ranges = [(f.min_sequence_number, f.max_sequence_number) for f in files_of(table)]
    assert ranges == [(0, 2), (3, 4)]


def test_file_names_show_their_format():
    for options, end in [
        ({"file.format": "orc"}, ".orc"),
        ({"file.suffix.include.compression": "true"}, ".zstd.parquet"),
        ({"data-file.prefix": "part-"}, ".parquet"),
    ]:
        table = create_table(options=options)
        append(table, rows_of([1]))

        (path,) = data_files(table)
        name = path.rpartition("/")[2]
        assert name.endswith(end)
        assert name.startswith(options.get("data-file.prefix", "data-"))
        assert read_ids(table) == [1]


def test_data_can_have_a_folder_of_its_own():
    table = create_table(partition_keys=["day"], options={"data-file.path-directory": "data"})
    append(table, rows_of([1]))

    (path,) = data_files(table)

    assert path.startswith(f"{table.table_path}/data/day=mon/bucket-0/data-")
    assert read_ids(table) == [1]


def test_rows_find_their_buckets_again():
    table = create_table(options={"bucket": "4", "bucket-key": "id"})
    append(table, rows_of(range(50)))

    buckets = {path.split("/bucket-")[1].split("/")[0] for path in data_files(table)}
    builder = table.new_read_builder().with_filter("id = 17")
    splits = builder.new_scan().plan().splits()

    assert buckets == {"0", "1", "2", "3"}
    assert builder.new_read().to_arrow(splits).to_pylist() == rows_of([17])
    assert {
        e.total_buckets for e in live_entries(table.store, latest_snapshot(table)).entries()
    } == {4}


# --- memory ---------------------------------------------------------------------------------------


def buffered(writer):
    return sum(w.buffered_bytes for w in writer._writers.values())


def test_buffers_stay_below_their_bound_with_many_partitions():
    bound = 200_000
    table = create_table(partition_keys=["day"], options={"write-buffer-size": f"{bound} b"})
    days = [f"d{n}" for n in range(100)]
    writer = TableWriter(table.store)

    seen = []
    for _ in range(12):
        writer.write(noise(2_000, days))
        seen.append(buffered(writer))

    assert max(seen) <= bound
    assert max(seen) > bound // 4  # not everything goes out with every batch
    messages = writer.prepare()
    writer.close()
    assert sum(m.row_count for m in messages) == 24_000
    assert len(messages) == 100


def test_few_files_are_open_at_once(monkeypatch):
    monkeypatch.setattr(table_writer, "_MAX_OPEN_FILES", 8)
    storage = WatchedStorage(create_table(partition_keys=["day"]).store.storage)
    table = open_table(storage).copy({"write-buffer-size": "1 b"})
    writer = TableWriter(table.store)
    days = [f"d{n}" for n in range(60)]

    open_now, most = 0, 0
    lock = threading.Lock()

    def watch(call):
        nonlocal open_now, most
        with lock:
            if call.method == "open_output" and not call.is_done:
                open_now += 1
            if call.method == "close_output" and call.is_done:
                open_now -= 1
            most = max(most, open_now)

    storage.watch = watch
    for _ in range(2):
        writer.write(noise(600, days))

    assert open_now <= 8
    assert most <= 16
    assert sum(m.row_count for m in writer.prepare()) == 1200


def test_a_stream_is_taken_one_batch_at_a_time():
    table = create_table(options={"write-buffer-size": "1 b"})
    writer = TableWriter(table.store)
    seen = []

    def batches():
        for number in range(5):
            seen.append(buffered(writer))
            yield as_arrow(rows_of([number])).to_batches()[0]

    writer.write(pa.RecordBatchReader.from_batches(NUMBERS, batches()))

    assert seen == [0] * 5
    assert sum(m.row_count for m in writer.prepare()) == 5


def test_large_tables_are_taken_apart(monkeypatch):
    monkeypatch.setattr(fitting, "_SLICE_BYTES", 1000)
    table = create_table(partition_keys=["day"])
    data = noise(1000, ["mon", "tue"])

    append(table, data)

    assert read_ids(table) == sorted(data.column("id").to_pylist())
    assert len(data_files(table)) == 2


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_threads_changes_nothing(workers):
    table = create_table(partition_keys=["day"])
    writer = TableWriter(table.store, workers=workers)
    data = noise(80_000, ["mon", "tue", "wed"])  # enough bytes to be worth threads

    writer.write(data)
    messages = writer.prepare()
    writer.close()
    table.new_batch_write_builder().new_commit().commit(messages)

    assert len(messages) == 3
    assert read_ids(table) == sorted(data.column("id").to_pylist())


# --- leaving nothing behind -----------------------------------------------------------------------

EAGER = {"write-buffer-size": "1 b", "target-file-row-num": "2"}


@pytest.mark.parametrize("options", [{}, EAGER], ids=["buffered", "written"])
@pytest.mark.parametrize("end", ["abort", "close"])
def test_a_write_that_is_given_up_leaves_no_file(options, end):
    table = create_table(partition_keys=["day"]).copy(options)
    write = table.new_batch_write_builder().new_write()
    write.write_arrow(noise(5, ["mon", "tue"]))

    getattr(write, end)()

    assert data_files(table) == set()


def test_leaving_the_block_by_an_error_leaves_no_file():
    table = create_table().copy(EAGER)

    def fail():
        with table.new_batch_write_builder().new_write() as write:
            write.write_arrow(noise(5))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert data_files(table) == set()


def test_what_was_handed_over_stays_when_the_writer_is_closed():
    table = create_table()
    messages = prepare(table, rows_of([1]))

    assert len(data_files(table)) == 1
    assert [m.row_count for m in messages] == [1]


def test_a_stream_that_is_given_up_keeps_what_was_handed_over():
    table = create_table()
    write = table.new_stream_write_builder().new_write()
    write.write_arrow(noise(5))
    write.prepare_commit(1)
    before = data_files(table)

    write.write_arrow(noise(5))
    write.abort()

    assert len(before) == 1
    assert data_files(table) == before


def test_data_that_does_not_fit_leaves_the_writer_as_it_was():
    table = create_table()
    builder = table.new_batch_write_builder()
    write = builder.new_write()
    write.write_arrow(as_arrow(rows_of([1])))

    with pytest.raises(DataMismatch):
        write.write_arrow(pa.table({"id": ["x"]}))

    write.write_arrow(as_arrow(rows_of([2])))
    builder.new_commit().commit(write.prepare_commit())
    assert read_ids(table) == [1, 2]


def test_a_stream_that_breaks_in_the_middle_is_not_half_written():
    table = create_table(columns=pa.schema([("id", pa.int8())]))
    write = table.new_batch_write_builder().new_write()
    batches = [pa.record_batch({"id": pa.array([n], pa.int64())}) for n in (1, 300)]

    with pytest.raises(DataMismatch, match="would lose data"):
        write.write_arrow(pa.RecordBatchReader.from_batches(batches[0].schema, batches))

    with pytest.raises(InvalidState, match="a write failed"):
        write.prepare_commit()
    assert data_files(table) == set()


def test_a_stream_whose_source_fails_is_not_half_written():
    table = create_table()

    def batches():
        yield as_arrow(rows_of([1])).to_batches()[0]
        raise OSError("the source is gone")

    write = table.new_batch_write_builder().new_write()
    with pytest.raises(OSError, match="the source is gone"):
        write.write_arrow(pa.RecordBatchReader.from_batches(NUMBERS, batches()))

    with pytest.raises(InvalidState, match="a write failed"):
        write.prepare_commit()


def test_an_empty_stream_must_fit_too():
    write = create_table().new_batch_write_builder().new_write()
    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int8())]), [])

    with pytest.raises(DataMismatch, match="x: is not a column"):
        write.write_arrow(reader)
    assert write.prepare_commit() == []
