"""The byte form of splits: how a plan reaches the workers that read it.

A split is one value of ``byte_form``, so that a worker decodes only its own split. The predicate of
the plan is the same for all of its splits and is not repeated in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from emberlake.errors import InvalidInput
from emberlake.predicates import Predicate
from emberlake.scan.splits import DataSplit, DeletionFile
from emberlake.spec.manifest import DataFile, FileKind, ManifestEntry
from emberlake.store.entries import EMPTY, ManifestEntries
from emberlake.wire.byte_form import ByteForm


def split_to_bytes(split: DataSplit) -> bytes:
    """The byte form of a split, without the predicate that it was planned with."""
    form = _FORM_OF_GROUPS if split.is_grouped else _FORM
    return form.encode(
        _SplitForm(
            state=_state(split), before=None if split.before is None else _state(split.before)
        )
    )


def split_from_bytes(raw: bytes, predicate: Predicate | None) -> DataSplit:
    """Decode a split that was planned with the given predicate.

    The earlier state of a comparison comes without a predicate: it is read like the later one.

    Raises:
        InvalidInput: the bytes are not a split.
        Unsupported: their version is unknown to this release.
    """
    is_grouped = raw[4:5] == bytes([_FORM_OF_GROUPS.version])
    form = (_FORM_OF_GROUPS if is_grouped else _FORM).decode(raw)
    try:
        before = None if form.before is None else _split(form.before, None, None)
        return _split(form.state, predicate, before)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"these bytes are not a {_FORM.name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    file: DataFile
    total_buckets: int
    kind: FileKind = FileKind.ADD
    is_exact: bool = False
    deletions: DeletionFile | None = None
    rows: tuple[int, ...] | None = None  # if only some are read: the first, the one after the last


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    snapshot_id: int
    partition: bytes
    bucket: int
    files: tuple[_File, ...] = ()
    raw_convertible: bool = True
    is_changes: bool = False
    is_grouped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _SplitForm:
    state: _State
    before: _State | None = None


_FORM: Final = ByteForm(_SplitForm, b"EMBS", 1, "split")
# Earlier releases would read files that lie side by side one after the other.
_FORM_OF_GROUPS: Final = ByteForm(_SplitForm, b"EMBS", 2, "split")


def _state(split: DataSplit) -> _State:
    return _State(
        snapshot_id=split.snapshot_id,
        partition=split.partition,
        bucket=split.bucket,
        files=tuple(_files(split)),
        raw_convertible=split.raw_convertible,
        is_changes=split.is_changes,
        is_grouped=split.is_grouped,
    )


def _files(split: DataSplit) -> Iterator[_File]:
    for entry, is_exact in zip(split.entries.entries(), split.is_exact, strict=True):
        yield _File(
            file=entry.file,
            total_buckets=entry.total_buckets,
            kind=entry.kind,
            is_exact=is_exact,
            deletions=split.deletion_files.get(entry.file.file_name),
            rows=split.ranges.get(entry.file.file_name),
        )


def _split(state: _State, predicate: Predicate | None, before: DataSplit | None) -> DataSplit:
    entries = [
        ManifestEntry(
            kind=item.kind,
            partition=state.partition,
            bucket=state.bucket,
            total_buckets=item.total_buckets,
            file=item.file,
        )
        for item in state.files
    ]
    return DataSplit(
        state.snapshot_id,
        state.partition,
        state.bucket,
        ManifestEntries.from_entries(entries) if entries else EMPTY,
        predicate,
        tuple(item.is_exact for item in state.files),
        {i.file.file_name: i.deletions for i in state.files if i.deletions is not None},
        state.raw_convertible,
        state.is_changes,
        before,
        {i.file.file_name: _range(i.rows) for i in state.files if i.rows is not None},
        state.is_grouped,
    )


def _range(rows: tuple[int, ...]) -> tuple[int, int]:
    start, stop = rows
    return start, stop
