"""What every catalog must do; each fixture parameter is one catalog."""

import pickle
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest

from emberlake.catalog import Catalog, CatalogFactory, FileSystemCatalog
from emberlake.errors import (
    AlreadyExists,
    BranchNotFound,
    ColumnNotFound,
    DatabaseAlreadyExists,
    DatabaseNotEmpty,
    DatabaseNotFound,
    DataMismatch,
    InvalidIdentifier,
    InvalidInput,
    InvalidState,
    TableAlreadyExists,
    TableNotFound,
    TagNotFound,
    Unsupported,
)
from emberlake.io import MemoryStorage
from emberlake.spec.identifier import Identifier
from emberlake.spec.instant import Instant
from emberlake.spec.schema import Schema
from emberlake.spec.schema_change import SchemaChange
from emberlake.types import AtomicType
from rest_server import RestServer, serving
from servers import Server

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])


def _on_disk(folder) -> Catalog:
    return CatalogFactory.create({"warehouse": str(folder)})


def _in_memory(_) -> Catalog:
    return FileSystemCatalog(MemoryStorage(), "/warehouse")


def _on_store(server: Server) -> Catalog:
    warehouse = f"{server.root}/{uuid.uuid4()}"
    return CatalogFactory.create({"warehouse": warehouse, **server.options})


CATALOGS: dict[str, Callable[..., Catalog]] = {"disk": _on_disk, "memory": _in_memory}


@pytest.fixture
def rest(tmp_path) -> Iterator[RestServer]:
    with serving(tmp_path / "served", page_size=2) as server:
        yield server


def _made(request, tmp_path) -> Catalog:
    match request.param:
        case "s3" | "azure" | "gcs":
            made = _on_store(request.getfixturevalue(request.param))
        case "rest":
            made = request.getfixturevalue("rest").open()
        case kind:
            made = CATALOGS[kind](tmp_path)
    made.create_database("db")
    return made


ON_STORES = [
    pytest.param("s3", marks=pytest.mark.thorough),
    pytest.param("azure", marks=pytest.mark.slow),
    pytest.param("gcs", marks=pytest.mark.slow),
]


@pytest.fixture(params=[*CATALOGS, "rest", *ON_STORES])
def catalog(request, tmp_path) -> Catalog:
    return _made(request, tmp_path)


@pytest.fixture(params=[*CATALOGS, "rest"])
def renaming(request, tmp_path) -> Catalog:
    """A catalog that can give tables other names."""
    return _made(request, tmp_path)


def a_schema(**arguments) -> Schema:
    return Schema.from_pyarrow_schema(COLUMNS, **arguments)


# --- databases ------------------------------------------------------------------------------------


def test_databases_are_listed_by_name(catalog):
    catalog.create_database("b")
    catalog.create_database("a")

    assert catalog.list_databases() == ["a", "b", "db"]
    assert catalog.get_database("a").name == "a"


def test_a_database_is_created_once(catalog):
    catalog.create_database("db", ignore_if_exists=True)

    with pytest.raises(DatabaseAlreadyExists, match="'db' already exists"):
        catalog.create_database("db")


def test_a_missing_database_is_an_error_everywhere(catalog):
    for call in (
        lambda: catalog.get_database("no"),
        lambda: catalog.drop_database("no"),
        lambda: catalog.list_tables("no"),
        lambda: catalog.create_table("no.t", a_schema()),
    ):
        with pytest.raises(DatabaseNotFound, match="'no' does not exist"):
            call()
    catalog.drop_database("no", ignore_if_not_exists=True)


@pytest.mark.versitygw
def test_a_database_with_tables_is_dropped_only_by_cascade(catalog):
    catalog.create_table("db.t", a_schema())

    with pytest.raises(DatabaseNotEmpty, match=r"holds t; .*cascade=True"):
        catalog.drop_database("db")
    assert catalog.list_tables("db") == ["t"]

    catalog.drop_database("db", cascade=True)
    assert catalog.list_databases() == []


@pytest.mark.versitygw
def test_an_empty_database_is_dropped(catalog):
    catalog.drop_database("db")

    assert catalog.list_databases() == []


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "", ".", "..", ".hidden", "a\\b", "a\nb", "sys"]
)
def test_names_that_are_no_names_are_refused_before_anything_is_made(catalog, name):
    for call in (
        lambda: catalog.create_database(name),
        lambda: catalog.drop_database(name, ignore_if_not_exists=True, cascade=True),
        lambda: catalog.get_database(name),
    ):
        with pytest.raises(InvalidIdentifier):
            call()
    assert catalog.list_databases() == ["db"]


