import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from emberlake.errors import DataMismatch, Unsupported
from emberlake.predicates.expressions import And, Leaf, Op, Or
from emberlake.read.column_plan import plan_columns
from emberlake.read.evolve import translate_predicate
from emberlake.types import (
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    arrow_schema,
)


def F(field_id, name, data_type):  # noqa: N802
    return DataField(
        field_id, name, AtomicType(data_type) if isinstance(data_type, str) else data_type
    )


def R(*fields, nullable=True):  # noqa: N802
    return RowType(nullable, fields)


def evolve(file_fields, read_fields, rows, kind=pa.Table):
    """Rows of a file, read under another schema: all checks that hold for every evolution."""
    plan = pickle.loads(pickle.dumps(plan_columns([tuple(file_fields)], tuple(read_fields))))
    whole = pa.Table.from_pylist(rows, schema=arrow_schema(tuple(file_fields)))
    table = _select(whole, plan.files[0].read)

    result = plan.apply([table])

    assert result.schema == arrow_schema(tuple(read_fields))
    result.validate(full=True)
    for batch in table.to_batches():
        assert plan.apply([batch]).schema == result.schema
        assert plan.apply([batch.slice(1)]).equals(result.slice(1))
    return result.to_pylist()


def _select(table, columns):
    """What a reader gives for these columns: inner fields that are not asked for are left out."""
    rows = [{c.name: _prune(row[c.name], c.type) for c in columns} for row in table.to_pylist()]
    if not columns:
        return table.select([])
    return pa.Table.from_pylist(rows, schema=arrow_schema(columns))


def _prune(value, data_type):
    match data_type:
        case _ if value is None:
            return None
        case RowType(fields=fields):
            return {f.name: _prune(value[f.name], f.type) for f in fields}
        case ArrayType(element=element):
            return [_prune(v, element) for v in value]
        case MapType(value=inner):
            return [(k, _prune(v, inner)) for k, v in value]
        case _:
            return value


def test_columns_are_found_by_id_whatever_their_name_and_place():
    old = [F(0, "a", "INT"), F(1, "b", "STRING"), F(2, "gone", "INT")]
    new = [F(1, "text", "STRING"), F(3, "gone", "DOUBLE"), F(0, "a", "INT")]

    rows = evolve(old, new, [{"a": 1, "b": "x", "gone": 5}, {"a": None, "b": "y", "gone": 6}])

    assert rows == [
        {"text": "x", "gone": None, "a": 1},
        {"text": "y", "gone": None, "a": None},
    ]


def test_only_what_is_needed_is_read_from_the_file():
    inner = R(F(2, "x", "INT"), F(3, "y", "STRING"), F(4, "z", R(F(5, "u", "INT"))))
    old = (F(0, "a", "INT"), F(1, "r", inner), F(6, "l", ArrayType(True, inner)))
    new = (
        F(6, "l2", ArrayType(True, R(F(3, "why", "STRING")))),
        F(1, "r", R(F(4, "z", R(F(5, "u", "INT"))))),
    )

    plan = plan_columns([old], new)

    assert plan.files[0].read == (
        F(6, "l", ArrayType(True, R(F(3, "y", "STRING")))),
        F(1, "r", R(F(4, "z", R(F(5, "u", "INT"))))),
    )
    assert not plan.output.is_plain


def test_an_unchanged_schema_passes_batches_through():
    fields = (F(0, "a", "INT"), F(1, "r", R(F(2, "x", "INT"))))
    plan = plan_columns([fields], fields)
    table = pa.Table.from_pylist([{"a": 1, "r": {"x": 2}}], schema=arrow_schema(fields))

    assert plan.files[0].read == fields
    assert plan.apply([table]) is table


@pytest.mark.parametrize(
    "read_fields",
    [
        (F(0, "b", "INT"),),
        (F(0, "a", "BIGINT"),),
        (F(0, "a", "INT NOT NULL"),),
        (F(9, "a", "INT"),),
        (F(0, "a", "INT"), F(9, "n", "INT")),
    ],
)
def test_any_difference_makes_new_rows(read_fields):
    plan = plan_columns([(F(0, "a", "INT"),)], read_fields)
    columns = plan.files[0].read
    table = _select(pa.table({"a": pa.array([1], pa.int32())}), columns)

    assert plan.apply([table]) is not table
    assert plan.apply([table]).schema == arrow_schema(read_fields)


