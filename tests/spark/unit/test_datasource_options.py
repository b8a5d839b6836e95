"""Options of the data source: each is known, for the use it is given to, and readable."""

from pathlib import Path

import pytest

from emberlake import InvalidOption, SnapshotNotFound
from emberlake.datasource.options import (
    ReadLimits,
    Use,
    parse_options,
)
from emberlake.errors import InvalidInput
from emberlake.options import KNOWN_KEYS, SCAN_SNAPSHOT_ID, WRITE_BUFFER_SIZE
from spark.tables import new_table

TABLE = {"path": "db.t", "warehouse": "/warehouse"}


def test_a_table_is_named_by_its_path_and_found_in_its_catalog() -> None:
    options = parse_options({**TABLE, "metastore": "filesystem"}, Use.BATCH_READ)

    assert options.identifier == "db.t"
    assert options.catalog == {"warehouse": "/warehouse", "metastore": "filesystem"}
    assert options.table == {}


@pytest.mark.parametrize("use", Use)
def test_options_of_object_stores_are_for_the_catalog(use: Use) -> None:
    given = {"s3.endpoint": "http://host", "fs.s3a.secret.key": "k", "fs.oss.accesskeysecret": "o"}

    options = parse_options({**TABLE, **given}, use)

    assert options.catalog == {"warehouse": "/warehouse", **given}
    assert options.table == {}
    assert "http://host" not in repr(options)


@pytest.mark.parametrize("use", Use)
def test_options_of_rest_catalogs_are_for_the_catalog(use: Use) -> None:
    given = {"metastore": "rest", "uri": "http://host", "token": "hidden", "dlf.region": "cn-x"}

    options = parse_options({**TABLE, **given}, use)

    assert options.catalog == {"warehouse": "/warehouse", **given}
    assert "hidden" not in repr(options)


@pytest.mark.parametrize(
    "key",
    [
        "azure.account-key",
        "fs.azure.account.key.me.dfs.core.windows.net",
        "azure.sas-key",
        "gs.credential",
        "s3.encryption.key",
        "header.x-tenant",
        "rest.client.proxy",
    ],
)
def test_a_secret_that_spark_would_show_is_refused(key: str) -> None:
    with pytest.raises(InvalidOption, match=rf"option {key} is a secret that Spark would show"):
        parse_options({**TABLE, key: "hidden"}, Use.BATCH_READ)


@pytest.mark.parametrize("use", Use)
def test_an_unknown_option_is_refused_by_its_name(use: Use) -> None:
    with pytest.raises(InvalidOption, match=r"unknown option colour: there are .*warehouse"):
        parse_options({**TABLE, "colour": "red"}, use)


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("snapshotid", "snapshot-id"),
        ("maxfilespertrigger", "max-files-per-trigger"),
        ("ware-house", "warehouse"),
        ("write-buffer-sice", "write-buffer-size"),
    ],
)
def test_an_option_that_is_nearly_right_is_corrected(slip: str, meant: str) -> None:
    with pytest.raises(InvalidOption, match=f"unknown option {slip}: did you mean .*{meant}"):
        parse_options({**TABLE, slip: "1"}, Use.STREAM_READ)


@pytest.mark.parametrize(
    ("known", "here"), [("versionAsOf", "snapshot-id"), ("timestampAsOf", "timestamp")]
)
def test_options_of_delta_are_refused_with_their_names_here(known: str, here: str) -> None:
    with pytest.raises(InvalidOption, match=f"unknown option {known.lower()}: the option {here} "):
        parse_options({**TABLE, known.lower(): "1"}, Use.BATCH_READ)


def test_all_wrong_options_are_named_at_once() -> None:
    with pytest.raises(InvalidOption, match=r"unknown option colour.*; option commit-user is"):
        parse_options({**TABLE, "commit-user": "me", "colour": "red"}, Use.BATCH_WRITE)


@pytest.mark.parametrize(
    ("key", "use", "message"),
    [
        ("tag", Use.STREAM_READ, "option tag is for batch reads, not for stream reads"),
        ("columns", Use.BATCH_WRITE, "option columns is for batch reads and stream reads"),
        ("max-files-per-trigger", Use.BATCH_READ, "is for stream reads, not for batch reads"),
        ("commit-user", Use.BATCH_WRITE, "is for stream writes, not for batch writes"),
        ("checkpointlocation", Use.BATCH_WRITE, "is for stream writes, not for batch writes"),
    ],
)
def test_an_option_of_another_use_is_refused(key: str, use: Use, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        parse_options({**TABLE, key: "1"}, use)


def test_what_spark_passes_about_a_query_is_not_our_option() -> None:
    raw = {**TABLE, "queryname": "q", "checkpointlocation": "/c", "commit-user": "me"}

    options = parse_options(raw, Use.STREAM_WRITE)

    assert (options.checkpoint, options.commit_user) == ("/c", "me")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("shop.orders", r'"/data/lake"\) with load or save\("shop\.orders"\)'),
        ("s3://lake/shop.db/orders/", r'"s3://lake"\) with load or save\("shop\.orders"\)'),
        ("/tmp/orders", r'"/data/lake"\) with load or save\("db\.t"\)'),
    ],
)
def test_a_table_without_a_warehouse_is_answered_by_what_to_write(path: str, answer: str) -> None:
    options = parse_options({"path": path}, Use.BATCH_READ)

    with pytest.raises(InvalidOption, match=f"warehouse is missing.*{answer}.*saveAsTable"):
        options.open_table()
    with pytest.raises(InvalidOption, match="warehouse is missing"):
        options.open_target([])


