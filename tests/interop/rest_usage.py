"""Uses a REST catalog as programs do, and checks all that it gets back.

    python tests/interop/rest_usage.py '{"uri": "http://...", "warehouse": "w", "token": "..."}'

runs it against any server that may be written to: databases whose names begin with ``ember`` are
created and dropped. Words after that name what the server lacks: ``rename``, ``branches`` ...
"""

import json
import pickle
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from emberlake import CatalogFactory, Schema, SchemaChange
from emberlake.catalog import RestCatalog
from emberlake.errors import (
    BranchNotFound,
    ColumnNotFound,
    DatabaseAlreadyExists,
    DatabaseNotEmpty,
    DatabaseNotFound,
    EmberlakeError,
    NotAuthenticated,
    TableAlreadyExists,
    TableNotFound,
)

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("price", pa.float64())])


def rows(*ids: int, day: str = "mon") -> pa.Table:
    return pa.table({"id": ids, "day": [day] * len(ids), "price": [1.5] * len(ids)}, COLUMNS)


def ids_of(table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def raises(kind: type[EmberlakeError], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def use(options: Mapping[str, str], lacking: Collection[str] = ()) -> None:
    """Do everything once, in databases of its own."""
    given = {"metastore": "rest", "token.provider": "bear", **options}
    catalog = CatalogFactory.create(given)
    assert isinstance(catalog, RestCatalog)
    assert options["token"] not in repr(catalog) + str(catalog.options)
    if "authentication" not in lacking:
        raises(NotAuthenticated, lambda: CatalogFactory.create({**given, "token": "wrong"}))
    catalog.drop_database("ember1", ignore_if_not_exists=True, cascade=True)
    use_databases(catalog)
    parts = (
        *(use_tables, use_rename, use_rows, use_keys, use_maintenance),
        *(use_versions, use_branches, use_many),
    )
    for part in parts:
        if part.__name__.removeprefix("use_") not in lacking:
            part(catalog)
    catalog.drop_database("ember1", cascade=True)
    assert "ember1" not in catalog.list_databases()


def use_databases(catalog: RestCatalog) -> None:
    catalog.create_database("ember1", properties={"a": "1"})
    catalog.create_database("ember1", ignore_if_exists=True)
    raises(DatabaseAlreadyExists, lambda: catalog.create_database("ember1"))
    assert "ember1" in catalog.list_databases()
    assert catalog.get_database("ember1").options.get("a") == "1"
    raises(DatabaseNotFound, lambda: catalog.get_database("embernope"))
    raises(DatabaseNotFound, lambda: catalog.list_tables("embernope"))


def use_tables(catalog: RestCatalog) -> None:
    made = catalog.create_table("ember1.t", COLUMNS, partition_keys=["day"], comment="é 表")
    assert made.comment() == "é 表"
    raises(TableAlreadyExists, lambda: catalog.create_table("ember1.t", COLUMNS))
    raises(DatabaseNotFound, lambda: catalog.create_table("embernope.t", COLUMNS))
    raises(DatabaseNotEmpty, lambda: catalog.drop_database("ember1"))
    raises(TableNotFound, lambda: catalog.get_table("ember1.nope"))
    changes = [SchemaChange.add_column("x", "INT"), SchemaChange.update_comment("two")]
    catalog.alter_table("ember1.t", changes)
    changed = catalog.get_table("ember1.t")
    assert changed.field_names == ["id", "day", "price", "x"]
    assert changed.comment() == "two"
    raises(ColumnNotFound, lambda: catalog.alter_table("ember1.t", [SchemaChange.drop_column("q")]))
    catalog.create_table("ember1.v", COLUMNS)
    assert catalog.list_tables("ember1") == ["t", "v"]
    catalog.drop_table("ember1.v")
    raises(TableNotFound, lambda: catalog.drop_table("ember1.v"))


def use_rename(catalog: RestCatalog) -> None:
    catalog.create_table("ember1.u", COLUMNS)
    catalog.rename_table("ember1.u", "ember1.v")
    assert catalog.list_tables("ember1") == ["t", "v"]
    raises(TableNotFound, lambda: catalog.rename_table("ember1.u", "ember1.w"))
    raises(TableAlreadyExists, lambda: catalog.rename_table("ember1.v", "ember1.t"))
    catalog.drop_table("ember1.v")


def use_rows(catalog: RestCatalog) -> None:
    table = catalog.get_table("ember1.t")
    assert ids_of(table) == []
    assert table.append(rows(1, 2)).snapshot_id == 1
    table.append(rows(3, day="tue"))
    assert ids_of(table) == [1, 2, 3]
    assert ids_of(pickle.loads(pickle.dumps(table))) == [1, 2, 3]
    found = catalog.list_partitions_paged("ember1.t").elements
    assert [(p.spec, p.record_count) for p in found] == [({"day": "mon"}, 2), ({"day": "tue"}, 1)]
    catalog.drop_partitions("ember1.t", [{"day": "tue"}])
    table.overwrite(rows(4), {"day": "mon"})
    assert ids_of(catalog.get_table("ember1.t")) == [4]
    assert ids_of(table.copy({"scan.snapshot-id": 1})) == [1, 2]
    assert catalog.get_table("ember1.t$snapshots").to_arrow().num_rows == 4


def use_keys(catalog: RestCatalog) -> None:
    schema = Schema.from_pyarrow_schema(COLUMNS, primary_keys=["id"], options={"bucket": "2"})
    table = catalog.create_table("ember1.k", schema)
    table.append(rows(1, 2))
    table.append(rows(2, 3, day="tue"))
    table.compact(full=True)
    found = {row["id"]: row["day"] for row in table.to_arrow().to_pylist()}
    assert found == {1: "mon", 2: "tue", 3: "tue"}


def use_maintenance(catalog: RestCatalog) -> None:
    """After rows and keys; all of it looks at the branches of a table first."""
    table = catalog.get_table("ember1.t")
    table.expire_snapshots(retain_max=2, retain_min=1)
    assert ids_of(table) == [4]
    assert table.append(rows(5)).snapshot_id == 5
    assert not catalog.get_table("ember1.k").check().problems


def use_versions(catalog: RestCatalog) -> None:
    table = catalog.create_table("ember1.h", COLUMNS)
    for number in (1, 2, 3):
        table.append(rows(number))
    table.create_tag("two", 2)
    assert table.list_tags() == ["two"]
    assert ids_of(table.copy({"scan.tag-name": "two"})) == [1, 2]
    table.rollback_to("two")
    assert ids_of(catalog.get_table("ember1.h")) == [1, 2]
    table.rollback_to(1)
    assert ids_of(catalog.get_table("ember1.h")) == [1]
    assert table.append(rows(9)).snapshot_id == 2
    assert ids_of(table) == [1, 9]


def use_branches(catalog: RestCatalog) -> None:
    table = catalog.create_table("ember1.b", COLUMNS)
    table.append(rows(1))
    catalog.create_tag("ember1.b", "one")
    assert catalog.list_tags_paged("ember1.b").elements == ["one"]
    assert catalog.get_tag("ember1.b", "one").snapshot.id == 1
    if not table.tag_manager().exists("one"):
        table.create_tag("one")  # a server that keeps tags only in memory
    table.create_branch("dev", "one")
    assert table.list_branches() == ["dev"]
    branch = catalog.get_table("ember1.b$branch_dev")
    branch.append(rows(2))
    assert ids_of(catalog.get_table("ember1.b$branch_dev")) == [1, 2]
    assert ids_of(catalog.get_table("ember1.b")) == [1]
    raises(BranchNotFound, lambda: catalog.get_table("ember1.b$branch_nope"))
    table.delete_branch("dev")
    assert table.list_branches() == []


def use_many(catalog: RestCatalog) -> None:
    catalog.create_table("ember1.m", COLUMNS)

    def write(number: int) -> None:
        for turn in range(4):
            catalog.get_table("ember1.m").append(rows(number * 100 + turn))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    table = catalog.get_table("ember1.m")
    assert ids_of(table) == [number * 100 + turn for number in range(4) for turn in range(4)]
    assert table.latest_snapshot().id == 16


if __name__ == "__main__":
    use(json.loads(sys.argv[1]), sys.argv[2:])
    sys.stdout.write("all as it must be\n")
