"""Commits: whether a snapshot becomes the next one. The snapshot file decides.

    lock the table
      this very snapshot is there already      -> true: the answer to an earlier try was lost
      it is not the next one                   -> false
      it was built on another snapshot         -> false
      put its file, if absent                  -> from here on it is committed
      record it as the head, write the hint
    unlock, answer

Commits to several tables that wait are made together (``commit_together``).

A server that dies before the file exists has changed nothing. If it dies afterwards, the next
request finds the file and records it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from typing import Any, Final

from emberlake.base.option_texts import MEBIBYTE
from emberlake.errors import (
    EmberlakeError,
    FileNotFound,
    InvalidInput,
    StorageError,
    TableNotFound,
)
from emberlake.rest.commits import CommitRequest, PartitionStatistics
from emberlake.rest.reading import Fields
from emberlake.server.heads import UNKNOWN_TOTALS, Advance, Heads, NamedTable, snapshot_text
from emberlake.server.records import TableRecord
from emberlake.server.warehouses import Warehouse
from emberlake.store.snapshots import SnapshotStore

_LARGEST_SNAPSHOT: Final = 4 * MEBIBYTE  # every reader gets it; most have 1 kB


@dataclass(frozen=True)
class Commit:
    """A commit request: what it says, and the snapshot exactly as it came."""

    request: CommitRequest
    snapshot: Mapping[str, Any]
    text: str  # the snapshot, as its file and answers have it

    @staticmethod
    def from_json(value: object) -> "Commit":
        """The request of a body; the snapshot is checked, and kept with all its keys.

        Raises:
            InvalidInput: something is missing, of the wrong type, too large or nested too deeply.
        """
        request = CommitRequest.from_json(value)
        fields = Fields(value, "the commit")
        if request.snapshot.id < 1 or request.snapshot.schema_id < 0:
            raise InvalidInput("the snapshot has no usable id or schemaId")
        text = fields.read("snapshot", snapshot_text)
        if len(text.encode()) > _LARGEST_SNAPSHOT:
            raise InvalidInput(f"a snapshot may have {_LARGEST_SNAPSHOT:,} bytes")
        return Commit(request, fields.raw("snapshot"), text)

    @property
    def id(self) -> int:
        return self.request.snapshot.id


class Verdict(Enum):
    """What is to be done with a commit, judging by the head alone."""

    REPEATED = auto()
    LOST = auto()
    OLDER = auto()  # it may be in the history
    NEXT = auto()


def judge(commit: Commit, head: Mapping[str, Any] | None) -> Verdict:
    """Compare a commit with the latest snapshot, which may be none."""
    latest = 0 if head is None else head["id"]
    if head is not None and commit.id == latest:
        return Verdict.REPEATED if head == commit.snapshot else Verdict.LOST
    if commit.id < latest:
        return Verdict.OLDER
    if commit.id != latest + 1:
        return Verdict.LOST
    # Clients before 2.0 do not say what they built on.
    base = None if head is None else head.get("uuid")
    if commit.request.names_base and commit.request.base_snapshot_uuid != base:
        return Verdict.LOST
    return Verdict.NEXT


@dataclass(frozen=True)
class Candidate:
    """A commit to a table, as the table is while it is locked."""

    table: TableRecord
    commit: Commit


_TOO_LARGE: Final = 2**63  # for clients in other languages
_TOGETHER: Final = 16  # files that are put by one thread, and wait for the disk together

Outcome = bool | Exception  # whether it is the next snapshot, or why that is not known
Put = Callable[[Sequence[Candidate]], list[Outcome]]
Spread = Callable[[Put, Sequence[Sequence[Candidate]]], Iterable[list[Outcome]]]


def commit_snapshot(heads: Heads, warehouse: Warehouse, table: TableRecord, commit: Commit) -> bool:
    """Make a snapshot the next one; False if it cannot be.

    Raises:
        TableNotFound: the table was dropped, or created again since the client opened it.
        InvalidInput: the snapshot has a schema that the table does not have.
        StorageError: it is not known whether the snapshot was published.
    """
    with heads.locked(warehouse, table) as current:
        (outcome,) = _decide(heads, warehouse, [Candidate(current, commit)], map)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def commit_together(
    heads: Heads,
    warehouse: Warehouse,
    asked: Sequence[tuple[NamedTable, Commit]],
    spread: Spread,
) -> list[Outcome | None]:
    """Commit to several tables, with few trips to the database; each has an outcome of its own.

    None is the outcome for a table that must be found, or waited for, by itself.

    Args:
        heads: The heads of the tables.
        warehouse: The one that all the tables are in.
        asked: One commit for each table.
        spread: Publishes many files side by side.
    """
    with heads.locked_together(warehouse, [table for table, _ in asked]) as found:
        outcomes: dict[str, Outcome] = {}
        current: list[Candidate] = []
        for named, commit in asked:
            match found.get(named.id):
                case TableRecord() as table:
                    current.append(Candidate(table, commit))
                case Exception() as error:
                    outcomes[named.id] = error
                case None:
                    pass
        decided = _decide(heads, warehouse, current, spread)
        outcomes.update(zip((each.table.id for each in current), decided, strict=True))
    return [outcomes.get(named.id) for named, _ in asked]


def _decide(
    heads: Heads, warehouse: Warehouse, candidates: Sequence[Candidate], spread: Spread
) -> list[Outcome]:
    """Decide about commits to tables that are locked, and publish those that come next."""
    outcomes = [_verdict(warehouse, each) for each in candidates]
    following = [place for place, outcome in enumerate(outcomes) if outcome is None]
    chosen = [candidates[place] for place in following]
    if not warehouse.is_local:
        for each in chosen:
            heads.mark_pending(each.table)
    groups = [chosen[at : at + _TOGETHER] for at in range(0, len(chosen), _TOGETHER)]
    spread_out = spread if len(groups) > 1 else map
    published = list(chain(*spread_out(lambda group: _publish(warehouse, group), groups)))
    _record(heads, warehouse, chosen, published)
    for place, outcome in zip(following, published, strict=True):
        outcomes[place] = outcome
    return [outcome for outcome in outcomes if outcome is not None]


def _verdict(warehouse: Warehouse, candidate: Candidate) -> Outcome | None:
    """What is to be answered, if nothing is to be published."""
    table, commit = candidate.table, candidate.commit
    wanted, schema_id = commit.request.table_id, commit.request.snapshot.schema_id
    name = f"{table.database}.{table.object_name}"
    if wanted is not None and wanted != table.id:
        return TableNotFound(f"{name} was dropped and created again; open it again")
    try:
        verdict = judge(commit, None if table.snapshot is None else json.loads(table.snapshot))
        match verdict:
            case Verdict.REPEATED:
                return True
            case Verdict.LOST:
                return False
            case Verdict.OLDER:
                return _stands(warehouse, table, commit)
            case Verdict.NEXT if schema_id > table.schema_id:
                known = f"{name} has schemas up to {table.schema_id}"
                return InvalidInput(f"the snapshot has schema {schema_id}; {known}")
            case Verdict.NEXT:
                return None
    except Exception as error:  # noqa: BLE001 - it must not be that of the others
        return error


def _publish(warehouse: Warehouse, group: Sequence[Candidate]) -> list[Outcome]:
    """Put the files of snapshots, unless others are there."""
    files = [
        (each.table.layout.snapshot(each.commit.id), each.commit.text.encode()) for each in group
    ]
    put: Sequence[Outcome]
    try:
        put = warehouse.files.put_each_if_absent(files)
    except Exception as error:  # noqa: BLE001 - some of them may be there
        put = [error] * len(files)
    return [_settled(warehouse, each, done) for each, done in zip(group, put, strict=True)]


def _settled(warehouse: Warehouse, candidate: Candidate, done: Outcome) -> Outcome:
    """Whether the snapshot is there, whatever the result of putting its file was."""
    if done is True:
        return True
    failure = done if isinstance(done, Exception) else None
    if isinstance(failure, StorageError) and failure.had_no_effect:
        return failure
    try:
        # The answer may be lost, not the file.
        is_there = _stands(warehouse, candidate.table, candidate.commit)
    except Exception as error:  # noqa: BLE001 - it must not be that of the others
        return _in_doubt("it is not known whether the snapshot is published", failure or error)
    return True if is_there else (failure or False)


def _in_doubt(what: str, error: Exception) -> Exception:
    """The answer while a snapshot may be there: never that it was refused."""
    # Other errors are failures of the program: answered as such, and logged.
    is_refusal = isinstance(error, EmberlakeError | UnicodeError)
    return StorageError(f"{what}: {error}") if is_refusal else error


def _record(
    heads: Heads,
    warehouse: Warehouse,
    candidates: Sequence[Candidate],
    outcomes: list[Outcome],
) -> None:
    """Record which snapshot each table has now. What cannot be recorded is not answered."""
    done = [place for place, outcome in enumerate(outcomes) if outcome is True]
    lost = [place for place, outcome in enumerate(outcomes) if outcome is False]
    with _noted(outcomes, done):
        _advance(heads, warehouse, [candidates[place] for place in done])
    for place in lost:
        with _noted(outcomes, [place]):
            heads.reread(warehouse, candidates[place].table)


@contextmanager
def _noted(outcomes: list[Outcome], places: Sequence[int]) -> Iterator[None]:
    """Note a failure as the outcome of some commits."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - it must not be that of the others
        for place in places:
            outcomes[place] = _in_doubt("the snapshot cannot be recorded", error)


