"""Pruning leaves out files, never rows: every read equals a full read filtered in plain Python."""

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from builders import alter, append, create_table, overwrite, publish
from emberlake import AtomicType, SchemaChange
from emberlake.errors import CorruptFile
from emberlake.options import BucketFunction
from emberlake.predicates import filter_rows, parse_predicate
from emberlake.scan.files import (
    Funnel,
    live_entries,
    manifests_of,
    may_hold_partition,
    plan_files,
)
from emberlake.spec.bucket import bucket_of
from emberlake.spec.manifest import ManifestFile
from emberlake.spec.stats import encode_stats
from emberlake.table import Table
from table_reads import latest_snapshot, live_files, planned_files, read_rows

Row = dict[str, Any]


def same_rows(found: list[Row], expected: list[Row]) -> bool:
    return sorted(map(repr, found)) == sorted(map(repr, expected))


def check(
    table: Table, where: str, keep: Callable[[Row], bool], *, files: int | None = None
) -> None:
    """A filtered read gives what the filter keeps of a full read, from this many files."""
    expected = [row for row in read_rows(table) if keep(row)]
    assert same_rows(read_rows(table, where), expected)
    if files is not None:
        assert len(planned_files(table, where)) == files


def funnel(table: Table, where: str) -> Funnel:
    builder = table.new_read_builder().with_filter(where)
    manifests = manifests_of(table.store, latest_snapshot(table))
    return plan_files(table.store, manifests, builder._predicate).funnel


# --- partitions -----------------------------------------------------------------------------------

PARTITIONED = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("hour", pa.int32())])


def days(*numbers: int) -> pa.Table:
    dates = [dt.date(2026, 6, n) if n else None for n in numbers]
    hours = [n % 3 if n else None for n in numbers]
    return pa.table(
        [pa.array(numbers, pa.int64()), dates, pa.array(hours, pa.int32())], PARTITIONED
    )


@pytest.fixture
def partitioned() -> Table:
    table = create_table(columns=PARTITIONED, partition_keys=["day", "hour"])
    append(table, days(1, 2, 0))
    append(table, days(3, 4))
    append(table, days(5, 1))
    return table


@pytest.mark.parametrize(
    ("where", "keep", "files"),
    [
        ("day = DATE '2026-06-01'", lambda r: r["day"] == dt.date(2026, 6, 1), 2),
        ("day > DATE '2026-06-03'", lambda r: r["day"] and r["day"].day > 3, 2),
        ("day IS NULL", lambda r: r["day"] is None, 1),
        ("day IS NOT NULL AND hour <> 1", lambda r: r["day"] and r["hour"] != 1, 3),
        ("hour IN (0, 2) OR day IS NULL", lambda r: r["day"] is None or r["hour"] in (0, 2), 4),
        ("day > DATE '2027-01-01'", lambda r: False, 0),
        ("hour = 1 AND id = 4", lambda r: r["id"] == 4, 1),
        ("hour = 1 OR id = 5", lambda r: r["hour"] == 1 or r["id"] == 5, 4),
    ],
)
def test_a_filter_on_partition_columns_opens_matching_partitions_only(
    partitioned: Table, where: str, keep: Callable[[Row], bool], files: int
) -> None:
    check(partitioned, where, keep, files=files)


def test_manifests_are_left_unread_when_their_partitions_cannot_match(partitioned: Table) -> None:
    found = funnel(partitioned, "day = DATE '2026-06-04'")

    assert (found.manifests, found.manifests_read) == (3, 2)  # the third spans from 1 to 5
    assert (found.files, found.after_partition, found.after_statistics) == (7, 1, 1)


def test_manifests_without_partition_statistics_are_read(partitioned: Table) -> None:
    store = partitioned.store
    manifests = [
        ManifestFile(
            file_name=m.file_name,
            file_size=m.file_size,
            num_added_files=m.num_added_files,
            num_deleted_files=m.num_deleted_files,
            partition_stats=encode_stats((), (), (), ()),
            schema_id=0,
        )
        for m in manifests_of(store, latest_snapshot(partitioned))
    ]
    predicate = partitioned.new_read_builder().with_filter("day = DATE '2026-06-04'")._predicate

    plan = plan_files(store, manifests, predicate)

    assert plan.funnel.manifests_read == 3
    assert plan.entries.row_count.tolist() == [1]


