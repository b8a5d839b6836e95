"""A notebook without a browser: a real IPython that has loaded the extension."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell


@contextmanager
def notebook_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A notebook; IPython keeps its own files in the folder."""
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(colors="nocolor")
    shell.history_manager.enabled = False
    try:
        shell.run_line_magic("load_ext", "emberlake")
        yield shell
    finally:
        shell.run_line_magic("unload_ext", "emberlake")
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()
