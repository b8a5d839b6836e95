"""Who is asked what may be read of a table: the server of its catalog, at every read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.io.rest.api import RestApi
from emberlake.io.rest.sending import Session
from emberlake.rest.query_auth import QueryAuth
from emberlake.spec.identifier import Identifier


class RowAccess(Protocol):
    """Says what may be read of a table: a frozen value that pickles."""

    def ask(self, identifier: Identifier, columns: Sequence[str]) -> QueryAuth:
        """The rules for a read of some columns.

        Raises:
            NoPermission: they may not be read.
        """


@dataclass(frozen=True)
class RestRowAccess:
    """The server of a REST catalog."""

    session: Session
    env: Env = field(default=SYSTEM_ENV, compare=False, repr=False)

    def ask(self, identifier: Identifier, columns: Sequence[str]) -> QueryAuth:
        """The rules for a read of some columns."""
        return RestApi(self.session, self.env).authorize_query(identifier, columns)

    def __reduce__(self) -> tuple[object, ...]:
        return RestRowAccess, (self.session,)  # the clock belongs to the process
