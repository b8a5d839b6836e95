"""What is remembered about a table is about this table, at this snapshot."""

import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import AtomicType, Catalog, CatalogFactory, DataField, Schema
from emberlake.sql.local import SqlResult, session_of
from emberlake.sql.on_duckdb import connection, native_queries
from emberlake.sql.on_duckdb.connection import Database, FileView, Prepared
from emberlake.sql.on_duckdb.native_queries import NativeQueries
from emberlake.sql.on_duckdb.pinned import PinnedTable


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    return catalog


def make(catalog: Catalog, ids: list[int]) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64())})
    catalog.create_table("db.t", Schema.from_pyarrow_schema(rows.schema))
    catalog.get_table("db.t").append(rows)


def test_a_snapshot_is_decided_once(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    make(catalog, [1])
    queries = NativeQueries(Database())
    first = queries.find(PinnedTable.of(catalog.get_table("db.t")))
    monkeypatch.setattr(native_queries, "native_query", lambda _: pytest.fail("decided again"))

    again = queries.find(PinnedTable.of(catalog.get_table("db.t")))

    assert first is not None
    assert again == first


def test_a_new_snapshot_is_seen(catalog: Catalog) -> None:
    make(catalog, [1])
    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(1,)]

    catalog.get_table("db.t").append(pa.table({"id": [2]}))

    assert catalog.sql("SELECT id FROM db.t ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_table_that_was_dropped_and_made_again_is_another_table(catalog: Catalog) -> None:
    make(catalog, [1])
    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(1,)]
    catalog.drop_table("db.t")

    make(catalog, [7])

    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(7,)]


def test_a_renamed_column_of_the_same_snapshot_is_found(catalog: Catalog) -> None:
    make(catalog, [1])
    assert catalog.sql("SELECT id FROM db.t").fetchall() == [(1,)]

    catalog.sql("ALTER TABLE db.t RENAME COLUMN id TO number")

    assert catalog.sql("SELECT number FROM db.t").fetchall() == [(1,)]


def test_only_the_last_tables_are_remembered(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_queries, "_MOST_DECIDED", 6000)  # bytes: enough for one
    make(catalog, [1])
    queries = NativeQueries(Database())
    for number in (2, 3):
        queries.find(PinnedTable.of(catalog.get_table("db.t")))
        catalog.get_table("db.t").append(pa.table({"id": [number]}))
    decided: list[PinnedTable] = []
    monkeypatch.setattr(native_queries, "native_query", decided.append)
    first = catalog.get_table("db.t").copy({"scan.snapshot-id": "1"})

    queries.find(PinnedTable.of(first))

    assert len(decided) == 1


# --- views ----------------------------------------------------------------------------------------


def view_names(database: Database) -> list[str]:
    text = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1"
    names: list[str] = database.stream(Prepared(text)).read_all().column(0).to_pylist()
    return names


def view(database: Database, number: int) -> FileView:
    return database.view_of(f"SELECT {number} AS n", "v")


def test_a_view_of_files_is_made_once() -> None:
    database = Database()

    names = [view(database, number).name for number in (1, 2, 1)]

    assert names == ["v1", "v2", "v1"]


def test_only_so_many_views_are_kept_that_nobody_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MOST_VIEWS", 1000)  # bytes: enough for two
    database = Database()

    for number in range(1, 6):
        view(database, number)

    assert view_names(database) == ["v3", "v4", "v5"]  # the first is dropped by the next statement
    assert view(database, 4).name == "v4"
    assert view(database, 1).name == "v6"


def test_views_last_as_long_as_a_result_needs_them(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_MOST_VIEWS", 1)
    for number in range(5):
        rows = pa.table({"id": [number]})
        table = catalog.create_table(f"db.t{number}", Schema.from_pyarrow_schema(rows.schema))
        table.append(rows)

    results = [catalog.sql(f"SELECT id FROM db.t{number}") for number in range(5)]

    assert [result.fetchall() for result in results] == [[(number,)] for number in range(5)]
    assert catalog.sql("SELECT * FROM db.t0, db.t1, db.t2").fetchall() == [(0, 1, 2)]


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda result: result.schema,
        lambda result: result.to_batches(),
        lambda result: result.first(0).read_all(),
        lambda result: next(result.to_batches()),
        repr,
    ],
    ids=["schema", "unread", "none", "one", "shown"],
)
def test_a_result_that_is_not_read_to_its_end_leaves_no_connection(
    catalog: Catalog, use: Callable[[SqlResult], object]
) -> None:
    make(catalog, list(range(30)))

    use(catalog.sql("SELECT id FROM db.t"))

    gc.collect()
    assert not list(session_of(catalog)._engine.database._running)


