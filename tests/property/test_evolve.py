"""Evolution against a model that works on one row at a time."""

import decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from emberlake.predicates.evaluate import evaluate
from emberlake.predicates.expressions import And, Leaf, Op, Or
from emberlake.read.casts import cast_array
from emberlake.read.column_plan import plan_columns
from emberlake.read.evolve import translate_predicate
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType, arrow_schema

ROOTS = ["TINYINT", "SMALLINT", "INT", "BIGINT", "STRING"]
WIDER = {
    "TINYINT": ["TINYINT", "SMALLINT", "INT", "BIGINT"],
    "SMALLINT": ["SMALLINT", "INT", "BIGINT"],
    "INT": ["INT", "BIGINT"],
    "BIGINT": ["BIGINT"],
    "STRING": ["STRING"],
}


@st.composite
def evolved_types(draw, ids, depth=2):
    """A type and what it may have become."""
    kind = draw(st.sampled_from(["atom", "row", "array", "map"] if depth else ["atom"]))
    if kind == "atom":
        root = draw(st.sampled_from(ROOTS))
        return AtomicType(root), AtomicType(draw(st.sampled_from(WIDER[root])))
    if kind == "row":
        old, new = draw(evolved_fields(ids, depth - 1))
        return RowType(True, old), RowType(True, new)
    old, new = draw(evolved_types(ids, depth - 1))
    if kind == "array":
        return ArrayType(True, old), ArrayType(True, new)
    key = AtomicType("INT NOT NULL")
    return MapType(True, key, old), MapType(True, key, new)


@st.composite
def evolved_fields(draw, ids, depth=2):
    """Columns and what they may have become: kept, renamed, widened, dropped, added, reordered."""
    old, new = [], []
    for _ in range(draw(st.integers(1, 3))):
        field_id = next(ids)
        before, after = draw(evolved_types(ids, depth))
        old.append(DataField(field_id, f"o{field_id}", before))
        if draw(st.integers(0, 4)):
            new.append(DataField(field_id, f"n{field_id}", after))
    if not new or draw(st.booleans()):
        field_id = next(ids)
        new.append(DataField(field_id, f"n{field_id}", AtomicType("INT")))
    return tuple(old), tuple(draw(st.permutations(new)))


@st.composite
def schemas(draw):
    return draw(evolved_fields(iter(range(1000))))


def values(data_type):
    match data_type:
        case RowType(fields=fields):
            inner = st.fixed_dictionaries({f.name: values(f.type) for f in fields})
        case ArrayType(element=element):
            inner = st.lists(values(element), max_size=3)
        case MapType(value=value):
            inner = st.dictionaries(st.integers(0, 5), values(value), max_size=3).map(
                lambda pairs: list(pairs.items())
            )
        case AtomicType(root="STRING" | "VARCHAR"):
            inner = st.sampled_from(["", "a", "ñ"])
        case _:
            inner = st.integers(-5, 5)
    return st.none() | inner


def has_part(old, new):
    """Whether anything of the old type is wanted."""
    match old, new:
        case RowType(), RowType():
            return any(
                a.id == b.id and has_part(a.type, b.type) for a in old.fields for b in new.fields
            )
        case ArrayType(), ArrayType():
            return has_part(old.element, new.element)
        case MapType(), MapType():
            return has_part(old.value, new.value)
        case _:
            return True


def model(value, old, new):
    if value is None or not has_part(old, new):
        return None
    match old, new:
        case RowType(), RowType():
            return model_row(value, old.fields, new.fields)
        case ArrayType(), ArrayType():
            return [model(v, old.element, new.element) for v in value]
        case MapType(), MapType():
            return [(k, model(v, old.value, new.value)) for k, v in value]
        case _:
            return value


def model_row(row, old_fields, new_fields):
    by_id = {f.id: f for f in old_fields}
    out = {}
    for field in new_fields:
        old = by_id.get(field.id)
        out[field.name] = None if old is None else model(row[old.name], old.type, field.type)
    return out


def prune(value, data_type):
    """What a reader gives when only a part of a type is asked for."""
    match data_type:
        case _ if value is None:
            return None
        case RowType(fields=fields):
            return {f.name: prune(value[f.name], f.type) for f in fields}
        case ArrayType(element=element):
            return [prune(v, element) for v in value]
        case MapType(value=inner):
            return [(k, prune(v, inner)) for k, v in value]
        case _:
            return value


def file_table(rows, columns):
    if not columns:
        return pa.table({"x": pa.nulls(len(rows))}).select([])
    pruned = [{c.name: prune(row[c.name], c.type) for c in columns} for row in rows]
    return pa.Table.from_pylist(pruned, schema=arrow_schema(columns))


@given(schemas(), st.data())
def test_evolution_equals_the_model_of_single_rows(pair, data):
    old, new = pair
    row = st.fixed_dictionaries({f.name: values(f.type) for f in old})
    rows = data.draw(st.lists(row, max_size=5))
    plan = plan_columns([old], new)

    result = plan.apply([file_table(rows, plan.files[0].read)])

    result.validate(full=True)
    assert result.schema == arrow_schema(new)
    assert result.to_pylist() == [model_row(r, old, new) for r in rows]


