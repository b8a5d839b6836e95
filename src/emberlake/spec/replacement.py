"""What an overwrite replaces. Spec: "Overwrite"."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from emberlake.errors import InvalidInput
from emberlake.options import DYNAMIC_PARTITION_OVERWRITE
from emberlake.spec.partition_match import PartitionMatch, Partitions, partitions_of
from emberlake.spec.schema import TableSchema

# The choices besides True and False.
OVERWRITES: Final = ("dynamic", "static", "all")


@dataclass(frozen=True)
class Replacement:
    """The partitions that match, or only those of them that the new data touches.

    New data outside of ``match`` is refused either way. Without any new data, an overwrite with
    ``only_touched`` (a dynamic one) replaces nothing, and one without it (a static one) still
    removes everything that matches.
    """

    match: Partitions
    only_touched: bool

    @staticmethod
    def dynamic(schema: TableSchema, within: Mapping[str, object] | None = None) -> "Replacement":
        """The partitions that the new data touches, which must be inside ``within``."""
        return Replacement(partitions_of(schema, within or {}), only_touched=True)

    @staticmethod
    def static(schema: TableSchema, partition: Mapping[str, object]) -> "Replacement":
        """All partitions that match; an empty description matches the whole table."""
        return Replacement(partitions_of(schema, partition), only_touched=False)

    @staticmethod
    def whole_table(schema: TableSchema) -> "Replacement":
        """Everything."""
        return Replacement.static(schema, {})

    @staticmethod
    def by_options(schema: TableSchema, partition: Mapping[str, object] | None) -> "Replacement":
        """What an overwrite replaces according to a table's options, before its data is known.

        An explicit empty description means the whole table, whatever the options say. So does an
        unpartitioned table, which has no partitions that data could leave untouched.
        """
        is_dynamic = schema.options.value(DYNAMIC_PARTITION_OVERWRITE)
        is_whole = partition is not None and not partition
        if is_dynamic and schema.partition_keys and not is_whole:
            return Replacement.dynamic(schema, partition)
        return Replacement.static(schema, partition or {})

    @staticmethod
    def chosen(
        schema: TableSchema,
        partition: Mapping[str, object] | Partitions | None = None,
        *,
        overwrite: bool | str,
    ) -> "Replacement | None":
        """What one call asks to replace; None: nothing.

        With a partition, ``True`` replaces everything that matches it; without one, what the
        table's options say. The words of ``OVERWRITES`` override the options.

        Raises:
            InvalidInput: ``overwrite`` is something else, or contradicts the partition.
        """
        if not isinstance(overwrite, bool) and overwrite not in OVERWRITES:
            words = ", ".join(map(repr, OVERWRITES))
            raise InvalidInput(f"overwrite must be one of True, False, {words}, not {overwrite!r}")
        if overwrite is False:
            if partition is None:
                return None
            raise InvalidInput("static_partition says what to overwrite: give overwrite=True, too")
        if overwrite is True and partition is None:
            return Replacement.by_options(schema, None)
        if partition is None or isinstance(partition, Mapping):
            partition = partitions_of(schema, partition or {})
        is_whole = isinstance(partition, PartitionMatch) and not partition.values
        if overwrite == "all" and not is_whole:
            raise InvalidInput(
                "overwrite='all' replaces the whole table, but a partition is given: leave it out, "
                "or use overwrite='static'"
            )
        return Replacement(partition, only_touched=overwrite == "dynamic")

    def partitions(self, touched: frozenset[bytes]) -> frozenset[bytes] | Partitions:
        """The partitions to replace, given those that the new data touches."""
        return touched if self.only_touched and self.match.fields else self.match