# --- threads --------------------------------------------------------------------------------------


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_threads_read_side_by_side(catalog: Catalog) -> None:
    for number in range(4):
        rows = pa.table({"id": list(range(number + 1))})
        table = catalog.create_table(f"db.t{number}", Schema.from_pyarrow_schema(rows.schema))
        table.append(rows)

    def read(number: int) -> list[int]:
        result = catalog.sql(f"SELECT id FROM db.t{number % 4}")
        assert result.column_names == ["id"]
        return [value for (value,) in result.fetchall()]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(read, range(400)))

    assert all(len(ids) == number % 4 + 1 for number, ids in enumerate(found))


@pytest.mark.usefixtures("switching")
def test_threads_find_their_own_variables(catalog: Catalog) -> None:
    def read(number: int) -> object:
        mine = pa.table({"n": [number]})
        ((found,),) = catalog.sql("SELECT n FROM mine").fetchall()
        return found, mine["n"][0].as_py()

    with ThreadPoolExecutor(8) as threads:
        pairs = list(threads.map(read, range(200)))

    assert all(found == number for found, number in pairs)


# --- values that statistics do not know -----------------------------------------------------------


@pytest.mark.parametrize("keys", [[], ["id"]], ids=["append", "keys"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=["float", "double"])
def test_statistics_say_nothing_about_numbers_that_are_none(
    catalog: Catalog, kind: pa.DataType, keys: list[str]
) -> None:
    """NaN is above all numbers, and no zero is negative here; files know neither."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", kind), ("m", kind)])
    made = Schema.from_pyarrow_schema(columns, primary_keys=keys, options={"bucket": "-1"})
    table = catalog.create_table("db.t", made)
    table.append(pa.table([[1, 2, 3], [0.0, 1.0, float("nan")], [0.0, 1.0, 2.0]], schema=columns))

    def ids(condition: str) -> list[int]:
        text = f"SELECT id FROM db.t WHERE {condition} ORDER BY id"
        return [found for (found,) in catalog.sql(text).fetchall()]

    for _ in range(3):
        assert ids("n > 1000") == ids("n = double('NaN')") == [3]
        assert ids("n = (SELECT max(n) FROM db.t)") == [3]
        assert ids("m = (SELECT max(m) FROM db.t)") == [3]
        assert ids("NOT n < 1000") == [3]
        ((least, most),) = catalog.sql("SELECT min(n), max(m) FROM db.t").fetchall()
        assert (str(least), most) == ("0.0", 2.0)
        assert catalog.sql("SELECT n FROM db.t ORDER BY id LIMIT 1").fetchall() == [(0.0,)]


@pytest.mark.parametrize("column", ["file_row_number", "FILE_INDEX"])
def test_a_column_that_hides_the_places_of_numbers_is_read(catalog: Catalog, column: str) -> None:
    rows = pa.table({column: [1.5, float("nan")]})
    catalog.create_table("db.t", Schema.from_pyarrow_schema(rows.schema)).append(rows)

    found = catalog.sql(f"SELECT * FROM db.t WHERE {column} < 2").fetchall()

    assert found == [(1.5,)]


@pytest.mark.parametrize("digits", [0, 3, 6])
def test_timestamps_have_one_type_whoever_reads_the_files(catalog: Catalog, digits: int) -> None:
    moment = pa.array([1_780_000_000_000_000], pa.timestamp("us"))
    timestamp = DataField(0, "t", AtomicType(f"TIMESTAMP({digits})"))
    text = DataField(1, "c", AtomicType("CHAR(2)"))  # not for DuckDB
    native = catalog.create_table("db.native", Schema([timestamp]))
    native.append(pa.table({"t": moment}))
    ours = catalog.create_table("db.ours", Schema([timestamp, text]))
    ours.append(pa.table({"t": moment, "c": ["ab"]}))

    found = [catalog.sql(f"SELECT t FROM db.{name}").to_arrow() for name in ("native", "ours")]

    assert found[0] == found[1] == pa.table({"t": moment})
