"""Key tables that DuckDB reads by itself have the rows that merging gives."""

import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from emberlake import Catalog, CatalogFactory, Schema, Table
from emberlake.commit import conflicts
from emberlake.errors import CorruptFile, FileNotFound
from emberlake.options import PRIMARY_KEY_NULLABLE, VERIFY_PAGES
from emberlake.sql.on_duckdb import dead_records, native_queries
from emberlake.sql.on_duckdb.connection import Database, Prepared
from emberlake.sql.on_duckdb.native_keys import find_key_table
from emberlake.sql.on_duckdb.native_queries import NativeQueries
from emberlake.sql.on_duckdb.pinned import PinnedTable

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


def make(catalog: Catalog, buckets: str = "2", **options: str) -> Table:
    schema = Schema.from_pyarrow_schema(
        COLUMNS, primary_keys=["id"], options={"bucket": buckets, **options}
    )
    catalog.create_table("db.t", schema)
    return catalog.get_table("db.t")


def write(table: Table, rows: pa.Table, kind: str | None = None) -> None:
    builder = table.new_batch_write_builder()
    write = builder.new_write()
    write.write_arrow(rows, row_kind=kind)
    builder.new_commit().commit(write.prepare_commit())
    write.close()


def upsert(table: Table, ids: list[int], text: str, kind: str | None = None) -> None:
    write(table, pa.table({"id": ids, "v": [f"{text} {i}" for i in ids]}, COLUMNS), kind)


def is_native(table: Table) -> bool:
    return find_key_table(PinnedTable.of(table)) is not None


def read_natively(table: Table, times: int) -> list[tuple[str, pa.Table]]:
    """The query and its rows, for each of some reads of one session."""
    database = Database()
    queries = NativeQueries(database)
    found = [queries.find(PinnedTable.of(table)) for _ in range(times)]
    return [
        (query.text, database.stream(Prepared(query.text, bits=query.bits)).read_all())
        for query in found
        if query is not None
    ]


def ordered(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)


def check(catalog: Catalog, table: Table) -> None:
    """The first read joins, the next ones know which records are dead."""
    wanted = table.to_arrow().sort_by("id")
    is_wanted = pc.and_(pc.starts_with(wanted["v"], "new"), pc.greater(wanted["id"], 10))
    for _ in range(3):
        found = catalog.sql("SELECT * FROM db.t ORDER BY id").to_arrow()
        assert found.to_pylist() == wanted.to_pylist()
        some = catalog.sql("SELECT count(*) FROM db.t WHERE v LIKE 'new%' AND id > 10").fetchall()
        assert some == [(pc.sum(is_wanted).as_py() or 0,)]


def test_newer_rows_and_deletes_replace_older_ones(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(200)), "old")
    check(catalog, table)
    upsert(table, [3, 50, 51, 300], "new")
    upsert(table, [51, 52], "newest")
    upsert(table, [53, 3], "gone", "-D")

    assert is_native(table)
    check(catalog, table)
    table.compact(full=True)
    upsert(table, [53], "new")
    assert is_native(table)
    check(catalog, table)


def test_keys_that_are_null_are_replaced(catalog: Catalog) -> None:
    table = make(catalog, "1", **{"primary-key.nullable": "true"})
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    for ids, text in (([None, *range(20)], "old"), ([None], "new")):
        write(table, pa.table({"id": ids, "v": [text] * len(ids)}, columns))

    found = catalog.sql("SELECT v FROM db.t WHERE id IS NULL").fetchall()

    assert found == [("new",)]
    assert not is_native(table)


# --- any history ----------------------------------------------------------------------------------

