"""The judges themselves: they give back the rows that are known to be there."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from canonical import canonical_rows, sorted_rows
from golden.reads import Golden, GoldenRead, reads_of, settle
from interop.judges import JavaJudge, JudgeError, Peer, java_rows

pytestmark = pytest.mark.interop

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("day", pa.date32()),
        ("ratio", pa.float64()),
    ]
)
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["a", None, "longer than seven bytes"],
        "price": [Decimal("1.50"), Decimal("-0.01"), None],
        "at": [dt.datetime(2026, 6, 26, 10, 0, 0, 123456), None, dt.datetime(1969, 12, 31)],  # noqa: DTZ001
        "day": [dt.date(2026, 6, 26), dt.date(1970, 1, 1), None],
        "ratio": [0.5, float("nan"), -0.0],
    },
    schema=SCHEMA,
)


@pytest.mark.parametrize("read", reads_of("append_", "bucket", "types_"), ids=str)
def test_java_reads_the_golden_rows(java: JavaJudge, golden: Golden, read: GoldenRead) -> None:
    rows = java.read(golden.warehouse, f"golden.{read.table}", read.options).rows

    assert settle(read, rows) == golden.expected(read)


def test_java_names_a_table_that_does_not_exist(java: JavaJudge, tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="nowhere"):
        java.rows(tmp_path, "nowhere.t")


@pytest.mark.parametrize("engine", ["pypaimon", "rust"])
def test_what_a_peer_writes_everybody_reads(
    engine: str, pypaimon: Peer, rust: Peer, java: JavaJudge, tmp_path: Path
) -> None:
    writer = {"pypaimon": pypaimon, "rust": rust}[engine]
    writer.create_table(tmp_path, "db.t", SCHEMA, options={"bucket": "-1"})
    writer.write(tmp_path, "db.t", ROWS)
    writer.write(tmp_path, "db.t", ROWS)
    expected = sorted_rows(canonical_rows(ROWS) * 2)

    assert pypaimon.rows(tmp_path, "db.t") == expected
    assert rust.rows(tmp_path, "db.t") == expected
    assert java_rows(tmp_path, [("db.t", {}), ("db.t", {"scan.snapshot-id": "1"})]) == [
        expected,
        sorted_rows(canonical_rows(ROWS)),
    ]


@pytest.mark.parametrize("engine", ["pypaimon", "rust"])
def test_a_peer_overwrites(engine: str, pypaimon: Peer, rust: Peer, tmp_path: Path) -> None:
    writer = {"pypaimon": pypaimon, "rust": rust}[engine]
    writer.create_table(tmp_path, "db.t", SCHEMA)
    writer.write(tmp_path, "db.t", ROWS)
    writer.write(tmp_path, "db.t", ROWS.slice(0, 1), overwrite={})

    assert writer.rows(tmp_path, "db.t") == sorted_rows(canonical_rows(ROWS.slice(0, 1)))


def test_the_buckets_of_pypaimon_are_those_that_java_finds(
    pypaimon: Peer, java: JavaJudge, tmp_path: Path
) -> None:
    pypaimon.create_table(
        tmp_path, "db.t", SCHEMA, options={"bucket": "4", "bucket-key": "id,name"}
    )
    pypaimon.write(tmp_path, "db.t", ROWS)

    read = java.read(tmp_path, "db.t")
    by_id = {row[1]: bucket for row, bucket in zip(read.rows, read.buckets, strict=True)}

    assert pypaimon.buckets(tmp_path, "db.t", ROWS) == [by_id[1], by_id[2], by_id[3]]
