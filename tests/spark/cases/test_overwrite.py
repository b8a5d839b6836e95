"""What a call replaces, against the model that the engine itself is tested with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from emberlake import DataMismatch, InvalidInput, Table
from emberlake.spark import write_paimon
from overwrite_cases import BEFORE, MONDAY, Case, Refused, Row, expected
from spark.reads import write_arrow
from spark.tables import frame, new_table, reopened, rows_of

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("v", pa.string())]
)
SPARK_COLUMNS = "id bigint, day string, v string"
KEY = {"primary_keys": ["id"], "bucket": "1"}
ONE, SEVERAL, NONE = "one partition", "several partitions", "no data"


class Call(NamedTuple):
    """A call of `write_paimon` on a table whose option is dynamic or not."""

    overwrite: bool | str
    partition: Mapping[str, str] | None
    option_is_dynamic: bool
    data: str
    has_key: bool = False

    def __str__(self) -> str:
        option = "dynamic" if self.option_is_dynamic else "static"
        kind = "key" if self.has_key else "append"
        return f"{self.overwrite}, {self.partition and 'mon'}, {option}, {self.data}, {kind}"

    @property
    def case(self) -> Case:
        """The same in the words of the model."""
        builder_call = "overwrite()" if self.partition is None else "overwrite(mon)"
        match self.overwrite:
            case "all":
                return Case("overwrite({})", "commit()", True, self.data)
            case "dynamic" | "static":
                return Case(builder_call, "commit()", self.overwrite == "dynamic", self.data)
        is_dynamic = self.option_is_dynamic and self.partition is None
        return Case(builder_call, "commit()", is_dynamic, self.data)


# Every word with every option, kind of data and kind of table; not all of them with each other.
CALLS = [
    Call(True, None, True, SEVERAL),
    Call(True, None, True, NONE, has_key=True),
    Call(True, None, False, ONE, has_key=True),
    Call(True, MONDAY, True, ONE, has_key=True),
    Call(True, MONDAY, True, NONE),
    Call(True, MONDAY, False, SEVERAL),
    Call("dynamic", None, False, ONE),
    Call("dynamic", None, False, NONE, has_key=True),
    Call("dynamic", MONDAY, True, NONE),
    Call("dynamic", MONDAY, False, ONE, has_key=True),
    Call("static", None, True, NONE),
    Call("static", MONDAY, True, NONE, has_key=True),
    Call("static", MONDAY, True, SEVERAL),
    Call("all", None, True, NONE, has_key=True),
    Call("all", None, True, ONE),
]


def three_days(warehouse: Path, call: Call) -> Table:
    table = new_table(
        warehouse,
        columns=COLUMNS,
        partition_keys=["day"],
        dynamic_partition_overwrite=str(call.option_is_dynamic).lower(),
        **(KEY if call.has_key else {}),
    )
    return write_arrow(table, pa.Table.from_pylist([row._asdict() for row in BEFORE]))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_call_replaces_what_it_says(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    table = three_days(tmp_path, call)
    try:
        want = expected(call.case, has_partitions=True, has_key=call.has_key)
    except Refused:
        want = Refused

    def write() -> list[Row] | type[Refused]:
        try:
            write_paimon(
                frame(spark, call.case.rows, SPARK_COLUMNS),
                "db.t",
                {"warehouse": str(tmp_path)},
                overwrite=call.overwrite,
                static_partition=call.partition,
                concurrency=1,
            )
        except DataMismatch:
            return Refused
        return [Row(*row) for row in rows_of(table)]

    assert write() == want


def test_all_that_is_below_a_static_partition_is_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    hours = COLUMNS.append(pa.field("hour", pa.int32()))
    table = new_table(tmp_path, columns=hours, partition_keys=["day", "hour"])
    rows = [(1, "mon", "old", 1), (2, "mon", "old", 2), (3, "tue", "old", 1)]
    names = [dict(zip(hours.names, row, strict=True)) for row in rows]
    write_arrow(table, pa.Table.from_pylist(names, schema=hours))
    new = frame(spark, [(4, "mon", "new", 1)], f"{SPARK_COLUMNS}, hour int")
    warehouse = {"warehouse": str(tmp_path)}

    write_paimon(new, "db.t", warehouse, overwrite=True, static_partition=MONDAY)

    assert rows_of(table) == [(3, "tue", "old", 1), (4, "mon", "new", 1)]


def test_a_writer_says_it_too_for_what_its_builder_was_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = three_days(tmp_path, Call(True, None, True, NONE))
    nothing = frame(spark, [], SPARK_COLUMNS)

    def write(overwrite: Any, partition: Mapping[str, str] | None = None) -> list[Any]:
        builder = reopened(table).new_batch_write_builder()
        if partition is not None:
            builder.overwrite(partition)
        with builder.new_write() as opened:
            opened.write_spark(nothing, overwrite=overwrite)
        return [row[1] for row in rows_of(table)]

    assert write("dynamic", MONDAY) == ["mon", "tue", "wed"]
    with pytest.raises(InvalidInput, match="a partition is given"):
        write("all", MONDAY)
    assert write("static", MONDAY) == ["tue", "wed"]
    assert write("all") == []


def test_an_overwrite_that_is_none_of_the_choices_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = three_days(tmp_path, Call(True, None, True, NONE))
    nothing, warehouse = frame(spark, [], SPARK_COLUMNS), {"warehouse": str(tmp_path)}

    with pytest.raises(InvalidInput, match="'some' is not one of True, False, 'dynamic'"):
        write_paimon(nothing, "db.t", warehouse, overwrite="some")
    with pytest.raises(InvalidInput, match="a partition is given"):
        write_paimon(nothing, "db.t", warehouse, overwrite="all", static_partition=MONDAY)
    assert len(rows_of(table)) == len(BEFORE)


@pytest.mark.parametrize(("partition_keys", "left"), [((), 0), (("day",), 3)], ids=["all", "none"])
def test_the_data_source_replaces_by_no_rows_what_a_call_does(
    spark: SparkSession, tmp_path: Path, partition_keys: tuple[str, ...], left: int
) -> None:
    table = new_table(tmp_path, columns=COLUMNS, partition_keys=partition_keys)
    write_arrow(table, pa.Table.from_pylist([row._asdict() for row in BEFORE]))
    nothing = frame(spark, [], SPARK_COLUMNS)

    writer = nothing.write.format("emberlake").option("warehouse", str(tmp_path))
    writer.mode("overwrite").save("db.t")

    assert len(rows_of(table)) == left
