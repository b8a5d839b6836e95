"""Where the files of a table are. Spec: "Directory layout and file names"."""

import re
from dataclasses import dataclass, replace
from typing import Final

from emberlake.options import POSTPONE_BUCKET
from emberlake.spec.manifest import DataFile

MAIN_BRANCH: Final = "main"

SCHEMA_PREFIX: Final = "schema-"
SNAPSHOT_PREFIX: Final = "snapshot-"
TAG_PREFIX: Final = "tag-"
BRANCH_PREFIX: Final = "branch-"
CONSUMER_PREFIX: Final = "consumer-"
DROP_MARK: Final = ".emberlake-dropped"

_DIGITS: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The paths of a table's files, for one branch of it.

    A branch has schemas, snapshots, tags and consumers of its own; manifests, indexes and data of
    all branches live together under the table's root.
    """

    root: str
    branch: str = MAIN_BRANCH

    def for_branch(self, branch: str) -> "TableLayout":
        return replace(self, branch=branch)

    @property
    def metadata_root(self) -> str:
        if self.branch == MAIN_BRANCH:
            return self.root
        return f"{self.branch_folder}/{BRANCH_PREFIX}{self.branch}"

    @property
    def schema_folder(self) -> str:
        return f"{self.metadata_root}/schema"

    def schema(self, schema_id: int) -> str:
        return f"{self.schema_folder}/{SCHEMA_PREFIX}{schema_id}"

    @property
    def drop_mark(self) -> str:
        """A file that is there while the table is being dropped; other engines do not know it."""
        return f"{self.schema_folder}/{DROP_MARK}"

    @property
    def snapshot_folder(self) -> str:
        return f"{self.metadata_root}/snapshot"

    def snapshot(self, snapshot_id: int) -> str:
        return f"{self.snapshot_folder}/{SNAPSHOT_PREFIX}{snapshot_id}"

    @property
    def latest_hint(self) -> str:
        return f"{self.snapshot_folder}/LATEST"

    @property
    def earliest_hint(self) -> str:
        return f"{self.snapshot_folder}/EARLIEST"

    @property
    def changelog_folder(self) -> str:
        return f"{self.metadata_root}/changelog"

    @property
    def tag_folder(self) -> str:
        return f"{self.metadata_root}/tag"

    def tag(self, name: str) -> str:
        return f"{self.tag_folder}/{TAG_PREFIX}{name}"

    @property
    def consumer_folder(self) -> str:
        return f"{self.metadata_root}/consumer"

    def consumer(self, consumer_id: str) -> str:
        return f"{self.consumer_folder}/{CONSUMER_PREFIX}{consumer_id}"

    @property
    def branch_folder(self) -> str:
        """The folder of all branches except the main one."""
        return f"{self.root}/branch"

    @property
    def manifest_folder(self) -> str:
        return f"{self.root}/manifest"

    def manifest(self, name: str) -> str:
        """The path of a manifest, a manifest list or an index manifest."""
        return f"{self.manifest_folder}/{name}"

    @property
    def index_folder(self) -> str:
        return f"{self.root}/index"

    def index(self, name: str) -> str:
        return f"{self.index_folder}/{name}"

    @property
    def statistics_folder(self) -> str:
        return f"{self.root}/statistics"

    def statistics(self, name: str) -> str:
        return f"{self.statistics_folder}/{name}"

    def bucket_folder(self, partition_path: str, bucket: int, data_directory: str = "") -> str:
        """The folder of a bucket's files; ``partition_path`` is empty without partitions."""
        return f"{self.root}/{relative_bucket(partition_path, bucket, data_directory)}"

    def data_file(
        self, partition_path: str, bucket: int, file: DataFile, data_directory: str = ""
    ) -> str:
        """The path of a data file, which may lie outside the table."""
        return file.path_in(self.bucket_folder(partition_path, bucket, data_directory))

    def extra_file(self, data_file_path: str, name: str) -> str:
        """The path of an extra file of a data file; both are in the same folder."""
        return f"{data_file_path.rpartition('/')[0]}/{name}"


def relative_bucket(partition_path: str, bucket: int, data_directory: str = "") -> str:
    """The folder of a bucket below the table's root, or below a folder outside of the table."""
    name = "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"
    parts = (data_directory.strip("/"), partition_path, name)
    return "/".join(part for part in parts if part)


def parse_numbered(name: str, prefix: str) -> int | None:
    """The number in a file name of ``prefix`` and digits; None for any other name."""
    digits = name.removeprefix(prefix)
    return int(digits) if name.startswith(prefix) and _DIGITS.fullmatch(digits) else None
