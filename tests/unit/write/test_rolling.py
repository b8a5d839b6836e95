"""How rows become row groups."""

import io

import pyarrow.parquet as pq
import pytest

from builders import append, create_table, rows_of
from emberlake.write import rolling
from table_reads import data_files


@pytest.mark.parametrize(("rows", "groups"), [(10, [10]), (11, [6, 5]), (25, [9, 8, 8])])
def test_row_groups_of_a_write_are_of_one_size(
    rows: int, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolling, "_ROW_GROUP_ROWS", 10)
    table = create_table()

    append(table, rows_of(range(rows)))

    (path,) = data_files(table)
    metadata = pq.read_metadata(io.BytesIO(table.store.storage.read(path)))
    found = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert found == groups
