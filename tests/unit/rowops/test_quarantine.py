"""What a quarantine table holds, and who opens it."""

import json

import pyarrow as pa
import pytest

from emberlake import CatalogFactory, DataMismatch, InvalidInput, Schema
from emberlake.catalog.quarantine import open_quarantine
from emberlake.rowops.quarantine import QUARANTINE, BadRowRule, Origin, quarantined
from emberlake.spec.new_table import build_table_schema
from emberlake.write.bad_rows import BadRows, find_bad_cells, take_bad_rows


def test_a_bad_row_is_kept_as_it_was_with_what_is_wrong_with_it():
    declared = Schema.from_pyarrow_schema(pa.schema([("id", pa.int8()), ("at", pa.date32())]))
    schema = build_table_schema(declared, time_millis=0)
    data = pa.table({"id": [1, 300], "at": pa.array([0, 1], pa.date32())})
    bad = BadRows.of(find_bad_cells(data, schema))

    rows = quarantined(take_bad_rows(data, bad), bad, Origin("db.t", "job-1", 1000, "a.csv"))

    (row,) = rows.to_pylist()
    assert rows.schema == QUARANTINE
    assert json.loads(row["row"]) == {"id": 300, "at": "1970-01-02"}
    assert row["reason"] == "id: 300 does not fit TINYINT"
    assert (row["column_name"], row["table_name"], row["job"]) == ("id", "db.t", "job-1")
    assert (row["source_file"], row["source_line"]) == ("a.csv", None)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("fail", BadRowRule()),
        ("skip", BadRowRule(skips=True)),
        ("ops.bad", BadRowRule("ops.bad")),
        ("/lake/ops.db/bad", BadRowRule("/lake/ops.db/bad")),
    ],
)
def test_bad_rows_fail_a_write_are_skipped_or_go_to_a_table(text, rule):
    assert BadRowRule.parse(text) == rule


@pytest.mark.parametrize("text", ["ignore", "", None, True])
def test_any_other_rule_is_refused(text):
    with pytest.raises(InvalidInput, match="on_bad_rows="):
        BadRowRule.parse(text)


def test_the_table_for_bad_rows_is_created_by_its_name_or_its_path(tmp_path):
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})

    catalog.siblings.quarantine("ops.bad")
    again = catalog.siblings.quarantine(f"{tmp_path}/ops.db/bad")
    elsewhere = catalog.siblings.quarantine(f"{tmp_path}/other/ops.db/bad")

    assert catalog.list_tables("ops") == ["bad"]
    assert [*again.schema.field_names] == [*elsewhere.schema.field_names] == QUARANTINE.names
    assert elsewhere.layout.root == f"{tmp_path}/other/ops.db/bad"


def test_a_table_of_another_kind_does_not_take_bad_rows(tmp_path):
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("ops")
    catalog.create_table("ops.bad", pa.schema([("row", pa.string())]))

    with pytest.raises(DataMismatch, match="it has no columns reason, column_name"):
        open_quarantine("ops.bad", catalog)
    with pytest.raises(InvalidInput, match="it ends with the database and the table"):
        open_quarantine(f"{tmp_path}/bad", catalog)
