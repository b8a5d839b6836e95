"""The columns of data files of primary-key tables."""

import pytest

from emberlake.errors import InvalidInput
from emberlake.options import TableOptions
from emberlake.spec.key_value import RowKind, key_fields, key_value_fields
from emberlake.spec.schema import TableSchema
from emberlake.types import AtomicType, DataField

FIELDS = (
    DataField(0, "v", AtomicType("STRING")),
    DataField(1, "day", AtomicType("DATE NOT NULL")),
    DataField(2, "b", AtomicType("INT NOT NULL")),
    DataField(5, "a", AtomicType("BIGINT NOT NULL")),
)


def schema(**options: str) -> TableSchema:
    given = TableOptions({key.replace("_", "-"): value for key, value in options.items()})
    return TableSchema(0, FIELDS, 5, ("day",), ("a", "day", "b"), given)


def test_a_data_file_has_the_key_then_number_and_kind_then_all_columns():
    columns = [(f.name, f.id, str(f.type)) for f in key_value_fields(schema())]
    assert columns == [
        ("_KEY_a", 1_073_741_828, "BIGINT NOT NULL"),
        ("_KEY_b", 1_073_741_825, "INT NOT NULL"),
        ("_SEQUENCE_NUMBER", 2_147_483_646, "BIGINT NOT NULL"),
        ("_VALUE_KIND", 2_147_483_645, "TINYINT NOT NULL"),
        ("v", 0, "STRING"),
        ("day", 1, "DATE NOT NULL"),
        ("b", 2, "INT NOT NULL"),
        ("a", 5, "BIGINT NOT NULL"),
    ]
    assert [f.name for f in key_fields(schema())] == ["a", "b"]


def test_thin_files_do_not_repeat_the_key():
    thin = schema().with_options({"data-file.thin-mode": "true"})
    assert [f.name for f in key_value_fields(thin)][:3] == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "v"]


def test_row_kinds_have_symbols_and_half_of_them_take_rows_back():
    assert [kind.symbol for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert [RowKind.parse(kind.symbol) for kind in RowKind] == list(RowKind)
    assert [kind for kind in RowKind if kind.is_retract] == [RowKind.UPDATE_BEFORE, RowKind.DELETE]
    with pytest.raises(InvalidInput, match=r"row kind '\+X': expected one of \+I, -U, \+U, -D"):
        RowKind.parse("+X")