@pytest.mark.parametrize(
    "identifier", ["db.../../evil", "db.`../../evil`", "db.`.x`", "t", "", "a..c"]
)
def test_tables_with_names_that_are_no_names_are_refused(catalog, identifier):
    for call in (
        lambda: catalog.create_table(identifier, a_schema()),
        lambda: catalog.get_table(identifier),
        lambda: catalog.drop_table(identifier, ignore_if_not_exists=True),
        lambda: catalog.rename_table("db.t", identifier),
    ):
        with pytest.raises(InvalidIdentifier):
            call()


# --- tables ---------------------------------------------------------------------------------------


def test_a_created_table_is_found_again(catalog):
    catalog.create_table("db.t", a_schema(primary_keys=["id"], options={"bucket": "2"}))

    table = catalog.get_table("db.t")

    assert [field.name for field in table.fields] == ["id", "name", "day"]
    assert list(table.primary_keys) == ["id"]
    assert table.table_schema.id == 0
    assert table.table_schema.options["bucket"] == "2"
    assert table.table_schema.time_millis > 0
    assert catalog.list_tables("db") == ["t"]


def test_identifiers_may_be_quoted_or_made(catalog):
    catalog.create_database("a.b")
    catalog.create_table("`a.b`.`t`", a_schema())

    assert catalog.list_tables("a.b") == ["t"]
    assert catalog.get_table(Identifier("a.b", "t")).identifier == Identifier("a.b", "t")


def test_a_table_is_created_once(catalog):
    catalog.create_table("db.t", a_schema())
    catalog.create_table("db.t", a_schema(primary_keys=["id"]), ignore_if_exists=True)

    with pytest.raises(TableAlreadyExists, match=r"db\.t already exists"):
        catalog.create_table("db.t", a_schema())
    assert list(catalog.get_table("db.t").primary_keys) == []


def test_a_new_table_is_opened(catalog):
    made = catalog.create_table("db.t", COLUMNS, partition_keys=["day"], comment="days")
    made.append(pa.table({"id": [1], "name": ["a"], "day": [None]}))

    opened = catalog.get_table("db.t")
    assert made.identifier == opened.identifier
    assert made.table_schema == opened.table_schema
    assert opened.partition_keys == ["day"]
    assert opened.comment() == "days"
    assert opened.count() == 1


def test_a_table_that_is_there_is_opened_as_it_is(catalog):
    catalog.create_table("db.t", COLUMNS, comment="first")

    again = catalog.create_table("db.t", COLUMNS, ignore_if_exists=True, comment="second")

    assert again.comment() == "first"


def test_keys_beside_a_schema_are_refused_for_the_table(catalog):
    with pytest.raises(InvalidInput, match=r"db\.t: a Schema has its own primary_keys"):
        catalog.create_table("db.t", a_schema(), primary_keys=["id"])

    assert catalog.list_tables("db") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"primary_keys": ["nope"]},
        {"primary_keys": ["id", "id"]},
        {"partition_keys": ["nope"]},
        {"options": {"bucket": "many"}},
        {"options": {"bucket": "4"}},
        {"primary_keys": ["id"], "options": {"merge-engine": "magic"}},
        {"options": {"path": "/elsewhere"}},
        {"primary_keys": ["id"], "options": {"sequence.field": "day,,name"}},
    ],
    ids=str,
)
def test_a_wrong_table_is_refused_and_nothing_is_written(catalog, wrong):
    with pytest.raises(InvalidInput):
        catalog.create_table("db.t", a_schema(**wrong))

    assert catalog.list_tables("db") == []
    catalog.drop_database("db")


SKETCHES = {"merge-engine": "aggregation", "fields.raw.aggregate-function": "theta_sketch"}


