"""What notebooks show of tables, plans, results and reports; and what reprs say in a line."""

from html.parser import HTMLParser

import pyarrow as pa

from builders import append, create_key_table, create_table, open_catalog, rows_of
from emberlake import Schema, StorageError
from places import new_storage
from table_reads import data_files
from watched_storage import Call, WatchedStorage

HOSTILE = "<script>alert('x')</script>&\"'"


class Reader(HTMLParser):
    """Collects elements and text; complains about what is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def shown(value: object) -> str:
    """The text of the HTML of a value, which must be well-formed and plain."""
    html = value._repr_html_()
    read = Reader(html)
    allowed = [
        "div",
        "b",
        "span",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
    ]
    assert set(read.elements) <= set(allowed)
    assert read.attributes <= {"style", "class", "title"}
    assert "http" not in html
    return read.text


def a_table_with_two_days():
    table = create_table(partition_keys=["day"])
    append(table, rows_of([1, 2], "mon"))
    append(table, rows_of([3], "tue"))
    return table


def test_a_catalog_shows_its_databases_and_tables():
    catalog = open_catalog(new_storage())
    assert "no databases" in shown(catalog)
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(pa.schema([("id", pa.int64())])))

    assert "database tables db t" in shown(catalog)


def test_a_catalog_that_cannot_be_asked_says_why():
    def refuse(call: Call) -> None:
        raise StorageError(f"{call.path} is out of reach")

    catalog = open_catalog(WatchedStorage(new_storage(), refuse))

    assert "/warehouse is out of reach" in shown(catalog)


def test_a_table_shows_its_columns_keys_and_options():
    table = create_key_table({"id": "BIGINT", HOSTILE: "STRING"})

    text = shown(table)

    assert "Table db.t" in text
    assert "id BIGINT NOT NULL primary key" in text
    assert HOSTILE in text
    assert "bucket 1" in text
    assert shown(table.table_schema).startswith("Schema 0")
    files = open_catalog(table.store.storage).get_table("db.t$files")
    assert "System table db.t$files" in shown(files)


def test_wide_tables_are_cut():
    names = [(f"c{i}", pa.int64()) for i in range(300)]
    table = create_table(columns=pa.schema(names), options={f"x.{i}": "1" for i in range(60)})

    assert "and 250 more columns" in shown(table)
    assert "and 10 more options" in shown(table)
    assert "and 280 more columns" in repr(table)
    assert len(repr(table).splitlines()) < 32
    assert len(repr(table.table_schema)) < 200


def test_a_snapshot_shows_when_it_was_made_and_what_it_holds():
    table = a_table_with_two_days()
    snapshot = table.latest_snapshot()

    assert "Snapshot 2" in shown(snapshot)
    assert "rows 3" in shown(snapshot)
    assert repr(snapshot).startswith("Snapshot(id=2, APPEND, 2025-06-15 15:06:40 UTC, rows=3")


def test_a_plan_is_a_picture_of_what_is_read_and_skipped():
    table = a_table_with_two_days()
    builder = table.new_read_builder().with_filter("day = 'tue'")

    text = shown(builder.explain())

    assert "1 of 2 read" in text
    assert "read, all rows match: 1 file" in text
    assert "skipped: its partition does not match: 1 file" in text
    assert builder.explain()._repr_html_().count("background:#") == 6  # 2 bars, 1 legend
    assert repr(builder.explain()).startswith(
        "Explanation(db.t, snapshot 2, filter \"day = 'tue'\": 1 of 2 files read"
    )
    assert shown(table.scan(filter="day = 'tue'")) == text
    assert "snapshot id 2 splits 1 files 1 rows 1" in shown(builder.new_scan().plan())


def test_results_show_what_was_done():
    table = create_table()
    result = append(table, rows_of([1]))

    assert "Snapshot 1 committed rows added 1" in shown(result)
    assert "Nothing to commit" in shown(table.compact())
    assert "rows updated 1" in shown(table.update({"day": "'tue'"}))
    assert "would be deleted" in shown(table.expire_snapshots(dry_run=True))
    assert "Orphan files" in shown(table.remove_orphan_files(dry_run=True))


def test_reports_of_checks_show_damage():
    table = create_table()
    append(table, rows_of([1]))
    assert "Nothing is wrong" in shown(table.check())
    (path,) = data_files(table)
    table.store.storage.delete(path)

    assert f"missing {path}" in shown(table.check())
    assert repr(table.check()).startswith("CheckReport(problems=1 (missing: ")


def test_names_cannot_become_elements():
    table = create_table(
        columns=pa.schema([pa.field(HOSTILE, pa.string())]), partition_keys=[HOSTILE]
    )
    table.append(pa.table({HOSTILE: [HOSTILE]}))
    found = table.new_read_builder().with_filter(
        table.new_read_builder().new_predicate_builder().equal(HOSTILE, HOSTILE)
    )

    assert HOSTILE in shown(table)
    assert HOSTILE in shown(found.explain(verbose=True))


def test_builders_and_messages_say_what_they_are_in_a_line():
    table = create_table(columns=pa.schema([(f"c{i}", pa.int64()) for i in range(100)]))
    builder = table.new_read_builder().with_filter("c1 > 3").with_projection(["c1"]).with_limit(2)
    write = table.new_batch_write_builder()
    with write.new_write() as writer:
        writer.write_arrow(pa.table({"c1": [1]}))
        (message,) = writer.prepare_commit()

    assert repr(builder) == "ReadBuilder(db.t, columns c1, filter 'c1 > 3', limit 2)"
    assert len(repr(write)) < 200
    assert repr(message) == "CommitMessage('/warehouse/db.db/t', append, bucket=0, new_files=1)"


def test_values_of_options_that_sound_secret_are_not_shown():
    table = create_table(options={"owner.password": "ember-secret", "s3.access-key": "ember-key"})
    values = (table, table.table_schema, table.options, table.new_read_builder())

    for value in values:
        html = value._repr_html_() if hasattr(value, "_repr_html_") else ""

        assert "ember-" not in repr(value) + html
    assert "owner.password (hidden)" in shown(table)
