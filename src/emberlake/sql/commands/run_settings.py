"""Carry out SET and RESET."""

import pyarrow as pa

from emberlake.sql.commands.answers import texts_of
from emberlake.sql.commands.context import Session
from emberlake.sql.commands.values import ResetOption, SetOption


def set_option(command: SetOption, session: Session) -> pa.Table:
    """Carry out SET."""
    if command.value is not None:
        session.engine.set_setting(command.key, command.value)
        return texts_of(("key", "value"), [(command.key, command.value)])
    value = session.engine.settings().get(command.key, "<undefined>")
    return texts_of(("key", "value"), [(command.key, value)])


def reset_option(command: ResetOption, session: Session) -> None:
    """Carry out RESET."""
    session.engine.reset_setting(command.key)
