"""Java, pypaimon and Rust read what deletes, updates and merges have left.

Java goes on from it: it appends, deletes and compacts in turn with us.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from canonical import Row, canonical_rows, sorted_rows
from emberlake import CatalogFactory, Schema, Table
from emberlake.spec.row_tracking import ROW_ID
from emberlake.spec.snapshot import CommitKind
from interop.judges import JudgeError, java_judge, peer
from tracked_tables import EVOLVING, TRACKED, VECTORS

pytestmark = pytest.mark.interop

NAME = "db.t"
COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())]
)
KINDS: dict[str, Mapping[str, str]] = {
    "rewrite": {},
    "vectors": VECTORS,
    "wide vectors": {**VECTORS, "deletion-vectors.bitmap64": "true"},
    "buckets": {"bucket": "2", "bucket-key": "id", **VECTORS},
    "tracked": TRACKED,
    "tracked vectors": {**TRACKED, **VECTORS},
    "columns": EVOLVING,
    "keys": {"bucket": "2"},
    "dynamic keys": {"bucket": "-1"},
    "key vectors": {"bucket": "1", **VECTORS},
    "ordered keys": {"bucket": "1", "sequence.field": "n"},
    "partial keys": {
        "bucket": "1",
        "merge-engine": "partial-update",
        "partial-update.remove-record-on-delete": "true",
    },
}
# What peers refuse to read; Java reads it all.
REFUSED: Mapping[str, Mapping[str, str]] = {
    "pypaimon": {
        "wide vectors": "Invalid magic number",
        "partial keys": "does not yet implement",
    },
    "rust": {
        "tracked": "is missing first_row_id",
        "tracked vectors": "is missing first_row_id",
    },
}


def rows(*values: tuple[int, str | None, int | None]) -> pa.Table:
    columns = zip(*values, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def changed(warehouse: Path, kind: str) -> Table:
    """A table after all kinds of changes."""
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", True)
    keys = ["id"] if "keys" in kind or kind == "key vectors" else None
    schema = Schema.from_pyarrow_schema(COLUMNS, None, keys, dict(KINDS[kind]))
    catalog.create_table(NAME, schema, False)
    table = catalog.get_table(NAME)
    table.append(rows((1, "a", 1), (2, "b", None), (3, None, 3)))
    table.append(rows((4, "d", 4), (5, "e", 5), (6, "f", 6)))
    table.update({"v": "COALESCE(v, 'none') || id", "n": "n * 10"}, "id IN (3, 4)")
    merge = table.merge(rows((1, "A", 100), (5, "E", 500), (9, "I", 900)), ["id"])
    merge.when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all().execute()
    if kind != "columns":  # without vectors, which Java 1.4 does not know there
        table.delete("n > 900 OR id = 2")
        table.delete("id = 6")
    return table


def values(found: list[Row]) -> list[Row]:
    """Rows without their kinds: Java tells that of a row's last record."""
    return sorted_rows([row[1:] for row in found])


def ours(table: Table) -> list[Row]:
    return values(canonical_rows(table.to_arrow()))


def java(warehouse: Path) -> list[Row]:
    return values(java_judge().read(warehouse, NAME).rows)


@pytest.mark.parametrize("kind", KINDS)
def test_others_read_what_changed(tmp_path: Path, kind: str) -> None:
    table = changed(tmp_path, kind)
    expected = ours(table)
    assert java(tmp_path) == expected
    for name in ("pypaimon", "rust"):
        refusal = REFUSED[name].get(kind)
        if refusal is None:
            assert values(peer(name).rows(tmp_path, NAME)) == expected
        else:
            with pytest.raises(JudgeError, match=refusal):
                peer(name).rows(tmp_path, NAME)


# --- in turn with Java ----------------------------------------------------------------------------


