"""Tables of Lance files, both ways between us and pypaimon; the other peers have no Lance."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import AtomicType, CatalogFactory, DataField, Schema, Table
from interop.judges import Peer
from interop.samples import SAMPLES, Sample

pytestmark = pytest.mark.interop

LANCE = {"file.format": "lance"}
KEYS = {**LANCE, "bucket": "2"}
VECTORS = {**KEYS, "deletion-vectors.enabled": "true"}
# pypaimon cannot open tables with a MULTISET, whatever the format.
READABLE = [sample for sample in SAMPLES if sample.name != "multiset"]


@pytest.mark.parametrize("sample", READABLE, ids=str)
def test_every_type_survives_both_ways(sample: Sample, pypaimon: Peer, tmp_path: Path) -> None:
    table = a_table(tmp_path, sample.fields, LANCE)

    append(table, sample.data)
    pypaimon.write(tmp_path, "db.t", sample.data)

    expected = sorted_rows(canonical_rows(pa.concat_tables([sample.data, sample.data])))
    assert our_rows(table) == expected
    assert pypaimon.rows(tmp_path, "db.t") == expected
    assert {file.suffix for file in tmp_path.rglob("data-*")} == {".lance"}


@pytest.mark.parametrize("options", [KEYS, VECTORS], ids=["merged", "deletion vectors"])
def test_pypaimon_reads_upserts_and_deletes(
    options: dict[str, str], pypaimon: Peer, tmp_path: Path
) -> None:
    table = a_table(tmp_path, pairs(), options, primary_keys=["id"])
    append(table, rows(range(100), "old"))
    append(table, rows(range(50, 120), "new"))
    append(table, rows(range(40, 60), "gone"), row_kind="-D")
    table.compact()
    append(table, rows(range(5), "newest"))

    expected = {**dict.fromkeys(range(100), "old"), **dict.fromkeys(range(50, 120), "new")}
    expected |= dict.fromkeys(range(5), "newest")
    kept = [["+I", key, text] for key, text in expected.items() if not 40 <= key < 60]
    assert our_rows(table) == sorted_rows(kept)
    assert pypaimon.rows(tmp_path, "db.t") == sorted_rows(kept)


def test_we_read_upserts_of_pypaimon(pypaimon: Peer, tmp_path: Path) -> None:
    table = a_table(tmp_path, pairs(), KEYS, primary_keys=["id"])
    pypaimon.write(tmp_path, "db.t", rows(range(10), "old"))
    append(table, rows(range(5, 15), "ours"))
    pypaimon.write(tmp_path, "db.t", rows(range(10, 20), "new"))

    assert our_rows(table) == sorted_rows(
        [["+I", n, "old" if n < 5 else "ours" if n < 10 else "new"] for n in range(20)]
    )


def a_table(
    warehouse: Path, fields: list[DataField], options: dict[str, str], **keys: list[str]
) -> Table:
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db")
    catalog.create_table("db.t", Schema(fields, options=options, **keys))
    return catalog.get_table("db.t")


def pairs() -> list[DataField]:
    return [
        DataField(0, "id", AtomicType("BIGINT", nullable=False)),
        DataField(1, "name", AtomicType("STRING")),
    ]


def rows(ids: range, name: str) -> pa.Table:
    key = pa.field("id", pa.int64(), nullable=False)
    schema = pa.schema([key, pa.field("name", pa.string())])
    return pa.table({"id": list(ids), "name": [name] * len(ids)}, schema=schema)


def append(table: Table, data: pa.Table, **kind: Any) -> None:
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(data, **kind)
        commit.commit(write.prepare_commit())


def our_rows(table: Table) -> list[Row]:
    builder = table.new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted_rows(canonical_rows(found))
