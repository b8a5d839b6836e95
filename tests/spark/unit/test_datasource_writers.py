"""Writers of the data source on the driver: one commit, and nothing left of what does not count."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage

from emberlake import CatalogFactory, Table
from emberlake.datasource import batch_write, stream_write
from emberlake.datasource.batch_write import BatchWriter
from emberlake.datasource.options import Use, parse_options
from emberlake.datasource.stream_write import StreamWriter
from emberlake.datasource.written import WrittenFiles, write_rows
from emberlake.errors import IncompleteJob, InvalidState, StorageError
from emberlake.session.write_session import WriteSession
from emberlake.spark import job
from emberlake.spark.job_files import marked
from emberlake.spark.reports import TaskReport
from emberlake.spark.types import spark_schema
from emberlake.types import DataField, from_arrow_schema
from spark.tables import COLUMNS, data_files, live_files, new_table, rows_of, some_rows

ROWS = some_rows(range(4))
FIELDS = from_arrow_schema(COLUMNS)


def options(table: Table, **more: str) -> dict[str, str]:
    return {"path": "db.t", "warehouse": str(Path(table.table_path).parents[1]), **more}


def batch_writer(table: Table, *, overwrite: bool = False) -> BatchWriter:
    chosen = parse_options(options(table), Use.BATCH_WRITE)
    return BatchWriter(chosen, spark_schema(tuple(table.fields)), overwrite=overwrite)


def batches() -> Iterator[pa.RecordBatch]:
    columns = [pa.array(values) for values in zip(*ROWS, strict=True)]
    yield pa.RecordBatch.from_arrays(columns, schema=COLUMNS)


def repeated(file: Path) -> Path:
    """A file that another attempt of the task has left."""
    copy = file.with_name(file.name.replace("-0.", "-1."))
    copy.write_bytes(file.read_bytes())
    return copy


def failing(*_args: Any) -> int:
    raise StorageError("the disk is gone")


def test_files_of_other_attempts_are_gone_when_a_batch_is_committed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    writer = batch_writer(table)
    message = writer.write(batches())
    copy = repeated(*data_files(table))

    writer.commit([message])

    assert not copy.exists()
    assert rows_of(table) == ROWS


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_write_that_fails_before_its_commit_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    table = new_table(tmp_path)
    writer = batch_writer(table, overwrite=overwrite)
    message = writer.write(batches())
    monkeypatch.setattr(job, "sweep_repeated", failing)

    with pytest.raises(StorageError):
        writer.commit([message])
    writer.abort([message])

    assert data_files(table) == []
    assert table.latest_snapshot() is None
    assert not list(Path(table.table_path, "manifest").iterdir())


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_task_that_comes_too_late_leaves_no_file(tmp_path: Path, end: str) -> None:
    table = new_table(tmp_path)
    writer = batch_writer(table)
    ends: dict[str, Callable[[], None]] = {
        "commit": lambda: writer.commit([writer.write(batches())]),
        "abort": lambda: writer.abort([None]),
    }
    ends[end]()

    with pytest.raises(InvalidState, match="too late"):
        writer.write(batches())

    assert data_files(table) == live_files(table)


def stream_writer(table: Table) -> StreamWriter:
    chosen = parse_options(options(table, checkpointlocation="anywhere"), Use.STREAM_WRITE)
    return StreamWriter(chosen, spark_schema(tuple(table.fields)), overwrite=False)


def stream_task(table: Table, number: int = 0, job_id: str = "the-job") -> WrittenFiles:
    """What a task of a micro-batch does."""
    messages, _ = write_rows(marked(table.store, job_id, number), batches(), commit_user="spark-q")
    return WrittenFiles(TaskReport.of(job_id, number, messages), "spark-q", "q")


def test_files_of_other_attempts_are_gone_when_a_micro_batch_is_committed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    message = stream_task(table)
    copy = repeated(*data_files(table))

    stream_writer(table).commit([message], 0)

    assert not copy.exists()
    assert rows_of(table) == ROWS


# --- rows that do not fit -------------------------------------------------------------------------

LOOSE = spark_schema(tuple(DataField(f.id, f.name, f.type.with_nullable(True)) for f in FIELDS))


def with_a_bad_row() -> Iterator[pa.RecordBatch]:
    """The rows, and one without an id."""
    rows = zip(*[*ROWS, (None, "2026-01-01", "no id", 1.0)], strict=True)
    loose = pa.schema([field.with_nullable(True) for field in COLUMNS])
    yield pa.RecordBatch.from_arrays([pa.array(values) for values in rows], schema=loose)


def kept_rows(table: Table) -> list[dict[str, Any]]:
    catalog = CatalogFactory.create({"warehouse": str(Path(table.table_path).parents[1])})
    rows: list[dict[str, Any]] = catalog.get_table("db.t_bad_rows").to_arrow().to_pylist()
    return rows


def failing_commits(table: Table, monkeypatch: pytest.MonkeyPatch, *, of_table: bool) -> None:
    """Commits of the table fail, or those of the quarantine."""
    real = WriteSession.commit

    def commit(session: WriteSession, *args: Any, **kwargs: Any) -> Any:
        if (session.store.layout.root == table.store.layout.root) == of_table:
            raise StorageError("the disk is gone")
        return real(session, *args, **kwargs)

    monkeypatch.setattr(WriteSession, "commit", commit)


@pytest.mark.parametrize("of_table", [False, True])
def test_a_batch_that_is_repeated_after_a_crash_brings_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_table: bool
) -> None:
    table = new_table(tmp_path)
    monkeypatch.setattr(stream_write, "_query_id", lambda: "q")

    def run() -> None:
        chosen = parse_options(options(table, checkpointlocation="c"), Use.STREAM_WRITE)
        writer = StreamWriter(chosen, LOOSE, overwrite=False)
        writer.commit([writer.write(with_a_bad_row())], 7)

    with monkeypatch.context() as broken:
        failing_commits(table, broken, of_table=of_table)
        with pytest.raises(StorageError):
            run()
    assert rows_of(table) == []
    run()
    run()  # once more, as after a crash right before Spark noted the end of the batch

    assert rows_of(table) == ROWS
    assert [row["reason"] for row in kept_rows(table)] == ["id: is null, and is NOT NULL"]


def test_no_row_is_committed_if_bad_rows_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    bad_rows = {"on-bad-rows": "db.t_bad_rows"}
    chosen = parse_options(options(table, **bad_rows), Use.BATCH_WRITE)
    writer = BatchWriter(chosen, LOOSE, overwrite=False)
    message = writer.write(with_a_bad_row())

    with monkeypatch.context() as broken:
        failing_commits(table, broken, of_table=False)
        with pytest.raises(StorageError):
            writer.commit([message])

    assert (rows_of(table), data_files(table)) == ([], [])


# --- what does not reach the driver ---------------------------------------------------------------

Tasks = list[WrittenFiles | None]
TAMPERS: dict[str, Callable[[Tasks], Tasks]] = {
    "the first is lost": lambda tasks: tasks[1:],
    "the last is lost": lambda tasks: tasks[:1],
    "one is empty": lambda tasks: [tasks[0], None],
    "one is doubled": lambda tasks: [tasks[0], tasks[0]],
    "one too many": lambda tasks: [*tasks, tasks[0]],
    "another job": lambda tasks: [tasks[0], of_another_job(tasks[1])],
}


def of_another_job(task: WrittenFiles | None) -> WrittenFiles:
    assert task is not None
    return replace(task, report=replace(task.report, job_id="another"))


def check_refused(table: Table, commit: Callable[[], None]) -> None:
    files = data_files(table)

    with pytest.raises(IncompleteJob, match="not committed"):
        commit()

    assert table.latest_snapshot() is None
    assert data_files(table) == files
    assert len(files) == 2


@pytest.mark.parametrize("tamper", TAMPERS.values(), ids=TAMPERS)
def test_a_batch_with_missing_reports_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tamper: Callable[[Tasks], Tasks]
) -> None:
    table = new_table(tmp_path)
    writer = batch_writer(table)
    tasks: Tasks = []
    for number in range(2):
        monkeypatch.setattr(batch_write, "task_number", lambda number=number: number)
        tasks.append(writer.write(batches()))

    def commit_and_abort() -> None:
        try:
            writer.commit(tamper(tasks))
        finally:
            writer.abort(tamper(tasks))  # as Spark does after a commit that failed

    check_refused(table, commit_and_abort)


@pytest.mark.parametrize("tamper", TAMPERS.values(), ids=TAMPERS)
def test_a_micro_batch_with_missing_reports_is_not_committed(
    tmp_path: Path, tamper: Callable[[Tasks], Tasks]
) -> None:
    table = new_table(tmp_path)
    tasks: Tasks = [stream_task(table, number) for number in range(2)]

    check_refused(table, lambda: stream_writer(table).commit(tamper(tasks), 0))


def test_a_micro_batch_with_missing_reports_keeps_its_files_when_spark_aborts_it(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path)
    tasks = [stream_task(table, number) for number in range(2)]
    heard: list[WriterCommitMessage | None] = [tasks[0], None]
    writer = stream_writer(table)

    check_refused(table, lambda: writer.commit(heard, 0))
    writer.abort(heard, 0)

    assert len(data_files(table)) == 2