Key = Callable[[int], Any]
KEYS: dict[str, dict[str, tuple[pa.DataType, Key]]] = {
    "numbers": {"a": (pa.int64(), lambda i: i * 1_000_003), "b": (pa.int32(), lambda i: i % 7)},
    "texts": {"a": (pa.string(), lambda i: f"{'é' * (i % 3)}{i:x}")},
    "days": {"a": (pa.date32(), lambda i: date(2020, 1, 1) + timedelta(i))},
    "decimals": {"a": (pa.decimal128(20, 3), lambda i: Decimal(i) / 8)},
    "small": {"a": (pa.int8(), lambda i: i - 70), "b": (pa.bool_(), lambda i: i % 2 == 0)},
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_any_history_gives_the_merged_rows_of_every_snapshot(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int
) -> None:
    chance = random.Random(f"{kind} {seed}")
    monkeypatch.setattr(dead_records, "_PIECE_ROWS", chance.choice([8, 64, 1 << 20]))
    keys = KEYS[kind]
    schema = pa.schema(
        [
            *(pa.field(name, kind, nullable=False) for name, (kind, _) in keys.items()),
            ("v", pa.string()),
            ("n", pa.float64()),
        ]
    )
    options = {"bucket": chance.choice(["1", "3"])}
    made = Schema.from_pyarrow_schema(schema, primary_keys=list(keys), options=options)
    table = catalog.create_table("db.t", made)

    def some_rows(numbers: list[int], text: str) -> pa.Table:
        columns = {name: [value(i) for i in numbers] for name, (_, value) in keys.items()}
        texts = [None if i % 5 == 0 else f"{text} {i}" for i in numbers]
        return pa.table({**columns, "v": texts, "n": [i / 3 for i in numbers]}, schema)

    write(table, some_rows(list(range(140)), "old"))
    native = 0
    for step in range(7):
        numbers = chance.sample(range(150), chance.randint(1, 9))
        write(table, some_rows(numbers, f"new {step}"), chance.choice([None, "+U", "-U", "-D"]))
        if chance.random() < 0.3:
            table.compact(full=chance.random() < 0.5)
        if step == 3:
            table.create_tag("half")
        native += is_native(table)
    latest = table.latest_snapshot()
    assert latest is not None
    assert native

    for number in range(1, latest.id + 1):
        travelled = table.copy({"scan.snapshot-id": str(number)})
        wanted = ordered(travelled.to_arrow())
        for _, rows in read_natively(travelled, 2):
            assert ordered(rows) == wanted
        for _ in range(2):
            found = catalog.sql(f"SELECT * FROM db.t VERSION AS OF {number}").to_arrow()
            assert ordered(found) == wanted
    tagged = catalog.sql("SELECT * FROM db.t VERSION AS OF 'half'").to_arrow()
    assert ordered(tagged) == ordered(table.copy({"scan.tag-name": "half"}).to_arrow())


def test_records_of_many_row_groups_and_vectors_are_told_apart(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_records, "_PIECE_ROWS", 3000 * 8)
    table = make(catalog, "2", **{"file.block-size": "64 kb", "target-file-size": "1 mb"})
    upsert(table, list(range(100_000)), "old")
    upsert(table, list(range(1, 100_000, 17)), "new")
    upsert(table, list(range(2, 100_000, 29)), "gone", "-D")
    wanted = table.to_arrow().sort_by("id")

    for where in (
        "",
        "WHERE id BETWEEN 60000 AND 61000",
        "WHERE v LIKE 'new%' ORDER BY id LIMIT 9",
    ):
        text = f"SELECT id, v FROM ({'SELECT * FROM db.t ' + where})"
        first, *others = [catalog.sql(f"{text} ORDER BY id").to_arrow() for _ in range(3)]
        assert all(rows == first for rows in others)
        if not where:
            assert first.to_pylist() == wanted.to_pylist()


# --- joins and places -----------------------------------------------------------------------------


def test_the_first_read_joins_and_the_next_ones_look_at_places(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    (first, rows), (second, same), (third, _) = read_natively(table, 3)

    assert "ANTI JOIN" in first
    assert "JOIN" not in second
    assert third == second
    assert ordered(rows) == ordered(same) == ordered(table.to_arrow())


def test_the_first_rows_of_one_file_are_found(catalog: Catalog) -> None:
    """For these, DuckDB reads the files twice: it looks at places, and then for what is there."""
    table = make(catalog, "1")
    with table.new_batch_write_builder().new_write() as writer:
        writer.write_arrow(pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}, COLUMNS))
        writer.write_arrow(pa.table({"id": [3], "v": ["d"]}, COLUMNS), row_kind="-D")
        table.new_batch_write_builder().new_commit().commit(writer.prepare_commit())

    for _ in range(3):
        assert catalog.sql("SELECT v FROM db.t ORDER BY id DESC LIMIT 1").fetchall() == [("b",)]
    (query, _), *_ = reversed(read_natively(table, 2))
    assert "get_bit" in query


