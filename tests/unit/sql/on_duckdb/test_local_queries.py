"""Queries of ``catalog.sql``: Spark's dialect, on DuckDB, over scans of the engine."""

import datetime as dt
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from emberlake import Catalog, CatalogFactory
from emberlake.errors import (
    InvalidSchema,
    InvalidSql,
    SnapshotNotFound,
    TableNotFound,
    Unsupported,
)
from emberlake.rowops import attempts
from emberlake.sql.on_duckdb import native, pinned

Rows = list[tuple[Any, ...]]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE DATABASE db")
    catalog.sql("USE db")
    catalog.sql("CREATE TABLE t (id INT, v STRING, g STRING) PARTITIONED BY (g)")
    catalog.sql("INSERT INTO t VALUES (1, 'a', 'p'), (2, 'b', 'q')")
    catalog.sql("INSERT INTO t VALUES (3, NULL, 'p')")
    return catalog


def test_names_are_resolved_like_those_of_spark(catalog: Catalog) -> None:
    text = """WITH t AS (SELECT 9 AS id) SELECT t.id, x.ID, db.u.v
              FROM t, paimon.db.t AS x JOIN (SELECT * FROM db.t) u ON u.id = x.id WHERE x.id = 1"""

    assert catalog.sql(text.replace("db.u.v", "u.v")).fetchall() == [(9, 1, "a")]
    assert catalog.sql("SELECT db.t.id FROM db.t WHERE db.t.v = 'b'").fetchall() == [(2,)]
    with pytest.raises(TableNotFound, match="case-sensitive"):
        catalog.sql("SELECT * FROM T")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT val FROM named",
        "SELECT n.val FROM named n",
        "SELECT id FROM named WHERE val = 1",
        "SELECT id FROM named ORDER BY val",
        "WITH w AS (SELECT value FROM named) SELECT val FROM w",
        "DELETE FROM named WHERE val = 1",
    ],
)
def test_an_unknown_column_is_answered_by_those_that_there_are(
    catalog: Catalog, query: str
) -> None:
    catalog.sql("CREATE TABLE named (id INT, value INT)")

    with pytest.raises(InvalidSql) as caught:
        catalog.sql(query)

    assert str(caught.value) == (
        "[UNRESOLVED_COLUMN] there is no column val; there are id, value: did you mean value?"
    )


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT valu FROM one", "there is no column valu; there are id, value: did you mean"),
        ("SELECT o.other FROM one o, two t", "there is no column other; there are id, value$"),
        ("SELECT d.ident FROM (SELECT id AS k FROM one) d", "there is no column ident in d$"),
        ("WITH w AS (SELECT id AS k FROM one) SELECT id FROM w", "there is no column id here: "),
        ("SELECT x.id FROM one AS o", "the query has no table x; there are o$"),
        ("SELECT s.y FROM (SELECT named_struct('x', 1) AS s) d", "no column or field y$"),
        ("SELECT nothing", "there is no column nothing here$"),
    ],
)
def test_an_unknown_name_is_answered_by_what_it_could_be_in_this_query(
    catalog: Catalog, query: str, answer: str
) -> None:
    catalog.sql("CREATE TABLE one (id INT, value INT)")
    catalog.sql("CREATE TABLE two (id INT, other INT)")
    catalog.sql("INSERT INTO two VALUES (1, 2)")
    catalog.sql("SELECT * FROM two").fetchall()  # is known to later queries, too

    with pytest.raises(InvalidSql, match=answer):
        catalog.sql(query)


@pytest.mark.parametrize(
    "statement",
    [
        "OPTIMIZE named ZORDER BY (id)",
        "VACUUM named RETAIN 168 HOURS",
        "RESTORE TABLE named TO VERSION AS OF 1",
        "DESCRIBE HISTORY named LIMIT 1",
        "desc detail named",
    ],
)
def test_a_statement_of_delta_is_answered_by_statements_that_work(
    catalog: Catalog, statement: str
) -> None:
    catalog.sql("CREATE TABLE named (id INT)")
    catalog.sql("INSERT INTO named VALUES (1)")

    with pytest.raises(Unsupported, match="is a statement of Delta Lake; here it is ") as caught:
        catalog.sql(statement)
    for answer in str(caught.value).partition("here it is ")[2].split(", and "):
        assert catalog.sql(answer) is not None
    with pytest.raises(TableNotFound, match="did you mean named"):
        catalog.sql(statement.replace("named", "nmed"))


