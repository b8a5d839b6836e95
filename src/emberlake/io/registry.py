"""Which storage a path lives on: by its scheme.

A storage is a module of this package with a function ``open_storage(path, options)``. It is loaded
when a path with its scheme is opened, so nobody needs the libraries of stores they do not use.
"""

import importlib
import re
from collections.abc import Mapping
from typing import Final

from emberlake.errors import InvalidInput, Unsupported
from emberlake.io.storage import Storage

_SCHEME: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_LOCAL: Final = "file"  # also for paths without a scheme
_OBJECT: Final = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss")
_MODULES: Final[Mapping[str, str]] = {
    _LOCAL: "emberlake.io.local",
    **dict.fromkeys(_OBJECT, "emberlake.io.object"),
}
_WAYS_OUT: Final[Mapping[str, str]] = {
    "hdfs": "; copy the warehouse to a disk or an object store, such as with hadoop distcp",
}


def scheme_of(path: str) -> str:
    """The scheme of a path, in lower case."""
    found = _SCHEME.match(path)
    return found.group(1).lower() if found else _LOCAL


def open_storage(path: str, options: Mapping[str, object]) -> tuple[Storage, str]:
    """The storage that a warehouse or table path lives on, and the path in its normal form.

    Args:
        path: a folder on this machine (plain, ``file:/folder`` or ``file:///folder``) or in an
            object store (``s3://bucket/folder``, ``gs://``, ``abfss://``, ``oss://``).
        options: catalog options; storages that need credentials find them there.

    Raises:
        Unsupported: there is no storage for the scheme of the path.
    """
    if not path.strip():
        raise InvalidInput("the warehouse path is empty; give a folder")
    scheme = scheme_of(path)
    if scheme not in _MODULES:
        raise Unsupported(
            f"{path}: emberlake has no storage for {scheme}://{_WAYS_OUT.get(scheme, '')}"
        )
    opened: tuple[Storage, str] = importlib.import_module(_MODULES[scheme]).open_storage(
        path, options
    )
    return opened
