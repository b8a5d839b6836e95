"""A filtered read has every row that matches, for any row groups and filters."""

import io
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from data_files import fields_of, reader_of, storage_with
from emberlake.formats import parquet
from emberlake.predicates import filter_rows
from emberlake.predicates.expressions import And, Leaf, Op, Or, Predicate
from emberlake.types import arrow_schema

FIELDS = fields_of(place="BIGINT", a="INT", b="BIGINT", s="STRING")
COMPARED = {field.name: field for field in FIELDS}
COMPARISONS = (Op.EQUAL, Op.NOT_EQUAL, Op.LESS_THAN, Op.LESS_OR_EQUAL, Op.GREATER_THAN)

values = st.one_of(st.none(), st.integers(0, 6))
rows = st.tuples(values, values, st.one_of(st.none(), st.sampled_from("abc")))
groups = st.tuples(st.lists(rows, max_size=12), st.booleans())


def leaves(name: str, literals: st.SearchStrategy[object]) -> st.SearchStrategy[Leaf]:
    field = COMPARED[name]
    compared = st.builds(
        lambda op, literal: Leaf(field, op, (literal,)), st.sampled_from(COMPARISONS), literals
    )
    return compared | st.sampled_from([Leaf(field, Op.IS_NULL), Leaf(field, Op.IS_NOT_NULL)])


LEAVES = (
    leaves("a", st.integers(-1, 7))
    | leaves("b", st.integers(-1, 7))
    | leaves("s", st.sampled_from(["", "a", "b", "d"]))
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda p: And(tuple(p)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda p: Or(tuple(p)))
    ),
    max_leaves=3,
)


@given(
    st.lists(groups, min_size=1, max_size=4),
    PREDICATES,
    st.permutations(FIELDS),
    st.integers(1, 20),
    st.integers(1, 6),
)
def test_no_row_that_matches_is_left_out(
    parts: list[tuple[list[tuple[object, ...]], bool]],
    predicate: Predicate,
    columns: list,
    batch_rows: int,
    probed_rows: int,
) -> None:
    everything, raw = written(parts)
    expected = filter_rows(predicate, everything).select([column.name for column in columns])

    with (
        mock.patch.object(parquet, "_PROBED_ROWS", probed_rows),
        reader_of(storage_with(raw), FIELDS, "parquet") as reader,
    ):
        batches = list(reader.read(tuple(columns), predicate, batch_rows))
        table = reader.read_table(tuple(columns), predicate)

    for position, batch in batches:
        places = batch.column("place").to_pylist()
        assert places == list(range(position, position + batch.num_rows))
    joined = pa.Table.from_batches([b for _, b in batches], arrow_schema(tuple(columns)))
    assert filter_rows(predicate, joined) == expected
    assert filter_rows(predicate, table) == expected


def written(
    parts: list[tuple[list[tuple[object, ...]], bool]],
) -> tuple[pa.Table, bytes]:
    """All rows, each with its place, and a file with a row group for every part."""
    schema, sink, tables = arrow_schema(FIELDS), io.BytesIO(), []
    with pq.ParquetWriter(sink, schema) as writer:
        start = 0
        for found, is_sorted in parts:
            ordered = sorted(found, key=repr) if is_sorted else found
            columns = zip(*ordered, strict=True) if ordered else ([], [], [])
            data = [range(start, start + len(ordered)), *columns]
            table = pa.table(
                [pa.array(list(c), f.type) for c, f in zip(data, schema, strict=True)],
                schema=schema,
            )
            writer.write_table(table)
            tables.append(table)
            start += len(ordered)
    return pa.concat_tables(tables), sink.getvalue()