@pytest.mark.parametrize("value", [math.nan, 0.0, -0.0, 1.5, None])
def test_a_partition_is_found_by_itself_whatever_float_it_is(value: float | None) -> None:
    columns = pa.schema([("id", pa.int64()), ("p", pa.float64())])
    table = create_table(columns=columns, partition_keys=["p"])
    append(table, pa.table([[1, 2, 3, 4], pa.array([value, 7.0, -0.0, 0.0])], columns))
    store, snapshot = table.store, latest_snapshot(table)

    for partition in live_entries(store, snapshot).partitions:
        found = live_entries(store, snapshot, partitions=frozenset({partition}))

        assert found.partitions == (partition,)


def test_bounds_that_are_not_numbers_exclude_no_partition() -> None:
    columns = pa.schema([("id", pa.int64()), ("p", pa.float64())])
    store = create_table(columns=columns, partition_keys=["p"]).store
    # Other engines sort NaN last and keep it as the greatest value.
    stats = encode_stats(store.partition_types, [1.0], [math.nan], [0])
    manifest = ManifestFile(
        file_name="m",
        file_size=1,
        num_added_files=2,
        num_deleted_files=0,
        partition_stats=stats,
        schema_id=0,
    )

    assert may_hold_partition(store, manifest, (5.0,))
    assert may_hold_partition(store, manifest, (math.nan,))
    assert not may_hold_partition(store, manifest, (0.5,))


@pytest.mark.parametrize("where", ["p = 0.0", "p >= 0.0", "p < 1.0", "p <> 0.0", "p IN (-0.0)"])
def test_float_partitions_compare_as_numbers_do(where: str) -> None:
    columns = pa.schema([("id", pa.int64()), ("p", pa.float64())])
    table = create_table(columns=columns, partition_keys=["p"])
    append(table, pa.table([[1, 2, 3, 4], pa.array([math.nan, 7.0, -0.0, 0.0])], columns))
    keep: dict[str, Callable[[Row], bool]] = {
        "p = 0.0": lambda r: r["p"] == 0,
        "p >= 0.0": lambda r: r["p"] >= 0,
        "p < 1.0": lambda r: r["p"] < 1,
        "p <> 0.0": lambda r: r["p"] != 0,
        "p IN (-0.0)": lambda r: r["p"] == 0,
    }

    check(table, where, keep[where])


# --- buckets --------------------------------------------------------------------------------------


def bucketed(columns: pa.Schema, key: str, **options: str) -> Table:
    return create_table(
        columns=columns,
        options={"bucket": "8", "bucket-key": key, "metadata.stats-mode": "none", **options},
    )


def test_an_equality_on_the_bucket_key_opens_one_bucket() -> None:
    columns = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = bucketed(columns, "id")
    append(table, pa.table([range(100), range(100)], columns))

    check(table, "id = 7", lambda r: r["id"] == 7, files=1)
    check(table, "id = 7 OR id = 7", lambda r: r["id"] == 7, files=1)
    check(table, "id IN (7, 7) AND v < 50", lambda r: r["id"] == 7, files=1)
    check(table, "v = 7", lambda r: r["v"] == 7, files=8)
    check(table, "id = 7 OR v = 8", lambda r: r["id"] == 7 or r["v"] == 8, files=8)
    check(table, "id < 7", lambda r: r["id"] < 7, files=8)


def test_every_column_of_the_bucket_key_must_be_pinned_down() -> None:
    columns = pa.schema([("a", pa.int32()), ("b", pa.string())])
    table = bucketed(columns, "a,b")
    append(table, pa.table([[n % 10 for n in range(100)], [str(n) for n in range(100)]], columns))

    check(table, "a = 3 AND b = '13'", lambda r: r["b"] == "13", files=1)
    check(table, "a = 3", lambda r: r["a"] == 3, files=8)


@pytest.mark.parametrize("literal", ["0.0", "-0.0"])
def test_both_zeros_are_looked_for_in_their_buckets(literal: str) -> None:
    columns = pa.schema([("x", pa.float64())])
    table = bucketed(columns, "x")
    append(table, pa.table([pa.array([0.0, -0.0, 1.0, math.nan])], columns))
    types = [AtomicType("DOUBLE")]
    buckets = {bucket_of(BucketFunction.DEFAULT, types, [zero], 8) for zero in (0.0, -0.0)}

    assert len(buckets) == 2  # or this would test nothing
    assert same_rows(read_rows(table, f"x = {literal}"), [{"x": 0.0}, {"x": -0.0}])


