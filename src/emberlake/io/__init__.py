"""Where bytes live: one small protocol, and the storages that implement it."""

from emberlake.io.local import LocalStorage
from emberlake.io.memory import MemoryStorage
from emberlake.io.registry import open_storage
from emberlake.io.routed import RoutedStorage
from emberlake.io.storage import (
    FileInfo,
    OneByOne,
    Output,
    Standing,
    Storage,
    StorageTraits,
    Upload,
)
from emberlake.io.wrapped import WrappedStorage

__all__ = [
    "FileInfo",
    "LocalStorage",
    "MemoryStorage",
    "OneByOne",
    "Output",
    "RoutedStorage",
    "Standing",
    "Storage",
    "StorageTraits",
    "Upload",
    "WrappedStorage",
    "open_storage",
]
