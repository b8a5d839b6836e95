import pyarrow as pa

from emberlake.base.row import Row, iter_rows


def test_a_row_is_a_tuple_whose_fields_have_positions():
    row = Row((1, "a"))

    assert row == (1, "a")
    assert (row.get_field(0), row.get_field(1)) == (1, "a")


def test_a_batch_gives_its_rows_in_order():
    batch = pa.RecordBatch.from_pydict({"a": [1, None], "b": [["x"], []]})

    rows = list(iter_rows(batch))

    assert rows == [(1, ["x"]), (None, [])]
    assert all(isinstance(row, Row) for row in rows)
