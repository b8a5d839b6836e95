"""``emberlake compact|expire|orphans|check``."""

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from cli.shop import CUSTOMERS, Cli, append, orders_of, rows_of
from emberlake import Catalog, CatalogFactory, Schema
from emberlake.errors import Unsupported
from emberlake.io import LocalStorage, Upload


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
    table = catalog.get_table("shop.orders")
    append(table, orders_of(1, 5))
    append(table, orders_of(2, 5))

    preview = cli("compact", "shop.orders", "--full", "--where", "dt = '2026-06-01'", "--dry-run")

    assert preview.out.startswith("would compact 2 files in 1 bucket of shop.orders\n")
    assert "dt=2026-06-01       0      2" in preview.out
    assert len(cli("snapshots", "shop.orders", "--json").json["snapshots"]) == 5


def test_a_dry_run_of_compact_shows_dates_as_dates(cli: Cli, catalog: Catalog) -> None:
    columns = pa.schema([("id", pa.int64()), ("d", pa.date32())])
    catalog.create_table("shop.days", Schema.from_pyarrow_schema(columns, partition_keys=["d"]))
    for day in (date(2020, 1, 18), None):
        for number in range(2):
            append(catalog.get_table("shop.days"), pa.table([[number], [day]], schema=columns))

    preview = cli("compact", "shop.days", "--full", "--dry-run").out

    assert "\nd=2020-01-18 " in preview
    assert "\nd=__DEFAULT_PARTITION__ " in preview


@pytest.mark.parametrize("table", ["shop.orders", "shop.customers", "shop.later"])
@pytest.mark.parametrize("full", [[], ["--full"]])
def test_a_dry_run_of_compact_shows_what_the_run_deletes(
    cli: Cli, catalog: Catalog, table: str, full: list[str]
) -> None:
    later = Schema.from_pyarrow_schema(CUSTOMERS, primary_keys=["id"], options={"bucket": "-2"})
    catalog.create_table("shop.later", later)
    append(
        catalog.get_table("shop.later"), pa.table({"id": [1], "name": ["eve"]}, schema=CUSTOMERS)
    )
    for _ in range(5):
        append(catalog.get_table("shop.orders"), orders_of(1, 5))
        eve = pa.table({"id": [1], "name": ["eve"]}, schema=CUSTOMERS)
        append(catalog.get_table("shop.customers"), eve)

    preview = cli("compact", table, *full, "--dry-run", "--json").json
    done = cli("compact", table, *full, "--json").json

    assert preview["files"] == done["files_deleted"] > 0


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_a_dry_run_of_compact_says_so_when_there_is_nothing_to_merge(
    cli: Cli, catalog: Catalog, full: list[str]
) -> None:
    preview = cli("compact", "shop.orders", *full, "--dry-run")

    assert preview.out == cli("compact", "shop.orders", *full).out
    assert preview.out == "nothing to compact in shop.orders\n"


def test_a_filter_of_rows_is_refused_in_words_of_the_command_line(
    cli: Cli, catalog: Catalog
) -> None:
    refused = cli("compact", "shop.orders", "--where", "city = 'rome'")

    assert refused.code == 2
    assert refused.err.endswith("; here --where takes partition columns only\n")


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


def test_all_that_are_due_expire_unless_a_limit_is_given(cli: Cli, catalog: Catalog) -> None:
    cli("table", "alter", "shop.orders", "--set", "snapshot.expire.limit=1")
    append(catalog.get_table("shop.orders"), orders_of(4, 10))
    expire = ("expire", "shop.orders", "--retain-max", "1", "--retain-min", "1")

    some = cli(*expire, "--yes", "--max-deletes", "1")
    preview = cli(*expire, "--dry-run", "--max-deletes", "1", "--json").json
    rest = cli(*expire, "--yes")

    assert some.out.splitlines()[1] == (
        "2 more are due: run it again, or leave out --max-deletes to expire them all"
    )
    assert (preview["snapshots"], preview["remaining"]) == ([2], 1)
    assert rest.out.startswith("expired 2 snapshots of shop.orders (2 to 3) with ")
    assert "due" not in rest.out


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ["--retain-max", "5"],
            "--retain-max 5 is less than the table's snapshot.num-retained.min 10",
        ),
        (
            ["--retain-min", "30"],
            "the table's snapshot.num-retained.max 20 is less than --retain-min 30",
        ),
        (
            ["--retain-max", "2", "--retain-min", "3"],
            "--retain-max 2 is less than --retain-min 3",
        ),
    ],
)
def test_limits_that_contradict_each_other_are_a_usage_error(
    cli: Cli, catalog: Catalog, flags: list[str], problem: str
) -> None:
    cli("table", "alter", "shop.orders", "--set", "snapshot.num-retained.max=20")

    refused = cli("expire", "shop.orders", *flags)

    assert refused.code == 2
    assert refused.err == f"error: {problem}; give both, the larger as --retain-max\n"


