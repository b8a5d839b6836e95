"""One request for every endpoint, against a server whose database ``db`` has a table ``t``."""

from catalog_server import SCHEMA, snapshot
from emberlake.rest.paths import Endpoint

E = Endpoint
NAMES = {
    "database": "db",
    "table": "t",
    "id": "none",
    "version": "LATEST",
    "branch": "b",
    "tag": "a",
    "view": "v",
    "function": "f",
}
_VIEW = {"fields": [], "query": "SELECT 1", "dialects": {}, "comment": None, "options": {}}
_ASSIGNMENT = {
    "resource": {"type": "TABLE", "database": "db", "table": "t"},
    "access": "SELECT",
    "principal": "somebody",
}
BODIES: dict[Endpoint, object] = {
    E.CREATE_DATABASE: {"name": "new", "options": {}},
    E.ALTER_DATABASE: {"removals": [], "updates": {"a": "b"}},
    E.CREATE_TABLE: {"identifier": {"database": "db", "object": "new"}, "schema": SCHEMA},
    E.REGISTER_TABLE: {"identifier": {"database": "db", "object": "reg"}, "path": "/nowhere"},
    E.RENAME_TABLE: {
        "source": {"database": "db", "object": "t"},
        "destination": {"database": "db", "object": "renamed"},
    },
    E.ALTER_TABLE: {"changes": [{"action": "updateComment", "comment": "x"}]},
    E.REPLACE_TABLE: {"schema": SCHEMA},
    E.COMMIT: {"tableId": None, "snapshot": snapshot(2), "statistics": []},
    E.ROLLBACK: {"instant": {"type": "snapshot", "snapshotId": 1}},
    E.ROLLBACK_SCHEMA: {"schemaId": 0},
    E.AUTHORIZE: {"select": ["k"]},
    E.CREATE_PARTITIONS: {"partitionSpecs": []},
    E.DROP_PARTITIONS: {"partitionSpecs": []},
    E.MARK_PARTITIONS_DONE: {"specs": []},
    E.LIST_PARTITIONS_BY_NAMES: {"specs": []},
    E.LIST_PARTITIONS_BY_FILTER: {"filter": None},
    E.CREATE_BRANCH: {"branch": "new", "fromTag": None},
    E.FORWARD_BRANCH: {},
    E.RENAME_BRANCH: {"toBranch": "c"},
    E.CREATE_TAG: {"tagName": "new", "snapshotId": None, "timeRetained": None},
    E.RESET_CONSUMER: {"consumerId": "c", "nextSnapshotId": 1},
    E.CREATE_VIEW: {"identifier": {"database": "db", "object": "new"}, "schema": _VIEW},
    E.ALTER_VIEW: {"changes": [{"action": "updateComment", "comment": "x"}]},
    E.RENAME_VIEW: {
        "source": {"database": "db", "object": "v"},
        "destination": {"database": "db", "object": "w"},
    },
    E.CREATE_FUNCTION: {"name": "new", "definitions": {}},
    E.ALTER_FUNCTION: {"changes": [{"action": "updateComment", "comment": "x"}]},
    E.GRANT_PERMISSION: _ASSIGNMENT,
    E.REVOKE_PERMISSION: _ASSIGNMENT,
}
TABLE_BODY = {"identifier": {"database": "db", "object": "t"}, "schema": SCHEMA}
VIEW_BODY = {"identifier": {"database": "db", "object": "v"}, "schema": _VIEW}
FUNCTION_BODY = {"name": "f", "definitions": {}}


def path_of_request(endpoint: Endpoint, **names: str) -> str:
    """The path of an endpoint below the prefix; names are given as they are sent."""
    filled = {**NAMES, **names}
    parts = [filled[part[1:-1]] if part.startswith("{") else part for part in endpoint.segments]
    return "/" + "/".join(parts)
