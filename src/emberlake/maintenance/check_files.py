"""Check the data and index files of a snapshot: are they there, whole, and as described?"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from emberlake.formats import format_of, open_reader
from emberlake.maintenance.check_report import DAMAGE, Finding, Problem, ProblemKind, damage
from emberlake.maintenance.check_rows import row_checks, stored_fields
from emberlake.maintenance.holders import stored_name
from emberlake.merge.order import KeyBound
from emberlake.scan.runs import KeyRange, key_ranges
from emberlake.spec.binary_row import CorruptRow
from emberlake.spec.deletion_vector import (
    CorruptDeletionVector,
    decode_deletion_vector,
    deletion_vector_extent,
)
from emberlake.spec.key_value import key_fields
from emberlake.spec.manifest import (
    DELETION_VECTORS_INDEX,
    HASH_INDEX,
    DeletionVectorRange,
    IndexManifestEntry,
    ManifestEntry,
)
from emberlake.store.entries import ManifestEntries
from emberlake.store.table_store import TableStore

_BATCH_ROWS: Final = 65_536
_HASH_BYTES: Final = 4

_LevelFile: TypeAlias = tuple[tuple[int, int, int], KeyRange, str]


# --- data files -----------------------------------------------------------------------------------


def check_data_file(store: TableStore, entry: ManifestEntry, *, read_data: bool) -> Finding:
    """Check one data file, and read all of its rows if asked to."""
    file = entry.file
    path = file.file_name
    problems: list[Problem] = []
    try:
        path = data_path(store, entry)
        size = store.storage.size(path)
        is_whole = path.endswith(file.file_name)  # rather than a part of a file
        if is_whole and size != file.file_size:
            detail = f"it has {size} bytes, but {file.file_size} were written"
            problems.append(Problem(ProblemKind.CORRUPT, path, detail))
        elif read_data:
            details = _read_file(store, path, entry)
            problems += [Problem(ProblemKind.INCONSISTENT, path, detail) for detail in details]
        for extra in file.extra_files:
            extra_path = store.layout.extra_file(path, extra)
            if not store.storage.exists(extra_path):
                detail = f"it belongs to {file.file_name}"
                problems.append(Problem(ProblemKind.MISSING, extra_path, detail))
    except DAMAGE as error:
        problems.append(damage(path, error))
    return Finding(tuple(problems), 1, file.row_count, file.file_size)


def data_path(store: TableStore, entry: ManifestEntry) -> str:
    """Where a data file or a changelog file is stored."""
    bucket, name = stored_name(entry.file.file_name)
    if bucket is None:
        return store.data_file_path(entry.partition, entry.bucket, entry.file)
    return f"{store.bucket_folder(entry.partition, bucket)}/{name}"


def _read_file(store: TableStore, path: str, entry: ManifestEntry) -> list[str]:
    """Read every row and report where the file disagrees with its manifest."""
    schema = store.schemas.load(entry.file.schema_id)
    try:
        checks = [*row_checks(schema, entry, store.partition_values(entry.partition))]
    except CorruptRow as error:
        return [f"its manifest has keys or statistics that cannot be decoded: {error}"]
    fields = stored_fields(schema, entry.file)
    size = entry.file.file_size
    with open_reader(
        store.storage, path, fields, format_of(path), size, verifies_pages=True
    ) as reader:
        # On one thread: several files are read at a time.
        for _, batch in reader.read(fields, None, _BATCH_ROWS, False):
            if batch.num_rows:
                rows = pa.Table.from_batches([batch])
                for check in checks:
                    check.update(rows)
    return [detail for check in checks for detail in check.problems()]


def check_levels(store: TableStore, live: ManifestEntries) -> Iterator[Problem]:
    """Files of one level above 0 whose key ranges overlap, which readers rule out."""
    chosen = np.flatnonzero((live.level > 0) & (live.bucket >= 0))
    if not store.schema.profile.has_keys or not len(chosen):
        return
    entries = live.take(chosen)
    types = [f.type for f in key_fields(store.schema)]
    try:
        ranges = key_ranges(types, entries.min_key, entries.max_key)
    except (CorruptRow, ValueError) as error:
        detail = f"keys in it cannot be decoded: {error}"
        yield Problem(ProblemKind.CORRUPT, store.layout.manifest_folder, detail)
        return
    places = zip(
        entries.partition_codes.tolist(),
        entries.bucket.tolist(),
        entries.level.tolist(),
        strict=True,
    )
    files = sorted(zip(places, ranges, entries.file_name.to_pylist(), strict=True))
    for (code, bucket, level), of_level in groupby(files, key=itemgetter(0)):
        yield from _check_level(store, entries.partitions[code], bucket, level, of_level)


def _check_level(
    store: TableStore, partition: bytes, bucket: int, level: int, files: Iterable[_LevelFile]
) -> Iterator[Problem]:
    """The overlapping files of a level, given in the order of their smallest keys."""
    reaching: tuple[KeyBound, str] | None = None  # the largest key so far, and its file
    for _, (least, greatest), name in files:
        if reaching is not None and least <= reaching[0]:
            path = f"{store.bucket_folder(partition, bucket)}/{name}"
            detail = f"it shares keys with {reaching[1]} on level {level}"
            yield Problem(ProblemKind.OVERLAPPING, path, detail)
        if reaching is None or greatest > reaching[0]:
            reaching = greatest, name


# --- index files ----------------------------------------------------------------------------------


def check_index_file(
    store: TableStore,
    entry: IndexManifestEntry,
    row_counts: Mapping[tuple[bytes, int, str], int] | None,
) -> Finding:
    """Check one index file, and read it if the row counts of the live data files are given."""
    file = entry.index_file
    path = file.file_name
    problems: list[Problem] = []
    try:
        path = store.index_file_path(entry.partition, entry.bucket, file)
        size = store.storage.size(path)
        if size != file.file_size:
            detail = f"it has {size} bytes, but {file.file_size} were written"
            problems.append(Problem(ProblemKind.CORRUPT, path, detail))
        elif file.index_type == HASH_INDEX and size != _HASH_BYTES * file.row_count:
            detail = f"{size} bytes are not {file.row_count} hashes"
            problems.append(Problem(ProblemKind.INCONSISTENT, path, detail))
        elif file.index_type == DELETION_VECTORS_INDEX and row_counts is not None:
            for vector in file.deletion_vectors or ():
                rows = row_counts.get((entry.partition, entry.bucket, vector.data_file_name))
                problems += _check_vector(store, path, vector, rows)
    except DAMAGE as error:
        problems.append(damage(path, error))
    return Finding(tuple(problems), 1, 0, file.file_size)


def _check_vector(
    store: TableStore, path: str, vector: DeletionVectorRange, row_count: int | None
) -> Iterator[Problem]:
    about = f"the deletion vector of {vector.data_file_name}"
    offset, length = deletion_vector_extent(vector)
    try:
        raw = store.storage.read_range(path, offset, length)
        found = decode_deletion_vector(raw, vector.length)
    except CorruptDeletionVector as error:
        yield Problem(ProblemKind.CORRUPT, path, f"{about}: {error}")
        return
    if row_count is None:
        detail = f"{about} is for a file that the snapshot does not have"
        yield Problem(ProblemKind.INCONSISTENT, path, detail)
    elif found and found.max() >= row_count:
        detail = f"{about} deletes row {found.max()} of {row_count}"
        yield Problem(ProblemKind.INCONSISTENT, path, detail)
    if vector.cardinality is not None and vector.cardinality != len(found):
        detail = f"{about} deletes {len(found)} rows, its manifest says {vector.cardinality}"
        yield Problem(ProblemKind.INCONSISTENT, path, detail)
