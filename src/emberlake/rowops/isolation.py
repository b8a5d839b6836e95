"""Which commits of others may come between the read and the commit of an operation."""

from dataclasses import replace
from typing import Final

from emberlake.base.names import choices
from emberlake.errors import InvalidInput
from emberlake.session.write_session import WriteSession
from emberlake.spec.snapshot import CommitKind

ISOLATIONS: Final = ("snapshot", "serializable")


def isolated(session: WriteSession, isolation: str) -> WriteSession:
    """The session with a level of isolation.

    Args:
        session: The write.
        isolation: ``"snapshot"``: others may add rows meanwhile; ``"serializable"``: the operation
            is stale after any commit that changed rows.

    Raises:
        InvalidInput: there is no such level.
    """
    if isolation not in ISOLATIONS:
        raise InvalidInput(
            f"there is no isolation {isolation!r}; {choices(isolation, ISOLATIONS, 'there are')}"
        )
    if isolation == "snapshot":
        return session
    return replace(session, stale_after=frozenset({CommitKind.APPEND, CommitKind.OVERWRITE}))
