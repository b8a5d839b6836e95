"""What a commit changes in each partition, for servers that keep track of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from emberlake.base.times import instant_ms
from emberlake.rest.commits import PartitionStatistics
from emberlake.spec.binary_row import decode_row
from emberlake.spec.manifest import ManifestEntry
from emberlake.spec.partition import partition_spec
from emberlake.types import DataField

_DEFAULT_NAME: Final = "__DEFAULT_PARTITION__"


@dataclass(frozen=True)
class PartitionNames:
    """How the partitions of a table are spelled, as in Java."""

    fields: tuple[DataField, ...] = ()
    default_name: str = _DEFAULT_NAME
    legacy_name: bool = True

    def spec(self, partition: bytes) -> dict[str, str]:
        """The partition as text by column; empty for an unpartitioned table."""
        if not self.fields:
            return {}
        values = decode_row(tuple(each.type for each in self.fields), partition)
        return dict(
            partition_spec(
                self.fields,
                values,
                default_name=self.default_name,
                legacy_name=self.legacy_name,
            )
        )


def partition_statistics(
    entries: Iterable[ManifestEntry], names: PartitionNames
) -> tuple[PartitionStatistics, ...]:
    """The differences that the files of a commit make, by partition."""
    by_partition: dict[bytes, list[ManifestEntry]] = {}
    for entry in entries:
        by_partition.setdefault(entry.partition, []).append(entry)
    return tuple(
        PartitionStatistics(
            spec=names.spec(partition),
            record_count=sum(e.kind.sign * e.file.row_count for e in group),
            file_size_in_bytes=sum(e.kind.sign * e.file.file_size for e in group),
            file_count=sum(e.kind.sign for e in group),
            last_file_creation_time=max(_created_ms(e) for e in group),
            total_buckets=group[-1].total_buckets,
        )
        for partition, group in by_partition.items()
    )


def _created_ms(entry: ManifestEntry) -> int:
    shown = entry.file.creation_time  # the wall clock of the writer
    return 0 if shown is None else instant_ms(shown)