def test_nothing_is_due_and_nobody_is_asked(cli: Cli, catalog: Catalog) -> None:
    done = cli("expire", "shop.orders", "--retain-min", "3", "--older-than", "30d")

    assert (done.code, done.out) == (0, "no snapshot of shop.orders is due to expire\n")


def lost_file(warehouse: Path) -> Path:
    """A data file of shop.orders that nothing refers to."""
    folder = next((warehouse / "shop.db" / "orders").glob("dt=2026-06-01/bucket-*"))
    orphan = folder / "data-0b5f3c0e-lost-0.parquet"
    orphan.write_bytes(b"lost")
    return orphan


def test_orphans_are_deleted_after_a_look_at_them(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    orphan = lost_file(warehouse)

    early = cli("orphans", "shop.orders")
    assert early.out == "no orphan files of shop.orders (--older-than 1d)\n"
    future = cli("orphans", "shop.orders", "--older-than", "2100-01-01")
    assert future.code == 2
    assert future.err.startswith("error: --older-than 2100-01-01 is in the future: ")

    preview = cli("orphans", "shop.orders", "--older-than", "0s", "--dry-run", "--json").json
    assert preview["files"] == [str(orphan)]
    assert cli("orphans", "shop.orders", "--older-than", "0s").code == 2
    assert orphan.exists()

    done = cli("orphans", "shop.orders", "--older-than", "0s", "--yes")

    assert done.out.startswith("deleted 1 orphan file of shop.orders, 4 B\n")
    assert not orphan.exists()


def lose_upload(monkeypatch: pytest.MonkeyPatch, folder: Path, ended: list[Upload]) -> None:
    """An upload is found in any table, as on an object store."""
    lost = Upload(str(folder / "bucket-0" / "lost"), "id", 0)
    monkeypatch.setattr(LocalStorage, "unfinished_uploads", lambda self, path: iter([lost]))
    monkeypatch.setattr(LocalStorage, "end_uploads", lambda self, uploads: ended.extend(uploads))


def test_unfinished_uploads_are_shown_and_ended(
    cli: Cli, catalog: Catalog, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Upload] = []
    lose_upload(monkeypatch, warehouse / "shop.db" / "orders", ended)
    what = "0 orphan files of shop.orders, 0 B, and 1 unfinished upload"
    shown = f"{what}\n  bucket-0/lost (unfinished upload)\n"

    assert cli("orphans", "shop.orders", "--dry-run").out == f"would delete {shown}"
    preview = cli("orphans", "shop.orders", "--dry-run", "--json").json
    assert preview["uploads"] == [str(warehouse / "shop.db" / "orders" / "bucket-0" / "lost")]
    assert cli("orphans", "shop.orders").code == 2  # it asks first
    assert ended == []

    assert cli("orphans", "shop.orders", "--yes").out == f"deleted {shown}"
    assert [upload.id for upload in ended] == ["id"]


@pytest.mark.filterwarnings("default::emberlake.errors.EmberlakeWarning")
def test_uploads_that_cannot_be_listed_are_reported(
    cli: Cli, catalog: Catalog, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: LocalStorage, path: str) -> None:
        raise Unsupported("no such request")

    monkeypatch.setattr(LocalStorage, "unfinished_uploads", refuse)
    lost_file(warehouse)

    done = cli("orphans", "shop.orders", "--older-than", "0s", "--yes", "--json")

    assert (len(done.json["files"]), done.json["uploads"]) == (1, [])
    assert done.err.count("were not searched for: no such request") == 1


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


def test_unreferenced_files_are_reported_with_the_command_that_deletes_them(
    cli: Cli, catalog: Catalog, warehouse: Path
) -> None:
    orphan = lost_file(warehouse)
    os.utime(orphan, (0, 0))

    (problem,) = cli("check", "shop.orders", "--json").json["problems"]

    assert problem["detail"] == "nothing refers to it (4 bytes); emberlake orphans deletes it"
    assert problem["detail"] in cli("check", "shop.orders").out


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
