"""Filters of reads that comparisons with literals cannot express: rows answer them, exactly."""

import pickle

import duckdb
import pyarrow as pa
import pytest

from builders import alter, create_key_table, create_table, open_catalog
from emberlake import ColumnNotFound, DataMismatch, InvalidPredicate, SchemaChange
from emberlake.predicates import And, Computed, Leaf, Or, parse_predicate
from emberlake.types import AtomicType

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("cost", pa.int32()),
        ("city", pa.string()),
        ("day", pa.string()),
        ("at", pa.struct([("zip", pa.string()), ("n", pa.int32())])),
    ]
)
ROWS = [
    (1, 9.5, 10, "Paris", "mon", {"zip": "75001", "n": 1}),
    (2, 20.0, 12, "rome", "mon", {"zip": None, "n": 2}),
    (3, None, 7, "OSLO", "tue", None),
    (4, 7.0, None, None, "tue", {"zip": "0150", "n": 4}),
    (5, 7.0, 7, "pau", "wed", {"zip": "64000", "n": 5}),
    (6, float("nan"), 0, "", "wed", {"zip": "", "n": None}),
]
# Filters on these rows, and the ids that they keep.
CASES = {
    "price > cost": [2],  # NaN is greater than nothing, as in all filters
    "cost = price": [5],
    "NOT price > cost": [1, 5, 6],
    "city ILIKE 'p%'": [1, 5],
    "city NOT ILIKE 'p%'": [2, 3, 6],
    "lower(city) = 'oslo'": [3],
    "length(city) = 4": [2, 3],
    "cost + 1 > 10": [1, 2],
    "day = 'mon' AND price > cost": [2],
    "day = 'tue' OR price > cost": [2, 3, 4],
    "coalesce(price, 0) < 1": [3],
    "CASE WHEN day = 'mon' THEN price > 10 ELSE id > 5 END": [2, 6],
    "substring(day, 1, 1) = 't'": [3, 4],
    "at.zip LIKE '0%' AND at.n = id": [4],
    "at.n = id": [1, 2, 4, 5],
    "id % 2 = 0": [2, 4, 6],
    "cost <> 0 AND 70 / cost >= 10": [3, 5],
    "70 / cost >= 10 AND cost <> 0": [3, 5],
    "cost = 0 OR 70 / cost >= 10": [3, 5, 6],
    "id IN (1, cost - 2)": [1, 5],
    "(price > cost) IS NULL": [3, 4],
    "CURRENT_TIMESTAMP > TIMESTAMP '2020-01-01 00:00:00'": [1, 2, 3, 4, 5, 6],
}


def data() -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(COLUMNS.names, row, strict=True)) for row in ROWS], COLUMNS
    )


def append_table():
    table = create_table(columns=COLUMNS, partition_keys=["day"])
    table.append(data())
    return table


def key_table():
    table = create_key_table(COLUMNS, ["id", "day"], ["day"])
    table.append(data().set_column(2, "cost", pa.array([99] * 6, pa.int32())))
    table.append(data())
    return table


@pytest.fixture(scope="module", params=[append_table, key_table], ids=["append", "key"])
def table(request):
    return request.param()


@pytest.mark.parametrize("text", CASES)
def test_a_read_returns_the_rows_for_which_the_condition_is_true(table, text):
    found = table.to_arrow(["id"], filter=text)

    assert sorted(found["id"].to_pylist()) == CASES[text]
    assert table.count(text) == len(CASES[text])


@pytest.mark.parametrize("text", [t for t in CASES if "CURRENT" not in t])
def test_what_a_filter_says_is_the_same_filter(table, text):
    builder = table.new_read_builder().with_filter(text)

    again = table.new_read_builder().with_filter(builder.explain().predicate)

    assert again._predicate == builder._predicate
    assert pickle.loads(pickle.dumps(builder._predicate)) == builder._predicate


def test_duckdb_keeps_the_same_rows():
    plain = pa.Table.from_pylist([row for row in data().to_pylist() if row["id"] < 6], COLUMNS)
    for text, ids in CASES.items():
        if "CURRENT" not in text and "70 /" not in text and '"at"' not in text:
            spelled = text.replace("at.", '"at".')
            found = duckdb.sql(f"SELECT id FROM plain WHERE {spelled} ORDER BY id").fetchall()

            assert [row[0] for row in found] == [n for n in ids if n < 6], text
    assert plain.num_rows == 5


