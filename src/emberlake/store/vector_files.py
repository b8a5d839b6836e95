"""Index files with deletion vectors: read one or all vectors, pack new ones into files.

Spec: "Deletion vectors", "Ownership". Index files are immutable: to change one vector, all vectors
of its file are written again, to other files.
"""

from collections.abc import Iterator, Mapping

from emberlake.errors import CorruptFile, FileNotFound
from emberlake.io.storage import Storage
from emberlake.options import DELETION_VECTORS_BITMAP64, VECTOR_FILE_SIZE
from emberlake.spec.deletion_vector import (
    CorruptDeletionVector,
    DeletionVector,
    decode_deletion_vector,
    deletion_vector_extent,
    encode_deletion_vector,
    encode_deletion_vectors,
)
from emberlake.spec.manifest import DELETION_VECTORS_INDEX, DeletionVectorRange, IndexFile
from emberlake.store.table_store import TableStore

Vectors = Mapping[str, DeletionVector]  # by the name of the data file


def load_vector(storage: Storage, path: str, place: DeletionVectorRange) -> DeletionVector:
    """The deletion vector at a place of an index file."""
    offset, length = deletion_vector_extent(place)
    try:
        raw = storage.read_range(path, offset, length)
        return decode_deletion_vector(raw, place.length)
    except FileNotFound as error:
        raise FileNotFound(path, f"it holds deletions of {place.data_file_name}") from error
    except CorruptDeletionVector as error:
        raise CorruptFile(path, str(error)) from error


def load_vectors(store: TableStore, partition: bytes, bucket: int, file: IndexFile) -> Vectors:
    """All vectors of an index file."""
    path = store.index_file_path(partition, bucket, file)
    return {
        place.data_file_name: load_vector(store.storage, path, place)
        for place in file.deletion_vectors or ()
    }


def pack_vectors(
    store: TableStore, partition: bytes, bucket: int, vectors: Vectors
) -> Iterator[tuple[IndexFile, str, bytes]]:
    """New index files for vectors of one bucket: the description, path and bytes of each.

    A bucket with an identity has one index file; elsewhere they roll at a target size.
    """
    bitmap64 = store.options.value(DELETION_VECTORS_BITMAP64)
    writer_id = store.env.new_id()
    for number, part in enumerate(_parts(store, vectors, bitmap64=bitmap64)):
        raw, ranges = encode_deletion_vectors(part, bitmap64=bitmap64)
        file = IndexFile(
            index_type=DELETION_VECTORS_INDEX,
            file_name=f"index-{writer_id}-{number}",
            file_size=len(raw),
            row_count=len(part),
            deletion_vectors=ranges,
        )
        file = store.placed_index(partition, bucket, file)
        yield file, store.index_file_path(partition, bucket, file), raw


def _parts(store: TableStore, vectors: Vectors, *, bitmap64: bool) -> Iterator[Vectors]:
    """Groups of vectors, one for each index file."""
    if store.schema.profile.has_buckets:
        if vectors:
            yield vectors
        return
    part: dict[str, DeletionVector] = {}
    size = 0
    for name, vector in vectors.items():
        part[name] = vector
        size += len(encode_deletion_vector(vector, bitmap64=bitmap64))
        if size >= store.options.value(VECTOR_FILE_SIZE):
            yield part
            part, size = {}, 0
    if part:
        yield part