def test_a_file_is_tested_with_the_bucket_count_that_it_was_written_with() -> None:
    columns = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = bucketed(columns, "id")
    append(table, pa.table([range(50), range(50)], columns))
    store = table.store
    # As another engine leaves it after the number of buckets was changed.
    rescaled = store.schema.with_options({"bucket": "3"})
    table = Table(table.identifier, store.storage, store.layout, rescaled)

    for number in range(50):
        assert read_rows(table, f"id = {number}") == [{"id": number, "v": number}]
        assert len(planned_files(table, f"id = {number}")) == 1


def test_a_bucket_key_that_was_widened_by_another_engine_prunes_new_files_only() -> None:
    columns = pa.schema([("id", pa.int32())])
    table = bucketed(columns, "id")
    append(table, pa.table([pa.array(range(-20, 0), pa.int32())], columns))
    store = table.store
    wide = replace(store.schema.fields[0], type=AtomicType("BIGINT"))
    schema = replace(store.schema, id=1, fields=(wide,))
    store.schemas.create(schema)
    table = Table(table.identifier, store.storage, store.layout, schema)

    for number in range(-20, 0):  # the hash of a negative INT is not that of the same BIGINT
        assert read_rows(table, f"id = {number}") == [{"id": number}]


def test_too_many_combinations_of_literals_prune_nothing() -> None:
    columns = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    table = bucketed(columns, "a,b")
    append(table, pa.table([range(100), range(100)], columns))
    many = ", ".join(str(n) for n in range(40))

    check(
        table,
        f"a IN ({many}) AND b IN ({many})",
        lambda r: r["a"] < 40 and r["b"] < 40,
        files=8,
    )


# --- statistics -----------------------------------------------------------------------------------

WIDE = pa.schema(
    [
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.decimal128(10, 2)),
        ("t", pa.timestamp("ns")),
        ("b", pa.bool_()),
    ]
)


def wide_rows(*numbers: int | None) -> pa.Table:
    rows = [
        {
            "n": n,
            "x": None if n is None else n / 2,
            "s": None if n is None else f"text that is longer than sixteen {n:03}",
            "d": None if n is None else Decimal(n).scaleb(-2),
            "t": None if n is None else n * 1_000_000_001,
            "b": None if n is None else n > 0,
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, WIDE)


FILTERS: list[tuple[str, Callable[[Row], bool]]] = [
    ("n = 5", lambda r: r["n"] == 5),
    ("n <> 5", lambda r: r["n"] is not None and r["n"] != 5),
    ("n > 10", lambda r: r["n"] is not None and r["n"] > 10),
    ("n <= 1", lambda r: r["n"] is not None and r["n"] <= 1),
    ("n BETWEEN 3 AND 11", lambda r: r["n"] is not None and 3 <= r["n"] <= 11),
    ("n NOT BETWEEN 3 AND 11", lambda r: r["n"] is not None and not 3 <= r["n"] <= 11),
    ("n IN (1, 100, 12)", lambda r: r["n"] in (1, 100, 12)),
    ("n NOT IN (1, 100, 12)", lambda r: r["n"] is not None and r["n"] not in (1, 12)),
    ("n IS NULL", lambda r: r["n"] is None),
    ("n IS NOT NULL", lambda r: r["n"] is not None),
    ("x >= 5.5", lambda r: r["x"] is not None and r["x"] >= 5.5),
    ("s LIKE 'text%010'", lambda r: r["n"] == 10),
    ("s LIKE 'text that is lo%'", lambda r: r["n"] is not None),
    ("s = 'text that is longer than sixteen 005'", lambda r: r["n"] == 5),
    ("s > 'text that is longer than sixteen 005'", lambda r: r["n"] is not None and r["n"] > 5),
    ("d = 0.05", lambda r: r["n"] == 5),
    ("t < TIMESTAMP '1970-01-01 00:00:05.000000005'", lambda r: r["n"] is not None and r["n"] < 5),
    ("b = TRUE AND n < 3", lambda r: r["n"] in (1, 2)),
    ("n = 5 OR s IS NULL", lambda r: r["n"] == 5 or r["n"] is None),
    ("NOT (n > 3 AND n < 11)", lambda r: r["n"] is not None and not 3 < r["n"] < 11),
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metadata.stats-mode": "full"},
        {"metadata.stats-mode": "counts"},
        {"metadata.stats-mode": "none"},
        {"metadata.stats-mode": "none", "metadata.stats-dense-store": "false"},
        {"metadata.stats-mode": "none", "fields.n.stats-mode": "full"},
        {"metadata.stats-keep-first-n-columns": "2"},
        {"metadata.stats-mode": "truncate(3)", "file.format": "orc"},
    ],
    ids=lambda options: " ".join(f"{key}={value}" for key, value in options.items()) or "default",
)
def test_statistics_of_every_kind_lose_no_row(options: dict[str, str]) -> None:
    table = create_table(columns=WIDE, options=options)
    for numbers in [(1, 2, 3), (4, 5, 6, None), (10, 11), (12,), (None, None)]:
        append(table, wide_rows(*numbers))
    everything = read_rows(table)

    for where, keep in FILTERS:
        assert same_rows(read_rows(table, where), [row for row in everything if keep(row)]), where


