import pickle

import pytest

from emberlake.errors import InvalidInput
from emberlake.spec.schema_change import Move, SchemaChange
from emberlake.types import AtomicType as T


def test_changes_pickle_and_compare_by_value():
    one = SchemaChange.add_column("n", T("INT"), "c", Move.after("n", "a"))

    assert pickle.loads(pickle.dumps(one)) == one
    assert one == SchemaChange.add_column(["n"], T("INT"), "c", Move.after("n", "a"))
    with pytest.raises(InvalidInput):
        SchemaChange.drop_column([])


def test_a_type_may_be_given_as_text() -> None:
    assert SchemaChange.add_column("n", "INT") == SchemaChange.add_column("n", T("INT"))
    assert SchemaChange.update_column_type("n", "BIGINT").new_data_type == T("BIGINT")


def test_what_is_no_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a column type"):
        SchemaChange.add_column("n", int)