def test_two_tables_and_no_table_are_refused() -> None:
    with pytest.raises(InvalidOption, match="name of one table"):
        parse_options({"paths": '["db.t","db.u"]'}, Use.BATCH_READ)
    with pytest.raises(InvalidOption, match="the table is missing"):
        parse_options({"warehouse": "/warehouse"}, Use.BATCH_READ)


@pytest.mark.parametrize(
    ("raw", "option"),
    [
        ({"snapshot-id": "7"}, {"scan.snapshot-id": "7"}),
        ({"tag": "v1"}, {"scan.tag-name": "v1"}),
        ({"timestamp": " 1750000000000 "}, {"scan.timestamp-millis": "1750000000000"}),
        ({"timestamp": "2026-06-26 12:00:00"}, {"scan.timestamp": "2026-06-26 12:00:00"}),
        ({"scan.mode": "latest"}, {"scan.mode": "latest"}),
    ],
)
def test_short_names_stand_for_options_of_tables(
    raw: dict[str, str], option: dict[str, str]
) -> None:
    assert parse_options({**TABLE, **raw}, Use.BATCH_READ).table == option


def test_a_short_name_and_what_it_stands_for_are_not_given_together() -> None:
    with pytest.raises(InvalidOption, match=r"set either tag or scan.tag-name"):
        parse_options({**TABLE, "tag": "a", "scan.tag-name": "a"}, Use.BATCH_READ)


def test_columns_and_row_kinds_and_limits_are_read() -> None:
    raw = {
        **TABLE,
        "columns": "a, s.x",
        "row-kind": "TRUE",
        "max-files-per-trigger": "2",
        "max-rows-per-trigger": "30",
        "max-bytes-per-trigger": "4 mb",
    }

    options = parse_options(raw, Use.STREAM_READ)

    assert options.columns == ("a", "s.x")
    assert options.with_kind
    assert options.limits == ReadLimits(2, 30, 4 * 1024 * 1024)
    assert parse_options(TABLE, Use.STREAM_READ).limits.is_unbounded


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("columns", " , "),
        ("row-kind", "yes"),
        ("max-files-per-trigger", "0"),
        ("max-rows-per-trigger", "many"),
        ("max-bytes-per-trigger", "0 kb"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidOption, match=key):
        parse_options({**TABLE, key: value}, Use.STREAM_READ)


def test_the_keys_of_table_options_survive_lower_case() -> None:
    assert [key for key in KNOWN_KEYS if key != key.lower()] == []


def test_options_of_the_table_hold_for_this_use_alone(tmp_path: Path) -> None:
    new_table(tmp_path)
    raw = {"path": "db.t", "warehouse": str(tmp_path), "write-buffer-size": "5 mb"}

    table = parse_options(raw, Use.BATCH_WRITE).open_table()

    assert table.options.value(WRITE_BUFFER_SIZE) == 5 * 1024 * 1024


def test_an_option_that_decides_how_rows_are_understood_is_refused(tmp_path: Path) -> None:
    new_table(tmp_path)
    raw = {"path": "db.t", "warehouse": str(tmp_path), "bucket": "4"}

    with pytest.raises(InvalidOption, match="bucket"):
        parse_options(raw, Use.BATCH_WRITE).open_table()


def test_a_stream_may_start_at_a_snapshot_that_is_to_come(tmp_path: Path) -> None:
    new_table(tmp_path)
    options = parse_options(
        {"path": "db.t", "warehouse": str(tmp_path), "snapshot-id": "5"}, Use.STREAM_READ
    )

    assert options.open_stream().options.value(SCAN_SNAPSHOT_ID) == 5
    assert options.open_schema().field_names == ("id", "day", "name", "price")
    with pytest.raises(SnapshotNotFound):
        options.open_table()


def test_a_system_table_is_refused(tmp_path: Path) -> None:
    new_table(tmp_path)
    raw = {"path": "db.t$snapshots", "warehouse": str(tmp_path)}

    with pytest.raises(InvalidInput, match="system table"):
        parse_options(raw, Use.BATCH_READ).open_table()
