"""Where an object is: ``s3://bucket/key``, and what the other clouds write instead.

Paths keep the scheme that the user gave. ``s3a`` and ``s3n`` are other names for ``s3``.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from emberlake.errors import InvalidInput


class Cloud(StrEnum):
    """Whose protocol a store speaks; also the name of the extra that is needed."""

    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"
    OSS = "oss"  # S3's protocol, at addresses of its own


SCHEMES: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), Cloud.S3),
    "gs": Cloud.GCS,
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), Cloud.AZURE),
    "oss": Cloud.OSS,
}
_EXAMPLES: Final = {
    Cloud.S3: "s3://bucket/folder",
    Cloud.GCS: "gs://bucket/folder",
    Cloud.AZURE: "abfss://container@account.dfs.core.windows.net/folder",
    Cloud.OSS: "oss://bucket/folder",
}
_PATH: Final = re.compile(r"^([A-Za-z][A-Za-z0-9]*)://([^/]*)/*(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Location:
    """A key in a bucket. The key has no slash at either end; it is empty for the bucket itself."""

    cloud: Cloud
    root: str  # scheme and bucket as the user wrote them: "s3://bucket"
    bucket: str  # Azure calls it a container
    host: str  # Azure: the account's; OSS: the endpoint, if the path has it; otherwise empty
    key: str

    @property
    def path(self) -> str:
        return f"{self.root}/{self.key}" if self.key else self.root

    def child(self, name: str) -> "Location":
        """The location of a name inside this folder."""
        return replace(self, key=f"{self.key}/{name}" if self.key else name)

    @property
    def parent(self) -> "Location":
        """The folder that holds this; at the top it is the bucket."""
        return replace(self, key=self.key.rpartition("/")[0])


def locate(path: str) -> Location:
    """Where an object or a folder is.

    Raises:
        InvalidInput: it is not a path of an object store, or it contains an invalid name.
    """
    found = _PATH.match(path)
    cloud = SCHEMES.get(found.group(1).lower()) if found else None
    if found is None or cloud is None:
        raise InvalidInput(f"{path} is not a path of an object store; write s3://bucket/folder")
    scheme, authority, rest = found.groups()
    bucket, host = _bucket_of(cloud, authority)
    key = rest.strip("/")
    if key and any(name in ("", ".", "..") for name in key.split("/")):
        raise InvalidInput(f"{path} cannot be a path: a name in it is empty, or it is . or ..")
    return Location(cloud, f"{scheme}://{authority}", bucket, host, key)


def _bucket_of(cloud: Cloud, authority: str) -> tuple[str, str]:
    match cloud:
        case Cloud.AZURE:
            bucket, _, host = authority.partition("@")
            is_usable = bool(bucket and host)
        case Cloud.OSS:
            bucket, _, host = authority.partition(".")
            is_usable = bool(bucket) and "@" not in authority
        case _:
            bucket, host = authority, ""
            # Hadoop once accepted s3n://key:secret@bucket. Every error would show the path.
            is_usable = bool(bucket) and "@" not in authority and ":" not in authority
    if not is_usable:
        # Without the path: the part before the @ may be a secret.
        raise InvalidInput(
            f"a path of {cloud} is not {_EXAMPLES[cloud]}; credentials are given as catalog "
            "options, never inside a path"
        )
    return bucket, host
