"""The command line: ``emberlake``.

commands   declare what can be typed: names, arguments, help; load nothing of the engine
actions    do the work on tables and return a ``Report``
screen     shows a report to a person, or as one JSON document

Typer and rich are an extra (``pip install '.[cli]'``), so this module loads neither before
``main`` is called.
"""

import sys
from collections.abc import Sequence

from emberlake.base.extras import load_extra
from emberlake.errors import Unsupported

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done, 1 failed, 2 wrong usage, 3 conflict with a concurrent change, 130 interrupted.

    Args:
        argv: The arguments after ``emberlake``; by default those of this process.
    """
    try:
        load_extra("typer", extra="cli")
        load_extra("rich", extra="cli")
        run = load_extra("emberlake.cli.app", extra="cli").run
    except Unsupported as error:
        sys.stderr.write(f"emberlake: {error}\n")
        return 1
    except KeyboardInterrupt:  # before the program could begin
        sys.stderr.write("interrupted\n")
        return 130
    code: int = run(argv)
    return code
