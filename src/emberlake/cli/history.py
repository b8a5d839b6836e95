"""Where the prompt keeps what was typed, except for what may be secret."""

import os
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from emberlake.base.secrets import may_be_secret


def history_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The history file, in the user's folder for program state."""
    home = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return Path(home) / "emberlake" / "sql_history"


def open_history(file: Path) -> History:
    """The history in a file; in memory only if the file cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return _Kept(str(file))


class _Kept(FileHistory):
    """A history whose file has no statement that mentions a password, a token or a key."""

    def store_string(self, string: str) -> None:
        if not may_be_secret(string) and not string.startswith(" "):
            super().store_string(string)
