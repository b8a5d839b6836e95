"""CALL sys.…: procedures with the names, arguments and answers of Java's connector."""

from typing import Final

import pyarrow as pa

from emberlake.base.names import did_you_mean
from emberlake.errors import Unsupported
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.procedures.arguments import Procedure, bind
from emberlake.sql.commands.procedures.copying import COPYING
from emberlake.sql.commands.procedures.maintenance import MAINTENANCE
from emberlake.sql.commands.procedures.partitions import PARTITIONS
from emberlake.sql.commands.procedures.versions import VERSIONS
from emberlake.sql.commands.values import Call

PROCEDURES: Final[dict[str, Procedure]] = {
    procedure.name: procedure
    for procedure in sorted((*VERSIONS, *MAINTENANCE, *PARTITIONS, *COPYING), key=lambda p: p.name)
}
_SCHEMA: Final = "sys"
_INSTEAD: Final = {
    "migrate_table": "CREATE TABLE ... AS SELECT ..., or emberlake ingest",
    "migrate_database": "CREATE TABLE ... AS SELECT ..., or emberlake ingest",
    "repair": "a filesystem catalog finds tables by their folders; table.check() looks for damage",
    "repair_earliest_snapshot": "the hint EARLIEST is only trusted if its snapshot exists",
    "merge_branch": "sys.fast_forward, or INSERT INTO ... SELECT ... of db.`t$branch_b`",
    "create_global_index": "there are no global indexes",
    "drop_global_index": "there are no global indexes",
    "materialize_deletion_vectors": "sys.compact, which drops deleted rows",
}


def call_procedure(command: Call, session: Session) -> pa.Table:
    """Carry out CALL.

    Raises:
        Unsupported: there is no such procedure; the message says what there is.
        InvalidInput: its arguments do not fit.
    """
    procedure = _find(command, session)
    return procedure.run(session, bind(procedure, command))


def _find(command: Call, session: Session) -> Procedure:
    *catalog, schema, name = ("", *command.name)[-3:] if len(command.name) < 3 else command.name
    is_ours = schema.lower() == _SCHEMA and [c.lower() for c in catalog if c] in (
        [],
        [session.name.lower()],
    )
    procedure = PROCEDURES.get(name.lower()) if is_ours else None
    if procedure is not None:
        return procedure
    shown = ".".join(command.name)
    if is_ours and name.lower() in _INSTEAD:
        raise Unsupported(f"CALL {shown} is not supported; {_INSTEAD[name.lower()]}")
    raise Unsupported(
        f"there is no procedure {shown}; there are, in {_SCHEMA}: {', '.join(PROCEDURES)}"
        + did_you_mean([name.lower()], list(PROCEDURES), before="; ")
    )
