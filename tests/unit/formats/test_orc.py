"""ORC files: attributes, the types that ORC lacks, and Arrow's traps."""

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
import pytest

from data_files import PATH, fields_of, read_file, reader_of, table_of, write_file
from emberlake.errors import Unsupported
from emberlake.formats import open_writer
from emberlake.io import MemoryStorage
from emberlake.options import TableOptions
from emberlake.types import ArrayType, AtomicType, DataField, MapType, RowType


def orc_of(storage) -> po.ORCFile:
    return po.ORCFile(pa.py_buffer(storage.read(PATH)))


def test_ids_go_along_as_attributes() -> None:
    fields = (
        DataField(3, "a", ArrayType(True, AtomicType("INT"))),
        DataField(4, "m", MapType(True, AtomicType("STRING"), AtomicType("INT"))),
        DataField(7, "r", RowType(True, (DataField(8, "x", AtomicType("INT")),))),
    )

    schema = orc_of(write_file("orc", fields)).schema

    def id_of(field: pa.Field) -> int:
        return int(field.metadata[b"paimon.id"])

    assert [id_of(f) for f in schema] == [3, 4, 7]
    assert id_of(schema.field("a").type.value_field) == 536_870_911 + 3 * 1024 + 1
    assert id_of(schema.field("m").type.key_field) == 536_870_911 - 4 * 1024 - 1
    assert id_of(schema.field("m").type.item_field) == 536_870_911 + 4 * 1024 + 1
    assert id_of(schema.field("r").type.field("x")) == 8


def test_times_are_integers_of_milliseconds() -> None:
    fields = fields_of(t="TIME(3)", ts=ArrayType(True, AtomicType("TIME(0)")))
    table = table_of(fields, [1, None, 86_399_999], [[5000, None], None, []])

    storage = write_file("orc", fields, table)

    assert orc_of(storage).schema.field("t").type == pa.int32()
    assert orc_of(storage).read().column("t").to_pylist() == [1, None, 86_399_999]
    assert read_file(storage, fields, "orc").equals(table)


def test_timestamps_keep_their_precision_and_zone() -> None:
    fields = fields_of(
        s="TIMESTAMP(0)", ms="TIMESTAMP(3)", us="TIMESTAMP_LTZ(6)", ns="TIMESTAMP(9)"
    )
    values = [[-(10**9), None, 0], [10**6, None, 0], [1000, None, -(10**9)], [1, None, 0]]
    table = table_of(fields, *values)

    assert read_file(write_file("orc", fields, table), fields, "orc").equals(table)


@pytest.mark.parametrize("column_type", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", "TIMESTAMP(9)"])
def test_timestamps_that_arrow_garbles_are_refused(column_type: str) -> None:
    for data_type, value in (
        (AtomicType(column_type), -(10**6)),
        (ArrayType(True, AtomicType(column_type)), [-(10**6)]),
    ):
        fields = fields_of(id="INT", old=data_type)
        writer = open_writer(MemoryStorage(), PATH, fields, TableOptions(), "orc")

        with pytest.raises(Unsupported, match=r"old.*1970"):
            writer.write(table_of(fields, [1], [value]))
        writer.abort()


def test_years_that_arrow_cannot_read_from_orc_are_refused() -> None:
    fields = fields_of(id="INT", t="TIMESTAMP(3)")
    storage = write_file("orc", fields, table_of(fields, [1], [253_402_300_799 * 10**9]))

    with pytest.raises(Unsupported, match="1677"):
        read_file(storage, fields, "orc")
    assert read_file(storage, fields[:1], "orc").to_pylist() == [{"id": 1}]


def test_slices_of_nested_columns_are_written_as_what_they_show() -> None:
    inner = RowType(True, (DataField(1, "x", AtomicType("INT NOT NULL")),))
    fields = fields_of(
        r=inner, a=ArrayType(True, inner), n=RowType(True, (DataField(2, "r", inner),))
    )
    rows = [(i,) if i % 3 else None for i in range(20)]
    table = table_of(
        fields, rows, [[r] * (i % 3) for i, r in enumerate(rows)], [(r,) for r in rows]
    )

    storage = write_file("orc", fields, table.slice(3, 4), table.slice(11, 9))

    expected = pa.concat_tables([table.slice(3, 4), table.slice(11, 9)])
    assert read_file(storage, fields, "orc").to_pylist() == expected.to_pylist()


def test_stripes_are_read_one_after_the_other() -> None:
    fields = fields_of(id="BIGINT")
    part = pa.table({"id": np.random.default_rng(0).integers(0, 2**60, 100_000)})
    storage = write_file("orc", fields, part, part, options={"file.block-size": "64 kb"})

    with reader_of(storage, fields, "orc") as reader:
        start, _ = next(reader.read(fields))

        assert reader.row_group_count > 1
        assert reader.row_groups_read == 1
    assert start == 0
