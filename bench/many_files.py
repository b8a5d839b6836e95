"""Tables of many files, of which only the metadata is there: plans and commits read no more."""

import shutil
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import data
from emberlake import CatalogFactory, Schema, Table
from emberlake.wire import CommitMessage
from emberlake.wire.messages import BaseSnapshot
from state import BUILD, Bench, folder_of

FILES_OF_A_COMMIT = 1000


def table_of_many_files(bench: Bench, files: int) -> dict[str, str]:
    """A copy of a table of this many files, 1000 to a commit. The original stays for later runs."""
    template = BUILD / f"table-of-{files}-files"
    if not template.exists():
        make_table(template, files)
    table = bench.new_table()
    shutil.copytree(template, folder_of(table))
    return table


def make_table(template: Path, files: int) -> None:
    warehouse = template.with_suffix(".tmp")
    shutil.rmtree(warehouse, ignore_errors=True)
    rows = data.tiny_rows(min(files, FILES_OF_A_COMMIT))
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("bench")
    catalog.create_table("bench.t", Schema.from_pyarrow_schema(rows.schema, partition_keys=["p"]))
    # The files that it commits have new names and are never written.
    table = catalog.get_table("bench.t").copy({"commit.check-files": "false"})
    builder = table.new_batch_write_builder()
    with builder.new_write() as write:
        write.write_arrow(rows)
        messages = write.prepare_commit()
    for _ in range(files // rows.num_rows):
        with table.new_batch_write_builder().new_commit() as commit:
            commit.commit([renamed(message, table) for message in messages])
    folder = folder_of({"warehouse": str(warehouse), "table": "bench.t"})
    for partition in folder.glob("p=*"):
        shutil.rmtree(partition)
    folder.rename(template)
    shutil.rmtree(warehouse)


def renamed(message: CommitMessage, table: Table) -> CommitMessage:
    """The message of another writer: its files have names of their own."""
    latest = table.latest_snapshot()
    files = tuple(
        replace(file, file_name=f"data-{uuid4()}-0.parquet") for file in message.new_files
    )
    base = BaseSnapshot(latest.id, latest.delta_manifest_list) if latest else None
    return replace(message, new_files=files, base=base)
