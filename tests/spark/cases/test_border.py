"""What crosses between the engine and Spark is the same in every mode: values and filters."""

import pyarrow as pa
from pyspark.sql import functions as sql

from emberlake.predicates import Leaf, Op, filter_rows
from emberlake.spark.filters import to_column
from emberlake.spark.types import handed_out, spark_schema, to_spark_batch
from emberlake.spec.values import from_arrow_array
from emberlake.types import AtomicType, DataField
from emberlake.write.align import align
from spark.border import (
    HARD,
    Source,
    a_field,
    hard_rows,
    hard_table,
    hard_values,
    in_micros,
    shown,
    through_spark,
    wide_fields,
)

ID = DataField(0, "id", AtomicType("INT", False))


def test_every_hard_value_survives(spark):
    fields = tuple(f for f in wide_fields() if not f.type.is_nested or "TIMESTAMP" in f.name)
    rows = hard_rows(fields)

    seen = through_spark(spark, rows, fields)

    columns = [
        [in_micros(f.type, v) for v in from_arrow_array(f.type, rows[f.name])] for f in fields
    ]
    assert shown(align(seen, fields), fields) == shown(hard_table(fields, columns), fields)


def test_filters_keep_our_rows(spark):
    fields = tuple(a_field(text) for text in HARD)
    columns = [[*hard_values(f.type), *[None] * 16][:16] for f in fields]
    rows = hard_table((ID, *fields), [list(range(16)), *columns])
    said = {
        leaf: column
        for field in fields
        for value in hard_values(field.type)[:3]
        for op in (Op.EQUAL, Op.NOT_EQUAL, Op.LESS_THAN, Op.GREATER_OR_EQUAL, Op.IN, Op.NOT_IN)
        if (column := to_column(leaf := Leaf(field, op, (value,)))) is not None
    }

    (batch,) = to_spark_batch(rows, handed_out((ID, *fields))).combine_chunks().to_batches()
    df = spark.range(1).coalesce(1).mapInArrow(Source(batch), spark_schema((ID, *fields)))
    truths = [sql.coalesce(c, sql.lit(False)).alias(str(i)) for i, c in enumerate(said.values())]
    table: pa.Table = df.select("id", *truths).toArrow()

    found = {leaf: table.filter(table[str(i)])["id"].to_pylist() for i, leaf in enumerate(said)}
    assert found == {leaf: filter_rows(leaf, rows)["id"].to_pylist() for leaf in said}
    assert len(said) > 300
