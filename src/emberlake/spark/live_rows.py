"""In a task: rows to write, and among them keys of the table that say where rows are now."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from emberlake.places.live_keys import PLACE
from emberlake.places.writer import PlacingWriter
from emberlake.types import DataField
from emberlake.write.align import align


def live_rows(
    tables: Iterator[pa.Table], writer: PlacingWriter, fields: tuple[DataField, ...], count: int
) -> Iterator[pa.Table]:
    """The rows to write; the keys among them go to the writer.

    Args:
        tables: The columns of the rows, the key columns of the table, and the numbers of places,
            which only keys have. Without keys there are only the columns of the rows.
        writer: What writes the rows.
        fields: The key columns.
        count: How many columns the rows have.
    """
    names = [f.name for f in fields]
    for table in tables:
        if table.num_columns == count:
            yield table
            continue
        place = table.column(table.num_columns - 1)
        if place.null_count < len(place):
            known = table.filter(pc.is_valid(place))
            keys = known.select(range(count, count + len(names))).rename_columns(names)
            numbers = known.column(known.num_columns - 1)
            writer.add_live(align(keys, fields).append_column(PLACE, numbers))
        rows = table.filter(pc.is_null(place)) if place.null_count < len(place) else table
        if rows.num_rows:
            yield rows.select(range(count))
