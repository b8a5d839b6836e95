"""Change the deletion vectors of a bucket during compaction: mark rows, drop vectors of old files.

Spec: "Deletion vectors", "Ownership". Index files are immutable: to change one vector, all vectors
of its file are written again, to other files.
"""

from collections.abc import Iterable, Iterator

from pyroaring import BitMap, BitMap64

from emberlake.compaction.bucket import Bucket, VectorChange
from emberlake.options import DELETION_VECTORS_BITMAP64
from emberlake.spec.column_buffers import I64
from emberlake.spec.deletion_vector import DeletionVector
from emberlake.spec.manifest import IndexFile
from emberlake.store.vector_files import pack_vectors


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
        for file, path, raw in pack_vectors(store, bucket.partition, bucket.number, vectors):
            store.storage.put_if_absent(path, raw)
            yield file


def _names(file: IndexFile) -> set[str]:
    return {place.data_file_name for place in file.deletion_vectors or ()}
