"""A row for programs that write rows one at a time."""

from emberlake import AtomicType, DataField, GenericRow, RowKind


def test_a_generic_row_knows_its_columns_and_what_it_does() -> None:
    fields = [DataField(0, "id", AtomicType("INT")), DataField(1, "v", AtomicType("STRING"))]
    row = GenericRow([1, "a"], fields, RowKind.DELETE)

    assert (row.get_field(1), len(row), row.get_row_kind()) == ("a", 2, RowKind.DELETE)
    assert row.to_dict() == {"id": 1, "v": "a"}
    assert repr(row) == "GenericRow({'id': 1, 'v': 'a'}, -D)"
    assert row == GenericRow((1, "a"), fields, 3)
    assert row != GenericRow((1, "a"), fields)
