"""Storage credentials for clients: for one table, for a time, no more than they may do."""

from collections.abc import Mapping
from typing import Final

from emberlake.base.env import Env
from emberlake.errors import Unsupported
from emberlake.server.calls import Vending
from emberlake.server.warehouses import Warehouse

_NO_END_MS: Final = 24 * 3_600_000  # of a token that has no credentials in it


class LocalVending(Vending):
    """Files of a local disk need no credentials; other storages have none to hand out here."""

    def __init__(self, env: Env) -> None:
        self._env = env

    def credentials(
        self, warehouse: Warehouse, path: str, *, writes: bool, principal: str
    ) -> tuple[Mapping[str, str], int]:
        del path, writes, principal
        if not warehouse.is_local:
            raise Unsupported(
                "this server hands out no storage credentials; configure them in the client"
            )
        return {}, self._env.now_ms() + _NO_END_MS
