"""Arrays made of their buffers are the arrays that Arrow itself makes."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from emberlake import CatalogFactory
from emberlake.base.arrow_arrays import array_numbers, numbers_array, values_array

TEXTS = pa.large_list(pa.large_string())


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16])
def test_numbers_become_arrays_and_back(dtype: type[np.integer]) -> None:
    numbers = np.array([3, 1, 2], dtype)

    array = numbers_array(numbers)

    array.validate(full=True)
    assert array == pa.array(numbers)
    assert array_numbers(array).tolist() == [3, 1, 2]
    assert array_numbers(array.slice(1, 2)).tolist() == [1, 2]
    assert array_numbers(array.slice(3)).tolist() == []


def test_numbers_may_be_null_and_need_not_lie_together() -> None:
    numbers, is_null = np.arange(20)[::2], np.arange(10) % 3 == 0

    assert numbers_array(numbers, is_null=is_null) == pa.array(numbers, mask=is_null)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.int64()),
        ([1, -5, 2**62], pa.int64()),
        ([1, None, 0], pa.int32()),
        ([b"x", b"", None, b"\xff"], pa.large_binary()),
        (["a", "", None, "ü"], pa.large_string()),
        ([["a", None], [], None, ["b"]], TEXTS),
        ([(1, None), (), None], pa.large_list(pa.int64())),
        ([None, None], TEXTS),
        ([{"x": 1}, None], pa.struct([("x", pa.int64())])),
    ],
)
def test_values_become_the_array_that_arrow_makes_of_them(
    values: list[object], kind: pa.DataType
) -> None:
    array = values_array(values, kind)

    array.validate(full=True)
    assert array == pa.array(values, kind)
    assert array.null_count == values.count(None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["x"], pa.int64()),
        ([1.5], pa.int64()),
        ([2**40], pa.int32()),
        ([1], pa.large_string()),
        (["x"], pa.large_binary()),
        ([1], TEXTS),
    ],
)
def test_values_of_another_type_are_refused(values: list[object], kind: pa.DataType) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, AttributeError)):
        values_array(values, kind)


def test_planning_a_read_does_not_import_pandas(tmp_path) -> None:
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("db")
    catalog.create_table("db.t", rows.schema, partition_keys=["p"]).append(rows)
    program = f"""
import sys
import emberlake
catalog = emberlake.CatalogFactory.create({{"warehouse": {str(tmp_path)!r}}})
splits = catalog.get_table("db.t").new_read_builder().new_scan().plan().splits()
print(sorted({{"pandas", "polars"}} & set(sys.modules)), len(splits))
"""

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[] 2"
