"""What an overwrite replaces: pypaimon's and pypaimon-rust's ways to say it, compared with ours."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from canonical import canonical_rows, sorted_rows
from emberlake import Catalog, CatalogFactory, Schema
from interop.judges import JudgeError, Peer, peer
from overwrite_cases import APPEND, BEFORE, BUILDER_CALLS, BUILDER_CASES, Case, Refused, expected

pytestmark = pytest.mark.interop

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), False), pa.field("day", pa.string(), False), ("v", pa.string())]
)
KINDS = {
    "append": (["day"], [], {}),
    "append, unpartitioned": ([], [], {}),
    "key": (["day"], ["day", "id"], {"bucket": "1"}),
    "key, unpartitioned": ([], ["id"], {"bucket": "1"}),
}
OVERWRITES = [case for case in BUILDER_CASES if BUILDER_CALLS[case.builder_call] != APPEND]


def ours(case: Case, kind: str):
    """What emberlake does, as the tests of its own say."""
    partition_keys, primary_keys, _ = KINDS[kind]
    try:
        rows = expected(case, has_partitions=bool(partition_keys), has_key=bool(primary_keys))
    except Refused:
        return Refused
    return canonical(rows)


def theirs(case: Case, kind: str):
    """What both of them do: the same, but for a dynamic overwrite that is given a partition.

    They ignore it. Rows outside of the partition replace what is there instead of being refused,
    and there is no way to say "the whole table". To us a partition that was given means something,
    whatever the option says.
    """
    has_partitions = bool(KINDS[kind][0])
    if has_partitions and case.is_dynamic:
        case = replace(case, builder_call="overwrite()")
    return ours(case, kind)


def differences() -> set[tuple[str, str, str]]:
    return {
        (kind, case.builder_call, case.data)
        for kind in KINDS
        for case in OVERWRITES
        if ours(case, kind) != theirs(case, kind)
    }


def test_these_are_all_the_differences():
    assert differences() == {
        (kind, builder_call, data)
        for kind in ("append", "key")
        for builder_call, data in [
            ("overwrite(mon)", "several partitions"),  # we refuse the rows of other days
            ("overwrite({})", "one partition"),  # we replace all days
            ("overwrite({})", "several partitions"),
            ("overwrite({})", "no data"),
        ]
    }


@pytest.mark.parametrize("engine", ["pypaimon", "rust"])
@pytest.mark.parametrize("kind", KINDS)
def test_others_replace_what_we_replace(engine: str, kind: str, tmp_path: Path) -> None:
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")

    found = {
        str(case): overwritten_by(peer(engine), catalog, tmp_path, f"db.t{number}", kind, case)
        for number, case in enumerate(OVERWRITES)
    }

    assert found == {str(case): theirs(case, kind) for case in OVERWRITES}


def overwritten_by(
    other: Peer, catalog: Catalog, warehouse: Path, name: str, kind: str, case: Case
):
    partition_keys, primary_keys, options = KINDS[kind]
    options = {**options, "dynamic-partition-overwrite": str(case.is_dynamic).lower()}
    schema = Schema.from_pyarrow_schema(COLUMNS, partition_keys, primary_keys, options)
    catalog.create_table(name, schema)
    table = catalog.get_table(name)
    builder = table.new_batch_write_builder()
    with builder.new_write() as write, builder.new_commit() as commit:
        write.write_arrow(as_arrow(BEFORE))
        commit.commit(write.prepare_commit())
    partition = BUILDER_CALLS[case.builder_call]
    try:
        other.write(
            warehouse, name, as_arrow(case.rows), overwrite=True if partition is None else partition
        )
    except JudgeError:
        return Refused
    reader = table.new_read_builder()
    rows = reader.new_read().to_arrow(reader.new_scan().plan().splits())
    return sorted_rows(canonical_rows(rows))


def as_arrow(rows) -> pa.Table:
    return pa.Table.from_pylist([row._asdict() for row in rows], schema=COLUMNS)


def canonical(rows):
    return sorted_rows(canonical_rows(as_arrow(rows)))