def test_comparisons_with_literals_still_prune():
    table = append_table()

    plan = table.scan(filter="day = 'mon' AND price > cost").explain()
    alone = table.scan(filter="upper(day) = 'MON'").explain()
    either = table.scan(filter="(day = 'mon' AND price > cost) OR day = 'tue'").explain()

    assert [len(p.files_read) for p in (plan, alone, either)] == [1, 1, 2]


def test_a_bucket_is_not_chosen_by_half_of_an_or():
    table = create_key_table(COLUMNS, ["id"], bucket="4")
    table.append(data())

    found = table.to_arrow(["id"], filter="id = 1 OR id = cost - 2")

    assert sorted(found["id"].to_pylist()) == [1, 5]


def test_old_files_are_tested_with_the_columns_of_today():
    table = create_table(columns=COLUMNS)
    table.append(data())
    table = alter(
        table,
        SchemaChange.update_column_type("cost", AtomicType("BIGINT")),
        SchemaChange.rename_column("price", "amount"),
        SchemaChange.add_column("tax", AtomicType("DOUBLE")),
    )

    assert table.to_arrow(["id"], filter="amount > cost")["id"].to_pylist() == [2]
    assert table.count("coalesce(tax, 0) = 0 AND amount = cost") == 1


def test_projected_names_and_limits_go_with_conditions():
    table = append_table()
    builder = table.new_read_builder().with_projection(["id", "at.n"]).with_filter("at_n = id")
    builder.with_limit(2)

    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())

    assert rows.num_rows == 2


def test_predicates_can_be_joined_with_conditions():
    table = append_table()
    builder = table.new_read_builder().with_filter("price > cost")
    both = builder.new_predicate_builder().and_predicates(
        [builder._predicate, builder.new_predicate_builder().equal("day", "mon")]
    )

    assert isinstance(both, And)
    assert table.count(both) == 1
    other = create_table(columns=pa.schema([("price", pa.string()), ("cost", pa.int32())]))
    with pytest.raises(InvalidPredicate, match="but this table has"):
        other.count(builder._predicate)


def test_system_tables_take_conditions():
    files = open_catalog(append_table().store.storage).get_table("db.t$files")

    assert files.count("record_count * 100 < file_size_in_bytes") == 3
    assert files.count("file_path ILIKE '%PARQUET'") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('city = "Paris"', "if it is text, write 'Paris': double quotes are for names"),
        ("upper(cty) = 'X'", "there is no column 'cty'.*did you mean city"),
    ],
)
def test_an_unknown_column_is_named(text, message):
    with pytest.raises(ColumnNotFound, match=message):
        append_table().count(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("city", "a condition is true or false, but 'city' is STRING"),
        ("uper(city) = 'X'", "there is no function UPER.*UPPER"),
        ("upper(city, 1) = 'X'", "UPPER takes 1 argument"),
        ("city = ", "expected a literal"),
        ("city ILIKE", "expected a comparison, BETWEEN, IN, LIKE, ILIKE or IS NULL"),
        ("price > city", "DOUBLE"),
        ("id = 1 price", "expected AND, OR or the end"),
    ],
)
def test_what_is_no_condition_is_refused(text, message):
    with pytest.raises(InvalidPredicate, match=message):
        append_table().count(text)


def test_conditions_and_comparisons_of_partition_columns_choose_partitions_together():
    text = "upper(day) = 'MON' OR upper(day) = 'TUE' AND day > 'mon'"

    read = append_table().to_arrow(filter=text)

    assert sorted(read["id"].to_pylist()) == [1, 2, 3, 4]


def test_a_row_that_cannot_be_computed_is_an_error():
    with pytest.raises(DataMismatch, match="cannot be computed"):
        append_table().count("70 / cost > 1")


def test_a_condition_prunes_nothing_by_itself():
    fields = append_table().fields
    simple = parse_predicate("id = 1", fields)
    builder = append_table().new_read_builder().with_filter("id = 1 OR price > cost")

    assert isinstance(simple, Leaf)
    assert isinstance(builder._predicate, Or)
    leaf, computed = builder._predicate.children
    assert isinstance(leaf, Leaf)
    assert isinstance(computed, Computed)
    assert {column.name for column in computed.columns} == {"price", "cost"}
