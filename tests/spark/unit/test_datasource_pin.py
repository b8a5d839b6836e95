"""One source, one snapshot: the source that Spark keeps always reads the same rows."""

import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from emberlake import SchemaChange, SnapshotNotFound, TableNotFound, Unsupported
from emberlake.datasource.source import EmberlakeDataSource
from emberlake.errors import InvalidOption
from spark.reads import altered, write
from spark.tables import new_table, reopened

IDS = StructType([StructField("id", LongType())])


def source(warehouse: Path, **options: str) -> EmberlakeDataSource:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return EmberlakeDataSource({"path": "db.t", "warehouse": str(warehouse), **named})


def kept(made: EmberlakeDataSource, *, with_schema: bool = False) -> bytes:
    """What Spark keeps of the source; it asks for no schema where the user gives one."""
    if not with_schema:
        made.schema()
    return pickle.dumps(made)


def ids(form: bytes) -> list[int]:
    reader = pickle.loads(form).reader(IDS)
    return sorted(
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.column("id").to_pylist()
    )


@pytest.mark.parametrize("with_schema", [False, True])
def test_a_source_reads_the_snapshot_that_was_there_when_it_was_made(
    tmp_path: Path, *, with_schema: bool
) -> None:
    table = write(new_table(tmp_path), range(2))
    form = kept(source(tmp_path), with_schema=with_schema)

    write(table, range(2, 4))

    assert ids(form) == [0, 1]
    assert ids(pickle.dumps(pickle.loads(form))) == [0, 1]
    assert ids(kept(source(tmp_path))) == [0, 1, 2, 3]


def test_a_source_of_an_empty_table_stays_empty(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    form = kept(source(tmp_path))

    write(table, range(2))

    assert ids(form) == []


def test_a_source_keeps_its_columns_also_those_that_no_snapshot_knows(tmp_path: Path) -> None:
    table = write(new_table(tmp_path), range(2))
    altered(table, SchemaChange.add_column("later", "INT"))
    made = source(tmp_path)

    assert made.schema().names[-1] == "later"
    form = kept(made)
    altered(table, SchemaChange.drop_column("later"))
    assert pickle.loads(form).reader(made.schema()).partitions() != []


@pytest.mark.parametrize(
    "options",
    [{"tag": "mine"}, {"incremental_between": "zero,mine"}, {"timestamp": "99999999999999"}],
    ids=str,
)
def test_where_options_travel_to_is_found_once(tmp_path: Path, options: dict[str, str]) -> None:
    table = write(new_table(tmp_path), [0])
    table.create_tag("zero", 1)
    write(table, [1])
    table.create_tag("mine", 2)
    form = kept(source(tmp_path, **options))
    before = ids(form)

    write(table, [2])
    table.delete_tag("mine")
    table.create_tag("mine", 3)

    assert before == ids(form)
    assert ids(kept(source(tmp_path, **options))) == [*before, 2]


def test_a_snapshot_that_is_gone_is_reported_with_the_remedy(tmp_path: Path) -> None:
    table = write(new_table(tmp_path), range(2))
    form = kept(source(tmp_path))
    reader = pickle.loads(form).reader(IDS)
    (partition,) = reader.partitions()

    write(table, range(2, 4))
    reopened(table).compact(full=True)
    assert ids(form) == [0, 1]
    reopened(table).expire_snapshots(retain_max=1, retain_min=1)

    with pytest.raises(SnapshotNotFound, match=r"snapshot 1 of .* read_paimon"):
        next(reader.read(partition))
    with pytest.raises(SnapshotNotFound, match=r"snapshot 1 of .* read_paimon"):
        ids(form)


def test_the_read_reports_what_a_batch_cannot_read(tmp_path: Path) -> None:
    form = kept(source(tmp_path), with_schema=True)  # there is no table yet

    new_table(tmp_path)
    later = kept(source(tmp_path, snapshot_id="5"))

    with pytest.raises(TableNotFound, match=r"db\.t"):
        ids(form)
    with pytest.raises(SnapshotNotFound, match="snapshot 5"):
        ids(later)
    with pytest.raises(InvalidOption, match="colour"):
        ids(kept(source(tmp_path, colour="red"), with_schema=True))
    # A stream may begin there.
    reader = pickle.loads(later).streamReader(IDS)
    assert reader.initialOffset() == {"snapshot": 5, "full": False, "units": 0}


# --- tables of Spark's catalog --------------------------------------------------------------------


def test_a_table_of_sparks_catalog_is_refused_when_it_is_made(tmp_path: Path) -> None:
    new_table(tmp_path)
    warehouse = str(tmp_path)
    from_catalog = {
        "owner": "me",
        "provider": "emberlake",
        "path": "db.t",
        "option.warehouse": warehouse,
    }

    with pytest.raises(Unsupported, match=r"CREATE TABLE .* use CREATE TEMPORARY VIEW .* read_"):
        EmberlakeDataSource({**from_catalog, "warehouse": warehouse}).schema()


def test_a_source_without_options_asks_for_them() -> None:
    with pytest.raises(InvalidOption, match=r"the table is missing: .* CREATE TEMPORARY VIEW"):
        EmberlakeDataSource({}).reader(IDS)


def test_errors_come_without_the_calls_that_led_to_them(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound) as caught:
        source(tmp_path).schema()

    inside = [frame.name for frame in caught.traceback]
    assert inside[-2:] == ["test_errors_come_without_the_calls_that_led_to_them", "wrapped"]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