def test_a_compacted_table_is_read_like_plain_files(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    table.compact(full=True)

    _, (text, rows) = read_natively(table, 2)

    assert "WHERE" not in text
    assert ordered(rows) == ordered(table.to_arrow())


@pytest.mark.parametrize("column", ["file_index", "FILE_ROW_NUMBER"])
def test_a_column_that_hides_the_places_of_records_is_read(catalog: Catalog, column: str) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), (column, pa.int64())])
    made = Schema.from_pyarrow_schema(columns, primary_keys=["id"], options={"bucket": "1"})
    table = catalog.create_table("db.t", made)
    write(table, pa.table({"id": list(range(30)), column: [7] * 30}, columns))
    write(table, pa.table({"id": [1, 2], column: [8, 8]}, columns))

    reads = read_natively(table, 3)

    assert len(reads) == 3
    assert all(ordered(rows) == ordered(table.to_arrow()) for _, rows in reads)


def test_records_of_large_tables_are_joined(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_queries, "_MOST_RECORDS", 30)
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    for text, rows in read_natively(table, 3):
        assert "JOIN" in text
        assert ordered(rows) == ordered(table.to_arrow())


def test_the_more_records_the_later_their_places_are_looked_for(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_queries, "_RECORDS_A_READ", 10)
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    joins = ["JOIN" in text for text, _ in read_natively(table, 6)]

    assert joins == [True, True, True, True, False, False]


def test_places_are_found_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_searches(monkeypatch)
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    check(catalog, table)

    assert len(calls) == 1


def test_places_that_were_forgotten_are_found_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_searches(monkeypatch)
    monkeypatch.setattr(native_queries, "_MOST_BITS", 1)
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    check(catalog, table)

    assert len(calls) == 5  # of six reads


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    collect = native_queries.collect_dead

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return collect(*arguments)

    monkeypatch.setattr(native_queries, "collect_dead", counted)
    return calls


def test_a_result_that_is_read_later_has_the_rows_of_its_snapshot(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")
    results = [catalog.sql("SELECT * FROM db.t") for _ in range(3)]
    wanted = ordered(table.to_arrow())
    upsert(table, [2, 3], "newest")

    check(catalog, table)

    assert all(ordered(result.to_arrow()) == wanted for result in results)


def test_changes_read_key_tables_by_places(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1, 2], "new")
    upsert(table, [3], "gone", "-D")
    check(catalog, table)
    wanted = [(row["id"], row["v"]) for row in ordered(table.to_arrow())]

    catalog.sql("CREATE TABLE db.copied (id BIGINT, v STRING)")
    catalog.sql("INSERT INTO db.copied SELECT * FROM db.t")
    catalog.sql(
        "MERGE INTO db.copied c USING db.t s ON c.id = s.id AND s.id < 5 "
        "WHEN MATCHED THEN UPDATE SET v = upper(s.v)"
    )

    text = "SELECT id, IF(id < 5, upper(v), v) FROM db.t ORDER BY id"
    assert catalog.sql("SELECT * FROM db.copied ORDER BY id").fetchall() == sorted(
        (i, v.upper() if i < 5 else v) for i, v in wanted
    )
    assert (
        catalog.sql(text).fetchall()
        == catalog.sql("SELECT * FROM db.copied ORDER BY id").fetchall()
    )


