"""The table of Java whose rows move between partitions is continued."""

import shutil
from pathlib import Path

import pyarrow as pa

from emberlake import CatalogFactory
from emberlake.maintenance.check_report import ProblemKind
from golden.reads import Golden


def test_rows_that_java_has_moved_are_moved_on(golden: Golden, tmp_path: Path) -> None:
    name = "golden.db/pk_cross_partition"
    shutil.copytree(Path(golden.warehouse) / name, tmp_path / name)
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    table = catalog.get_table("golden.pk_cross_partition")
    before = {row["k"]: row for row in table.to_arrow().to_pylist()}
    moved = [{"pt": "x" if k % 2 else "new", "k": k, "v": f"v{k}"} for k in range(12)]

    table.append(pa.Table.from_pylist(moved))
    after = {**before, **{row["k"]: row for row in moved}}

    def rows() -> list[dict[str, object]]:
        return sorted(table.to_arrow().to_pylist(), key=lambda row: row["k"])

    assert rows() == [after[k] for k in sorted(after)]
    table.compact(full=True)
    assert rows() == [after[k] for k in sorted(after)]
    kinds = {problem.kind for problem in table.check().problems}
    assert kinds <= {ProblemKind.UNREFERENCED}
