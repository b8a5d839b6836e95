"""The consumer files of a table: how far readers of its changes have got. Spec: "Consumer"."""

import json

from emberlake.errors import CorruptFile, FileNotFound, InvalidInput
from emberlake.io.storage import Storage
from emberlake.spec.layout import CONSUMER_PREFIX, TableLayout


class ConsumerStore:
    """Loads and saves what consumers read next; snapshots from there on are not expired."""

    def __init__(self, storage: Storage, layout: TableLayout) -> None:
        self._storage = storage
        self._layout = layout

    def next_snapshot(self, consumer_id: str) -> int | None:
        """The snapshot that a consumer reads next; None for an unknown consumer."""
        path = self._layout.consumer(_checked(consumer_id))
        try:
            return int(json.loads(self._storage.read(path))["nextSnapshot"])
        except FileNotFound:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(path, f"it is not a consumer: {error}") from error

    def earliest_next(self) -> int | None:
        """The first snapshot that any consumer has yet to read; None without consumers."""
        found = map(self.next_snapshot, self.list())
        return min((number for number in found if number is not None), default=None)

    def list(self) -> list[str]:
        """The ids of all consumers, sorted."""
        return sorted(
            info.name.removeprefix(CONSUMER_PREFIX)
            for info in self._storage.list(self._layout.consumer_folder)
            if info.name.startswith(CONSUMER_PREFIX) and not info.is_folder
        )

    def delete(self, consumer_id: str) -> None:
        """Forget a consumer; the snapshots that it would have read may expire."""
        self._storage.delete(self._layout.consumer(_checked(consumer_id)))

    def save(self, consumer_id: str, next_snapshot: int) -> None:
        """Record what a consumer reads next."""
        text = json.dumps({"nextSnapshot": next_snapshot})
        self._storage.put(self._layout.consumer(_checked(consumer_id)), text.encode())


def _checked(consumer_id: str) -> str:
    if not consumer_id or "/" in consumer_id:
        raise InvalidInput(f"{consumer_id!r} is not a consumer id: it must fit in a file name")
    return consumer_id