def test_a_table_may_be_named_like_a_word_of_delta(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE history (id INT)")

    assert catalog.sql("DESCRIBE history").fetchall() == [("id", "int", None)]
    assert catalog.sql("DESCRIBE TABLE history id").fetchall()[0] == ("col_name", "id")


def test_an_unknown_function_is_answered_by_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(InvalidSql, match="there is no function uper; did you mean upper"):
        catalog.sql("SELECT uper(v) FROM t")
    with pytest.raises(InvalidSql, match=r"there is no function qqq$"):
        catalog.sql("SELECT qqq(v) FROM t")


def test_a_query_sees_the_snapshots_of_the_moment_it_was_made(catalog: Catalog) -> None:
    result = catalog.sql("SELECT count(*) AS n FROM t")

    catalog.sql("INSERT INTO t VALUES (4, 'd', 'r')")

    assert result.fetchall() == [(3,)]
    assert result.fetchall() == [(3,)]
    assert catalog.sql("SELECT count(*) FROM t").fetchall() == [(4,)]


def test_time_travel_tags_system_tables_and_changes(catalog: Catalog) -> None:
    catalog.sql("CALL sys.create_tag('db.t', 'one', 1)")
    moment = catalog.get_table("db.t").snapshot_manager().load(1).time_millis

    def ids(text: str) -> list[int]:
        return sorted(row[0] for row in catalog.sql(f"SELECT id FROM {text}").fetchall())

    assert ids("t VERSION AS OF 1") == ids("t VERSION AS OF 'one'") == [1, 2]
    assert ids("t TIMESTAMP AS OF 4102444800") == [1, 2, 3]
    at = dt.datetime.fromtimestamp(moment / 1000 + 0.001, dt.UTC).strftime("%F %T.%f")
    assert ids(f"t TIMESTAMP AS OF '{at}'") == [1, 2]
    assert ids("paimon_incremental_query('db.t', 1, 2)") == [3]
    found = catalog.sql("SELECT max(snapshot_id), count(*) FROM `t$snapshots`").fetchall()
    assert found == [(2, 2)]
    with pytest.raises(SnapshotNotFound):
        catalog.sql("SELECT * FROM t VERSION AS OF 99")


def test_system_tables_of_indexes_keys_and_all_tables(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE dv (id INT) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')")
    catalog.sql("INSERT INTO dv VALUES (1), (2)")
    catalog.sql("DELETE FROM dv WHERE id = 1")
    catalog.sql("CREATE TABLE k (id INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    catalog.sql("INSERT INTO k VALUES (5), (3)")

    vectors = "SELECT index_type, dv_ranges[0]._CARDINALITY FROM `dv$table_indexes`"
    assert catalog.sql(vectors).fetchall() == [("DELETION_VECTORS", 1)]
    keys = "SELECT min_key, max_key, record_count FROM `k$file_key_ranges`"
    assert catalog.sql(keys).fetchall() == [("[3]", "[5]", 2)]
    partitions = "SELECT table_name, partition_name, record_count FROM sys.partitions"
    assert catalog.sql(partitions).fetchall() == [("t", "g=p", 2), ("t", "g=q", 1)]
    tables = "SELECT table_name, partitioned, primary_key FROM sys.tables ORDER BY 1"
    assert catalog.sql(tables).fetchall() == [
        ("dv", False, False),
        ("k", False, True),
        ("t", True, False),
    ]
    described = catalog.sql("DESCRIBE `t$audit_log`").fetchall()
    assert described[:2] == [("rowkind", "string", None), ("id", "int", None)]
    assert catalog.sql("DESCRIBE sys.tables").fetchall()[1] == ("table_name", "string", None)
    assert catalog.sql("SHOW COLUMNS IN `k$binlog`").fetchall() == [("rowkind",), ("id",)]


def test_the_greatest_partition_is_that_of_the_greatest_value(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE n (id INT, day INT) PARTITIONED BY (day)")
    with pytest.raises(InvalidSql, match="no partition"):
        catalog.sql("SELECT sys.max_pt('db.n')")

    catalog.sql("INSERT INTO n VALUES (1, 9), (2, 10), (3, NULL)")

    assert catalog.sql("SELECT id FROM n WHERE day = sys.max_pt('n')").fetchall() == [(2,)]


def test_parameters_are_values_and_never_text(catalog: Catalog) -> None:
    evil = "x' OR '1' = '1"
    text = "SELECT id FROM t WHERE v = :v OR id = :n"

    assert catalog.sql(text, {"v": evil, "n": 3}).fetchall() == [(3,)]
    assert catalog.sql("SELECT id FROM t WHERE v = ? OR id = ?", [evil, 3]).fetchall() == [(3,)]
    for args in ({"v": evil}, [evil]):
        with pytest.raises(InvalidSql, match="UNBOUND_SQL_PARAMETER"):
            catalog.sql(text, args)


def test_names_of_tables_may_be_parameters_in_every_statement(catalog: Catalog) -> None:
    catalog.sql("INSERT INTO IDENTIFIER(:t) VALUES (4, 'd', 'r')", {"t": "db.t"})
    catalog.sql("DELETE FROM IDENTIFIER(?) WHERE id < ?", ["db.t", 4])

    assert catalog.sql("SELECT IDENTIFIER('id') FROM IDENTIFIER('db' '.t')").fetchall() == [(4,)]
    with pytest.raises(InvalidSql):
        catalog.sql("DROP TABLE IDENTIFIER(:t)", {"t": "t; DROP TABLE t"})


def test_only_the_columns_and_rows_that_a_query_needs_are_read(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str] | None, str]] = []
    read = pinned.PinnedTable.batches

    def batches(self: Any, names: Any, where: Any) -> pa.RecordBatchReader:
        asked.append((names, str(where)))
        return read(self, names, where)

    monkeypatch.setattr(pinned.PinnedTable, "batches", batches)

    text = "WITH c AS (SELECT * FROM t) SELECT v FROM c WHERE g = 'p' AND id BETWEEN 1 AND 2"
    assert catalog.sql(text).fetchall() == [("a",)]

    ((names, where),) = asked
    assert names is not None
    assert set(names) <= {"v", "g", "id"}
    assert all(part in where for part in ("g", "'p'", "id"))


def test_objects_of_the_caller_are_tables_by_their_names(catalog: Catalog) -> None:
    arrow = pa.table({"id": [1, 5]})
    frame = pd.DataFrame({"id": [2]})
    polar = pl.DataFrame({"id": [3]})

    union = "SELECT id FROM arrow UNION ALL SELECT id FROM frame UNION ALL SELECT id FROM polar"
    joined = catalog.sql(f"SELECT t.id FROM t JOIN ({union}) o ON t.id = o.id ORDER BY 1")

    assert joined.fetchall() == [(1,), (2,), (3,)]
    del arrow, frame, polar


def test_files_are_tables(catalog: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("id,v\n7,seven\n")

    catalog.sql(f"INSERT INTO t (id, v) SELECT * FROM read_csv('{file}')")

    assert catalog.sql("SELECT id, v, g FROM t WHERE id = 7").fetchall() == [(7, "seven", None)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT CAST(8.9 AS INT), CAST(-8.9D AS INT), CAST(' 8 ' AS INT)", [(8, -8, 8)]),
        ("SELECT -128Y, 7 / 2, 7 DIV 2, -7 % 3", [(-128, 3.5, 3, -1)]),
        ("SELECT CAST(CAST(8.9 AS INT) AS STRING), (9 / 2) / 3, -(-3)", [("8", 1.5, 3)]),
        ("SELECT sum(id), count(*) FROM range(4)", [(6, 4)]),
        (
            "SELECT date_add(DATE '2024-02-28', 1), add_months(DATE '2024-01-31', 1)",
            [(dt.date(2024, 2, 29), dt.date(2024, 2, 29))],
        ),
        ("SELECT col1, col2 FROM VALUES (1, 'it''s'), (2, \"b\") WHERE col1 = 1", [(1, "it's")]),
        ("SELECT current_catalog(), current_database()", [("paimon", "db")]),
        ("SELECT a[1], m[2] FROM nested", [(20, "two")]),
        ("SELECT r.s.x, r.s.y[0], n.r.s.x FROM nested n WHERE r.s.x = 5", [(5, 6, 5)]),
        ("SELECT db.nested.r.s.x, nested.r.s.y[0] FROM db.nested", [(5, 6)]),
        ("SELECT c FROM (TABLE nested UNION ALL TABLE nested)", [("x   ",), ("x   ",)]),
        ("TABLE nested", [([10, 20], [(1, "one"), (2, "two")], "x   ", {"s": {"x": 5, "y": [6]}})]),
        ("SELECT c FROM nested WHERE c = 'x' AND c IN ('x', 'y')", [("x   ",)]),
        ("SELECT /*+ BROADCAST(n) */ c FROM nested n", [("x   ",)]),
        ("SELECT max_by(v, id), sys.max_pt('db.t') FROM t WHERE id < 3", [("b", "q")]),
    ],
)
def test_values_are_those_of_spark(catalog: Catalog, text: str, rows: Rows) -> None:
    catalog.sql(
        "CREATE TABLE nested (a ARRAY<INT>, m MAP<INT, STRING>, c CHAR(4), "
        "r STRUCT<s: STRUCT<x: INT, y: ARRAY<INT>>>)"
    )
    catalog.sql(
        "INSERT INTO nested SELECT array(10, 20), map(1, 'one', 2, 'two'), 'x', "
        "named_struct('s', named_struct('x', 5, 'y', array(6)))"
    )

    assert catalog.sql(text).fetchall() == rows


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT 1 / 0", "DIVIDE_BY_ZERO"),
        ("SELECT (1 / 0) / 2", "DIVIDE_BY_ZERO"),
        ("SELECT CAST(CAST('x' AS INT) AS BIGINT)", "CAST_INVALID_INPUT"),
        ("SELECT CAST('x' AS INT)", "CAST_INVALID_INPUT"),
        ("SELECT nope FROM t", "nope"),
        ("SELECT 1; SELECT 2", "expected"),
        ("SELECT id +", "PARSE_SYNTAX_ERROR"),
        ("SELEC 1", "not a statement"),
    ],
)
def test_wrong_queries_are_refused(catalog: Catalog, text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        catalog.sql(text).to_arrow()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT 1",
        "GRANT SELECT ON t TO me",
        "EXPLAIN SELECT * FROM t",
    ],
)
def test_what_needs_spark_is_refused(catalog: Catalog, text: str) -> None:
    with pytest.raises(Unsupported, match=r"[Ww]ithout Spark"):
        catalog.sql(text)


