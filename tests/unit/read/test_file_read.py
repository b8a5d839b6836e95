"""Reads of stored rows: their positions, and files side by side."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from data_files import fields_of, table_of
from emberlake.errors import CorruptFile
from emberlake.formats import open_writer
from emberlake.io import MemoryStorage
from emberlake.io.storage import Storage
from emberlake.options import TableOptions
from emberlake.predicates.expressions import And, Leaf, Op, Or, Predicate
from emberlake.read.column_plan import plan_columns
from emberlake.read.file_read import FileRead, StoredFile, VectorLocation
from emberlake.read.projection import OutputShape, project
from emberlake.spec.deletion_vector import encode_deletion_vectors
from emberlake.spec.key_value import KIND_FIELD
from emberlake.types import DataField

Row = dict[str, Any]

FORMATS = ("parquet", "orc", "avro", "lance")
COUNT = 3000  # several batches, and many row groups
FIELDS = fields_of(id="BIGINT", n="INT", text="STRING")
ID, N, TEXT = FIELDS
ROWS = table_of(
    FIELDS,
    range(COUNT),
    [None if i % 7 == 0 else i * 37 % 101 for i in range(COUNT)],
    [f"t{i % 13}" for i in range(COUNT)],
)
PLAIN: list[Row] = ROWS.to_pylist()
# Inside of a batch, at its end, a stretch over several batches, the last row.
DELETED = [0, 3, 1023, 1024, *range(1500, 2200), COUNT - 1]


def write(storage: Storage, name: str, fields: tuple[DataField, ...], rows: pa.Table) -> StoredFile:
    options = TableOptions({"file.block-size": "4 kb"})
    writer = open_writer(storage, f"/t/{name}", fields, options, name.rpartition(".")[2])
    writer.write(rows)
    size = writer.close()
    return StoredFile(name, f"/t/{name}", rows.num_rows, size)


def vector_of(storage: Storage, file: StoredFile, deleted: Sequence[int]) -> VectorLocation | None:
    if not deleted:
        return None
    raw, (place,) = encode_deletion_vectors({file.name: BitMap(deleted)}, bitmap64=False)
    storage.put("/t/index", raw)
    return VectorLocation("/t/index", place)


def located(read: FileRead) -> list[tuple[int, Row]]:
    """Rows with their positions; however they are read, they are the same."""
    found = [
        (int(position), row)
        for positions, rows in read.located_tables()
        for position, row in zip(positions, rows.to_pylist(), strict=True)
    ]
    assert [row for rows in read.tables() for row in rows.to_pylist()] == [r for _, r in found]
    assert read.table(use_threads=False).to_pylist() == [r for _, r in found]
    return found


def model(
    matches: Callable[[Row], bool], names: Sequence[str], deleted: Sequence[int], rows: range
) -> list[tuple[int, Row]]:
    gone = set(deleted)
    return [
        (position, {name: row[name] for name in names})
        for position, row in enumerate(PLAIN)
        if position in rows and position not in gone and matches(row)
    ]


CASES: dict[str, tuple[Predicate | None, Callable[[Row], bool]]] = {
    "every row": (None, lambda _: True),
    "one stretch": (
        Leaf(ID, Op.BETWEEN, (1200, 2000)),
        lambda row: 1200 <= row["id"] <= 2000,
    ),
    "the end": (Leaf(ID, Op.GREATER_OR_EQUAL, (2900,)), lambda row: row["id"] >= 2900),
    "here and there": (Leaf(N, Op.EQUAL, (5,)), lambda row: row["n"] == 5),
    "nulls": (Leaf(N, Op.IS_NULL), lambda row: row["n"] is None),
    "two columns": (
        And((Leaf(N, Op.LESS_THAN, (50,)), Leaf(TEXT, Op.EQUAL, ("t3",)))),
        lambda row: row["n"] is not None and row["n"] < 50 and row["text"] == "t3",
    ),
    "two stretches": (
        Or((Leaf(ID, Op.LESS_THAN, (9,)), Leaf(ID, Op.IN, (2444, 2999)))),
        lambda row: row["id"] < 9 or row["id"] in (2444, 2999),
    ),
    "no row": (Leaf(ID, Op.EQUAL, (-1,)), lambda _: False),
}


STRETCHES: list[tuple[list[int], tuple[int, int] | None]] = [
    ([], None),
    (DELETED, None),
    (DELETED, (1000, 2500)),
]


@pytest.fixture(scope="module", params=FORMATS)
def stored(request: pytest.FixtureRequest) -> tuple[Storage, StoredFile]:
    storage = MemoryStorage()
    return storage, write(storage, f"data-0.{request.param}", FIELDS, ROWS)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("deleted", "rows"), STRETCHES)
def test_matching_rows_know_their_positions(
    stored: tuple[Storage, StoredFile], case: str, deleted: list[int], rows: tuple[int, int] | None
) -> None:
    storage, file = stored
    predicate, matches = CASES[case]
    shape = OutputShape(project(FIELDS, ["text", "id"]))
    plan = plan_columns([FIELDS], FIELDS, shape, predicate=predicate)
    read = FileRead(storage, (file,), plan, vector=vector_of(storage, file, deleted), rows=rows)

    found = located(read)

    assert found == model(matches, ["text", "id"], deleted, range(*(rows or (0, COUNT))))


def test_positions_are_right_where_row_groups_are_skipped() -> None:
    storage = MemoryStorage()
    file = write(storage, "data-0.parquet", FIELDS, ROWS)
    plan = plan_columns([FIELDS], FIELDS, predicate=Leaf(ID, Op.GREATER_OR_EQUAL, (2990,)))
    read = FileRead(storage, (file,), plan)

    stretches = list(read.located_tables())

    assert [p for positions, _ in stretches for p in positions.tolist()] == list(range(2990, COUNT))
    assert len(stretches) == 1  # the other row groups were not read


def test_retracts_have_no_position() -> None:
    fields = (*fields_of(id="BIGINT"), KIND_FIELD)
    storage = MemoryStorage()
    rows = table_of(fields, range(4), [0, 3, 2, 1])
    file = write(storage, "data-0.parquet", fields, rows)
    plan = plan_columns([fields], fields[:1], drops_retracts=True)

    assert located(FileRead(storage, (file,), plan)) == [(0, {"id": 0}), (2, {"id": 2})]


# --- files side by side ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def beside() -> tuple[Storage, tuple[StoredFile, StoredFile]]:
    """The same rows in two files of different formats, whose batches end at different rows."""
    storage = MemoryStorage()
    left = write(storage, "left.parquet", (ID, TEXT), ROWS.select(["id", "text"]))
    right = write(storage, "right.avro", (N,), ROWS.select(["n"]))
    return storage, (left, right)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("deleted", "rows"), STRETCHES)
def test_columns_of_two_files_are_read_side_by_side(
    beside: tuple[Storage, tuple[StoredFile, StoredFile]],
    case: str,
    deleted: list[int],
    rows: tuple[int, int] | None,
) -> None:
    storage, files = beside
    predicate, matches = CASES[case]
    plan = plan_columns([(ID, TEXT), (N,)], (N, ID, TEXT), predicate=predicate)
    vector = vector_of(storage, files[0], deleted)

    found = located(FileRead(storage, files, plan, vector=vector, rows=rows))

    assert found == model(matches, ["n", "id", "text"], deleted, range(*(rows or (0, COUNT))))


def test_of_two_files_with_a_column_the_first_has_it() -> None:
    storage = MemoryStorage()
    newer = write(storage, "newer.parquet", (N,), table_of((N,), [7, 8]))
    older = write(storage, "older.parquet", (ID, N), table_of((ID, N), [1, 2], [3, 4]))
    plan = plan_columns([(N,), (ID, N)], (ID, N))

    rows = FileRead(storage, (newer, older), plan).table(use_threads=False)

    assert rows.to_pylist() == [{"id": 1, "n": 7}, {"id": 2, "n": 8}]
    assert [columns.read for columns in plan.files] == [(N,), (ID,)]


def test_files_side_by_side_must_have_the_same_rows() -> None:
    storage = MemoryStorage()
    left = write(storage, "left.parquet", (ID,), ROWS.select(["id"]))
    right = write(storage, "right.parquet", (N,), ROWS.select(["n"]).slice(1))
    read = FileRead(storage, (left, right), plan_columns([(ID,), (N,)], (ID, N)))

    with pytest.raises(CorruptFile, match=r"right\.parquet.*2999 rows, but left\S* has 3000"):
        read.table(use_threads=False)
