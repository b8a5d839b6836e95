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
