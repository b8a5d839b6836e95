"""A table grows to what new data has."""

import pyarrow as pa
import pytest

from builders import create_key_table, create_table, open_table
from emberlake import (
    CatalogFactory,
    CommitConflict,
    DataMismatch,
    InvalidSchema,
    InvalidState,
    SchemaChange,
)
from emberlake.commit import committer
from emberlake.errors import ConflictReason
from emberlake.store.schemas import SchemaStore

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("n", pa.int32()),
        ("s", pa.struct([("x", pa.int8())])),
    ]
)

EVOLVING = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def types_of(table):
    return {field.name: str(field.type) for field in table.fields}


def test_new_columns_and_wider_numbers_come_with_the_rows():
    table = create_table(columns=COLUMNS)
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    data = pa.table({"id": [2], "n": [1 << 40], "note": ["new"], "s": [{"x": 1, "y": 2.5}]})

    result = table.append(data, merge_schema=True)

    assert result.rows_added == 1
    assert types_of(table) == {
        "id": "BIGINT NOT NULL",
        "n": "BIGINT",
        "s": "ROW<x BIGINT, y DOUBLE>",
        "note": "STRING",
    }
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "n": None, "s": None, "note": None},
        {"id": 2, "n": 1 << 40, "s": {"x": 1, "y": 2.5}, "note": "new"},
    ]


def test_keys_keep_their_type_and_row_kinds_are_no_column():
    table = create_key_table(COLUMNS)
    data = pa.table({"id": [1], "n": [1], "s": [None], "note": ["x"], "_row_kind": ["+I"]})

    table.upsert(data, merge_schema=True)

    assert types_of(table)["id"] == "INT NOT NULL"
    assert table.to_arrow(["id", "note"]).to_pylist() == [{"id": 1, "note": "x"}]


@pytest.mark.parametrize("merged", ["append", "upsert", "overwrite"])
def test_every_short_form_of_a_write_lets_the_table_grow(merged):
    table = create_key_table(COLUMNS)
    rows = pa.table({"id": [1], "n": [1], "s": [None], "note": ["x"]})

    getattr(table, merged)(rows.to_reader(), merge_schema=True)
    getattr(table, merged)(rows.select(["id", "n", "s", "note"]).to_pandas(), merge_schema=True)

    assert table.to_arrow(["note"]).to_pylist() == [{"note": "x"}]


def test_without_it_a_new_column_is_refused():
    table = create_table(columns=COLUMNS)

    with pytest.raises(DataMismatch, match=r"note: is not .* merge_schema=True would add it"):
        table.append(pa.table({"id": [1], "note": ["x"]}))


@pytest.mark.parametrize("merge_schema", [False, True])
def test_a_column_that_differs_only_in_case_is_not_added(merge_schema):
    table = create_table(columns=COLUMNS)

    with pytest.raises(DataMismatch, match=r"Id: .* has id: names must agree in case"):
        table.append(pa.table({"Id": [1]}), merge_schema=merge_schema)

    assert "Id" not in table.field_names


def test_a_column_without_a_type_in_the_format_is_refused_before_anything_changes():
    table = create_table(columns=COLUMNS)

    with pytest.raises(InvalidSchema, match="span"):
        table.append(
            pa.table({"id": [1], "span": pa.array([1], pa.duration("s"))}), merge_schema=True
        )

    assert types_of(table).keys() == {"id", "n", "s"}


def raced_table(tmp_path, monkeypatch):
    """A table, and those of its schemas before which somebody else has added a column."""
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    table = catalog.create_table("db.t", COLUMNS)
    create, raced = SchemaStore.create, []

    def slower(schemas, schema):
        if not raced:
            raced.append(schema)
            catalog.alter_table("db.t", [SchemaChange.add_column("note", "STRING")])
        return create(schemas, schema)

    monkeypatch.setattr(SchemaStore, "create", slower)
    return table, raced


def test_columns_that_others_add_meanwhile_are_taken_as_they_are(tmp_path, monkeypatch):
    table, _ = raced_table(tmp_path, monkeypatch)

    table.append(pa.table({"id": [1], "note": ["x"], "more": [1]}), merge_schema=True)

    assert [*types_of(table)] == ["id", "n", "s", "note", "more"]
    assert table.to_arrow(["note", "more"]).to_pylist() == [{"note": "x", "more": 1}]
    assert table.check().ok


def test_the_same_column_that_others_add_meanwhile_is_not_added_twice(tmp_path, monkeypatch):
    table, _ = raced_table(tmp_path, monkeypatch)

    table.append(pa.table({"id": pa.array([1], pa.int32()), "note": ["x"]}), merge_schema=True)

    assert schema_ids(table) == (0, 1)
    assert table.to_arrow(["note"]).to_pylist() == [{"note": "x"}]


def schema_ids(table):
    return table.store.schemas.list_ids()


@pytest.mark.parametrize("write", ["append", "upsert", "overwrite"])
def test_a_write_that_fails_leaves_no_column(write):
    table = create_key_table(COLUMNS)
    table.append(pa.table({"id": [1], "n": [1], "s": [None]}))
    null_key = {"id": pa.array([None], pa.int32()), "n": [1], "s": [None], "note": ["x"]}

    with pytest.raises(DataMismatch, match="null"):
        getattr(table, write)(pa.table(null_key), merge_schema=True)

    assert (schema_ids(table), table.count()) == ((0,), 1)
    assert "note" not in table.field_names