@pytest.mark.parametrize(
    ("unusable", "reason"),
    [
        ({"options": {"commit.callbacks": "com.example.Hook"}}, "only Java can run"),
        (
            {
                "primary_keys": ["id"],
                "partition_keys": ["day"],
                "options": {"ignore-delete": "true"},
            },
            "lacks the partition column day",
        ),
        ({"primary_keys": ["id"], "options": SKETCHES}, "raw by theta_sketch"),
    ],
    ids=str,
)
def test_a_table_that_could_never_be_written_is_refused_and_nothing_is_written(
    catalog, unusable, reason
):
    columns = COLUMNS.append(pa.field("raw", pa.binary()))

    with pytest.raises(Unsupported, match=reason):
        catalog.create_table("db.t", Schema.from_pyarrow_schema(columns, **unusable))

    assert catalog.list_tables("db") == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (SchemaChange.set_option("scan.fallback-branch", "b"), "two branches as one"),
        (SchemaChange.set_option("fields.raw.aggregate-function", "rbm64"), "raw by rbm64"),
        (SchemaChange.add_column("v", AtomicType("VARIANT")), "v VARIANT"),
    ],
    ids=str,
)
def test_a_table_does_not_become_one_that_could_never_be_written(catalog, change, reason):
    columns = COLUMNS.append(pa.field("raw", pa.binary()))
    is_merged = "aggregate" in str(change)
    keys = ["id"] if is_merged else []
    options = {"merge-engine": "aggregation"} if is_merged else {}
    schema = Schema.from_pyarrow_schema(columns, primary_keys=keys, options=options)
    catalog.create_table("db.t", schema)

    with pytest.raises(Unsupported, match=reason):
        catalog.alter_table("db.t", [change])

    assert catalog.get_table("db.t").table_schema.id == 0


def test_of_many_creators_one_wins(catalog):
    start = Barrier(8)

    def create(index):
        start.wait()
        try:
            catalog.create_table("db.t", a_schema(comment=str(index)))
        except AlreadyExists:
            return None
        return str(index)

    with ThreadPoolExecutor(8) as pool:
        winners = [winner for winner in pool.map(create, range(8)) if winner]

    assert winners == [catalog.get_table("db.t").table_schema.comment]


def test_a_missing_table_is_an_error_everywhere(catalog):
    for call in (
        lambda: catalog.get_table("db.no"),
        lambda: catalog.get_table("db.no$snapshots"),
        lambda: catalog.get_table("db.no$branch_b"),
        lambda: catalog.get_table("no.no"),
        lambda: catalog.drop_table("db.no"),
        lambda: catalog.rename_table("db.no", "db.t"),
        lambda: catalog.alter_table("db.no", [SchemaChange.set_option("a", "b")]),
        lambda: catalog.list_partitions_paged("db.no"),
        lambda: catalog.drop_partitions("db.no", [{"day": "2026-06-26"}]),
    ):
        with pytest.raises(TableNotFound, match="does not exist"):
            call()
    catalog.drop_table("db.no", ignore_if_not_exists=True)
    catalog.alter_table("db.no", [], ignore_if_not_exists=True)


def test_a_dropped_table_is_gone_and_can_be_made_again(catalog):
    catalog.create_table("db.t", a_schema(comment="old"))
    catalog.drop_table("db.t")

    assert catalog.list_tables("db") == []
    catalog.create_table("db.t", a_schema(comment="new"))
    assert catalog.get_table("db.t").table_schema.comment == "new"


def test_a_table_is_renamed_also_into_another_database(renaming):
    renaming.create_database("other")
    renaming.create_table("db.t", a_schema(comment="mine"))

    renaming.rename_table("db.t", "other.u")

    assert (renaming.list_tables("db"), renaming.list_tables("other")) == ([], ["u"])
    assert renaming.get_table("other.u").table_schema.comment == "mine"


def test_a_rename_never_replaces_anything(renaming):
    renaming.create_table("db.t", a_schema(comment="t"))
    renaming.create_table("db.u", a_schema(comment="u"))

    with pytest.raises(TableAlreadyExists, match=r"db\.u already exists"):
        renaming.rename_table("db.t", "db.u")
    with pytest.raises(DatabaseNotFound):
        renaming.rename_table("db.t", "no.u")
    assert renaming.get_table("db.u").table_schema.comment == "u"


@pytest.mark.thorough
def test_where_a_table_cannot_be_renamed_it_is_refused(s3):
    catalog = _on_store(s3)
    catalog.create_database("db")
    catalog.create_table("db.t", a_schema())

    with pytest.raises(Unsupported, match=r"create db\.u and copy the rows"):
        catalog.rename_table("db.t", "db.u")
    assert catalog.list_tables("db") == ["t"]


