"""Runs in .venv-peers: does everything once that a REST catalog offers, and says what came of it.

    python rest_probe.py pypaimon|rust URI WAREHOUSE TOKEN

prints a line for each step: its label, a tab, and the outcome, which is what the client returned or
``!`` and the name of its error. ``java/RestProbe.java`` is the same for Java Paimon.
"""

import json
import re
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

import pyarrow as pa

Options = dict[str, str]


def main() -> None:
    engine, uri, warehouse, token = sys.argv[1:]
    options = {
        "metastore": "rest",
        "uri": uri,
        "warehouse": warehouse,
        "token.provider": "bear",
        "token": token,
    }
    (probe_pypaimon if engine == "pypaimon" else probe_rust)(options)


def step(label: str, action: Callable[[], Any]) -> Any:
    found = None
    try:
        found = action()
        outcome = "-" if found is None else str(found)
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        outcome = f"! {name_of(error)}"
    print(f"{label}\t{outcome}", flush=True)  # noqa: T201 - the result
    return found


def name_of(error: BaseException) -> str:
    """What a program could tell errors apart by: the type, or the text where there is one type."""
    if type(error).__name__ not in {"Exception", "ValueError"}:
        return type(error).__name__
    text = re.sub(r"`?\b[\w.]*\b(db|nope)\.\w+`?|[0-9a-f-]{36}", "...", str(error))
    return text.splitlines()[0][:70]


# --- pypaimon ---------------------------------------------------------------------------------


