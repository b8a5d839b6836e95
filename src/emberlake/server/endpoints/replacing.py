"""Replace a table: other columns and options, and no rows. Earlier snapshots stay readable."""

from dataclasses import replace

from emberlake.catalog import rules
from emberlake.rest.reading import Fields
from emberlake.rest.values import schema_from_json
from emberlake.server.access.grants import Access, Resource, ResourceKind
from emberlake.server.calls import Call, Services
from emberlake.server.endpoints.creation import without_path
from emberlake.server.endpoints.shown_options import refuse_secrets
from emberlake.server.heads import table_missing
from emberlake.spec.identifier import Identifier
from emberlake.store.schemas import SchemaStore
from emberlake.table import Table


def replace_table(services: Services, call: Call) -> None:
    """Empty a table, and then publish the next schema, which shares nothing with the last."""
    identifier = rules.plain_table(
        Identifier(call.names["database"], call.names["table"]), "replaced"
    )
    resource = Resource(ResourceKind.TABLE, identifier.database, identifier.table)
    call.check(call.principal.may(Access.UPDATE, resource), resource)  # the rows go, too
    schema = Fields(call.body, "the request").read("schema", schema_from_json)
    refuse_secrets(schema.options)
    first = rules.first_schema(
        identifier,
        without_path(schema),
        call.warehouse.options,
        services.env.now_ms(),
        for_others=True,
    )
    found = services.heads.find(call.warehouse, identifier.database, identifier.table)
    with services.heads.locked(call.warehouse, found) as table:
        schemas = SchemaStore(call.warehouse.files, table.layout)

        def attempt() -> bool:
            newest = schemas.latest()
            if newest is None:
                raise table_missing(table.database, table.object_name)
            rules.check_replaceable(identifier, newest, first)
            # In this order: no reader meets rows of the old columns under the new ones.
            if table.snapshot_id is not None:
                old = Table(identifier, call.warehouse.files, table.layout, newest, services.env)
                old.new_batch_write_builder().new_commit().truncate_table()
            return schemas.create(replace(first, id=newest.id + 1))

        services.heads.mark_pending(table)
        try:
            rules.alter_until_published(identifier, attempt)
        finally:
            services.heads.reread(call.warehouse, table)
