"""Change the deletion vectors of a bucket during compaction: mark rows, drop vectors of old files.

Spec: "Deletion vectors", "Ownership". Index files are immutable: to change one vector, all vectors
of its file are written again, to other files.
"""

from collections.abc import Iterable, Iterator

from pyroaring import BitMap, BitMap64

from emberlake.compaction.bucket import Bucket, VectorChange
from emberlake.options import DELETION_VECTORS_BITMAP64, VECTOR_FILE_SIZE
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import (
    DeletionVector,
    encode_deletion_vector,
    encode_deletion_vectors,
)
from emberlake.spec.manifest import DELETION_VECTORS_INDEX, IndexFile


class BucketVectors:
    """Collects changes of the deletion vectors of one bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._bitmap64 = bucket.store.options.value(DELETION_VECTORS_BITMAP64)
        self._marked: dict[str, DeletionVector] = {}
        self._dropped: set[str] = set()

    def mark(self, file_name: str, positions: I64) -> None:
        """Mark rows of a file as deleted."""
        if not len(positions):
            return
        if file_name not in self._marked:
            self._marked[file_name] = self._present(file_name)
        self._marked[file_name].update(positions.tolist())

    def drop(self, file_names: Iterable[str]) -> None:
        """Drop the vectors of files that leave the table."""
        self._dropped.update(file_names)

    def write(self) -> VectorChange:
        """Write the index files that have to change."""
        bucket = self._bucket
        changed = self._dropped | self._marked.keys()
        stale = [file for file in bucket.vector_files if _names(file) & changed]
        if self._is_single and (stale or self._marked):
            stale = list(bucket.vector_files)
        names = dict.fromkeys(name for file in stale for name in sorted(_names(file)))
        names |= dict.fromkeys(self._marked)
        vectors = {
            name: self._marked.get(name) or bucket.load_vector(name)
            for name in names
            if name not in self._dropped
        }
        return VectorChange(tuple(self._write(vectors)), tuple(stale))

    @property
    def _is_single(self) -> bool:
        """Whether the bucket has one index file; append tables without buckets have several."""
        return self._bucket.store.schema.profile.has_buckets

    def _present(self, file_name: str) -> DeletionVector:
        if file_name in self._bucket.deletion_files:
            return self._bucket.load_vector(file_name)
        return BitMap64() if self._bitmap64 else BitMap()

    def _write(self, vectors: dict[str, DeletionVector]) -> Iterator[IndexFile]:
        store, bucket = self._bucket.store, self._bucket
        writer_id = store.env.new_id()
        for number, part in enumerate(self._parts(vectors)):
            raw, ranges = encode_deletion_vectors(part, bitmap64=self._bitmap64)
            file = IndexFile(
                index_type=DELETION_VECTORS_INDEX,
                file_name=f"index-{writer_id}-{number}",
                file_size=len(raw),
                row_count=len(part),
                deletion_vectors=ranges,
            )
            file = store.placed_index(bucket.partition, bucket.number, file)
            path = store.index_file_path(bucket.partition, bucket.number, file)
            store.storage.put_if_absent(path, raw)
            yield file

    def _parts(self, vectors: dict[str, DeletionVector]) -> Iterator[dict[str, DeletionVector]]:
        """Groups of vectors, one for each index file."""
        if self._is_single:
            if vectors:
                yield vectors
            return
        part: dict[str, DeletionVector] = {}
        size = 0
        for name, vector in vectors.items():
            part[name] = vector
            size += len(encode_deletion_vector(vector, bitmap64=self._bitmap64))
            if size >= self._bucket.store.options.value(VECTOR_FILE_SIZE):
                yield part
                part, size = {}, 0
        if part:
            yield part


def _names(file: IndexFile) -> set[str]:
    return {place.data_file_name for place in file.deletion_vectors or ()}