def test_a_temporary_view_is_described_and_never_written(catalog: Catalog) -> None:
    catalog.sql("CREATE TEMPORARY VIEW v AS SELECT id, v AS name FROM t")

    assert catalog.sql("DESCRIBE v").fetchall() == [("id", "int", None), ("name", "string", None)]
    for text in ("INSERT INTO v VALUES (1, 'x')", "DELETE FROM v", "UPDATE v SET id = 1"):
        with pytest.raises(InvalidSql, match="EXPECT_TABLE_NOT_VIEW"):
            catalog.sql(text)


def test_temporary_views_are_queries_that_see_new_rows(catalog: Catalog) -> None:
    catalog.sql("CREATE TEMPORARY VIEW p (a, b) AS SELECT id, v FROM t WHERE g = 'p'")
    catalog.sql("INSERT INTO t VALUES (4, 'd', 'p')")

    assert catalog.sql("SELECT count(b) FROM p WHERE a > 1").fetchall() == [(1,)]
    with pytest.raises(InvalidSql, match="view"):
        catalog.sql("INSERT INTO p VALUES (1, 'x')")
    catalog.sql("DROP VIEW p")
    with pytest.raises(TableNotFound):
        catalog.sql("SELECT * FROM p")


@pytest.mark.parametrize(
    "convert",
    [
        lambda r: r.to_arrow().to_pylist(),
        lambda r: r.to_pandas().to_dict("records"),
        lambda r: r.to_polars().to_dicts(),
        lambda r: pa.table(r).to_pylist(),
        lambda r: [row for batch in r.to_batches() for row in batch.to_pylist()],
    ],
)
def test_a_result_is_whatever_is_asked_for(catalog: Catalog, convert: Callable[[Any], Any]) -> None:
    assert convert(catalog.sql("SELECT id, g FROM t WHERE id = 1")) == [{"id": 1, "g": "p"}]