def test_a_commit_that_is_refused_leaves_no_column(monkeypatch):
    table = create_table(columns=COLUMNS)

    def refuse(*_, **__):
        raise CommitConflict(ConflictReason.FILES_MISSING, "gone", "write again")

    monkeypatch.setattr(committer, "check_present", refuse)
    with pytest.raises(CommitConflict):
        table.append(pa.table({"id": pa.array([1], pa.int32()), "note": ["x"]}), merge_schema=True)

    assert schema_ids(table) == (0,)


def test_a_write_of_no_rows_adds_no_column():
    table = create_table(columns=COLUMNS)

    done = table.append(
        pa.table({"id": pa.array([], pa.int32()), "note": pa.array([], pa.string())}),
        merge_schema=True,
    )

    assert done.snapshot_id is None
    assert schema_ids(table) == (0,)


def test_a_stream_is_not_written_again_if_others_change_the_schema(tmp_path, monkeypatch):
    table, raced = raced_table(tmp_path, monkeypatch)
    rows = pa.table({"id": pa.array([1], pa.int32()), "more": [1]})

    with pytest.raises(CommitConflict, match="others changed the schema"):
        table.append(rows.to_reader(), merge_schema=True)

    assert raced
    assert table.count() == 0


def test_rows_are_compacted_for_a_schema_that_is_not_published_yet():
    table = create_key_table(COLUMNS, **{"deletion-vectors.enabled": "true"})
    rows = pa.table({"id": [1], "n": [1], "s": [None]})
    table.upsert(rows)

    table.upsert(rows.append_column("note", pa.array(["x"])), merge_schema=True)

    assert table.to_arrow(["id", "note"]).to_pylist() == [{"id": 1, "note": "x"}]


def test_a_merge_adds_its_columns_with_its_commit():
    table = create_table(columns=COLUMNS)
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    source = pa.table({"id": pa.array([1, 1], pa.int32()), "note": ["x", "y"]})

    def merge(rows):
        merging = table.merge(rows, ["id"], merge_schema=True)
        return merging.when_matched_update_all().when_not_matched_insert_all().execute()

    with pytest.raises(DataMismatch):
        merge(source)
    assert schema_ids(table) == (0,)
    merge(source.slice(1))
    assert schema_ids(table) == (0, 1)


@pytest.mark.parametrize(
    "options",
    [{}, {"deletion-vectors.enabled": "true"}, EVOLVING],
    ids=["rewrite", "vectors", "columns"],
)
def test_a_merge_widens_the_numbers_that_it_brings(options):
    table = create_table(columns=COLUMNS, options=options)
    old = pa.table({"id": [1, 2], "n": [1, 2], "s": [{"x": 1}, None]})
    table.append(old)
    source = pa.table({"id": [2, 3], "n": [1 << 40, 1 << 41], "s": [{"x": 300}, {"x": 400}]})
    merge = table.merge(source, ["id"], merge_schema=True)

    merge.when_matched_update_all().when_not_matched_insert_all().execute()

    assert types_of(table)["n"] == "BIGINT"
    assert types_of(table)["s"] == "ROW<x BIGINT>"
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "n": 1, "s": {"x": 1}},
        {"id": 2, "n": 1 << 40, "s": {"x": 300}},
        {"id": 3, "n": 1 << 41, "s": {"x": 400}},
    ]
    assert table.check().ok


def test_a_merge_widens_no_key_of_a_key_table():
    table = create_key_table(COLUMNS)
    merge = table.merge(pa.table({"id": [1], "n": [1 << 40]}), ["id"], merge_schema=True)

    merge.when_not_matched_insert_all().execute()

    assert types_of(table)["id"] == "INT NOT NULL"
    assert table.to_arrow(["id", "n"]).to_pylist() == [{"id": 1, "n": 1 << 40}]


@pytest.mark.parametrize("on", ["t.id = s.key", {"id": "key"}], ids=["text", "names"])
def test_a_key_that_has_another_name_in_the_source_brings_no_column(on):
    table = create_table(columns=COLUMNS)
    table.append(pa.table({"id": [1], "n": [1]}))
    source = pa.table({"key": [1, 2], "n": [10, 20], "note": ["x", "y"]})

    merge = table.merge(source, on, merge_schema=True)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()

    assert "key" not in types_of(table)
    assert table.to_arrow(["id", "n", "note"]).sort_by("id").to_pylist() == [
        {"id": 1, "n": 10, "note": "x"},
        {"id": 2, "n": 20, "note": "y"},
    ]


def test_a_merge_that_only_deletes_brings_no_columns():
    table = create_table(columns=COLUMNS)
    table.append(pa.table({"id": [1], "n": [1]}))
    source = pa.table({"id": [1], "n": [1 << 40], "note": ["x"]})

    table.merge(source, ["id"], merge_schema=True).when_matched_delete().execute()

    assert schema_ids(table) == (0,)
    assert table.count() == 0


@pytest.mark.parametrize("create", [create_table, create_key_table])
def test_a_table_object_that_others_outgrew_refuses_to_cut_values_off(create):
    table = create(columns=COLUMNS)
    old = open_table(table.store.storage)
    table.append(pa.table({"id": [1], "n": [1], "s": [None]}))
    table.append(pa.table({"id": [2], "n": [1 << 40], "s": [None]}), merge_schema=True)

    with pytest.raises(InvalidState, match=r"n from INT to BIGINT .* from the catalog again"):
        old.to_arrow()
    assert open_table(table.store.storage).to_arrow(["n"]).num_rows == 2


def test_a_table_object_reads_on_when_others_add_columns():
    table = create_table(columns=COLUMNS)
    old = open_table(table.store.storage)
    rows = pa.table({"id": pa.array([1], pa.int32()), "note": ["x"]})
    table.append(rows, merge_schema=True)

    assert old.to_arrow(["id", "n"]).to_pylist() == [{"id": 1, "n": None}]