def test_rows_inside_rows_arrays_and_maps_evolve_by_id():
    old_row = R(F(1, "x", "INT"), F(2, "y", "STRING"))
    new_row = R(F(3, "added", "DOUBLE"), F(1, "x2", "BIGINT"), nullable=True)
    old = [
        F(0, "r", old_row),
        F(10, "l", ArrayType(True, old_row)),
        F(20, "m", MapType(True, AtomicType("STRING NOT NULL"), old_row)),
    ]
    new = [
        F(0, "r", new_row),
        F(10, "l", ArrayType(True, new_row)),
        F(20, "m", MapType(True, AtomicType("STRING NOT NULL"), new_row)),
    ]
    one = {"x": 1, "y": "a"}

    rows = evolve(
        old,
        new,
        [
            {"r": one, "l": [one, None], "m": [("k", one), ("n", None)]},
            {"r": None, "l": None, "m": None},
            {"r": {"x": None, "y": None}, "l": [], "m": []},
        ],
    )

    two = {"added": None, "x2": 1}
    assert rows == [
        {"r": two, "l": [two, None], "m": [("k", two), ("n", None)]},
        {"r": None, "l": None, "m": None},
        {"r": {"added": None, "x2": None}, "l": [], "m": []},
    ]


def test_types_inside_arrays_and_maps_are_cast():
    old = [
        F(0, "l", ArrayType(True, AtomicType("INT"))),
        F(1, "m", MapType(True, AtomicType("INT NOT NULL"), AtomicType("FLOAT"))),
    ]
    new = [
        F(0, "l", ArrayType(True, AtomicType("DECIMAL(12, 2)"))),
        F(1, "m", MapType(True, AtomicType("INT NOT NULL"), AtomicType("DOUBLE"))),
    ]

    rows = evolve(old, new, [{"l": [1, None], "m": [(1, 0.5)]}, {"l": None, "m": []}])

    assert rows == [
        {"l": [Decimal("1.00"), None], "m": [(1, 0.5)]},
        {"l": None, "m": []},
    ]


def test_a_row_of_which_the_file_has_no_wanted_field_is_null():
    old = (F(0, "r", R(F(1, "x", "INT"))), F(2, "l", ArrayType(True, R(F(3, "x", "INT")))))
    new = (F(0, "r", R(F(9, "n", "INT"))), F(2, "l", ArrayType(True, R(F(8, "n", "INT")))))

    assert plan_columns([old], new).files[0].read == ()
    assert evolve(old, new, [{"r": {"x": 1}, "l": [{"x": 1}]}]) == [{"r": None, "l": None}]


def test_nullability_inside_a_type_follows_the_asked_schema():
    old = [F(0, "r", R(F(1, "x", "INT NOT NULL"))), F(2, "a", "INT NOT NULL")]
    new = [F(0, "r", R(F(1, "x", "INT"))), F(2, "a", "INT")]

    assert evolve(old, new, [{"r": {"x": 1}, "a": 3}]) == [{"r": {"x": 1}, "a": 3}]


def test_a_renamed_field_inside_a_row_keeps_its_values():
    old = [F(0, "r", R(F(1, "x", "INT"), F(2, "y", "INT")))]
    new = [F(0, "r", R(F(2, "x", "INT"), F(1, "y", "INT")))]

    assert evolve(old, new, [{"r": {"x": 1, "y": 2}}]) == [{"r": {"x": 2, "y": 1}}]


def test_the_number_of_rows_is_kept_without_columns():
    table = pa.table({"a": pa.array([1, 2, 3], pa.int32())}).select([])

    none_asked = plan_columns([(F(0, "a", "INT"),)], ())
    all_new = plan_columns([(F(0, "a", "INT"),)], (F(1, "n", "STRING"),))

    assert none_asked.apply([table]).num_rows == 3
    assert all_new.apply([table]).to_pylist() == [{"n": None}] * 3


def test_no_rows_and_no_chunks_evolve_too():
    old = (F(0, "a", "INT"), F(1, "l", ArrayType(True, AtomicType("INT"))))
    new = (F(0, "a", "STRING"), F(1, "l", ArrayType(True, AtomicType("BIGINT"))), F(2, "n", "INT"))

    result = plan_columns([old], new).apply([arrow_schema(old).empty_table()])

    assert result.schema == arrow_schema(new)
    assert result.num_rows == 0


