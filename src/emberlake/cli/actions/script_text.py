"""Where the statements of ``emberlake sql`` come from."""

import sys
from pathlib import Path

from emberlake.cli.failures import UsageError


def find_text(query: str | None, file: Path | None) -> str | None:
    """The given statements; None if a person types them at a prompt.

    Raises:
        UsageError: two of them were given, or the file cannot be read.
    """
    if query is not None and file is not None:
        raise UsageError("give a query or --file, not both")
    if query is not None:
        return query
    if file is not None and str(file) != "-":
        return read_script(file)
    if file is None and sys.stdin.isatty() and sys.stdout.isatty():
        return None
    return sys.stdin.read()


def read_script(file: Path) -> str:
    """The text of a file.

    Raises:
        UsageError: it cannot be read, or is not text.
    """
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text: {error.reason}") from error
