"""The server of a catalog decides which rows and values a reader sees, and no way leads around."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, Schema, SchemaChange, lit
from emberlake.catalog import RestCatalog
from emberlake.errors import DataMismatch, NoPermission, ServerError, Unsupported
from emberlake.table import Table
from emberlake.types import AtomicType
from query_auth import NULL, compound, leaf, of_inputs, ref, rules, upper
from rest_server import RestServer

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.string()), ("n", pa.int32())])
ROWS = [(1, "ann", 10), (2, "bob", 20), (3, "cid", None), (4, None, 40)]
AFTER_ONE = leaf("k", "GREATER_THAN", 1)
GUARDED = {"query-auth.enabled": "true"}


@pytest.fixture
def catalog(server: RestServer) -> RestCatalog:
    made = server.open()
    assert isinstance(made, RestCatalog)
    made.create_database("db")
    return made


def create(catalog: RestCatalog, keys: tuple[str, ...] = (), **more: Any) -> Table:
    columns = COLUMNS
    if keys:
        columns = pa.schema([f.with_nullable(f.name not in keys) for f in COLUMNS])
    options = {**GUARDED, **more.pop("options", {})}
    schema = Schema.from_pyarrow_schema(columns, primary_keys=list(keys), options=options, **more)
    return catalog.create_table("db.t", schema)


def data(rows: list[tuple[Any, ...]] | None = None, columns: pa.Schema = COLUMNS) -> pa.Table:
    rows = ROWS if rows is None else rows
    arrays = [pa.array([row[i] for row in rows], f.type) for i, f in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=columns.names)


@pytest.fixture
def table(catalog: RestCatalog) -> Table:
    made = create(catalog)
    made.append(data())
    return made


def seen(rows: pa.Table | pa.RecordBatchReader) -> list[tuple[Any, ...]]:
    read = rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows
    return sorted((tuple(row.values()) for row in read.to_pylist()), key=repr)


def hide(server: RestServer, answer: Mapping[str, Any]) -> None:
    server.rules = lambda _: answer


# --- what is asked --------------------------------------------------------------------------------


def test_a_table_without_rules_is_used_as_any_other(server: RestServer, table: Table) -> None:
    assert seen(table.to_arrow()) == sorted(ROWS, key=repr)
    assert table.count() == 4
    assert table.update({"v": "upper(v)"}, "k = 1").rows_updated == 1
    assert table.delete("k = 2").rows_deleted == 1
    table.append(data(ROWS[:1]))
    assert table.compact(full=True).snapshot_id is not None
    assert table.files().num_rows == 1
    assert table.check().ok
    assert table.analyze(["k"]).snapshot_id is not None
    assert table.scan().explain().snapshot_id is not None


def test_the_server_is_asked_for_the_columns_of_a_read_and_of_its_filter(
    server: RestServer, table: Table
) -> None:
    table.to_arrow(columns=["v"], filter="n > 3 AND n + 1 > 3")

    asked = server.asked("POST .*/tables/t/auth$")
    assert asked == [{"select": ["v", "n"]}] * len(asked) != []


def test_a_read_that_is_not_allowed_is_refused(server: RestServer, table: Table) -> None:
    def allow(select: list[str]) -> Mapping[str, Any]:
        if "v" in select:
            raise NoPermission("v is not for you")
        return rules()

    server.rules = allow

    assert seen(table.to_arrow(columns=["k"])) == [(1,), (2,), (3,), (4,)]
    for forbidden in (
        table.to_arrow,
        lambda: table.to_arrow(columns=["k"], filter="v = 'ann'"),
        lambda: table.count("v = 'ann'"),
        lambda: table.delete("k = 1"),
        table.files,
    ):
        with pytest.raises(NoPermission, match="v is not for you"):
            forbidden()


def test_counting_asks_for_the_columns_of_the_filter_alone(
    server: RestServer, table: Table
) -> None:
    assert table.count("n > 10") == 2

    asked = server.asked("POST .*/tables/t/auth$")
    assert asked == [{"select": ["n"]}] * len(asked) != []


def test_the_server_is_asked_again_for_every_read(server: RestServer, table: Table) -> None:
    scan = table.scan(columns=["k"])
    read = table.new_read_builder().new_read()
    splits = table.new_read_builder().new_scan().plan().splits()
    assert scan.to_arrow().num_rows == read.to_arrow(splits).num_rows == 4

    hide(server, rules(AFTER_ONE))

    assert scan.to_arrow().num_rows == read.to_arrow(splits).num_rows == 3


def test_no_catalog_without_a_server_has_such_tables(
    catalog: RestCatalog, server: RestServer, table: Table
) -> None:
    files = CatalogFactory.create({"warehouse": str(server.folder)})
    found = files.get_table("db.t")
    for refused in (
        found.to_arrow,
        found.count,
        found.files,
        found.compact,
        lambda: found.append(data()),
        lambda: found.delete("k = 1"),
        lambda: Table.from_path(found.table_path).to_arrow(),
    ):
        with pytest.raises(Unsupported, match="open it with the REST catalog"):
            refused()
    plain = files.create_table("db.plain", COLUMNS)
    with pytest.raises(Unsupported, match="a server would have to decide"):
        files.create_table("db.no", Schema.from_pyarrow_schema(COLUMNS, options=GUARDED))
    with pytest.raises(Unsupported, match="a server would have to decide"):
        files.alter_table("db.plain", [SchemaChange.set_option("query-auth.enabled", "true")])
    assert plain.count() == 0


def test_an_external_table_is_guarded_too(
    catalog: RestCatalog, server: RestServer, table: Table
) -> None:
    hide(server, rules(AFTER_ONE))

    external = catalog.register_table("db.ext", table.table_path)

    assert seen(external.to_arrow(columns=["k"])) == [(2,), (3,), (4,)]


def test_no_option_of_a_program_switches_the_rules_off(server: RestServer, table: Table) -> None:
    hide(server, rules(AFTER_ONE))

    off = table.copy({"query-auth.enabled": "false"})

    assert seen(off.to_arrow(columns=["k"])) == [(2,), (3,), (4,)]


# --- filters and masks ----------------------------------------------------------------------------


def test_rows_are_chosen_by_stored_values_then_masked_then_chosen_by_the_reader(
    server: RestServer, table: Table
) -> None:
    hide(server, rules(leaf("v", "NOT_EQUAL", "bob"), masks={"v": upper("v")}))

    assert seen(table.to_arrow()) == [(1, "ANN", 10), (3, "CID", None)]
    assert seen(table.to_arrow(columns=["k"])) == [(1,), (3,)]  # v decides, and is not returned
    assert seen(table.to_arrow(filter="v = 'ANN'")) == [(1, "ANN", 10)]
    assert seen(table.to_arrow(filter="v = 'ann'")) == []
    assert seen(table.to_arrow(columns=["n"], filter="v = 'ANN'")) == [(10,)]
    assert (table.count(), table.count("v = 'ANN'"), table.count("v = 'ann'")) == (2, 1, 0)
    assert (table.count("k = 1"), table.count("k = 2")) == (1, 0)


def test_a_limit_counts_the_rows_that_are_shown(server: RestServer, catalog: RestCatalog) -> None:
    table = create(catalog)
    for row in ROWS:
        table.append(data([row]))
    hide(server, rules(AFTER_ONE, masks={"v": upper("v")}))

    assert table.to_arrow(limit=2).num_rows == 2
    assert seen(table.to_arrow(filter="v = 'CID'", limit=1)) == [(3, "CID", None)]
    assert seen(table.to_arrow(filter="k + 1 = 5", limit=1)) == [(4, None, 40)]


def test_no_file_is_skipped_by_what_a_mask_hides(server: RestServer, catalog: RestCatalog) -> None:
    table = create(catalog, options={"file.format": "parquet"})
    for row in ROWS:
        table.append(data([row]))
    hide(server, rules(masks={"n": {"name": "NULL"}, "v": of_inputs("CONCAT", "z-", ref("v"))}))

    builder = table.new_read_builder().with_filter("v = 'z-ann'")
    by_stored = table.new_read_builder().with_filter("v = 'ann' AND n = 10")

    assert len(builder.new_scan().plan().splits()) == len(by_stored.new_scan().plan().splits()) > 0
    assert seen(builder.new_read().to_arrow(builder.new_scan().plan().splits())) == [
        (1, "z-ann", None)
    ]
    assert sum(len(s.files) for s in by_stored.new_scan().plan().splits()) == 4
    rowed = table.new_read_builder().with_filter("k = 1").new_scan().plan().splits()
    assert sum(len(s.files) for s in rowed) == 1  # columns without a mask still skip files


def test_a_computation_of_the_reader_never_meets_a_hidden_row(
    server: RestServer, table: Table
) -> None:
    hide(server, rules(leaf("k", "NOT_EQUAL", 2)))

    assert seen(table.to_arrow(columns=["k"], filter="1 / (k - 2) < 0")) == [(1,)]
    hide(server, rules())
    with pytest.raises(DataMismatch, match="division by zero"):
        table.to_arrow(columns=["k"], filter="1 / (k - 2) < 0")


def test_every_form_of_a_read_obeys(server: RestServer, table: Table) -> None:
    hide(server, rules(AFTER_ONE, masks={"v": upper("v"), "n": NULL}))
    expected = [(2, "BOB", None), (3, "CID", None), (4, None, None)]
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    read = builder.new_read()

    assert seen(read.to_arrow(splits)) == expected
    assert seen(read.to_arrow_batch_reader(splits)) == expected
    assert sorted(tuple(row) for row in read.to_iterator(splits)) == expected
    assert seen(pa.Table.from_pandas(read.to_pandas(splits), COLUMNS)) == expected
    assert seen(read.to_polars(splits).to_arrow()) == expected
    assert seen(table.to_batches()) == expected
    assert seen(pa.RecordBatchReader.from_stream(table)) == expected
    assert seen(read.to_duckdb(splits, "t").sql("SELECT * FROM t").to_arrow_table()) == expected
    shards = [
        seen(read.to_arrow(builder.new_scan().with_shard(i, 2).plan().splits())) for i in range(2)
    ]
    assert sorted(row for shard in shards for row in shard) == expected
    with_kind = read.to_arrow(splits, with_row_kind=True)
    assert with_kind.column_names == ["_row_kind", "k", "v", "n"]
    assert set(with_kind["_row_kind"].to_pylist()) == {"+I"}


def test_a_table_with_keys_is_merged_before_its_values_are_masked(
    server: RestServer, catalog: RestCatalog
) -> None:
    table = create(catalog, keys=("k",), options={"bucket": "1"})
    table.append(data())
    table.append(data([(1, "new", 1), (2, "bob", 2)]))
    hide(server, rules(leaf("v", "NOT_EQUAL", "ann"), masks={"k": NULL, "v": upper("v")}))

    assert seen(table.to_arrow()) == [(None, "BOB", 2), (None, "CID", None), (None, "NEW", 1)]
    assert table.to_arrow().schema.field("k").nullable
    assert (table.count(), table.count("k = 1"), table.count("k IS NULL")) == (3, 0, 3)
    assert seen(table.to_arrow(filter="v = 'NEW'", columns=["n"])) == [(1,)]


def test_a_filter_on_partitions_skips_their_files(server: RestServer, catalog: RestCatalog) -> None:
    table = create(catalog, partition_keys=["k"])
    table.append(data())
    hide(server, rules(leaf("k", "IN", 2, 3)))

    splits = table.new_read_builder().new_scan().plan().splits()

    assert sum(len(split.files) for split in splits) == 2
    assert table.count() == 2


def test_time_travel_and_changes_between_snapshots_obey(server: RestServer, table: Table) -> None:
    table.append(data([(5, "eve", 50), (0, "zoe", 0)]))
    table.create_tag("first", 1)
    hide(server, rules(AFTER_ONE, masks={"v": upper("v")}))

    assert seen(table.to_arrow(columns=["v"], snapshot=1)) == [("BOB",), ("CID",), (None,)]
    assert seen(table.to_arrow(columns=["v"], tag="first")) == [("BOB",), ("CID",), (None,)]
    between = table.copy({"incremental-between": "1,2"})
    assert seen(between.to_arrow()) == [(5, "EVE", 50)]


def test_changes_of_a_table_with_keys_obey(server: RestServer, catalog: RestCatalog) -> None:
    table = create(catalog, keys=("k",), options={"bucket": "1", "changelog-producer": "input"})
    table.append(data())
    table.append(data([(2, "two", 2), (1, "one", 1)]))
    hide(server, rules(AFTER_ONE, masks={"v": upper("v")}))

    for mode in ("diff", "changelog", "delta"):
        options = {"incremental-between": "1,2", "incremental-between-scan-mode": mode}
        assert seen(table.copy(options).to_arrow()) == [(2, "TWO", 2)], mode


def test_a_stream_obeys_the_rules_of_the_moment(server: RestServer, table: Table) -> None:
    builder = table.new_stream_read_builder().with_filter("v <> 'BOB'")
    scan, read = builder.new_streaming_scan(), builder.new_read()
    hide(server, rules(AFTER_ONE, masks={"v": upper("v")}))
    first = scan.plan()
    assert first is not None
    assert seen(read.to_arrow(first.splits())) == [(3, "CID", None)]

    table.append(data([(5, "eve", 50), (0, "zoe", 0)]))
    hide(server, rules(leaf("k", "EQUAL", 0)))
    second = scan.plan()

    assert second is not None
    assert seen(read.to_arrow(second.splits())) == [(0, "zoe", 0)]


def test_a_branch_is_asked_for_by_its_own_name(
    server: RestServer, catalog: RestCatalog, table: Table
) -> None:
    table.create_tag("here")
    table.create_branch("b", "here")
    hide(server, rules(AFTER_ONE))

    assert table.copy({"branch": "b"}).to_arrow().num_rows == 3
    assert catalog.get_table("db.t$branch_b").to_arrow().num_rows == 3
    assert server.asked(r"POST .*/tables/t%24branch_b/auth$")


def test_columns_of_rows_with_ids_obey(server: RestServer, catalog: RestCatalog) -> None:
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = create(catalog, options=options)
    table.append(data())
    table.update({"v": "concat(v, '!')"}, "k < 3")
    hide(server, rules(leaf("v", "LIKE", "%!"), masks={"v": upper("v")}))

    assert seen(table.to_arrow(columns=["_ROW_ID", "v"])) == [(0, "ANN!"), (1, "BOB!")]
    assert seen(catalog.get_table("db.t$row_tracking").to_arrow(columns=["_ROW_ID", "v"])) == [
        (0, "ANN!"), (1, "BOB!"),
    ]  # fmt: skip
    ids = table.new_read_builder().with_row_ids([0, 3]).with_projection(["k"])
    assert seen(ids.new_read().to_arrow(ids.new_scan().plan().splits())) == [(1,)]


def test_fields_of_a_masked_row_are_masked(server: RestServer, catalog: RestCatalog) -> None:
    columns = pa.schema([("k", pa.int64()), ("s", pa.struct([("a", pa.int64())]))])
    table = catalog.create_table("db.s", Schema.from_pyarrow_schema(columns, options=GUARDED))
    table.append(pa.table({"k": [1], "s": [{"a": 5}]}, schema=columns))
    hide(server, rules(masks={"s": NULL}))

    assert seen(table.to_arrow(columns=["s.a"])) == [(None,)]
    assert table.count("s.a = 5") == 0
    assert seen(table.to_arrow(columns=["k"])) == [(1,)]


# --- SQL ------------------------------------------------------------------------------------------


def test_queries_on_duckdb_obey(server: RestServer, catalog: RestCatalog, table: Table) -> None:
    hide(server, rules(AFTER_ONE, masks={"v": upper("v")}))

    assert catalog.sql("SELECT v FROM db.t WHERE v >= 'B' ORDER BY 1").fetchall() == [
        ("BOB",), ("CID",),
    ]  # fmt: skip
    assert catalog.sql("SELECT count(*), min(v), max(k) FROM db.t").fetchall() == [(3, "BOB", 4)]
    assert catalog.sql("SELECT k FROM db.t WHERE v = 'bob'").fetchall() == []
    assert catalog.sql("SELECT count(*) FROM db.t VERSION AS OF 1").fetchall() == [(3,)]
    assert catalog.sql("SELECT v FROM db.`t$audit_log` WHERE k = 2").fetchall() == [("BOB",)]
    assert catalog.sql("SELECT k, __paimon_bucket FROM db.t WHERE k = 2").fetchall() == [(2, 0)]
    with pytest.raises(Unsupported, match="hides rows and masks v for you"):
        catalog.sql("SELECT k, __paimon_file_path FROM db.t").fetchall()
    with pytest.raises(Unsupported, match="hides rows and masks v for you"):
        catalog.sql("DELETE FROM db.t WHERE k = 1")
    with pytest.raises(Unsupported, match="hides rows and masks v for you"):
        catalog.sql("UPDATE db.t SET n = (SELECT 1) WHERE k = 1")


def test_a_query_asks_only_for_its_columns(
    server: RestServer, catalog: RestCatalog, table: Table
) -> None:
    def allow(select: list[str]) -> Mapping[str, Any]:
        if "v" in select:
            raise NoPermission("v is not for you")
        return rules()

    server.rules = allow

    assert catalog.sql("SELECT sum(n) FROM db.t WHERE k > 1").fetchall() == [(60,)]
    with pytest.raises(NoPermission, match="v is not for you"):
        catalog.sql("SELECT k FROM db.t WHERE v = 'ann'").fetchall()
    with pytest.raises(NoPermission, match="v is not for you"):
        catalog.sql("SELECT k, __paimon_file_path FROM db.t").fetchall()


# --- what would lose or show rows -----------------------------------------------------------------

ON_ALL_ROWS: dict[str, Callable[[Table], object]] = {
    "delete": lambda t: t.delete("k = 1"),
    "update": lambda t: t.update({"n": lit(1)}),
    "merge": lambda t: t.merge(data(), on=["k"]).when_matched_delete().execute(),
    "upsert": lambda t: t.upsert(data(), on=["k"]),
    "messages": lambda t: t.new_batch_write_builder().new_update().delete_by_predicate("k = 1"),
    "compact": lambda t: t.compact(full=True),
    "sort": lambda t: t.sort_compact(["k"]),
    "analyze": lambda t: t.analyze(["v"]),
    "check": lambda t: t.check(),
    "explain": lambda t: t.scan().explain(),
    "files": lambda t: t.files(),
    "partitions": lambda t: t.partitions(),
}


ANSWERS = {"filter": rules(AFTER_ONE), "mask": rules(masks={"v": upper("v")})}
REFUSALS = [
    pytest.param(name, answer, id=f"{name}-{kind}")
    for kind, answer in ANSWERS.items()
    for name in ON_ALL_ROWS
    if (kind, name) != ("mask", "partitions")  # they are listed without the masked column
]


@pytest.mark.parametrize(("name", "answer"), REFUSALS)
def test_what_needs_all_rows_is_refused_to_those_who_do_not_see_them(
    server: RestServer, table: Table, name: str, answer: Mapping[str, Any]
) -> None:
    hide(server, answer)

    with pytest.raises(Unsupported, match="this needs all rows as they are"):
        ON_ALL_ROWS[name](table)

    hide(server, rules())
    assert seen(table.to_arrow()) == sorted(ROWS, key=repr)


def test_partitions_are_listed_only_for_those_who_see_all_rows(
    server: RestServer, catalog: RestCatalog
) -> None:
    table = create(catalog, partition_keys=["k"])
    table.append(data())
    assert len(catalog.list_partitions_paged("db.t").elements) == 4
    hide(server, rules(AFTER_ONE))

    with pytest.raises(Unsupported, match="this needs all rows as they are"):
        catalog.list_partitions_paged("db.t")


def test_a_merge_that_saw_all_rows_leaves_no_permission_behind(
    server: RestServer, table: Table
) -> None:
    more = pa.table({"k": [5], "v": ["eve"], "n": pa.array([50], pa.int32()), "x": [1]})
    merge = table.merge(more, on=["k"], merge_schema=True)
    merge.when_not_matched_insert_all().execute()
    assert table.field_names == ["k", "v", "n", "x"]

    with pytest.raises(Unsupported, match="was not asked"):
        table.store.rules  # noqa: B018
    hide(server, rules(AFTER_ONE))
    assert table.count() == 4


@pytest.mark.parametrize(
    "name",
    [
        "files",
        "manifests",
        "buckets",
        "partitions",
        "file_key_ranges",
        "statistics",
        "table_indexes",
    ],
)
def test_system_tables_tell_nothing_of_hidden_values(
    server: RestServer, catalog: RestCatalog, table: Table, name: str
) -> None:
    hide(server, rules(AFTER_ONE, masks={"v": upper("v")}))

    with pytest.raises(Unsupported, match=rf"shown by \${name}"):
        catalog.get_table(f"db.t${name}").to_arrow()
    assert catalog.get_table("db.t$snapshots").count() == 1
    assert catalog.get_table("db.t$schemas").count() == 1


def test_rows_can_be_rescaled_only_by_those_who_see_them(
    server: RestServer, catalog: RestCatalog
) -> None:
    table = create(catalog, keys=("k",), options={"bucket": "1"})
    table.append(data())
    hide(server, rules(AFTER_ONE))

    with pytest.raises(Unsupported, match="cannot be rescaled"):
        table.rescale(2)

    hide(server, rules())
    table.rescale(2)
    assert table.count() == 4


def test_writers_need_not_see_what_is_there(server: RestServer, catalog: RestCatalog) -> None:
    table = create(
        catalog, keys=("k",), options={"bucket": "1", "deletion-vectors.enabled": "true"}
    )
    table.append(data())
    hide(server, rules(leaf("k", "EQUAL", 0), masks={"v": NULL}))

    table.append(data([(1, "new", 1), (9, "nine", 9)]))
    table.delete_keys(pa.table({"k": [2]}))
    assert table.count() == 0

    hide(server, rules())
    assert seen(table.to_arrow(columns=["k", "v"])) == [
        (1, "new"), (3, "cid"), (4, None), (9, "nine"),
    ]  # fmt: skip


# --- rules that cannot be obeyed ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (rules(leaf("k", "ARRAY_CONTAINS", 1)), "compares with ARRAY_CONTAINS"),
        (rules(leaf({"name": "ROT13", "inputs": []}, "EQUAL", "a")), "the transform ROT13"),
        (rules(compound("XOR", AFTER_ONE)), "joins filters with XOR"),
        (rules({**AFTER_ONE, "kind": "MAGIC"}), "of the kind MAGIC"),
        (rules(masks={"v": of_inputs("SHA2", ref("v"))}), "the transform SHA2"),
        (rules(leaf("gone", "EQUAL", 1)), "the column gone, which the table does not have"),
        (rules(masks={"gone": NULL}), "the column gone, which the table does not have"),
        (rules(masks={"n": upper("v")}), "masks n INT with values of the type STRING"),
        (rules(masks={"v": upper("v"), "n": {"name": "CAST", "fieldRef": ref("v"), "type": "INT"}}),
         "masks n with values of v, which it masks too"),
    ],
)  # fmt: skip
def test_a_rule_that_is_not_understood_is_refused_by_its_name(
    server: RestServer, table: Table, answer: Mapping[str, Any], reason: str
) -> None:
    hide(server, answer)

    with pytest.raises(Unsupported, match=reason):
        table.to_arrow()


@pytest.mark.parametrize(
    "answer",
    [
        {"filter": [""]},
        {"filter": [None]},
        {"filter": "k > 1"},
        {"filter": ["not json"]},
        {"filter": ["null"]},
        {"filter": ["[" * 100_000]},
        {"columnMasking": {"v": None}},
        {"columnMasking": {"v": "null"}},
        {"columnMasking": ["v"]},
        [],
        rules(leaf("k", "EQUAL")),
        rules(leaf("k", "BETWEEN", 1)),
        rules(leaf("k", "EQUAL", "one")),
        rules(leaf("k", "EQUAL", {"a": 1})),
        rules(leaf("k", "CONTAINS", "a")),
        rules(compound("AND")),
        rules(masks={"v": of_inputs("UPPER")}),
        rules(masks={"v": of_inputs("UPPER", 1)}),
        rules(masks={"v": of_inputs("UPPER", ref("k"))}),
        rules(masks={"v": {"name": "CAST", "fieldRef": ref("v"), "type": "NOTHING"}}),
    ],
    ids=str,
)  # fmt: skip
def test_an_answer_that_makes_no_sense_shows_nothing(
    server: RestServer, table: Table, answer: Mapping[str, Any]
) -> None:
    hide(server, answer)

    with pytest.raises(ServerError):
        table.to_arrow()


def test_the_error_of_a_rule_shows_no_value(server: RestServer, table: Table) -> None:
    number = {"name": "CAST", "fieldRef": ref("v"), "type": "INT"}
    for answer in (rules(leaf(number, "EQUAL", 1)), rules(masks={"n": number})):
        hide(server, answer)

        with pytest.raises(DataMismatch, match="cannot be computed for every row") as caught:
            table.to_arrow()

        assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_rule_follows_no_column_to_another_name(
    server: RestServer, catalog: RestCatalog, table: Table
) -> None:
    catalog.alter_table("db.t", [SchemaChange.rename_column("v", "w")])
    table = catalog.get_table("db.t")
    table.append(data([(5, "eve", 50)]).rename_columns(["k", "w", "n"]))
    hide(server, rules(masks={"w": upper("w")}))

    assert seen(table.to_arrow(columns=["w"], filter="k = 5")) == [("EVE",)]
    with pytest.raises(Unsupported, match="the column w, which was named v at the time"):
        table.to_arrow(snapshot=1)
    hide(server, rules(masks={"v": upper("v")}))
    with pytest.raises(Unsupported, match="the column v, which the table does not have"):
        table.to_arrow()


def test_a_mask_of_a_column_that_came_later_hides_nothing_before(
    server: RestServer, catalog: RestCatalog, table: Table
) -> None:
    catalog.alter_table("db.t", [SchemaChange.add_column("x", AtomicType("INT"))])
    table = catalog.get_table("db.t")
    hide(server, rules(masks={"x": NULL}))

    assert table.to_arrow().column_names == ["k", "v", "n", "x"]
    assert seen(table.to_arrow(snapshot=1, filter="k = 1")) == [(1, "ann", 10)]
    hide(server, rules(leaf("x", "IS_NULL")))
    assert table.count() == 4
    with pytest.raises(Unsupported, match="which the table did not have at the time"):
        table.to_arrow(snapshot=1)