@pytest.mark.parametrize("identifier", ["db.t$branch_b", "db.t$snapshots"])
def test_branches_and_system_tables_are_not_created_dropped_or_renamed(catalog, identifier):
    catalog.create_table("db.t", a_schema())
    for call in (
        lambda: catalog.create_table(identifier, a_schema()),
        lambda: catalog.drop_table(identifier),
        lambda: catalog.rename_table(identifier, "db.u"),
        lambda: catalog.rename_table("db.t", identifier),
    ):
        with pytest.raises(InvalidIdentifier):
            call()
    assert catalog.list_tables("db") == ["t"]


# --- changes --------------------------------------------------------------------------------------


def test_changes_make_the_next_schema(catalog):
    catalog.create_table("db.t", a_schema())

    catalog.alter_table(
        "db.t",
        [
            SchemaChange.add_column("age", AtomicType("INT")),
            SchemaChange.set_option("snapshot.num-retained.max", "5"),
        ],
    )

    schema = catalog.get_table("db.t").table_schema
    assert schema.id == 1
    assert [field.name for field in schema.fields] == ["id", "name", "day", "age"]
    assert schema.options["snapshot.num-retained.max"] == "5"


def test_a_table_grows_with_the_commit_of_its_rows(catalog):
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    rows = pa.table({"id": [1], "note": ["x"]})

    with pytest.raises(DataMismatch):
        table.append(rows.set_column(0, "id", pa.array(["one"])), merge_schema=True)
    assert catalog.get_table("db.t").field_names == ["id"]
    table.append(rows, merge_schema=True)

    grown = catalog.get_table("db.t")
    assert (grown.table_schema.id, grown.field_names) == (1, ["id", "note"])
    assert grown.to_arrow().to_pylist() == table.to_arrow().to_pylist() == rows.to_pylist()


def test_when_one_change_is_refused_none_is_made(catalog):
    catalog.create_table("db.t", a_schema())

    with pytest.raises(ColumnNotFound):
        catalog.alter_table(
            "db.t", [SchemaChange.set_option("a", "b"), SchemaChange.drop_column("nope")]
        )
    assert catalog.get_table("db.t").table_schema.id == 0


def test_changes_that_change_nothing_make_no_schema(catalog):
    catalog.create_table("db.t", a_schema(options={"a": "b"}))

    catalog.alter_table("db.t", [])
    catalog.alter_table("db.t", [SchemaChange.set_option("a", "b")])

    assert catalog.get_table("db.t").table_schema.id == 0


def test_concurrent_changes_are_all_kept(catalog):
    catalog.create_table("db.t", a_schema())
    start = Barrier(6)

    def alter(index):
        start.wait()
        catalog.alter_table("db.t", [SchemaChange.set_option(f"option.{index}", "set")])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(alter, range(6)))

    schema = catalog.get_table("db.t").table_schema
    assert schema.id == 6
    assert [schema.options.get(f"option.{index}") for index in range(6)] == ["set"] * 6


def test_system_tables_cannot_be_altered(catalog):
    catalog.create_table("db.t", a_schema())

    with pytest.raises(InvalidIdentifier, match="system table"):
        catalog.alter_table("db.t$options", [SchemaChange.set_option("a", "b")])


# --- what lies behind the dollar ------------------------------------------------------------------


def test_system_tables_are_opened_by_name(catalog):
    catalog.create_table("db.t", a_schema(comment="hello"))

    table = catalog.get_table("db.t$schemas")
    builder = table.new_read_builder().with_projection(["comment"])

    assert table.identifier == Identifier("db", "t", system_table="schemas")
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert found.to_pydict() == {"comment": ["hello"]}


def test_unknown_system_tables_and_branches_are_refused(catalog):
    catalog.create_table("db.t", a_schema())

    with pytest.raises(TableNotFound, match=r"there are .*branches, .* more"):
        catalog.get_table("db.t$nope")
    with pytest.raises(BranchNotFound, match=r"db\.t has no branch 'b'"):
        catalog.get_table("db.t$branch_b")


# --- partitions -----------------------------------------------------------------------------------


def with_rows(catalog: Catalog, days: list[str | None], **arguments) -> None:
    catalog.create_table("db.p", a_schema(partition_keys=["day"], **arguments))
    rows = pa.table({"id": list(range(len(days))), "name": ["n"] * len(days), "day": days})
    rows = rows.set_column(2, "day", rows["day"].cast(pa.date32()))
    builder = catalog.get_table("db.p").new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def days_of(catalog: Catalog, **arguments) -> list[str]:
    page = catalog.list_partitions_paged("db.p", **arguments)
    return [partition.spec["day"] for partition in page.elements]


