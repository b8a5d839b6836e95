"""Tables whose rows Java changed are changed further: rows that are not touched stay."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from canonical import canonical_rows
from emberlake import CatalogFactory, Table
from emberlake.maintenance.check_report import ProblemKind
from emberlake.rowops.merge_builder import prepare_by_row_id
from emberlake.session.write_session import WriteSession
from emberlake.spec.row_tracking import ROW_ID
from emberlake.types import AtomicType
from golden.reads import Golden, row_reads
from tracked_tables import delete

OTHER_TYPES = {"de_blob", "de_blob_api", "de_vector"}
TABLES = sorted({r.table for r in row_reads() if r.is_tracked} - OTHER_TYPES)
WITH_VECTORS = [name for name in TABLES if "dv" in name]
EVOLVING = [name for name in TABLES if name.startswith("de_") and name != "de_global_index"]


def copied(golden: Golden, name: str, folder: Path) -> Table:
    shutil.copytree(f"{golden.warehouse}/golden.db/{name}", folder / "golden.db" / name)
    return CatalogFactory.create({"warehouse": str(folder)}).get_table(f"golden.{name}")


def rows_by_id(table: Table) -> pa.Table:
    names = [f.name for f in table.fields]
    return table.to_arrow([ROW_ID, *names]).sort_by(ROW_ID)


def check(table: Table) -> None:
    # Files that Java left behind after a rollback are none of ours.
    found = [p for p in table.check().problems if p.kind is not ProblemKind.UNREFERENCED]
    assert found == []


@pytest.mark.parametrize("name", TABLES)
def test_a_compaction_changes_no_row_and_no_id(
    golden_rows: Golden, name: str, tmp_path: Path
) -> None:
    table = copied(golden_rows, name, tmp_path)
    before = rows_by_id(table)

    table.compact(full=True)

    assert canonical_rows(rows_by_id(table)) == canonical_rows(before)
    check(table)


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_rows_are_deleted_and_the_others_stay(
    golden_rows: Golden, name: str, tmp_path: Path
) -> None:
    table = copied(golden_rows, name, tmp_path)
    before = rows_by_id(table)
    gone = before.column(ROW_ID).to_pylist()[::3]

    delete(table, f"{ROW_ID} IN ({', '.join(map(str, gone))})")

    kept = pc.invert(pc.is_in(before.column(ROW_ID), value_set=pa.array(gone)))
    assert canonical_rows(rows_by_id(table)) == canonical_rows(before.filter(kept))
    check(table)


@pytest.mark.parametrize("name", EVOLVING)
def test_a_column_is_written_and_the_others_stay(
    golden_rows: Golden, name: str, tmp_path: Path
) -> None:
    table = copied(golden_rows, name, tmp_path)
    before = rows_by_id(table)
    field = next(
        f
        for f in table.fields
        if isinstance(f.type, AtomicType)
        and f.name not in table.partition_keys
        and pa.types.is_string(before.schema.field(f.name).type)
    )
    ids = before.column(ROW_ID).to_numpy()[1::2]
    values = pa.array([f"new {n}" for n in ids])
    session = WriteSession(table.store, "tester")
    data = pa.table({ROW_ID: ids, field.name: values})
    session.commit_or_abort(prepare_by_row_id(session, data, [field.name]))

    place = before.schema.get_field_index(field.name)
    mask = np.zeros(before.num_rows, bool)
    mask[1::2] = True
    old = before.column(field.name).combine_chunks()
    column = pc.replace_with_mask(old, pa.array(mask), values)
    expected = before.set_column(place, before.schema.field(place), column)
    assert canonical_rows(rows_by_id(table)) == canonical_rows(expected)
    check(table)