def _advance(heads: Heads, warehouse: Warehouse, candidates: Sequence[Candidate]) -> None:
    if not candidates:
        return
    heads.advance([_advanced(each.table, each.commit) for each in candidates])
    for each in candidates:
        _write_hints(warehouse, each.table, each.commit.id)


def _advanced(table: TableRecord, commit: Commit) -> Advance:
    return Advance(table, commit.id, commit.text, _new_totals(table, commit))


def _stands(warehouse: Warehouse, table: TableRecord, commit: Commit) -> bool:
    """Whether the file of that id is this very snapshot."""
    try:
        found = json.loads(warehouse.files.read(table.layout.snapshot(commit.id)))
    except FileNotFound:
        return False
    return bool(found == commit.snapshot)


def _new_totals(table: TableRecord, commit: Commit) -> str | None:
    """The totals of the table after a commit; None if they must be counted."""
    changes: tuple[PartitionStatistics, ...] = tuple(commit.request.statistics)
    if table.snapshot is None:
        before = [0, 0, 0, 0]
    elif table.totals in (None, UNKNOWN_TOTALS):
        return None
    else:
        before = json.loads(table.totals or UNKNOWN_TOTALS)
    if not changes:
        return None
    after = [
        before[0] + sum(each.record_count for each in changes),
        before[1] + sum(each.file_size_in_bytes for each in changes),
        before[2] + sum(each.file_count for each in changes),
        max(before[3], *(each.last_file_creation_time for each in changes)),
    ]
    return json.dumps(after) if all(0 <= each < _TOO_LARGE for each in after) else None


def _write_hints(warehouse: Warehouse, table: TableRecord, snapshot_id: int) -> None:
    """Write the number of the latest snapshot, which says where a search may begin."""
    snapshots = SnapshotStore(warehouse.files, table.layout)
    with suppress(StorageError):
        snapshots.write_latest_hint(snapshot_id)
        if snapshot_id == 1:
            snapshots.write_first_hint()
