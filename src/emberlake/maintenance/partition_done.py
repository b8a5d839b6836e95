"""Mark partitions as done: a file ``_SUCCESS`` in their folders, for readers that wait for it."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from emberlake.errors import FileNotFound, Unsupported
from emberlake.options import PARTITION_DONE_ACTION
from emberlake.spec.partition import escape_path_name
from emberlake.store.table_store import TableStore

SUCCESS_FILE: Final = "_SUCCESS"


def mark_done(store: TableStore, partitions: Sequence[Mapping[str, str]]) -> None:
    """Write the mark of each partition; an existing mark keeps its creation time.

    Raises:
        Unsupported: the table asks for other marks.
    """
    action = store.options.value(PARTITION_DONE_ACTION)
    if action.strip() != PARTITION_DONE_ACTION.default:
        raise Unsupported(
            f"{PARTITION_DONE_ACTION.key}={action}: emberlake only writes the file {SUCCESS_FILE}"
        )
    now = store.env.now_ms()
    for spec in partitions:
        folder = "/".join(f"{escape_path_name(k)}={escape_path_name(v)}" for k, v in spec.items())
        path = f"{store.layout.root}/{folder}/{SUCCESS_FILE}"
        mark = {"creationTime": _created(store, path) or now, "modificationTime": now}
        store.storage.put(path, json.dumps(mark).encode())


def _created(store: TableStore, path: str) -> int | None:
    try:
        return int(json.loads(store.storage.read(path))["creationTime"])
    except (FileNotFound, ValueError, KeyError, TypeError):
        return None
