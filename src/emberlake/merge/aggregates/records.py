"""The records that an engine merges, and the rows that it makes from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from emberlake.errors import DataMismatch
from emberlake.spec.column_buffers import I64, Mask
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind
from emberlake.types import DataField


@dataclass(frozen=True)
class Records:
    """Records sorted by key and merge order, and where each key begins."""

    rows: pa.Table
    starts: I64

    def __len__(self) -> int:
        count: int = self.rows.num_rows
        return count

    @cached_property
    def ends(self) -> I64:
        return np.append(self.starts, len(self))[1:]

    @cached_property
    def is_single(self) -> Mask:
        """Keys with one record, which every engine returns unchanged."""
        is_single: Mask = self.ends - self.starts == 1
        return is_single

    @cached_property
    def is_merged(self) -> Mask:
        """Records of keys that have several."""
        mask = np.ones(len(self), dtype=np.bool_)
        if self.is_single.any():
            mask[self.starts[self.is_single]] = False
        return mask

    @cached_property
    def kinds(self) -> npt.NDArray[np.int8]:
        kinds: npt.NDArray[np.int8] = self.rows.column(KIND).to_numpy()
        return kinds

    @cached_property
    def is_delete(self) -> Mask:
        is_delete: Mask = self.kinds == RowKind.DELETE
        return is_delete

    @cached_property
    def is_retract(self) -> Mask:
        is_before: Mask = self.kinds == RowKind.UPDATE_BEFORE
        return self.is_delete | is_before

    def column(self, name: str) -> pa.Array:
        """A column in one piece."""
        column = self.rows.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def check_not_null(self, fields: Iterable[DataField], mask: Mask) -> None:
        """Refuse records that lack a value that the table requires.

        Raises:
            DataMismatch: names the column.
        """
        for field in fields:
            column = self.rows.column(field.name)
            if field.type.nullable or not column.null_count:
                continue
            if (mask & column.is_null().to_numpy(zero_copy_only=False)).any():
                raise DataMismatch(
                    f"column {field.name} is {field.type}, but a record to merge has no value"
                )

    def result(
        self, columns: Mapping[str, pa.Array], sequence_at: I64, is_deleted: Mask
    ) -> pa.Table:
        """A row for each key, with the sequence number of one of its records."""
        kinds = np.where(is_deleted, RowKind.DELETE, RowKind.INSERT).astype(np.int8)
        kinds[self.is_single] = self.kinds[self.starts[self.is_single]]
        sequence = self.column(SEQUENCE).take(pa.array(sequence_at))
        arrays = {**columns, SEQUENCE: sequence, KIND: pa.array(kinds)}
        schema = pa.schema([self.rows.schema.field(name) for name in arrays])
        return pa.Table.from_arrays(list(arrays.values()), schema=schema)