def probe_pypaimon(options: Options) -> None:
    from pypaimon import CatalogFactory, Schema  # noqa: PLC0415  each engine in its own process
    from pypaimon.catalog.rest.property_change import PropertyChange  # noqa: PLC0415
    from pypaimon.common.identifier import Identifier  # noqa: PLC0415
    from pypaimon.schema.data_types import AtomicType  # noqa: PLC0415
    from pypaimon.schema.schema_change import SchemaChange  # noqa: PLC0415
    from pypaimon.table.instant import Instant  # noqa: PLC0415

    catalog = CatalogFactory.create(options)
    columns = pa.schema([("k", pa.int64()), ("v", pa.string()), ("dt", pa.string())])
    schema = Schema.from_pyarrow_schema(
        columns,
        partition_keys=["dt"],
        primary_keys=["k", "dt"],
        options={"bucket": "1", "metastore.partitioned-table": "true"},
        comment="c",
    )

    def write(name: str, count: int, partition: str) -> None:
        builder = catalog.get_table(name).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(pa.table(values(count, partition)))
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def read(name: str) -> int:
        builder = catalog.get_table(name).new_read_builder()
        splits = builder.new_scan().plan().splits()
        return int(builder.new_read().to_arrow(splits).num_rows)

    def partitions() -> dict[str, int]:
        page = catalog.list_partitions_paged("db.t", 10, None, "dt=%")
        return {str(each.spec): each.record_count for each in page.elements}

    step("create database", lambda: catalog.create_database("db", False, {"a": "1"}))
    step("create database again", lambda: catalog.create_database("db", False))
    step("list databases", catalog.list_databases)
    step("list databases paged", lambda: catalog.list_databases_paged(10, None, "d%").elements)
    step("get database", lambda: catalog.get_database("db").options["a"])
    step("get missing database", lambda: catalog.get_database("nope"))
    changes = [PropertyChange.set_property("b", "2"), PropertyChange.remove_property("a")]
    step("alter database", lambda: catalog.alter_database("db", changes))
    step("create table", lambda: catalog.create_table("db.t", schema, False))
    step("create table again", lambda: catalog.create_table("db.t", schema, False))
    step("create table no database", lambda: catalog.create_table("nope.t", schema, False))
    step("list tables", lambda: catalog.list_tables("db"))
    step("list tables paged", lambda: catalog.list_tables_paged("db", 5, None, "t%").elements)
    step("get table", lambda: catalog.get_table("db.t").table_schema.comment)
    step("get missing table", lambda: catalog.get_table("db.nope"))
    step("read empty", lambda: read("db.t"))
    step("write 1", lambda: write("db.t", 3, "a"))
    step("write 2", lambda: write("db.t", 5, "b"))
    step("read", lambda: read("db.t"))
    step("load snapshot", lambda: catalog.load_snapshot("db.t").snapshot.id)
    step("list partitions", partitions)
    step("snapshots table", lambda: read("db.t$snapshots"))
    step("create tag", lambda: catalog.create_tag("db.t", "t1", 1, "1d"))
    step("create tag again", lambda: catalog.create_tag("db.t", "t1"))
    step("get tag", lambda: catalog.get_tag("db.t", "t1").tag_name)
    step("list tags", lambda: catalog.list_tags_paged("db.t", 10, None, "t").elements)
    step("create branch", lambda: catalog.create_branch("db.t", "b1", "t1"))
    step("create branch again", lambda: catalog.create_branch("db.t", "b1"))
    step("list branches", lambda: catalog.list_branches("db.t"))
    step("read branch", lambda: read("db.t$branch_b1"))
    step("write branch", lambda: write("db.t$branch_b1", 2, "c"))
    step("read branch again", lambda: read("db.t$branch_b1"))
    step("forward branch", lambda: catalog.fast_forward("db.t", "b1"))
    step("read after forward", lambda: read("db.t"))
    step("rename branch", lambda: catalog.rename_branch("db.t", "b1", "b2"))
    step("drop branch", lambda: catalog.drop_branch("db.t", "b2"))
    step("delete tag", lambda: catalog.delete_tag("db.t", "t1"))
    step("roll back", lambda: catalog.rollback_to("db.t", Instant.snapshot(1), 2))
    step("read after rollback", lambda: read("db.t"))
    step("roll back to missing tag", lambda: catalog.rollback_to("db.t", Instant.tag("nope")))
    alter = [
        SchemaChange.add_column("x", AtomicType("INT"), "new"),
        SchemaChange.set_option("snapshot.num-retained.max", "99"),
        SchemaChange.remove_option("nope"),
        SchemaChange.update_comment("cc"),
        SchemaChange.rename_column("v", "w"),
        SchemaChange.update_column_type("x", AtomicType("BIGINT")),
        SchemaChange.update_column_comment("w", "hi"),
    ]
    step("alter table", lambda: catalog.alter_table("db.t", alter))
    step("columns", lambda: [each.name for each in catalog.get_table("db.t").fields])
    missing = [SchemaChange.drop_column("nope")]
    step("alter missing column", lambda: catalog.alter_table("db.t", missing))
    step("drop partitions", lambda: catalog.drop_partitions("db.t", [{"dt": "a"}]))
    step("read after drop", lambda: read("db.t"))
    step("create partitions", lambda: catalog.create_partitions("db.t", [{"dt": "z"}]))
    step("rename table", lambda: catalog.rename_table("db.t", "db.t2"))
    step("list functions", lambda: catalog.list_functions("db"))
    name = Identifier.from_string("db.t2")
    step("authorise", lambda: catalog.auth_table_query(name, ["k"]) is None)
    step("drop table", lambda: catalog.drop_table("db.t2"))
    step("drop missing table", lambda: catalog.drop_table("db.t2"))
    step("drop database", lambda: catalog.drop_database("db"))
    step("list databases at the end", catalog.list_databases)


# --- pypaimon-rust ----------------------------------------------------------------------------

_DDL = (
    "CREATE TABLE {} (k BIGINT NOT NULL, v STRING, dt STRING NOT NULL, PRIMARY KEY (k, dt)) "
    "PARTITIONED BY (dt) WITH ('bucket' = '1', 'metastore.partitioned-table' = 'true')"
)


