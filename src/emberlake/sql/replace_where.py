"""INSERT INTO ... REPLACE WHERE: the partitions for which a condition is true get new rows."""

from dataclasses import dataclass

import pyarrow as pa

from emberlake.predicates import Predicate
from emberlake.predicates.bind import bind_partition_filter
from emberlake.predicates.evaluate import evaluate
from emberlake.spec.replacement import Replacement
from emberlake.spec.row_columns import decode_column
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField


@dataclass(frozen=True)
class PartitionCondition:
    """Matches serialized partitions for which a condition is true."""

    schema: TableSchema
    condition: Predicate | None  # None: all of them

    @property
    def fields(self) -> tuple[DataField, ...]:
        return self.schema.partition_fields

    def __call__(self, partition: bytes) -> bool:
        if self.condition is None:
            return True
        types = [field.type for field in self.fields]
        rows = pa.array([partition], pa.large_binary())
        columns = {f.name: decode_column(types, rows, at) for at, f in enumerate(self.fields)}
        (is_true,) = evaluate(self.condition, pa.table(columns)).to_pylist()
        return is_true is True


def replaced_where(schema: TableSchema, condition: str) -> Replacement:
    """What REPLACE WHERE replaces; rows of other partitions are refused.

    Raises:
        InvalidPredicate: the condition names other columns than those of partitions.
    """
    is_all = condition.strip().lower() == "true"
    bound = None if is_all else bind_partition_filter(condition, schema)
    matching = PartitionCondition(schema, bound)
    return Replacement(matching, only_touched=False)