def test_a_column_may_be_asked_for_twice():
    old = (F(0, "a", "INT"),)
    new = (F(0, "a", "INT"), F(0, "b", "BIGINT"))

    assert plan_columns([old], new).files[0].read == old
    assert evolve(old, new, [{"a": 1}]) == [{"a": 1, "b": 1}]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (AtomicType("DATE"), AtomicType("INT")),
        (AtomicType("INT"), R(F(1, "x", "INT"))),
        (MultisetType(True, AtomicType("INT")), MultisetType(True, AtomicType("BIGINT"))),
        (
            MapType(True, AtomicType("INT"), AtomicType("INT")),
            MapType(True, AtomicType("BIGINT"), AtomicType("INT")),
        ),
        (ArrayType(True, AtomicType("DATE")), ArrayType(True, AtomicType("INT"))),
    ],
)
def test_a_type_that_cannot_be_read_as_another_is_refused_by_name(old, new):
    with pytest.raises(Unsupported, match="column c") as caught:
        plan_columns([(F(0, "c", old),)], (F(0, "c", new),))

    assert "cannot be read as" in str(caught.value)


def test_a_value_that_cannot_be_cast_names_the_column():
    plan = plan_columns([(F(0, "old", "STRING"),)], (F(0, "c", "INT"),))

    with pytest.raises(DataMismatch, match=r"column c: .*'x' is not a whole number"):
        plan.apply([pa.table({"old": ["x"]})])


# --- predicates ---

FILE = (
    F(0, "a_old", "INT"),
    F(1, "s", "STRING"),
    F(2, "r_old", R(F(3, "x_old", "SMALLINT"), F(4, "t", "STRING"))),
    F(5, "f", "FLOAT"),
)
A = F(0, "a", "BIGINT")
S = F(1, "s", "STRING")
ROW = F(2, "r", R(F(3, "x", "INT"), F(9, "n", "INT")))
FLOAT = F(5, "f", "DOUBLE")
NEW = F(8, "n", "INT")

IS_A = Leaf(A, Op.EQUAL, (5,))
IS_A_OLD = Leaf(FILE[0], Op.EQUAL, (5,))
IS_S = Leaf(S, Op.STARTS_WITH, ("x",))
IS_NEW = Leaf(NEW, Op.IS_NULL)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (IS_A, IS_A_OLD),
        (Leaf(A, Op.IN, (1, 2, None)), Leaf(FILE[0], Op.IN, (1, 2, None))),
        (Leaf(A, Op.IS_NOT_NULL), Leaf(FILE[0], Op.IS_NOT_NULL)),
        (Leaf(A, Op.LESS_THAN, (2**31,)), None),
        (Leaf(F(0, "a", "SMALLINT"), Op.EQUAL, (5,)), None),
        (Leaf(F(0, "a", "STRING"), Op.EQUAL, ("5",)), None),
        (Leaf(FLOAT, Op.EQUAL, (0.5,)), None),
        (IS_S, IS_S),
        (IS_NEW, None),
        (And((IS_A, IS_NEW)), IS_A_OLD),
        (And((IS_A, IS_S)), And((IS_A_OLD, IS_S))),
        (And((IS_NEW, IS_NEW)), None),
        (Or((IS_A, IS_S)), Or((IS_A_OLD, IS_S))),
        (Or((IS_A, IS_NEW)), None),
        (And((IS_S, Or((IS_A, IS_NEW)))), IS_S),
        (Leaf(ROW, Op.EQUAL, (7,), ("x",)), Leaf(FILE[2], Op.EQUAL, (7,), ("x_old",))),
        (Leaf(ROW, Op.EQUAL, (70_000,), ("x",)), None),
        (Leaf(ROW, Op.EQUAL, (7,), ("n",)), None),
        (Leaf(ROW, Op.EQUAL, (7,), ("no",)), None),
        (Leaf(A, Op.EQUAL, (7,), ("no",)), None),
        (Leaf(ROW, Op.IS_NULL), None),
    ],
)
def test_a_predicate_is_translated_as_far_as_the_file_can_answer_it(predicate, expected):
    assert translate_predicate(predicate, FILE) == expected
