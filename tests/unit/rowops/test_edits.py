"""Few rows of a large file change: they are computed and written together, in bounded parts."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from builders import create_table
from emberlake.rowops import edits
from emberlake.table import Table
from tracked_tables import COLUMNS, EVOLVING, TRACKED, VECTORS, changed_in, with_ids

ROWS = 20_000  # about 20 batches


def text(number: int) -> str:
    return f"row {number} " + "x" * (number % 50)


def tracked(**options: str) -> Table:
    table = create_table(columns=COLUMNS, options=options)
    numbers = range(ROWS)
    columns = [list(numbers), [text(n) for n in numbers], [n % 7 for n in numbers]]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)]
    table.append(pa.Table.from_arrays(arrays, schema=COLUMNS))
    return table


@pytest.fixture(params=[1, 20_000, 1 << 22], ids=["a batch", "some batches", "all"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "_BATCH_BYTES", 1)
    monkeypatch.setattr(edits, "_PART_BYTES", request.param)


STRATEGIES = pytest.mark.parametrize(
    "options",
    [TRACKED, {**TRACKED, **VECTORS}, {**EVOLVING, **VECTORS}, {**TRACKED, "file.format": "avro"}],
    ids=["rewritten", "marked", "columns", "rewritten by rows"],
)


@STRATEGIES
@pytest.mark.usefixtures("parts")
def test_scattered_rows_get_their_own_values_and_keep_their_ids(options: dict[str, str]) -> None:
    table = tracked(**options)

    table.update({"v": "concat(v, '!')", "n": "CAST(id + 1 AS INT)"}, "id % 97 = 5")

    changed = set(range(5, ROWS, 97))
    assert with_ids(table) == {
        n: (n, f"{text(n)}!", n + 1) if n in changed else (n, text(n), n % 7) for n in range(ROWS)
    }
    expected = {
        n: 2 if n in changed or "data-evolution.enabled" in options else 1 for n in range(ROWS)
    }
    assert changed_in(table) == expected


@STRATEGIES
@pytest.mark.usefixtures("parts")
def test_rows_of_a_merge_meet_their_own_matches(options: dict[str, str]) -> None:
    table = tracked(**options)
    ids = [n for n in range(ROWS) if n % 101 in (1, 2)]
    source = pa.table({"id": ids[::-1], "v": [f"new {n}" for n in ids[::-1]]})

    (
        table.merge(source, on="t.id = s.id", target_alias="t", source_alias="s")
        .when_matched_delete("s.id % 101 = 2")
        .when_matched_update({"v": "concat(s.v, t.v)"})
        .execute()
    )

    assert with_ids(table) == {
        n: (n, f"new {n}{text(n)}" if n % 101 == 1 else text(n), n % 7)
        for n in range(ROWS)
        if n % 101 != 2
    }


def test_parts_are_bounded_and_as_few_as_that_allows() -> None:
    size = pa.table({"a": pa.array(range(1000))}).nbytes

    def tables() -> Iterator[pa.Table]:
        for first in range(0, 1_000_000, 1000):
            yield pa.table({"a": pa.array(range(first, first + 1000))})

    found = list(edits._gathered(tables()))

    assert pa.concat_tables(found).column("a").to_pylist() == list(range(1_000_000))
    assert all(part.nbytes < edits._PART_BYTES + size for part in found)
    assert len(found) == -(-1000 * size // edits._PART_BYTES)
    assert all(part.column("a").num_chunks == 1 for part in found)
