"""Types and fields as schema files have them, by the names that pypaimon uses."""

import pytest

from emberlake import ArrayType, AtomicType, DataField, MapType, RowKind, RowType
from emberlake.errors import ColumnNotFound, InvalidInput, InvalidSchema
from emberlake.types import DataType

INT = AtomicType("INT")
ROW = RowType(False, (DataField(1, "a", INT), DataField(2, "b", ArrayType(True, INT), "why")))


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        (AtomicType("DECIMAL(10, 2) NOT NULL"), "DECIMAL(10, 2) NOT NULL"),
        (ArrayType(False, INT), {"type": "ARRAY NOT NULL", "element": "INT"}),
        (
            MapType(True, AtomicType("STRING"), INT),
            {"type": "MAP", "key": "STRING", "value": "INT"},
        ),
    ],
)
def test_a_type_becomes_what_schema_files_have_and_comes_back(
    data_type: DataType, expected: object
) -> None:
    assert data_type.to_dict() == expected
    assert type(data_type).from_dict(expected) == data_type


def test_a_field_comes_back_whole() -> None:
    field = DataField(0, "s", ROW, "a row", "none")

    assert DataField.from_dict(field.to_dict()) == field
    assert field.to_dict()["type"]["fields"][1]["description"] == "why"


def test_a_type_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="RowType"):
        RowType.from_dict("INT")


def test_a_field_of_a_row_has_a_position() -> None:
    assert ROW.get_field_index("b") == 1
    with pytest.raises(ColumnNotFound, match="nope"):
        ROW.get_field_index("nope")


def test_row_kinds_are_known_by_their_symbols() -> None:
    assert [RowKind.from_string(kind.to_string()) for kind in RowKind] == list(RowKind)
    assert [kind.is_add() for kind in RowKind] == [True, False, True, False]
    with pytest.raises(InvalidInput):
        RowKind.from_string("?")