def test_a_result_shows_itself_as_a_table(catalog: Catalog) -> None:
    result = catalog.sql("SELECT id, v FROM t WHERE id = 3")

    assert repr(result).splitlines() == [
        "+----+------+",
        "| id | v    |",
        "+----+------+",
        "| 3  | NULL |",
        "+----+------+",
    ]
    assert "<td" in result._repr_html_()
    assert "first 20 rows" in repr(catalog.sql("SELECT id FROM range(100)"))
    assert result.column_names == ["id", "v"]


def test_a_catalog_pickles_without_its_session(catalog: Catalog) -> None:
    copy = pickle.loads(pickle.dumps(catalog))

    assert copy.sql("SELECT count(*) FROM db.t").fetchall() == [(3,)]


def test_duckdb_reads_plain_files_by_itself_and_finds_the_same_rows(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.sql("CREATE TABLE plain (i INT, d DECIMAL(9, 2), s STRING, b BINARY, at TIMESTAMP)")
    catalog.sql("INSERT INTO plain VALUES (1, 1.5, 'a', X'00', TIMESTAMP '2024-01-01 10:00:00')")
    catalog.sql("INSERT INTO plain VALUES (NULL, NULL, NULL, NULL, NULL)")
    table = catalog.get_table("db.plain")
    text = "SELECT * FROM plain ORDER BY i"

    assert native.native_query(pinned.PinnedTable.of(table)) is not None
    by_itself = catalog.sql(text).to_arrow()
    monkeypatch.setattr(native, "_MAX_FILES", 0)
    assert catalog.sql(text).to_arrow() == by_itself


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE plain ADD COLUMN more INT",
        "CREATE OR REPLACE TABLE plain (i INT) TBLPROPERTIES ('primary-key' = 'i', 'bucket' = '1')",
        "CREATE OR REPLACE TABLE plain (c CHAR(3), i INT)",
    ],
)
def test_other_files_are_left_to_the_engine(catalog: Catalog, change: str) -> None:
    catalog.sql("CREATE TABLE plain (i INT)")
    catalog.sql("INSERT INTO plain VALUES (1)")
    catalog.sql(change)
    catalog.sql("INSERT INTO plain (i) VALUES (1)")

    table = pinned.PinnedTable.of(catalog.get_table("db.plain"))

    assert native.native_query(table) is None
    assert catalog.sql("SELECT max(i) FROM plain").fetchall() == [(1,)]


