"""A writer that writes the rows that fit and passes the others on."""

import pyarrow as pa
import pytest

from builders import create_key_table
from emberlake import DataMismatch
from emberlake.rowops.text_values import read_texts
from emberlake.table.write_builder import session_of
from emberlake.write.bad_rows import BadRows
from emberlake.write.sifting import SiftingWriter

COLUMNS = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.float64())])


def sifted(table, *parts, parse=False):
    """What of some data is committed, and the rows that were handed over."""
    session = session_of(table.new_batch_write_builder())
    rejected: list[tuple[pa.Table, BadRows]] = []
    writer = SiftingWriter(
        session.new_writer(), table.table_schema, lambda rows, bad: rejected.append((rows, bad))
    )
    for part in parts:
        if parse:
            writer.write_known(part, *read_texts(part, table.table_schema))
        else:
            writer.write(part)
    session.commit_or_abort(writer.prepare())
    writer.close()
    assert writer.rows_rejected == sum(bad.count for _, bad in rejected)
    return rejected


def test_rows_that_fit_are_written_and_the_others_handed_over_as_they_were():
    table = create_key_table(COLUMNS)
    data = pa.table({"id": pa.array([1, None, 3], pa.int64()), "v": [1.0, 2.0, 3.0]})

    ((rows, bad),) = sifted(table, data)

    assert table.to_arrow(["id"])["id"].to_pylist() == [1, 3]
    assert rows.to_pylist() == [{"id": None, "v": 2.0}]
    assert bad.reasons.to_pylist() == ["id: is null, and is in the primary key"]


def test_data_that_never_fits_is_refused():
    table = create_key_table(COLUMNS)

    with pytest.raises(DataMismatch, match="colour"):
        sifted(table, pa.table({"id": [1], "v": [1.0], "colour": ["red"]}))


def test_texts_are_read_as_values_and_those_that_are_none_are_handed_over():
    table = create_key_table(COLUMNS)
    data = pa.table({"id": ["1", "x", "3", "4"], "v": ["1.5", "2", "three", None]})

    ((rows, bad),) = sifted(table, data, parse=True)

    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "v": 1.5},
        {"id": 4, "v": None},
    ]
    assert rows.to_pylist() == [{"id": "x", "v": "2"}, {"id": "3", "v": "three"}]
    assert bad.reasons.to_pylist() == [
        "id: 'x' is not an INT",
        "v: 'three' is not a DOUBLE",
    ]
