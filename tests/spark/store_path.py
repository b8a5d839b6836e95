"""A folder or file of a bucket, with those parts of ``pathlib.Path`` that the cases use."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from types import SimpleNamespace
from typing import Final

from emberlake.io import Storage, open_storage

IS_ON_S3: Final = os.environ.get("EMBERLAKE_SPARK_TABLES") == "s3"  # the tables of the cases


@dataclass(frozen=True, order=True)
class StorePath:
    """A path such as ``s3://bucket/folder``. The environment says how to reach the store."""

    url: str

    @cached_property
    def _storage(self) -> Storage:
        return open_storage(self.url, {})[0]

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> "StorePath":
        return StorePath(f"{self.url}/{name}")

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.url.split("/"))

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def parent(self) -> "StorePath":
        return StorePath(self.url.rpartition("/")[0])

    def rglob(self, pattern: str) -> Iterator["StorePath"]:
        """The files inside, at any depth, whose last names match."""
        for info in self._storage.list_all(self.url):
            if fnmatch(info.path, f"*/{pattern}"):
                yield StorePath(info.path)

    def stat(self) -> SimpleNamespace:
        return SimpleNamespace(st_size=self._storage.size(self.url))

    def write_bytes(self, data: bytes) -> None:
        self._storage.put(self.url, data)

    def unlink(self) -> None:
        self._storage.delete(self.url)