def test_files_with_deleted_rows_are_left_to_the_engine(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE marked (i INT) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')")
    catalog.sql("INSERT INTO marked VALUES (1), (2)")
    catalog.sql("DELETE FROM marked WHERE i = 1")

    assert native.native_query(pinned.PinnedTable.of(catalog.get_table("db.marked"))) is None
    assert catalog.sql("SELECT i FROM marked").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("selected", "names"),
    [
        ("*, __paimon_bucket", ["id", "v", "__paimon_bucket"]),
        ("t.*, t.__paimon_bucket", ["id", "v", "__paimon_bucket"]),
        ("* EXCEPT (v), __paimon_bucket", ["id", "__paimon_bucket"]),
        ("t.* EXCEPT (v), __paimon_bucket", ["id", "__paimon_bucket"]),
    ],
)
def test_a_star_leaves_out_hidden_columns_that_are_named_beside_it(
    tmp_path: Path, selected: str, names: list[str]
) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE TABLE t (id INT, v STRING)")
    catalog.sql("INSERT INTO t VALUES (1, 'a')")

    assert catalog.sql(f"SELECT {selected} FROM t").to_arrow().column_names == names


def test_a_star_of_one_table_leaves_out_the_hidden_columns_of_that_table_only(
    tmp_path: Path,
) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    for table in ("t", "u"):
        catalog.sql(f"CREATE TABLE {table} (id INT)")
        catalog.sql(f"INSERT INTO {table} VALUES (1)")

    found = catalog.sql("SELECT b.*, a.__paimon_row_index AS i FROM t a JOIN u b ON a.id = b.id")

    assert found.fetchall() == [(1, 0)]


