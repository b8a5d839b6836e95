"""Statements of Delta Lake, which are answered by the statement that does it here."""

from typing import NoReturn

from emberlake.base.peer_names import OF_STATEMENTS
from emberlake.errors import Unsupported
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.values import OfPeer
from emberlake.sql.cursor import Cursor
from emberlake.sql.names import TableName


def parse_peer(cursor: Cursor, words: str) -> OfPeer | None:
    """After the words: the table. None if no name comes next, as in ``DESCRIBE history``."""
    cursor.take("TABLE")
    return OfPeer(words, cursor.table()) if cursor.token.is_name else None


def answer_peer(command: OfPeer, session: Session) -> NoReturn:
    """Say which statement to use.

    Raises:
        TableNotFound: there is no such table.
        Unsupported: always else.
    """
    session.table(command.table)
    parts = command.table.parts
    system = {
        name: TableName((*parts[:-1], f"{parts[-1]}${name}")) for name in ("snapshots", "files")
    }
    table = ".".join(parts)
    answer = OF_STATEMENTS[command.words].format(table=table, **system)
    raise Unsupported(f"{command.words} is a statement of Delta Lake; here it is {answer}")
