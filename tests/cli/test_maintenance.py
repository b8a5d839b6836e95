"""``emberlake compact|expire|orphans|check``."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from cli.shop import CUSTOMERS, Cli, append, rows_of
from emberlake import Catalog, CatalogFactory
from emberlake.io import LocalStorage


def test_files_are_merged_and_rows_stay(cli: Cli, catalog: Catalog) -> None:
    before = rows_of(catalog.get_table("shop.customers"))

    done = cli("compact", "shop.customers", "--full", "--json").json

    assert (done["snapshot"], done["files_deleted"], done["files_added"]) == (3, 2, 1)
    assert rows_of(catalog.get_table("shop.customers")) == before


def test_a_table_without_anything_to_merge_says_so(cli: Cli, catalog: Catalog) -> None:
    cli("compact", "shop.customers", "--full")

    again = cli("compact", "shop.customers", "--full")

    assert (again.code, again.out) == (0, "nothing to compact in shop.customers\n")


def test_a_dry_run_of_compact_names_buckets_and_merges_nothing(cli: Cli, catalog: Catalog) -> None:
    told = cli("compact", "shop.orders", "--where", "dt = '2026-06-01'", "--dry-run")

    assert told.out.startswith("would look for files to merge in 1 bucket of shop.orders\n")
    assert "dt=2026-06-01" in told.out
    assert len(cli("snapshots", "shop.orders", "--json").json["snapshots"]) == 3


def test_settings_of_spark_need_spark(cli: Cli, catalog: Catalog) -> None:
    assert cli("compact", "shop.orders", "--conf", "a=b").code == 2


def test_a_concurrent_change_ends_with_its_own_exit_code(
    cli: Cli, catalog: Catalog, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStorage.put_if_absent

    def after_another_compaction(
        self: LocalStorage, path: str, data: bytes, after: Sequence[str] = ()
    ) -> bool:
        if "/snapshot/snapshot-" in path:
            monkeypatch.setattr(LocalStorage, "put_if_absent", put)
            other = CatalogFactory.create({"warehouse": str(warehouse)})
            other.get_table("shop.customers").compact(full=True)
        return put(self, path, data, after)

    monkeypatch.setattr(LocalStorage, "put_if_absent", after_another_compaction)

    lost = cli("compact", "shop.customers", "--full", "--json")

    assert (lost.code, lost.out) == (3, "")
    assert '"type": "CommitConflict"' in lost.err


def test_snapshots_expire_after_a_look_at_them(cli: Cli, catalog: Catalog) -> None:
    expire = ("expire", "shop.orders", "--retain-max", "1", "--retain-min", "1")
    assert cli(*expire, "--dry-run", "--json").json["snapshots"] == [1, 2]
    refused = cli(*expire)
    assert refused.code == 2
    assert "This expires 2 snapshots of shop.orders (1 to 2)" in refused.err

    done = cli(*expire, "--yes")

    assert done.out.startswith("expired 2 snapshots of shop.orders (1 to 2) with ")
    assert catalog.get_table("shop.orders").snapshot_manager().list_ids() == (3,)
    assert len(rows_of(catalog.get_table("shop.orders"))) == 30


def test_nothing_is_due_and_nobody_is_asked(cli: Cli, catalog: Catalog) -> None:
    done = cli("expire", "shop.orders", "--retain-min", "3", "--older-than", "30d")

    assert (done.code, done.out) == (0, "no snapshot of shop.orders is due to expire\n")


def test_orphans_are_deleted_after_a_look_at_them(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    folder = next((warehouse / "shop.db" / "orders").glob("dt=2026-06-01/bucket-*"))
    orphan = folder / "data-0b5f3c0e-lost-0.parquet"
    orphan.write_bytes(b"lost")
    moment = "2100-01-01"

    early = cli("orphans", "shop.orders")
    assert early.out == "no orphan files of shop.orders (--older-than 1d)\n"
    assert cli("orphans", "shop.orders", "--older-than", moment).code in (1, 2)

    told = cli("orphans", "shop.orders", "--older-than", "0s", "--dry-run", "--json").json
    assert told["files"] == [str(orphan)]
    assert cli("orphans", "shop.orders", "--older-than", "0s").code == 2
    assert orphan.exists()

    done = cli("orphans", "shop.orders", "--older-than", "0s", "--yes")

    assert done.out.startswith("deleted 1 orphan file of shop.orders, 4 B\n")
    assert not orphan.exists()


def test_a_whole_table_passes_the_check(cli: Cli, catalog: Catalog) -> None:
    report = cli("check", "shop.orders", "--json")

    assert report.code == 0
    assert (report.json["ok"], report.json["rows"], report.json["problems"]) == (True, 30, [])


def test_damage_is_found_and_is_a_failure(cli: Cli, catalog: Catalog, warehouse: Path) -> None:
    files = sorted((warehouse / "shop.db" / "orders").glob("dt=*/bucket-*/data-*"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-4] + b"rot!")

    report = cli("check", "shop.orders", "--json")

    assert (report.code, report.json["ok"]) == (1, False)
    kinds = {problem["path"]: problem["kind"] for problem in report.json["problems"]}
    assert (kinds[str(files[0])], kinds[str(files[1])]) == ("missing", "corrupt")
    shown = cli("check", "shop.orders")
    assert shown.out.startswith("shop.orders has 2 problems: ")


def test_a_check_of_metadata_reads_no_data(cli: Cli, catalog: Catalog, warehouse: Path) -> None:
    files = sorted((warehouse / "shop.db" / "orders").glob("dt=*/bucket-*/data-*"))
    files[1].write_bytes(files[1].read_bytes()[:-4] + b"rot!")

    assert cli("check", "shop.orders", "--metadata-only").code == 0
    assert cli("check", "shop.orders", "--snapshot", "1").code == 0


def test_a_compaction_of_deleted_rows_keeps_the_others(cli: Cli, catalog: Catalog) -> None:
    table = catalog.get_table("shop.customers")
    append(table, pa.table({"id": [1], "name": ["eve"]}, schema=CUSTOMERS))

    assert cli("compact", "shop.customers", "--full").code == 0

    names = {row["id"]: row["name"] for row in rows_of(table)}
    assert names == {1: "eve", 2: "ben", 3: None}
