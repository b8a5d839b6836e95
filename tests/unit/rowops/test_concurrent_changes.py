"""Operations on rows while others commit: nothing is lost, and nothing is done twice."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from builders import create_key_table, create_table, open_table
from emberlake.commit.change import CommitResult
from emberlake.errors import CommitConflict, ConflictReason
from emberlake.session.write_session import WriteSession
from emberlake.table import Table
from table_reads import files_under, live_files
from tracked_tables import EVOLVING, TRACKED, VECTORS

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])
KINDS: dict[str, Callable[[], Table]] = {
    "rewrite": lambda: create_table(columns=COLUMNS),
    "vectors": lambda: create_table(columns=COLUMNS, options=VECTORS),
    "buckets": lambda: create_table(
        columns=COLUMNS, options={"bucket": "1", "bucket-key": "id", **VECTORS}
    ),
    "tracked": lambda: create_table(columns=COLUMNS, options=TRACKED),
    "columns": lambda: create_table(columns=COLUMNS, options={**EVOLVING, **VECTORS}),
    "keys": lambda: create_key_table(COLUMNS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def rows(*ids: int, n: int = 0) -> pa.Table:
    values = [(i, f"v{i}", n) for i in ids]
    columns = zip(*values, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=COLUMNS)


def numbers(table: Table) -> dict[int, int]:
    found = table.to_arrow(["id", "n"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["n"] for row in found}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets others commit right before an operation does, as often as they have something to do."""
    commit = WriteSession.commit_or_abort

    def arrange(*rivals: Callable[[Table], object]) -> None:
        left = list(rivals)

        def commit_later(self: WriteSession, *args: Any, **kwargs: Any) -> CommitResult:
            if left:
                rival = left.pop(0)
                monkeypatch.setattr(WriteSession, "commit_or_abort", commit)
                rival(open_table(self.store.storage))
                monkeypatch.setattr(WriteSession, "commit_or_abort", commit_later)
            return commit(self, *args, **kwargs)

        monkeypatch.setattr(WriteSession, "commit_or_abort", commit_later)

    return arrange


OURS: dict[str, Callable[[Table], object]] = {
    "update": lambda t: t.update({"n": "n + 1"}, "id <= 2"),
    "merge": lambda t: (
        t.merge(rows(1, 2, 5), ["id"])
        .when_matched_update({"n": "t.n + 1"})
        .when_not_matched_insert({"id": "s.id", "n": 1})
        .execute()
    ),
}
# What others do, and what becomes of the rows 1 and 2, which are 0 before.
RIVALS: dict[str, tuple[Callable[[Table], object], dict[int, int | None]]] = {
    "insert": (lambda t: t.append(rows(9)), {1: 1, 2: 1, 9: 0}),
    "delete the same row": (lambda t: t.delete("id = 1"), {1: None, 2: 1}),
    "delete another row": (lambda t: t.delete("id = 3"), {1: 1, 2: 1, 3: None}),
    "update the same row": (lambda t: t.update({"n": 100}, "id = 1"), {1: 101, 2: 1}),
    "update another row": (lambda t: t.update({"n": 100}, "id = 3"), {1: 1, 2: 1, 3: 100}),
    "compact": (lambda t: t.compact(full=True), {1: 1, 2: 1}),
    "overwrite": (lambda t: t.overwrite(rows(2, n=50), {}), {1: None, 2: 51, 3: None}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("ours", OURS)
@every_kind
def test_no_change_is_lost_or_done_twice(
    kind: str, ours: str, rival: str, meanwhile: Callable[..., None]
) -> None:
    table = KINDS[kind]()
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    act, expected = RIVALS[rival]
    meanwhile(act)
    if ours == "merge" and rival in ("overwrite", "delete the same row"):
        expected = {**expected, 1: 1}  # the row is gone, so the merge inserts it
    OURS[ours](table)
    found = numbers(table)
    assert {n: found.get(n) for n in expected} == expected


@pytest.mark.parametrize("rival", ["insert", "delete the same row", "compact"])
@every_kind
def test_a_delete_goes_together_with_what_others_do(
    kind: str, rival: str, meanwhile: Callable[..., None]
) -> None:
    table = KINDS[kind]()
    table.append(rows(1, 2, 3))
    meanwhile(RIVALS[rival][0])
    table.delete("id <= 2")
    assert set(numbers(table)) == {3, 9} - ({9} if rival != "insert" else set())


@every_kind
def test_rows_that_are_deleted_with_their_files_do_not_come_back(
    kind: str, meanwhile: Callable[..., None]
) -> None:
    table = KINDS[kind]()
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    meanwhile(lambda t: t.update({"n": 100}, "id <= 2"), lambda t: t.append(rows(9)))
    table.delete("id < 9")
    assert numbers(table) == {9: 0}


@pytest.mark.parametrize("kind", ["vectors", "buckets"])
def test_deletes_of_one_file_are_joined_without_doing_them_again(
    kind: str, meanwhile: Callable[..., None]
) -> None:
    table = KINDS[kind]()
    table.append(rows(1, 2, 3))
    meanwhile(lambda t: t.delete("id = 3"))
    result = table.delete("id = 1")
    assert (set(numbers(table)), result.rows_deleted) == ({2}, 1)
    assert len(live_files(table)) == 1


def test_a_change_that_loses_every_time_gives_up_and_leaves_nothing(
    meanwhile: Callable[..., None],
) -> None:
    table = KINDS["rewrite"]()
    table.append(rows(1, 2))
    meanwhile(*[lambda t: t.update({"n": "n + 10"}, "id = 1")] * 5)
    with pytest.raises(CommitConflict) as raised:
        table.update({"n": "n + 1"}, "id = 1")
    assert raised.value.reason is ConflictReason.FILE_DELETED_ELSEWHERE
    assert numbers(table) == {1: 50, 2: 0}
    named = {entry.file.file_name for entry in live_files(table)}
    data = {path.split("/")[-1] for path in files_under(table.store.storage, "") if "data-" in path}
    assert named <= data
    assert len(data) == 6  # those of the six snapshots, and none of the change that gave up


@every_kind
def test_a_serializable_merge_sees_rows_that_were_added_meanwhile(
    kind: str, meanwhile: Callable[..., None]
) -> None:
    found = {}
    for isolation in ("snapshot", "serializable"):
        table = KINDS[kind]()
        table.append(rows(1))
        meanwhile(lambda t: t.append(rows(9, n=5)))
        merge = table.merge(rows(9, n=7), ["id"], isolation=isolation)
        result = merge.when_not_matched_insert_all().execute()
        found[isolation] = result.rows_inserted
        if isolation == "serializable":
            assert numbers(table) == {1: 0, 9: 5}
    assert found == {"snapshot": 0 if kind == "keys" else 1, "serializable": 0}