# --- other tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "v"},
        {"sequence.field": "v", "sequence.field.sort-order": "descending"},
        {"merge-engine": "first-row", "write-only": "true"},
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation"},
        {"deletion-vectors.enabled": "true"},
        {"ignore-delete": "true"},
    ],
)
def test_other_tables_are_merged(catalog: Catalog, options: dict[str, str]) -> None:
    table = make(catalog, **options)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    check(catalog, table)
    assert not is_native(table) or not table.to_arrow().num_rows


@pytest.mark.parametrize("engine", ["first-row", "partial-update", "aggregation"])
def test_a_compacted_table_of_any_engine_is_read(catalog: Catalog, engine: str) -> None:
    table = make(catalog, **{"merge-engine": engine})
    upsert(table, list(range(30)), "old")
    upsert(table, [1, 40], "new")
    table.compact(full=True)

    check(catalog, table)
    assert is_native(table)


def test_files_that_share_no_keys_are_read_whatever_the_engine(catalog: Catalog) -> None:
    table = make(catalog, "1", **{"merge-engine": "partial-update"})
    upsert(table, list(range(30)), "new")
    upsert(table, list(range(30, 60)), "old")

    check(catalog, table)
    assert is_native(table)


def test_many_newer_rows_are_merged(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, list(range(20)), "new")

    assert not is_native(table)
    check(catalog, table)


def test_keys_may_be_null(catalog: Catalog) -> None:
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    options = {"bucket": "1", PRIMARY_KEY_NULLABLE.key: "true"}
    made = Schema.from_pyarrow_schema(columns, primary_keys=["id"], options=options)
    table = catalog.create_table("db.t", made)
    write(table, pa.table({"id": [None, *range(30)], "v": ["old"] * 31}, columns))
    write(table, pa.table({"id": [None, 1], "v": ["new"] * 2}, columns))

    for _ in range(3):
        found = catalog.sql("SELECT * FROM db.t").to_arrow()
        assert ordered(found) == ordered(table.to_arrow())


