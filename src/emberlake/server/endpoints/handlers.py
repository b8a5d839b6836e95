"""Which function answers which endpoint."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from emberlake.rest.paths import Endpoint
from emberlake.server.calls import Call, Refused, Services
from emberlake.server.endpoints import (
    databases,
    objects,
    partitions,
    permissions,
    query_auth,
    snapshots,
    tables,
    tokens,
    versions,
)

Answer = Mapping[str, Any] | bytes | None
Handler = Callable[[Services, Call], Answer]


def _later(services: Services, call: Call) -> None:
    del services, call
    raise Refused(501, "this server does not replace tables; drop the table and create it again")


HANDLERS: Final[Mapping[Endpoint, Handler]] = {
    Endpoint.LIST_DATABASES: databases.list_databases,
    Endpoint.CREATE_DATABASE: databases.create_database,
    Endpoint.GET_DATABASE: databases.get_database,
    Endpoint.ALTER_DATABASE: databases.alter_database,
    Endpoint.DROP_DATABASE: databases.drop_database,
    Endpoint.LIST_TABLES: tables.list_tables,
    Endpoint.CREATE_TABLE: tables.create_table,
    Endpoint.LIST_TABLE_DETAILS: tables.list_table_details,
    Endpoint.REGISTER_TABLE: tables.register_table,
    Endpoint.LIST_TABLES_GLOBALLY: tables.list_tables_globally,
    Endpoint.GET_TABLE_BY_ID: tables.get_table_by_id,
    Endpoint.RENAME_TABLE: tables.rename_table,
    Endpoint.GET_TABLE: tables.get_table,
    Endpoint.ALTER_TABLE: tables.alter_table,
    Endpoint.DROP_TABLE: tables.drop_table,
    Endpoint.REPLACE_TABLE: _later,
    Endpoint.COMMIT: snapshots.commit,
    Endpoint.GET_SNAPSHOT: snapshots.get_snapshot,
    Endpoint.LIST_SNAPSHOTS: snapshots.list_snapshots,
    Endpoint.GET_SNAPSHOT_VERSION: snapshots.get_snapshot_version,
    Endpoint.ROLLBACK: snapshots.rollback,
    Endpoint.ROLLBACK_SCHEMA: snapshots.rollback_schema,
    Endpoint.GET_TOKEN: tokens.get_token,
    Endpoint.AUTHORIZE: query_auth.authorize,
    Endpoint.LIST_PARTITIONS: partitions.list_partitions,
    Endpoint.CREATE_PARTITIONS: partitions.refuse_registration,
    Endpoint.DROP_PARTITIONS: partitions.refuse_registration,
    Endpoint.MARK_PARTITIONS_DONE: partitions.mark_partitions_done,
    Endpoint.LIST_PARTITIONS_BY_NAMES: partitions.list_partitions_by_names,
    Endpoint.LIST_PARTITIONS_BY_FILTER: partitions.list_partitions_by_filter,
    Endpoint.LIST_BRANCHES: versions.list_branches,
    Endpoint.CREATE_BRANCH: versions.create_branch,
    Endpoint.DROP_BRANCH: versions.drop_branch,
    Endpoint.FORWARD_BRANCH: versions.forward_branch,
    Endpoint.RENAME_BRANCH: versions.rename_branch,
    Endpoint.LIST_TAGS: versions.list_tags,
    Endpoint.CREATE_TAG: versions.create_tag,
    Endpoint.GET_TAG: versions.get_tag,
    Endpoint.DELETE_TAG: versions.delete_tag,
    Endpoint.LIST_CONSUMERS: versions.list_consumers,
    Endpoint.RESET_CONSUMER: versions.reset_consumer,
    Endpoint.LIST_VIEWS: objects.list_views,
    Endpoint.CREATE_VIEW: objects.create_view,
    Endpoint.LIST_VIEW_DETAILS: objects.list_view_details,
    Endpoint.LIST_VIEWS_GLOBALLY: objects.list_views_globally,
    Endpoint.GET_VIEW: objects.get_view,
    Endpoint.ALTER_VIEW: objects.alter_view,
    Endpoint.DROP_VIEW: objects.drop_view,
    Endpoint.RENAME_VIEW: objects.rename_view,
    Endpoint.LIST_FUNCTIONS: objects.list_functions,
    Endpoint.CREATE_FUNCTION: objects.create_function,
    Endpoint.LIST_FUNCTION_DETAILS: objects.list_function_details,
    Endpoint.LIST_FUNCTIONS_GLOBALLY: objects.list_functions_globally,
    Endpoint.GET_FUNCTION: objects.get_function,
    Endpoint.ALTER_FUNCTION: objects.alter_function,
    Endpoint.DROP_FUNCTION: objects.drop_function,
    Endpoint.LIST_PERMISSIONS: permissions.list_permissions,
    Endpoint.GRANT_PERMISSION: permissions.grant_permission,
    Endpoint.REVOKE_PERMISSION: permissions.revoke_permission,
}
