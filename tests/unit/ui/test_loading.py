"""What views are made of, read from small tables in memory."""

import pyarrow as pa
import pytest

from builders import append, create_key_table, create_table, delete_rows, lift
from emberlake.errors import ColumnNotFound, InvalidPredicate, NotFound
from emberlake.scan.explanation import Reason
from emberlake.table import Table
from emberlake.ui import loading
from emberlake.ui.views.overview import HIDDEN, shown_options
from table_reads import live_files

DAYS = pa.table({"id": [1, 2, 30], "day": ["mon", "mon", "tue"]})


def days() -> Table:
    table = create_table(partition_keys=["day"])
    append(table, DAYS)
    append(table, pa.table({"id": [3], "day": ["mon"]}))
    return table


def test_an_overview_knows_what_the_table_holds() -> None:
    overview = loading.load_overview(days())

    size = overview.size
    assert (size.rows, size.files, size.partitions, size.buckets) == (4, 3, 2, 2)
    assert size.bytes > 0
    assert [(c.name, c.role) for c in overview.columns] == [("id", ""), ("day", "partition")]
    assert overview.unit == "row"


def test_an_empty_table_has_views_too() -> None:
    table = create_table()

    assert loading.load_overview(table).size.rows == 0
    assert loading.load_history(table).versions == ()
    assert loading.load_heat_map(table).cells == ()
    assert loading.load_buckets(table, None).lines == ()
    assert loading.load_plan(table, "").files == 0
    assert loading.load_rows(table).rows == ()
    assert loading.load_size_bars(table) == ()


@pytest.mark.parametrize(
    "key",
    [
        "s3.secret-key",
        "fs.s3a.secret.key",
        "azure.account-key",
        "jdbc.password",
        "rest.Token",
        "dlf.access-key-secret",
        "my.credentials",
    ],
)
def test_options_that_may_be_secret_are_hidden(key: str) -> None:
    assert shown_options({key: "x", "bucket": "4"}) == tuple(
        sorted([(key, HIDDEN), ("bucket", "4")])
    )


def test_a_history_knows_what_every_snapshot_did() -> None:
    table = days()
    table.create_tag("first", 1)

    history = loading.load_history(table)

    latest, first = history.versions
    assert (latest.snapshot.id, latest.heads, latest.tags) == (2, ("main",), ())
    assert (first.snapshot.id, first.tags) == (1, ("first",))
    assert latest.change is not None
    assert latest.change.files_added == 1
    assert latest.bytes == loading.load_overview(table).size.bytes
    assert first.bytes is not None
    assert latest.bytes == first.bytes + latest.change.bytes


def test_a_long_history_comes_in_pages() -> None:
    table = create_table()
    for number in range(5):
        append(table, [(number, "mon")])

    newest = loading.load_history(table, count=2)
    older = loading.load_history(table, newest.next_before, count=2)

    assert [v.snapshot.id for v in newest.versions] == [5, 4]
    assert (newest.older, newest.next_before) == (3, 4)
    assert [v.snapshot.id for v in older.versions] == [3, 2]
    assert [v.bytes for v in older.versions if v.bytes is None] == []


def test_the_branches_of_a_table_are_lanes_of_one_graph() -> None:
    table = days()
    table.create_tag("first", 1)
    table.create_branch("dev", "first")
    append(table.copy({"branch": "dev"}), [(9, "mon")])

    history = loading.load_history(table)

    assert history.lanes == ("main", "dev")
    assert {(v.branch, v.snapshot.id) for v in history.versions} == {
        ("main", 1),
        ("main", 2),
        ("dev", 2),
    }


def test_a_manifest_that_is_gone_leaves_its_change_unknown() -> None:
    table = days()
    store = table.store
    listed = store.manifests.read_list(store.snapshots.load(2).delta_manifest_list)
    store.storage.delete(store.layout.manifest(listed[0].file_name))

    latest = loading.load_history(table).versions[0]

    assert (latest.change, latest.bytes) == (None, None)


def test_partitions_have_their_rows_files_and_bytes() -> None:
    found = {p.name: (p.rows, p.files) for p in loading.load_partitions(days())}

    assert found == {"day=mon": (3, 2), "day=tue": (1, 1)}


def test_the_buckets_of_one_partition_can_be_chosen() -> None:
    table = days()

    assert loading.load_buckets(table, None).count == 2
    assert [b.partition for b in loading.load_buckets(table, "day=tue").lines] == ["day=tue"]


def test_a_bucket_of_an_append_table_is_no_tree() -> None:
    bucket = loading.load_bucket(days(), "day=mon", 0)

    assert bucket.tree is None
    assert sum(bar.files for bar in bucket.sizes) == bucket.line.files == 2


def test_a_bucket_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match="no bucket 7 of partition day=mon"):
        loading.load_bucket(days(), "day=mon", 7)


def test_a_bucket_of_a_key_table_is_a_tree_with_levels_keys_and_deletes() -> None:
    table = create_key_table()
    append(table, [(1, "a"), (5, "b")])
    append(table, [(5, "c"), (9, "d")])
    append(table, [(1, None)], row_kind="-D")
    lift(table, {0: 5})

    tree = loading.load_bucket(table, "", 0).tree

    assert tree is not None
    assert [(run.level, run.deletes) for run in tree.runs] == [(0, 1), (0, 0), (5, 0)]
    assert (tree.low, tree.high, tree.overlap) == ("1", "9", 2)


def test_rows_that_deletion_vectors_hide_count_as_deleted() -> None:
    table = create_key_table(**{"deletion-vectors.enabled": "true"})
    append(table, [(1, "a"), (5, "b")])
    delete_rows(table, {live_files(table)[0].file.file_name: [0]})

    tree = loading.load_bucket(table, "", 0).tree

    assert tree is not None
    assert [run.deletes for run in tree.runs] == [1]


def test_a_plan_says_why_each_file_is_read_or_skipped() -> None:
    plan = loading.load_plan(days(), "day = 'mon' AND id > 2")

    assert {line.reason: line.why for line in plan.lines} == {
        Reason.ALL_ROWS_MATCH: "id: 3 to 3",
        Reason.PARTITION: "",
        Reason.STATISTICS: "id: 1 to 2",
    }
    assert (plan.files, plan.files_read, plan.rows_read) == (3, 1, 1)
    assert sum(total.files for total in plan.totals) == 3
    assert sum(total.bytes_share for total in plan.totals) == pytest.approx(1)


@pytest.mark.parametrize(("text", "error"), [("x = 1", ColumnNotFound), ("id >", InvalidPredicate)])
def test_a_filter_that_does_not_fit_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        loading.load_plan(days(), text)


def test_the_first_rows_are_text_and_say_whether_there_are_more() -> None:
    rows = loading.load_rows(days(), count=2)

    assert rows.columns == (("id", "BIGINT"), ("day", "STRING"))
    assert rows.is_number == (True, False)
    assert len(rows.rows) == 2
    assert rows.has_more


def test_long_values_are_cut() -> None:
    table = create_table()
    append(table, [(1, "x" * 10_000)])

    ((_, day),) = loading.load_rows(table).rows

    assert day == "x" * 300 + "…"
