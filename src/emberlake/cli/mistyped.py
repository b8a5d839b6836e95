"""What is said about a command or an option that does not exist."""

import re
from collections.abc import Collection
from typing import Final

from emberlake.base.peer_names import OF_COMMANDS, OF_OPTIONS

_COMMAND: Final = re.compile(r"No such command '(?P<name>\S+?)'")
_OPTION: Final = re.compile(r"No such option: (?P<name>[^\s=]+)")


def with_answer(text: str, program: str, path: str, options: Collection[str]) -> str:
    """A message of Typer, with what another program's word is called here, if it is one.

    Typer only knows which names are spelled alike: for ``restore`` it would offer ``report``.

    Args:
        text: What Typer says.
        program: The name of this program.
        path: The command before the unknown word: the program, and perhaps a group of it.
        options: The options of that command.
    """
    if found := _COMMAND.match(text):
        answer = OF_COMMANDS.get(found["name"], "")
        if answer and f"{program} {answer}".startswith(path):
            return f"{found[0]}: use {program} {answer}"
    if found := _OPTION.match(text):
        names = OF_OPTIONS.get(found["name"], ())
        meant = [name for name in names if name.partition(" ")[0] in options]
        if meant:
            return f"{found[0]}: use {meant[0]}"
    return text