OLD = (
    DataField(0, "a", AtomicType("TINYINT")),
    DataField(1, "b", AtomicType("INT")),
    DataField(2, "c", AtomicType("STRING")),
)
NEW = (
    DataField(1, "a", AtomicType("BIGINT")),
    DataField(0, "b", AtomicType("INT")),
    DataField(2, "c", AtomicType("STRING")),
    DataField(3, "d", AtomicType("INT")),
)


def leaves():
    number = st.integers(-6, 6) | st.sampled_from([127, 128, -129, 2**31 - 1])
    ops = st.sampled_from([Op.EQUAL, Op.NOT_EQUAL, Op.LESS_THAN, Op.LESS_OR_EQUAL, Op.GREATER_THAN])
    numbers = st.builds(
        lambda column, op, value: Leaf(column, op, (value,)),
        st.sampled_from([NEW[0], NEW[1], NEW[3]]),
        ops,
        number,
    )
    many = st.builds(
        lambda column, op, values: Leaf(column, op, tuple(values)),
        st.sampled_from([NEW[0], NEW[1], NEW[3]]),
        st.sampled_from([Op.IN, Op.NOT_IN]),
        st.lists(number, max_size=3),
    )
    nulls = st.builds(Leaf, st.sampled_from(NEW), st.sampled_from([Op.IS_NULL, Op.IS_NOT_NULL]))
    texts = st.builds(
        lambda value: Leaf(NEW[2], Op.STARTS_WITH, (value,)), st.sampled_from(["", "a"])
    )
    return numbers | many | nulls | texts


def predicates():
    return st.recursive(
        leaves(),
        lambda inner: st.builds(
            lambda kind, children: kind(tuple(children)),
            st.sampled_from([And, Or]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        max_leaves=6,
    )


@given(predicates(), st.data())
def test_a_translated_predicate_never_loses_a_row(predicate, data):
    row = st.fixed_dictionaries({f.name: values(f.type) for f in OLD})
    rows = pa.Table.from_pylist(data.draw(st.lists(row, max_size=6)), schema=arrow_schema(OLD))
    plan = plan_columns([OLD], NEW)
    evolved = plan.apply([rows.select([f.name for f in plan.files[0].read])])
    translated = translate_predicate(predicate, OLD)

    wanted = evaluate(predicate, evolved).to_pylist()

    if translated is not None:
        kept = evaluate(translated, rows).to_pylist()
        assert all(k for w, k in zip(wanted, kept, strict=True) if w)


FLOATS = st.floats() | st.floats(-1e7, 1e7) | st.floats(-1, 1)


@given(st.lists(FLOATS, max_size=5))
def test_the_text_of_a_number_is_the_number(numbers):
    texts = cast_array(pa.array(numbers, pa.float64()), AtomicType("DOUBLE"), AtomicType("STRING"))

    back = cast_array(texts, AtomicType("STRING"), AtomicType("DOUBLE"))

    assert [repr(v) for v in back.to_pylist()] == [repr(v) for v in numbers]
    assert all("." in t or t in ("NaN", "Infinity", "-Infinity") for t in texts.to_pylist())


@given(
    st.lists(FLOATS.filter(lambda v: v == v and abs(v) != float("inf")), max_size=5),
    st.integers(1, 38),
    st.data(),
)
def test_a_float_becomes_the_decimal_of_its_shortest_text(numbers, precision, data):
    scale = data.draw(st.integers(0, precision))
    target = AtomicType(f"DECIMAL({precision}, {scale})")
    exact = decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)
    limit = decimal.Decimal(10) ** (precision - scale)

    result = cast_array(pa.array(numbers, pa.float64()), AtomicType("DOUBLE"), target)

    rounded = [
        decimal.Decimal(repr(v)).quantize(decimal.Decimal(1).scaleb(-scale), context=exact)
        for v in numbers
    ]
    assert result.to_pylist() == [None if r.copy_abs() >= limit else r for r in rounded]


@given(
    st.lists(st.integers(-(10**38) + 1, 10**38 - 1), max_size=5),
    st.integers(0, 38),
    st.integers(1, 38),
    st.data(),
)
def test_decimals_round_as_the_model_does(unscaled, old_scale, precision, data):
    scale = data.draw(st.integers(0, precision))
    exact = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)
    numbers = [decimal.Decimal(n).scaleb(-old_scale, context=exact) for n in unscaled]
    old, new = AtomicType(f"DECIMAL(38, {old_scale})"), AtomicType(f"DECIMAL({precision}, {scale})")
    limit = decimal.Decimal(10) ** (precision - scale)

    array = pa.array(numbers, pa.decimal128(38, old_scale))
    result = cast_array(array, old, new)
    texts = cast_array(array, old, AtomicType("STRING"))

    rounded = [n.quantize(decimal.Decimal(1).scaleb(-scale), context=exact) for n in numbers]
    assert result.to_pylist() == [None if r.copy_abs() >= limit else r for r in rounded]
    assert [decimal.Decimal(t) for t in texts.to_pylist()] == numbers
    assert all("E" not in t for t in texts.to_pylist())