def test_a_table_that_is_named_twice_is_read_at_one_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE TABLE t (id INT)")
    catalog.sql("CREATE TABLE u (id INT)")
    catalog.sql("INSERT INTO t VALUES (1)")
    find, one = pinned.find_target, pa.table({"id": pa.array([9], pa.int32())})

    def find_while_others_write(store: Any) -> Any:
        found = find(store)
        CatalogFactory.create({"warehouse": str(tmp_path)}).get_table("default.t").append(one)
        return found

    monkeypatch.setattr(pinned, "find_target", find_while_others_write)
    twice = "SELECT (SELECT count(*) FROM t) AS a, (SELECT count(*) FROM t x) AS b"
    assert catalog.sql(twice).fetchall() == [(1, 1)]
    catalog.sql("FROM t INSERT INTO u SELECT id INSERT INTO u SELECT id + 1")
    assert sorted(catalog.sql("SELECT * FROM u").fetchall()) == [(1,), (2,), (9,), (10,)]
    # The rows of the table that changes were found before.
    monkeypatch.undo()
    catalog.sql("DELETE FROM t WHERE id <> (SELECT min(id) FROM t)")
    assert catalog.sql("SELECT * FROM t").fetchall() == [(1,)]


def test_a_condition_sees_the_table_as_it_is_where_rows_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.sql("CREATE TABLE t (id INT)")
    catalog.sql("INSERT INTO t VALUES (1), (2)")
    one, present = pa.table({"id": pa.array([9], pa.int32())}), attempts.present

    def present_before_others_write(session: Any) -> Any:
        found = present(session)
        CatalogFactory.create({"warehouse": str(tmp_path)}).get_table("default.t").append(one)
        return found

    monkeypatch.setattr(attempts, "present", present_before_others_write)
    catalog.sql("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM t x WHERE x.id > t.id)")

    assert sorted(catalog.sql("SELECT * FROM t").fetchall()) == [(1,), (9,)]


def test_the_moment_of_a_version_may_be_a_query(catalog: Catalog) -> None:
    moment = "(SELECT min(commit_time) FROM `t$snapshots` WHERE snapshot_id > 0)"

    assert catalog.sql(f"SELECT count(*) FROM t TIMESTAMP AS OF {moment}").fetchall() == [(2,)]


def test_only_tables_have_versions(catalog: Catalog) -> None:
    catalog.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM t")
    catalog.sql("CACHE TABLE kept AS SELECT * FROM t")
    given = pa.table({"id": [1]})
    assert given.num_rows == 1

    for name in ("seen", "kept", "given", "sys.tables", "range(3)"):
        with pytest.raises(InvalidSql, match="has no versions"):
            catalog.sql(f"SELECT * FROM {name} VERSION AS OF 1")
    with pytest.raises(InvalidSql, match="has no versions"):
        catalog.sql("WITH c AS (SELECT 1 AS id) SELECT * FROM c VERSION AS OF 1")


def test_a_cte_may_have_the_name_of_a_table_inside_of_it(catalog: Catalog) -> None:
    found = catalog.sql(
        "WITH w AS (SELECT w.id, concat(w.v, w.v) AS v FROM VALUES (1, 'a') AS w(id, v)) "
        "SELECT concat(w.v, '!') FROM w"
    )

    assert found.fetchall() == [("aa!",)]


def test_nulls_without_a_type_make_no_column(catalog: Catalog) -> None:
    catalog.sql("CREATE TABLE u (id INT)")
    catalog.sql("SET `spark.paimon.write.merge-schema` = true")

    for statement in (
        "CREATE TABLE made AS SELECT 1 AS id, NULL AS n",
        "CREATE TABLE made AS SELECT coalesce(NULL, NULL) AS n",
        "INSERT INTO u BY NAME SELECT 1 AS id, NULL AS n",
        "MERGE INTO u USING (SELECT 1 AS id, NULL AS n) s ON false WHEN NOT MATCHED THEN INSERT *",
    ):
        with pytest.raises(InvalidSchema, match="n; CAST NULL"):
            catalog.sql(statement)
    assert catalog.list_tables("db") == ["t", "u"]
    assert catalog.get_table("db.u").field_names == ["id"]
    assert catalog.sql("DESCRIBE QUERY SELECT NULL AS n, id FROM t").fetchall() == [
        ("n", "void", None),
        ("id", "int", None),
    ]