@dataclass
class Turns:
    """A table that Java and we change in turn, and what must be in it."""

    warehouse: Path
    table: Table
    kind: str
    expected: dict[int, list[Any]]

    @property
    def has_ids(self) -> bool:
        return "row-tracking.enabled" in KINDS[self.kind]

    def check(self) -> None:
        """Java and we read the expected rows, and old rows by their old ids."""
        names = [*COLUMNS.names, *([ROW_ID] if self.has_ids else [])]
        found = values(canonical_rows(self.table.to_arrow(names)))
        known = self.expected.values()
        assert [row[: len(COLUMNS)] for row in found] == sorted_rows([r[:3] for r in known])
        if self.has_ids:
            ids = {row[0]: row[-1] for row in found}
            kept = {row[0]: row[-1] for row in known if len(row) == len(names)}
            assert ids == ids | kept
            assert len(set(ids.values())) == len(ids)
            seen = values(java_judge().read(self.warehouse, f"{NAME}$row_tracking").rows)
            assert [row[: len(names)] for row in seen] == found
        assert java(self.warehouse) == [row[: len(COLUMNS)] for row in found]
        self.expected = {row[0]: row for row in found}

    def java_deletes(self, *ids: int) -> None:
        if "data-evolution.enabled" in KINDS[self.kind]:
            return
        java_judge().delete(self.warehouse, NAME, "id", ids)
        self._forget(*ids)

    def java_compacts(self) -> None:
        java_judge().compact(self.warehouse, NAME, full=True)
        snapshot = self.table.store.snapshots.latest()
        assert snapshot is not None
        assert snapshot.commit_kind is CommitKind.COMPACT
        self.check()

    def java_appends(self, *new: tuple[int, str | None, int | None]) -> None:
        if self.kind == "dynamic keys":
            return
        java_judge().write(self.warehouse, NAME, rows(*new))
        self.expected |= {row[0]: list(row) for row in new}
        self.check()

    def we_update(self, *ids: int) -> None:
        """Their rows say how often they were updated."""
        listed = ", ".join(map(str, ids))
        self.table.update({"v": "COALESCE(v, '') || '+'"}, f"id IN ({listed})")
        for row in (self.expected[i] for i in ids if i in self.expected):
            row[1] = (row[1] or "") + "+"
        self.check()

    def we_delete(self, *ids: int) -> None:
        if "data-evolution.enabled" in KINDS[self.kind]:
            return
        self.table.delete(f"id IN ({', '.join(map(str, ids))})")
        self._forget(*ids)

    def we_compact(self) -> None:
        self.table.compact(full=True)
        self.check()

    def _forget(self, *ids: int) -> None:
        self.expected = {i: row for i, row in self.expected.items() if i not in ids}
        self.check()


@pytest.mark.parametrize("kind", KINDS)
def test_java_deletes_and_compacts_in_turn_with_us(tmp_path: Path, kind: str) -> None:
    """Each step is Java's or ours, and after each both read the same rows with the same ids.

    Java's API has no call that deletes by a condition. The judge reads the rows and deletes them
    with the parts that Java's engines use: records of keys, deletion vectors, files written again.
    Java 1.4 cannot delete from tables with data evolution. Only its engines give new keys a
    dynamic bucket, so there the judge deletes keys but adds none.
    """
    table = changed(tmp_path, kind)
    turns = Turns(tmp_path, table, kind, {row[0]: row for row in ours(table)})
    turns.check()

    turns.java_deletes(4)
    turns.we_update(3, 5)
    turns.java_deletes(3)
    turns.java_compacts()
    turns.we_update(1, 5)
    turns.java_appends((20, "java", 1), (21, None, None), (22, "more", 3))
    turns.we_delete(20)
    turns.java_deletes(21, 1)
    turns.we_compact()
    turns.java_appends((30, "java", 1))
    turns.java_deletes(22)
    turns.we_update(5, 30)
    turns.java_compacts()
    turns.java_deletes(5, 30)
    turns.we_compact()
