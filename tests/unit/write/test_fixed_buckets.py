"""Rows of a table with postponed buckets that get their buckets at once."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from builders import NUMBERED, create_key_table, numbered, upsert
from emberlake import Table
from emberlake.errors import DataMismatch, InvalidOption, InvalidState
from table_reads import live_files, read

POSTPONED = {"bucket": "-2"}
THREE = {**POSTPONED, "postpone.default-bucket-num": "3"}
BY_DAY = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)]
)


def write(
    table: Table, rows: Sequence[dict[str, object]], kind: str | None = None, *, over: bool = False
) -> None:
    builder = table.new_postpone_fixed_bucket_write_builder()
    builder = builder.overwrite() if over else builder
    with builder.new_write() as writer:
        writer.write_arrow(pa.Table.from_pylist(list(rows)), kind)
        builder.new_commit().commit(writer.prepare_commit())


def buckets(table: Table) -> set[tuple[int, int]]:
    return {(entry.bucket, entry.total_buckets) for entry in live_files(table)}


def test_rows_are_readable_without_a_compaction() -> None:
    table = create_key_table(NUMBERED, **THREE)

    write(table, numbered(range(20)))
    write(table, numbered(range(10, 30), "b"))
    write(table, [{"id": 5}], "-D")

    assert {row["id"]: row["v"][0] for row in read(table)} == {
        **{n: "a" for n in range(10) if n != 5},
        **dict.fromkeys(range(10, 30), "b"),
    }
    assert buckets(table) == {(0, 3), (1, 3), (2, 3)}


def test_partitions_keep_the_number_of_buckets_that_they_have() -> None:
    table = create_key_table(BY_DAY, ["day", "id"], ["day"], **THREE)
    write(table, [{"day": "mon", "id": n} for n in range(20)])
    other = table.copy({"postpone.default-bucket-num": "2"})

    write(other, [{"day": day, "id": n} for n in range(20, 40) for day in ("mon", "tue")])

    assert len(read(table)) == 60
    counts = {
        (table.store.partition_spec(e.partition)["day"], e.total_buckets) for e in live_files(table)
    }
    assert counts == {("mon", 3), ("tue", 2)}


def test_an_overwrite_starts_over() -> None:
    table = create_key_table(NUMBERED, **THREE)
    write(table, numbered(range(20)))

    write(table.copy({"postpone.default-bucket-num": "2"}), numbered(range(5)), over=True)

    assert [row["id"] for row in read(table)] == list(range(5))
    assert {total for _, total in buckets(table)} == {2}


def test_an_overwrite_keeps_the_number_of_buckets_if_no_option_says_another() -> None:
    table = create_key_table(NUMBERED, **THREE)
    write(table, numbered(range(20)))
    upsert(table, numbered([1]))  # waits for its bucket, and is replaced too

    write(table.copy({"postpone.default-bucket-num": None}), numbered(range(5)), over=True)

    assert [row["id"] for row in read(table)] == list(range(5))
    assert {total for _, total in buckets(table)} == {3}


def test_a_compaction_goes_on_with_these_buckets() -> None:
    table = create_key_table(NUMBERED, **THREE)
    write(table, numbered(range(10)))
    upsert(table, numbered(range(5, 15), "b"))

    table.compact()

    assert [row["v"][0] for row in read(table)] == [*["a"] * 5, *["b"] * 10]
    assert {total for _, total in buckets(table)} == {3}


def test_rows_that_wait_are_not_overtaken() -> None:
    table = create_key_table(NUMBERED, **THREE)
    upsert(table, numbered([1]))

    with pytest.raises(InvalidState, match="compact the table first"):
        write(table, numbered([1], "b"))


def test_a_partition_without_buckets_needs_a_number_of_them() -> None:
    with pytest.raises(InvalidOption, match=r"postpone\.default-bucket-num"):
        write(create_key_table(NUMBERED, **POSTPONED), numbered([1]))


def test_other_tables_do_not_postpone() -> None:
    with pytest.raises(InvalidState, match="bucket=-2"):
        create_key_table(NUMBERED).new_postpone_fixed_bucket_write_builder()


def test_data_that_does_not_fit_is_refused_as_elsewhere() -> None:
    with pytest.raises(DataMismatch, match="nope"):
        write(create_key_table(NUMBERED, **THREE), [{"id": 1, "nope": 2}])


def test_columns_can_be_declared_and_rows_written_one_at_a_time() -> None:
    table = create_key_table(NUMBERED, **THREE)
    builder = table.new_postpone_fixed_bucket_write_builder()
    with builder.new_write() as writer:
        writer.with_write_type(["id", "v"])
        writer.write_row((1, "a"))
        writer.write_row({"id": 2, "v": "b"}, row_kind="+U")
        builder.new_commit().commit(writer.prepare_commit())

    assert [(row["id"], row["v"]) for row in read(table)] == [(1, "a"), (2, "b")]


def test_what_was_written_is_deleted_with_the_write() -> None:
    table = create_key_table(NUMBERED, **THREE)
    writer = table.new_postpone_fixed_bucket_write_builder().new_write()
    writer.write_arrow(pa.Table.from_pylist(numbered([1])))
    writer.close()

    with pytest.raises(InvalidState, match="closed"):
        writer.write_arrow(pa.Table.from_pylist(numbered([1])))
    assert table.latest_snapshot() is None
