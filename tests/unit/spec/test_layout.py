from dataclasses import replace

import pytest

from emberlake.spec.layout import TableLayout, parse_numbered
from emberlake.spec.manifest import DataFile

FILE = DataFile(
    file_name="data-1.parquet",
    file_size=1,
    row_count=1,
    min_sequence_number=0,
    max_sequence_number=0,
    schema_id=0,
)


def test_metadata_of_the_main_branch_is_under_the_root() -> None:
    layout = TableLayout("/w/db.db/t")

    assert layout.schema(0) == "/w/db.db/t/schema/schema-0"
    assert layout.snapshot(12) == "/w/db.db/t/snapshot/snapshot-12"
    assert layout.latest_hint == "/w/db.db/t/snapshot/LATEST"
    assert layout.earliest_hint == "/w/db.db/t/snapshot/EARLIEST"
    assert layout.tag("v1") == "/w/db.db/t/tag/tag-v1"
    assert layout.consumer("c") == "/w/db.db/t/consumer/consumer-c"
    assert layout.changelog_folder == "/w/db.db/t/changelog"
    assert layout.branch_folder == "/w/db.db/t/branch"


def test_a_branch_has_metadata_of_its_own_and_shares_the_rest() -> None:
    layout = TableLayout("/w/db.db/t").for_branch("dev")

    assert layout.schema(0) == "/w/db.db/t/branch/branch-dev/schema/schema-0"
    assert layout.snapshot(1) == "/w/db.db/t/branch/branch-dev/snapshot/snapshot-1"
    assert layout.tag("v1") == "/w/db.db/t/branch/branch-dev/tag/tag-v1"
    assert layout.consumer("c") == "/w/db.db/t/branch/branch-dev/consumer/consumer-c"
    assert layout.manifest("m") == "/w/db.db/t/manifest/m"
    assert layout.index("i") == "/w/db.db/t/index/i"
    assert layout.statistics("s") == "/w/db.db/t/statistics/s"
    assert layout.bucket_folder("", 0) == "/w/db.db/t/bucket-0"


@pytest.mark.parametrize(
    ("partition", "bucket", "directory", "expected"),
    [
        ("", 0, "", "/t/bucket-0"),
        ("dt=1/h=2", 3, "", "/t/dt=1/h=2/bucket-3"),
        ("dt=1", -2, "", "/t/dt=1/bucket-postpone"),
        ("dt=1", 0, "data/", "/t/data/dt=1/bucket-0"),
    ],
)
def test_a_bucket_has_a_folder(partition: str, bucket: int, directory: str, expected: str) -> None:
    assert TableLayout("/t").bucket_folder(partition, bucket, directory) == expected


def test_a_data_file_is_in_its_bucket() -> None:
    assert TableLayout("/t").data_file("dt=1", 0, FILE) == "/t/dt=1/bucket-0/data-1.parquet"


def test_a_data_file_may_be_elsewhere_and_its_extra_files_with_it() -> None:

    layout = TableLayout("/t")
    path = layout.data_file("dt=1", 0, replace(FILE, external_path="s3://b/x/data-1.parquet"))

    assert path == "s3://b/x/data-1.parquet"
    assert layout.extra_file(path, "data-1.parquet.index") == "s3://b/x/data-1.parquet.index"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("snapshot-12", 12),
        ("snapshot-", None),
        ("snapshot-1.tmp", None),
        (".snapshot-1", None),
        ("LATEST", None),
        ("snapshot--1", None),
    ],
)
def test_only_prefix_and_digits_make_a_number(name: str, expected: int | None) -> None:
    assert parse_numbered(name, "snapshot-") == expected
