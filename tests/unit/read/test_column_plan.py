"""Plans from files to rows: what is filled in, what is carried on, what is handed out."""

import pyarrow as pa
import pytest

from data_files import fields_of, table_of
from emberlake.errors import DataMismatch
from emberlake.predicates.expressions import And, Leaf, Op
from emberlake.read.column_plan import Constant, Stored, plan_columns
from emberlake.read.projection import OutputShape, project, project_all
from emberlake.spec.key_value import KIND, KIND_FIELD
from emberlake.types import DataField, RowType

FIELDS = fields_of(day="STRING", id="BIGINT", n="INT")
DAY, ID, N = FIELDS
MONDAY = {"day": pa.scalar("mon")}
STORED = table_of((ID, N), [1, 2, 3], [10, None, 30])
RECORDS = table_of((ID, KIND_FIELD), [1, 2, 3, 4], [0, 1, 2, 3])


def test_what_the_read_knows_is_filled_in() -> None:
    plan = plan_columns([FIELDS], FIELDS, constants=["day"])

    assert plan.files[0].read == (ID, N)
    assert plan.apply([STORED.slice(0, 1)], MONDAY).to_pylist() == [
        {"day": "mon", "id": 1, "n": 10}
    ]


def test_columns_that_are_all_filled_in_have_as_many_rows_as_are_stored() -> None:
    plan = plan_columns([FIELDS], (DAY,), constants=["day"])

    assert plan.files[0].read == ()
    assert plan.apply([STORED.select([])], MONDAY).to_pylist() == [{"day": "mon"}] * 3


def test_a_filter_may_need_both_a_constant_and_a_file() -> None:
    matching = And((Leaf(DAY, Op.EQUAL, ("mon",)), Leaf(N, Op.GREATER_THAN, (10,))))
    plan = plan_columns(
        [FIELDS],
        (DAY, N),
        OutputShape(project(FIELDS, ["day"])),
        predicate=matching,
        constants=["day"],
    )
    rows = [STORED.select(["n"])]

    assert plan.apply(rows, MONDAY).to_pylist() == [{"day": "mon"}]
    assert plan.apply(rows, {"day": pa.scalar("tue")}).num_rows == 0


def test_columns_of_the_filter_alone_are_not_carried_on() -> None:
    plan = plan_columns(
        [FIELDS],
        (N, ID),
        OutputShape(project(FIELDS, ["id"])),
        predicate=Leaf(N, Op.GREATER_THAN, (10,)),
    )

    assert plan.files[0].read == (N, ID)
    assert plan.test is not None
    assert plan.test.kept == ((1,),)
    assert plan.apply([STORED.select(["n", "id"])]).to_pylist() == [{"id": 3}]


def test_only_rows_that_come_out_are_cast() -> None:
    text = DataField(2, "n", fields_of(n="STRING")[0].type)
    stored = table_of((ID, text), [1, 2], ["7", "no number"])

    plan = plan_columns([(ID, text)], (ID, N), predicate=Leaf(ID, Op.EQUAL, (1,)))

    assert plan.apply([stored]).to_pylist() == [{"id": 1, "n": 7}]
    with pytest.raises(DataMismatch, match="column n"):
        plan_columns([(ID, text)], (ID, N)).apply([stored])


@pytest.mark.parametrize(
    ("drops", "keeps", "expected"),
    [
        (False, True, [("+I", 1), ("-U", 2), ("+U", 3), ("-D", 4)]),
        (True, True, [("+I", 1), ("+U", 3)]),
        (True, False, [("+I", 1), ("+I", 3)]),
    ],
)
def test_kinds_are_kept_or_rows_are_inserts(
    drops: bool, keeps: bool, expected: list[tuple[str, int]]
) -> None:
    shape = OutputShape(project_all((ID,)), with_kind=True)
    plan = plan_columns([(ID, KIND_FIELD)], (ID,), shape, drops_retracts=drops, keeps_kind=keeps)

    rows = plan.apply([RECORDS.select([f.name for f in plan.files[0].read])])

    assert [(r["_row_kind"], r["id"]) for r in rows.to_pylist()] == expected
    assert KIND not in rows.column_names


def test_fields_of_a_row_come_out_flat_beside_what_is_left_of_it() -> None:
    inner = RowType(True, fields_of(x="INT", y="STRING"))
    row = DataField(5, "s", inner)
    stored = table_of((row,), [(1, "a"), None])
    shape = OutputShape(project((row,), {"y": "s.y", "whole": "s", "x": "s.x"}))

    plan = plan_columns([(row,)], shape.projection.read_fields((row,), None), shape)

    assert plan.apply([stored]).to_pylist() == [
        {"y": "a", "whole": {"x": 1, "y": "a"}, "x": 1},
        {"y": None, "whole": None, "x": None},
    ]


def test_sources_name_their_file() -> None:
    plan = plan_columns([(ID,), (N,)], FIELDS, constants=["day"])

    assert [i.source for i in plan.output.inputs] == [
        Constant("day"),
        Stored(0, 0, ID.type),
        Stored(1, 0, N.type),
    ]
    parts = [STORED.select(["id"]), STORED.select(["n"])]
    assert plan.apply(parts, MONDAY).to_pylist()[2] == {"day": "mon", "id": 3, "n": 30}
