"""A schema that is published together with the first rows that need it.

The schema and the snapshot of a table are two files, so no commit makes both visible in one step.
Files are written with the id that the new schema will have. When the commit has passed all checks,
its schema is published, and then its snapshot: a write that fails earlier leaves nothing.
"""

from contextlib import suppress
from dataclasses import dataclass

from emberlake.errors import (
    ColumnAlreadyExists,
    CommitConflict,
    ConflictReason,
    InvalidSchema,
    SchemaNotFound,
)
from emberlake.spec.schema import TableSchema
from emberlake.spec.schema_change import SchemaChange
from emberlake.store.publishing import SchemaServer
from emberlake.store.schemas import SchemaStore


@dataclass(frozen=True)
class NewSchema:
    """The next schema of a table.

    Args:
        before: The schema that the table has until then.
        changes: The changes that lead to the new one.
        schema: The new one, with its id.
    """

    before: TableSchema
    changes: tuple[SchemaChange, ...]
    schema: TableSchema

    def publish(self, schemas: SchemaStore, server: SchemaServer | None) -> None:
        """Make it the schema of the table; nothing happens if it is already.

        Args:
            schemas: What is in the storage.
            server: The server that keeps the schema; None: its file is created here.

        Raises:
            CommitConflict: somebody else has changed the schema meanwhile.
        """
        latest = schemas.latest()
        if latest == self.before:
            if server is None:
                schemas.create(self.schema)
            else:
                # If somebody else was faster, the check below tells whether it is the same schema.
                with suppress(ColumnAlreadyExists, InvalidSchema):
                    server.alter(self.changes)
        if self._standing(schemas) != self.schema.fields:
            raise CommitConflict(
                ConflictReason.SCHEMA_CHANGED,
                "others changed the schema while rows with new columns were written",
                "write the rows again",
            )

    def _standing(self, schemas: SchemaStore) -> object:
        """The columns that the schema of that id has now."""
        try:
            return schemas.load(self.schema.id).fields
        except SchemaNotFound:
            return None
