"""Keys of manifests in a form that can be compared."""

from emberlake.errors import CorruptFile
from emberlake.merge.order import KeyBound, key_bound
from emberlake.spec.binary_row import CorruptRow, decode_row
from emberlake.spec.key_value import key_fields
from emberlake.store.table_store import TableStore


def stored_key_bound(store: TableStore, key: bytes) -> KeyBound:
    """The comparable form of a serialized key of the table.

    Raises:
        CorruptFile: the bytes are not a key of the table.
    """
    types = [f.type for f in key_fields(store.schema)]
    try:
        return key_bound(decode_row(types, key))
    except CorruptRow as error:
        raise CorruptFile(
            store.layout.manifest_folder, f"a key in it cannot be decoded: {error}"
        ) from error