def test_vectors_count_although_the_table_has_them_no_more(catalog: Catalog) -> None:
    """A record of level 0 that was compacted away may have left nothing but a vector."""
    vectors = {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
    table = make(catalog, "1", **vectors)
    upsert(table, list(range(30)), "old")
    table.compact(full=True)
    upsert(table, [5], "gone", "-D")
    upsert(table, [6], "new")

    catalog.sql("SET `spark.paimon.deletion-vectors.enabled` = false")

    wanted = table.copy({"deletion-vectors.enabled": "false"}).to_arrow()
    assert wanted.num_rows == 29
    for _ in range(3):
        assert ordered(catalog.sql("SELECT * FROM db.t").to_arrow()) == ordered(wanted)


def test_two_writers_may_have_used_the_same_numbers(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's writers may: neither record is newer, so the merge decides."""
    monkeypatch.setattr(conflicts, "_reaches", lambda *_: False)
    table = make(catalog, "1")
    upsert(table, list(range(30)), "old")
    builders = [table.new_batch_write_builder() for _ in range(2)]
    with builders[0].new_write() as first, builders[1].new_write() as second:
        messages = []
        for text, writer in (("new a", first), ("new b", second)):
            writer.write_arrow(pa.table({"id": [1, 2], "v": [text] * 2}, COLUMNS))
            messages.append(writer.prepare_commit())
        for builder, prepared in zip(builders, messages, strict=True):
            builder.new_commit().commit(prepared)

    check(catalog, table)
    assert not is_native(table)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    ["_value_kind", "_Sequence_Number", "_key_id", "__rank", "__RANK", "ID", "n", "o", 'a."b'],
)
def test_columns_are_told_apart_by_their_whole_names(catalog: Catalog, column: str) -> None:
    """DuckDB ignores case; files have columns of their own."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), (column, pa.int64())])
    made = Schema.from_pyarrow_schema(columns, primary_keys=["id"], options={"bucket": "1"})
    table = catalog.create_table("db.t", made)
    for ids, value in ((list(range(30)), 1), ([1, 2], 7), ([2, 3], 8)):
        write(table, pa.table([ids, [value] * len(ids)], schema=columns))
    write(table, pa.table([[5], [9]], schema=columns), "-D")

    rows = [catalog.sql("SELECT * FROM db.t").fetchall() for _ in range(3)]

    wanted = sorted(zip(*table.to_arrow().to_pydict().values(), strict=True))
    assert [sorted(found) for found in rows] == [wanted] * 3


@pytest.mark.parametrize("folder", ["a b", "a%20b", "a'b", "a=b", "ü", "a[b", "a*", 'a"b', "~"])
def test_a_table_may_be_in_any_folder(tmp_path: Path, folder: str) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path / folder)})
    catalog.create_database("db")
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")

    check(catalog, table)


# --- histories that are not over ------------------------------------------------------------------


def test_a_table_that_was_made_again_is_another_table(catalog: Catalog) -> None:
    for text in ("first", "second"):
        table = make(catalog)
        upsert(table, list(range(30)), text)
        upsert(table, [1, 2], f"new {text}")
        check(catalog, table)
        catalog.drop_table("db.t")


def test_a_snapshot_may_get_the_number_of_one_that_is_gone(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1, 2], "new")
    check(catalog, table)

    table.rollback_to(1)
    upsert(table, [3], "gone", "-D")

    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.id == 2
    check(catalog, table)


def test_what_others_commit_between_two_reads_is_seen(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(100)), "old")
    actions: list[Callable[[], object]] = [
        lambda: upsert(table, [1, 2], "new"),
        lambda: upsert(table, [1], "gone", "-D"),
        table.compact,
        lambda: catalog.sql("DELETE FROM db.t WHERE id = 50"),
        lambda: catalog.sql("UPDATE db.t SET v = 'new' WHERE id = 51"),
        lambda: catalog.sql("ALTER TABLE db.t ADD COLUMN more INT"),
        lambda: table.compact(full=True),
        lambda: catalog.sql("INSERT INTO db.t VALUES (7, 'new', 8)"),
    ]

    for action in actions:
        action()

        check(catalog, catalog.get_table("db.t"))


def test_a_branch_has_rows_of_its_own(catalog: Catalog) -> None:
    table = make(catalog)
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")
    table.create_tag("start")
    table.create_branch("other", "start")
    branch = catalog.get_table("db.t$branch_other")
    check(catalog, table)

    upsert(branch, [2], "branched")
    upsert(table, [3], "gone", "-D")

    for _ in range(3):
        found = catalog.sql("SELECT * FROM db.`t$branch_other`").to_arrow()
        assert ordered(found) == ordered(branch.to_arrow())
        check(catalog, table)


def test_a_file_that_is_missing_is_named(catalog: Catalog) -> None:
    table = make(catalog, "1")
    upsert(table, list(range(30)), "old")
    upsert(table, [1], "new")
    results = [catalog.sql("SELECT * FROM db.t") for _ in range(3)]
    (path, *_) = sorted(Path(table.store.layout.root).rglob("data-*.parquet"))
    path.unlink()

    for result in results:
        with pytest.raises(FileNotFound, match=path.name):
            result.to_arrow()


@pytest.mark.parametrize("size", [0, 4, 100])
def test_a_file_that_is_cut_off_is_corrupt(catalog: Catalog, size: int) -> None:
    table = make(catalog, "1")
    upsert(table, list(range(30)), "old")
    (path,) = Path(table.store.layout.root).rglob("data-*.parquet")
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(CorruptFile, match=path.name):
        catalog.sql("SELECT * FROM db.t").to_arrow()


def test_checksums_are_compared_if_an_option_says_so(catalog: Catalog) -> None:
    table = make(catalog, **{VERIFY_PAGES.key: "true"})
    upsert(table, list(range(30)), "old")

    assert not is_native(table)
    check(catalog, table)