def test_files_that_statistics_exclude_are_not_planned() -> None:
    table = create_table(columns=WIDE)
    for numbers in [(1, 2, 3), (4, 5, 6, None), (10, 11), (None, None)]:
        append(table, wide_rows(*numbers))

    opened = {where: len(planned_files(table, where)) for where, _ in FILTERS}

    assert opened["n = 5"] == 1
    assert opened["n > 10"] == 1
    assert opened["n IS NULL"] == 2
    assert opened["n IS NOT NULL"] == 3
    assert opened["d = 0.05"] == 1
    assert opened["s LIKE 'text that is lo%'"] == 3
    assert opened["n IN (1, 100, 12)"] == 1


def test_statistics_of_one_table_may_be_of_different_columns() -> None:
    table = create_table(columns=WIDE)
    for mode in ("truncate(16)", "none", "full", "counts"):
        append(table.copy({"metadata.stats-mode": mode}), wide_rows(1, 2))
        append(table.copy({"fields.n.stats-mode": mode}), wide_rows(8, 9, None))

    for where, keep in [("n = 8", lambda r: r["n"] == 8), ("x < 2", lambda r: r["n"] in (1, 2))]:
        check(table, where, keep)
    assert len(planned_files(table, "n = 8")) < 8


@pytest.mark.parametrize(
    "where", ["x = 0.0", "x > 1", "x < 1", "x <> 1", "x IN (-0.0)", "x IS NOT NULL"]
)
def test_nan_and_the_zeros_hide_from_no_filter(where: str) -> None:
    columns = pa.schema([("x", pa.float64())])
    table = create_table(columns=columns)
    for numbers in [
        (0.0,),
        (-0.0,),
        (math.nan,),
        (math.nan, 1.0),
        (2.0, None),
        (None,),
        (-math.inf,),
    ]:
        append(table, pa.table([pa.array(numbers, pa.float64())], columns))
    keep: dict[str, Callable[[float], bool]] = {
        "x = 0.0": lambda x: x == 0,
        "x > 1": lambda x: x > 1,
        "x < 1": lambda x: x < 1,
        "x <> 1": lambda x: x != 1,
        "x IN (-0.0)": lambda x: x == 0,
        "x IS NOT NULL": lambda x: True,
    }

    check(table, where, lambda r: r["x"] is not None and keep[where](r["x"]))


def test_statistics_of_columns_that_the_schema_lacks_are_refused() -> None:
    table = create_table(columns=WIDE)
    append(table.copy({"fields.n.stats-mode": "none"}), wide_rows(1))
    (entry,) = live_files(table)
    file = replace(entry.file, value_stats_cols=("x", "gone"))
    publish(table, [replace(entry, file=file)])

    with pytest.raises(CorruptFile, match="gone"):
        read_rows(table, "x = 1")


# --- schemas that changed -------------------------------------------------------------------------


def test_an_added_column_is_null_in_old_files_and_prunes_them() -> None:
    table = create_table()
    append(table, [{"id": 1, "day": "mon"}])
    table = alter(table, SchemaChange.add_column("v", AtomicType("INT")))
    columns = pa.schema([("id", pa.int64()), ("day", pa.string()), ("v", pa.int32())])
    append(table, pa.table([[2, 3], ["tue", "wed"], pa.array([5, None], pa.int32())], columns))

    check(table, "v = 5", lambda r: r["v"] == 5, files=1)
    check(table, "v IS NULL", lambda r: r["v"] is None, files=2)
    check(table, "v <> 5", lambda r: False, files=0)
    check(table, "v IS NULL AND id = 1", lambda r: r["id"] == 1, files=1)