def probe_rust(options: Options) -> None:
    from pypaimon_rust.datafusion import (  # noqa: PLC0415  each engine in its own process
        PaimonCatalog,
        SQLContext,
    )

    catalog, context = PaimonCatalog(options), SQLContext()
    context.register_catalog("p", options, "")

    def sql(text: str) -> Any:
        rows = [row for batch in context.sql(text) for row in batch.to_pylist()]
        return rows or None

    def write(name: str, count: int, partition: str) -> None:
        builder = catalog.get_table(name).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(pa.record_batch(values(count, partition)))
        commit.commit(writer.prepare_commit())

    def read(name: str, selected: Options | None = None) -> int:
        builder = catalog.get_table(name).new_read_builder(selected)
        splits = builder.new_scan().plan().splits()
        return sum(batch.num_rows for batch in builder.new_read().read(splits))

    def truncate() -> None:
        commit = catalog.get_table("db.t").new_batch_write_builder().new_commit()
        commit.truncate_partitions([{"dt": "a"}])

    step("create database", lambda: sql("CREATE SCHEMA p.db"))
    step("create database again", lambda: sql("CREATE SCHEMA p.db"))
    step("list databases", catalog.list_databases)
    step("create table", lambda: sql(_DDL.format("p.db.t")))
    step("create table again", lambda: sql(_DDL.format("p.db.t")))
    step("create table no database", lambda: sql(_DDL.format("p.nope.t")))
    step("list tables", lambda: catalog.list_tables("db"))
    step("list tables, no database", lambda: catalog.list_tables("nope"))
    step("get missing table", lambda: catalog.get_table("db.nope"))
    step("read empty", lambda: read("db.t"))
    step("write 1", lambda: write("db.t", 3, "a"))
    step("write 2", lambda: write("db.t", 5, "b"))
    step("read", lambda: read("db.t"))
    step("select", lambda: sql("SELECT count(*) AS n FROM p.db.t"))
    step("insert", lambda: sql("INSERT INTO p.db.t VALUES (100, 'x', 'c')"))
    step("latest snapshot", lambda: catalog.get_table("db.t").latest_snapshot().id())
    step("snapshots", lambda: [each.id() for each in catalog.get_table("db.t").list_snapshots()])
    step("list partitions", lambda: len(catalog.get_table("db.t").list_partitions()))
    step("snapshots table", lambda: sql("SELECT snapshot_id FROM p.db.`t$snapshots`"))
    tag = "CALL sys.create_tag(`table` => 'db.t', tag => 't1', snapshot_id => 1)"
    step("create tag", lambda: sql(tag))
    step("list tags", lambda: [each.name() for each in catalog.get_table("db.t").list_tags()])
    step("read tag", lambda: read("db.t", {"scan.tag-name": "t1"}))
    step("read version", lambda: read("db.t", {"scan.snapshot-id": "1"}))
    branch = {"branch": "b1", "fromTag": "t1"}
    step("create branch by hand", lambda: post(options, "databases/db/tables/t/branches", branch))
    step("read branch", lambda: read("db.t$branch_b1"))
    step("write branch", lambda: write("db.t$branch_b1", 2, "c"))
    step("read branch again", lambda: read("db.t$branch_b1"))
    step("roll back", lambda: sql("CALL sys.rollback_to(`table` => 'db.t', snapshot_id => 1)"))
    step("read after rollback", lambda: read("db.t"))
    step("add column", lambda: sql("ALTER TABLE p.db.t ADD COLUMN x INT"))
    step("rename column", lambda: sql("ALTER TABLE p.db.t RENAME COLUMN v TO w"))
    option = "'snapshot.num-retained.max' = '99'"
    step("set option", lambda: sql(f"ALTER TABLE p.db.t SET TBLPROPERTIES ({option})"))
    step("drop missing column", lambda: sql("ALTER TABLE p.db.t DROP COLUMN nope"))
    step("truncate partition", truncate)
    step("read after truncation", lambda: read("db.t"))
    step("rename table", lambda: sql("ALTER TABLE p.db.t RENAME TO t2"))
    step("create view", lambda: sql("CREATE VIEW p.db.v AS SELECT k FROM p.db.t2"))
    step("select view", lambda: sql("SELECT count(*) AS n FROM p.db.v"))
    step("drop view", lambda: sql("DROP VIEW p.db.v"))
    step("drop table", lambda: sql("DROP TABLE p.db.t2"))
    step("drop missing table", lambda: sql("DROP TABLE p.db.t2"))
    step("drop database", lambda: sql("DROP SCHEMA p.db"))
    step("list databases at the end", catalog.list_databases)


def post(options: Options, path: str, body: object) -> None:
    """What this client has no call for."""
    headers = {"Authorization": f"Bearer {options['token']}"}
    address = f"{options['uri']}/v1/config?warehouse={options['warehouse']}"
    asked = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(asked) as answer:
        prefix = json.load(answer)["defaults"]["prefix"]
    address, data = f"{options['uri']}/v1/{prefix}/{path}", json.dumps(body).encode()
    urllib.request.urlopen(urllib.request.Request(address, data, headers)).close()


def values(count: int, partition: str) -> dict[str, Any]:
    return {
        "k": pa.array(range(count), pa.int64()),
        "v": [f"v{number}" for number in range(count)],
        "dt": [partition] * count,
    }


if __name__ == "__main__":
    main()
