"""Where bytes live. One small protocol; local disk and memory implement it."""

import os
import re
from collections.abc import Mapping
from typing import Final

from emberlake.errors import InvalidInput, Unsupported
from emberlake.io.local import LocalStorage, local_path
from emberlake.io.memory import MemoryStorage
from emberlake.io.storage import FileInfo, Storage

__all__ = ["FileInfo", "LocalStorage", "MemoryStorage", "Storage", "open_storage"]

_SCHEME: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")


def open_storage(path: str, options: Mapping[str, str]) -> tuple[Storage, str]:
    """The storage that a warehouse or table path lives on, and the path in its normal form.

    Args:
        path: a folder of this machine, plain or as ``file:/folder`` or ``file:///folder``.
        options: catalog options; storages that need credentials find them there.
    """
    del options  # the local disk needs none
    if not path.strip():
        raise InvalidInput("the warehouse path is empty; give a folder")
    scheme = _SCHEME.match(path)
    if scheme and scheme.group(1).lower() != "file":
        raise Unsupported(f"{path}: emberlake has no storage for {scheme.group(1)}://")
    # Absolute, because workers that open the same table may run in another folder; links are not
    # followed: the path stays the one that the user knows.
    return LocalStorage(), os.path.abspath(local_path(path))  # noqa: PTH100