def test_a_widened_integer_is_pruned_by_its_old_statistics() -> None:
    columns = pa.schema([("n", pa.int8())])
    table = create_table(columns=columns)
    append(table, pa.table([pa.array([-3, 100], pa.int8())], columns))
    for wider, value in [("SMALLINT", 300), ("INT", 70_000), ("BIGINT", 2**40)]:
        table = alter(table, SchemaChange.update_column_type("n", AtomicType(wider)))
        arrow = table.new_read_builder().new_read().to_arrow([]).schema
        append(table, pa.table([pa.array([value, -value], arrow.field("n").type)], arrow))

    check(table, "n = 100", lambda r: r["n"] == 100, files=4)
    check(table, "n = 300", lambda r: r["n"] == 300, files=3)
    check(table, "n > 70000", lambda r: r["n"] > 70_000, files=1)
    check(table, "n < 0 AND n > -100", lambda r: -100 < r["n"] < 0, files=4)


@pytest.mark.parametrize(
    ("before", "after", "literals"),
    [
        ("INT", "DOUBLE", ["1", "2.5", "10"]),
        ("INT", "DECIMAL(20, 2)", ["1", "2.50", "10"]),
        ("FLOAT", "DOUBLE", ["1", "2.5", "10"]),
        ("DECIMAL(10, 2)", "DECIMAL(20, 4)", ["1", "2.5", "10"]),
        ("CHAR(3)", "CHAR(5)", ["'1'", "'1    '", "'10   '"]),
        ("CHAR(3)", "VARCHAR(5)", ["'1'", "'10'", "'9'"]),
        ("VARCHAR(3)", "STRING", ["'1'", "'10'", "'9'"]),
        ("TIMESTAMP(3)", "TIMESTAMP(9)", ["TIMESTAMP '1970-01-01 00:00:00.001'"]),
    ],
)
def test_a_retyped_column_is_filtered_by_its_new_values(
    before: str, after: str, literals: list[str]
) -> None:
    table = alter(
        create_table(),
        SchemaChange.add_column("v", AtomicType(before)),
    )
    arrow = table.new_read_builder().new_read().to_arrow([]).schema
    texts = ["1", "2", "10", None]
    is_time = before.startswith("TIMESTAMP")
    values = (
        pa.array([1, 2, 10, None], arrow.field("v").type)
        if is_time
        else pa.array(texts).cast(arrow.field("v").type)
    )
    for at in range(4):
        ids, day = pa.array([at], pa.int64()), pa.array(["mon"])
        append(table, pa.table([ids, day, values.slice(at, 1)], arrow))
    table = alter(table, SchemaChange.update_column_type("v", AtomicType(after)))
    builder = table.new_read_builder()
    everything = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    for op in ("=", "<>", "<", "<=", ">", ">="):
        for literal in literals:
            where = f"v {op} {literal}"
            expected = filter_rows(parse_predicate(where, table.fields), everything)

            assert same_rows(read_rows(table, where), expected.to_pylist())


def test_a_renamed_column_keeps_its_statistics() -> None:
    table = create_table(options={"fields.day.stats-mode": "none"})
    append(table, [{"id": 1, "day": "mon"}])
    append(table, [{"id": 2, "day": "tue"}])
    table = alter(table, SchemaChange.rename_column("id", "key"))

    check(table, "key = 2", lambda r: r["key"] == 2, files=1)


def test_a_name_that_moved_to_another_column_takes_no_statistics_along() -> None:
    table = create_table()
    append(table, [{"id": 1, "day": "mon"}])
    table = alter(table, SchemaChange.drop_column("id"))
    table = alter(table, SchemaChange.add_column("id", AtomicType("BIGINT")))
    columns = pa.schema([("day", pa.string()), ("id", pa.int64())])
    append(table, pa.table([["tue"], [1]], columns))

    check(table, "id = 1", lambda r: r["day"] == "tue", files=1)
    check(table, "id IS NULL", lambda r: r["day"] == "mon", files=1)


def test_swapped_names_are_distinguished_by_their_ids() -> None:
    columns = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    table = create_table(columns=columns)
    append(table, pa.table([[1], [100]], columns))
    for old, new in [("a", "c"), ("b", "a"), ("c", "b")]:
        table = alter(table, SchemaChange.rename_column(old, new))

    assert read_rows(table, "a = 100") == [{"b": 1, "a": 100}]
    assert read_rows(table, "a = 1") == []


def test_files_that_were_overwritten_are_not_planned() -> None:
    table = create_table(partition_keys=["day"])
    append(table, [{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}])
    overwrite(table, [{"id": 3, "day": "mon"}])

    check(table, "day = 'mon'", lambda r: r["id"] == 3, files=1)
    check(table, "id < 3", lambda r: r["id"] == 2, files=1)
