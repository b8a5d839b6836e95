"""Reads of tables whose catalog decides who sees which rows (``query-auth.enabled``).

The server is asked before every read: ``authorized`` gives the table under the rules for it. What
needs all rows as they are, because it would otherwise lose or change those that it does not see,
goes through ``seeing_all``. Whatever forgets to ask is refused by the table (``TableStore.rules``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from emberlake.base.lazy import LazyModule
from emberlake.base.names import listed
from emberlake.errors import Unsupported
from emberlake.options import QUERY_AUTH
from emberlake.predicates import ALL_SHOWN
from emberlake.read.table_reader import TableReader
from emberlake.rest.query_auth import QueryAuth
from emberlake.spec.identifier import MAIN_BRANCH, Identifier
from emberlake.store.table_store import TableStore

if TYPE_CHECKING:
    from emberlake.expressions import server_rules
else:
    server_rules = LazyModule("emberlake.expressions.server_rules")  # few tables have any


def authorized(store: TableStore, columns: Iterable[str]) -> TableStore:
    """The table for one read of some columns, under the rules that its server has for the reader.

    Raises:
        NoPermission: the columns may not be read.
        Unsupported: a rule cannot be obeyed, or the table was opened without its server.
    """
    if not store.is_guarded:
        return store
    wanted = frozenset(columns)
    names = [name for name in store.schema.field_names if name in wanted]
    return store.under(server_rules.rules_of(_ask(store, names or store.schema.field_names), store))


def authorized_reader(reader: TableReader) -> TableReader:
    """A reader for one read, under the rules that its server has by now."""
    return replace(reader, store=authorized(reader.store, reader.columns))


def seeing_all(store: TableStore, doing: str, columns: Sequence[str] | None = None) -> TableStore:
    """The table for something that needs all its rows as they are stored.

    Args:
        store: The table.
        doing: What is refused otherwise: ``"compacted"``.
        columns: The columns that it needs; None: all of them.

    Raises:
        NoPermission: some columns may not be read.
        Unsupported: rows are hidden from this user, or values masked.
    """
    if not store.is_guarded:
        return store
    answer = _ask(store, columns or store.schema.field_names)
    if answer.restricts:
        masked = f" and masks {listed(sorted(answer.masks))}" if answer.masks else ""
        hidden = "hides rows" if answer.filters else "hides no rows"
        raise Unsupported(
            f"{store.identity.identifier} cannot be {doing}: the server of its catalog {hidden}"
            f"{masked} for you ({QUERY_AUTH.key}), and this needs all rows as they are; somebody "
            "who may see them has to do it"
        )
    return store.under(ALL_SHOWN)


def _ask(store: TableStore, columns: Sequence[str]) -> QueryAuth:
    store.check_served()
    assert store.access is not None
    own, branch = store.identity.identifier, store.layout.branch
    named = Identifier(own.database, own.table, None if branch == MAIN_BRANCH else branch)
    return store.access.ask(named, columns)
