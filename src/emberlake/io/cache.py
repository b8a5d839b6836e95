"""The one cache of metadata of this process. One bound, in bytes, holds for all tables.

Its callers decide what to keep: metadata of tables, and footers of data files.
"""

import os
import weakref
from collections.abc import Mapping
from typing import Final

from emberlake.base.byte_cache import ByteCache
from emberlake.base.option_texts import MEBIBYTE, parse_size
from emberlake.errors import InvalidOption
from emberlake.io.routed import own_storage
from emberlake.io.storage import Storage

ENV_LIMIT: Final = "EMBERLAKE_METADATA_CACHE"
DEFAULT_LIMIT: Final = 64 * MEBIBYTE


def cache_limit(environ: Mapping[str, str] = os.environ) -> int:
    """How many bytes of metadata to cache.

    Raises:
        InvalidOption: the environment variable is not a size.
    """
    text = environ.get(ENV_LIMIT)
    if not text:
        return DEFAULT_LIMIT
    try:
        return parse_size(text)
    except ValueError as error:
        raise InvalidOption(
            f"the environment variable {ENV_LIMIT} is {text!r}: {error}; 0 turns the cache off"
        ) from error


CACHE: Final = ByteCache(cache_limit)

Key = tuple[object, ...]


def file_key(storage: Storage, path: str) -> Key:
    """The cache key of a metadata file.

    A storage that equals only itself, such as one in memory, may hold all of its files. A cached
    file must not keep such a storage alive.
    """
    storage = own_storage(storage)
    equals_only_itself = type(storage).__hash__ is object.__hash__
    return (weakref.ref(storage) if equals_only_itself else storage, path)