def test_partitions_are_listed_with_what_they_hold(catalog):
    with_rows(catalog, ["2026-06-26", "2026-06-25", "2026-06-26", None])

    page = catalog.list_partitions_paged("db.p")

    assert [p.spec for p in page.elements] == [
        {"day": "2026-06-25"},
        {"day": "2026-06-26"},
        {"day": "__DEFAULT_PARTITION__"},
    ]
    assert [p.record_count for p in page.elements] == [1, 2, 1]
    assert [p.file_count for p in page.elements] == [1, 1, 1]
    assert all(p.file_size_in_bytes > 0 for p in page.elements)
    assert all(p.last_file_creation_time > 1_700_000_000_000 for p in page.elements)
    assert page.next_page_token is None


def test_a_table_without_rows_has_no_partitions(catalog):
    catalog.create_table("db.p", a_schema(partition_keys=["day"]))

    assert catalog.list_partitions_paged("db.p").elements == []


def test_partitions_come_in_pages(catalog):
    with_rows(catalog, [f"2026-06-0{n}" for n in range(1, 6)])

    first = catalog.list_partitions_paged("db.p", max_results=2)
    second = catalog.list_partitions_paged("db.p", 2, first.next_page_token)
    third = catalog.list_partitions_paged("db.p", 2, second.next_page_token)

    pages = [[p.spec["day"][-2:] for p in page.elements] for page in (first, second, third)]
    assert pages == [["01", "02"], ["03", "04"], ["05"]]
    assert third.next_page_token is None


def test_a_page_goes_on_where_the_last_one_ended_whatever_happened_between(catalog):
    with_rows(catalog, [f"2026-06-0{n}" for n in range(1, 6)])
    first = catalog.list_partitions_paged("db.p", max_results=2)

    catalog.drop_partitions("db.p", [{"day": "2026-06-01"}, {"day": "2026-06-02"}])

    assert days_of(catalog, page_token=first.next_page_token)[0] == "2026-06-03"


def test_page_arguments_that_make_no_sense_are_refused(catalog):
    with_rows(catalog, ["2026-06-01"])

    with pytest.raises(InvalidInput, match="page token"):
        catalog.list_partitions_paged("db.p", page_token="zz")
    with pytest.raises(InvalidInput, match="max_results"):
        catalog.list_partitions_paged("db.p", max_results=0)


@pytest.mark.parametrize("pattern", ["day=2026-06*", "day=2026-06%", "*-06-*"])
def test_partitions_are_found_by_pattern(catalog, pattern):
    with_rows(catalog, ["2026-06-26", "2026-07-01"])

    assert days_of(catalog, partition_name_pattern=pattern) == ["2026-06-26"]


def test_listed_partitions_can_be_dropped_as_they_are_listed(catalog):
    with_rows(catalog, ["2026-06-26", "2026-06-25", None])
    first, _, last = catalog.list_partitions_paged("db.p").elements

    catalog.drop_partitions("db.p", [first.spec, last.spec])

    assert days_of(catalog) == ["2026-06-26"]


@pytest.mark.parametrize(
    "wrong", [[], [{}], [{"nope": "1"}], [{"day": "tomorrow"}], [{"day": "2026-06-26"}, {}]]
)
def test_partitions_that_are_not_understood_are_refused_and_nothing_is_dropped(catalog, wrong):
    with_rows(catalog, ["2026-06-26"])

    with pytest.raises(InvalidInput):
        catalog.drop_partitions("db.p", wrong)
    assert days_of(catalog) == ["2026-06-26"]


def test_a_table_without_partition_columns_has_none_to_drop(catalog):
    catalog.create_table("db.t", a_schema())

    with pytest.raises(InvalidInput, match=r"db\.t is not partitioned"):
        catalog.drop_partitions("db.t", [{"day": "2026-06-26"}])


# --- the catalog itself ---------------------------------------------------------------------------


def test_a_catalog_pickles(catalog):
    catalog.create_table("db.t", a_schema())

    again = pickle.loads(pickle.dumps(catalog))

    assert again.list_tables("db") == ["t"]
    assert again.options == catalog.options


