"""What a reader gets of the rows that it may see: masked values, and only rows that match these."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa

from emberlake.predicates import Mask, Predicate, filter_rows
from emberlake.read.key_read import UnitRead
from emberlake.read.projection import ROW_KIND, OutputShape, Projection


@dataclass(frozen=True)
class Shown:
    """Turns stored rows that passed the rules into output.

    Args:
        masks: The masks of the columns that are needed.
        predicate: What rows must match after they are masked.
        shape: The output.
    """

    masks: tuple[Mask, ...]
    predicate: Predicate | None
    shape: OutputShape

    def apply(self, rows: pa.Table) -> pa.Table:
        """The output for some rows, which have all columns that are needed."""
        masked = rows
        for mask in self.masks:  # all of them are made of stored values
            field = rows.schema.field(mask.field.name).with_nullable(True)
            at = rows.schema.get_field_index(field.name)
            masked = masked.set_column(at, field, mask.value.values(rows))
        if self.predicate is not None:
            masked = filter_rows(self.predicate, masked)
        found = {name: masked.column(name) for name in masked.schema.names}
        shape = replace(self.shape, with_kind=False)
        columns = shape.columns(found, masked.num_rows)
        if self.shape.with_kind:
            columns = [masked.column(ROW_KIND), *columns]
        return pa.Table.from_arrays(columns, schema=self.shape.arrow_schema)


@dataclass(frozen=True)
class ShownRead:
    """A part of a read under rules."""

    unit: UnitRead
    shown: Shown

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """The rows in bounded memory; closing the generator releases files."""
        with closing(self.unit.batches()) as batches:
            for batch in batches:
                yield from self.shown.apply(pa.Table.from_batches([batch])).to_batches()

    def table(self, *, use_threads: bool) -> pa.Table:
        """The rows at once."""
        return self.shown.apply(self.unit.table(use_threads=use_threads))


def with_masked(projection: Projection, masks: tuple[Mask, ...]) -> Projection:
    """The output columns; those that are masked may be null."""
    masked = {mask.field.name for mask in masks}
    return Projection(
        tuple(
            replace(o, field=replace(o.field, type=o.field.type.with_nullable(True)))
            if o.path[0] in masked
            else o
            for o in projection.outputs
        )
    )