# --- tags, branches, rollback ---------------------------------------------------------------------


@pytest.fixture
def history(catalog) -> Catalog:
    """A catalog with a table of two snapshots."""
    catalog.create_table("db.t", a_schema())
    for number in (1, 2):
        builder = catalog.get_table("db.t").new_batch_write_builder()
        with builder.new_write() as write, builder.new_commit() as commit:
            write.write_arrow(pa.table({"id": [number]}))
            commit.commit(write.prepare_commit())
    return catalog


def test_tags_are_made_and_deleted_by_the_name_of_their_table(history):
    history.create_tag("db.t", "a", snapshot_id=1)
    history.create_tag(Identifier("db", "t"), "b", None, "1 d")
    history.create_tag("db.t", "b", ignore_if_exists=True)

    plain, kept = history.get_tag("db.t", "a"), history.get_tag("db.t", "b")
    assert (plain.tag_name, plain.snapshot.id) == ("a", 1)
    assert (plain.tag_create_time, plain.tag_time_retained) == (None, None)
    assert (kept.snapshot.id, kept.tag_time_retained) == (2, "PT24H")
    assert abs(kept.tag_create_time - time.time() * 1000) < 60_000
    history.delete_tag("db.t", "a")
    for call in (history.get_tag, history.delete_tag):
        with pytest.raises(TagNotFound) as missing:
            call("db.t", "a")
        assert missing.value.tag == "a"


def test_tags_are_listed_a_page_at_a_time(history):
    for name in ("b2", "a", "b1"):
        history.create_tag("db.t", name)

    first = history.list_tags_paged("db.t", max_results=2)
    second = history.list_tags_paged("db.t", 2, first.next_page_token)

    assert (first.elements, second.elements) == (["a", "b1"], ["b2"])
    assert second.next_page_token is None
    assert history.list_tags_paged("db.t", tag_name_prefix="b").elements == ["b1", "b2"]
    with pytest.raises(InvalidInput, match="max_results"):
        history.list_tags_paged("db.t", 0)


@pytest.mark.versitygw
def test_branches_are_made_and_taken_over_by_the_name_of_their_table(history):
    history.create_tag("db.t", "first", 1)

    history.create_branch("db.t", "a", "first")
    history.create_branch("db.t", "b")
    history.rename_branch("db.t", "b", "c")
    history.drop_branch("db.t", "c")
    history.fast_forward("db.t", "a")

    assert history.list_branches("db.t") == ["a"]
    assert history.get_table("db.t").latest_snapshot().id == 1
    with pytest.raises(BranchNotFound) as missing:
        history.drop_branch("db.t", "c")
    assert missing.value.branch == "c"


@pytest.mark.parametrize("instant", [Instant.snapshot(1), Instant.tag("first"), 1, "first"])
def test_a_table_is_rolled_back_by_its_name(history, instant):
    history.create_tag("db.t", "first", 1)

    with pytest.raises(InvalidState, match="at snapshot 2, not at 1"):
        history.rollback_to("db.t", instant, from_snapshot=1)
    history.rollback_to("db.t", instant, from_snapshot=2)

    assert history.get_table("db.t").latest_snapshot().id == 1


def test_tags_and_branches_are_of_tables_that_are_there(catalog):
    catalog.create_table("db.t", a_schema())

    with pytest.raises(TableNotFound) as missing:
        catalog.create_tag("db.no", "v")
    assert missing.value.identifier == Identifier("db", "no")
    with pytest.raises(InvalidIdentifier, match="system table"):
        catalog.list_branches("db.t$files")


def test_a_system_table_has_a_call_of_its_own(catalog):
    catalog.create_table("db.t", a_schema())

    table = catalog.get_system_table("db.t$schemas")

    assert table.row_type().fields == tuple(table.fields)
    assert repr(table) == repr(catalog.get_table("db.t$schemas"))
    with pytest.raises(InvalidIdentifier, match="not a system table"):
        catalog.get_system_table("db.t")


def test_a_system_table_is_not_written_to(catalog):
    catalog.create_table("db.t", a_schema())
    table = catalog.get_table("db.t$schemas")

    for start in (table.new_batch_write_builder, table.new_stream_write_builder):
        with pytest.raises(Unsupported, match="read-only"):
            start()
    with pytest.raises(Unsupported, match="followed"):
        table.new_stream_read_builder()
