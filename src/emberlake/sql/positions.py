"""Which columns take the values of a query that names none: mostly in the order of the table."""

from collections.abc import Callable, Collection, Sequence

from emberlake.sql.statements import Insert
from emberlake.table import Table


def columns_by_position(
    statement: Insert,
    table: Table,
    static: Collection[str],
    given: Callable[[], Sequence[str]],
    *,
    is_dynamic: bool,
) -> list[str]:
    """The columns that the values of a query go to, one after the other.

    As in Paimon's connector, partition columns that PARTITION (...) names without a value come last
    in the query, as in Hive, wherever the table has them. A query whose columns have the names of
    those of the table is in the order of the table nevertheless.

    Args:
        statement: The insert, without a list of columns.
        table: Where it goes.
        static: The partition columns whose values PARTITION (...) gives.
        given: Gives the names of the columns of the query; it is called if they matter.
        is_dynamic: Whether only the partitions with new rows are replaced.
    """
    in_table = [name for name in table.field_names if name not in static]
    named = {part.column.lower() for part in statement.partition or () if part.value is None}
    last = [name for name in table.partition_keys if name.lower() in named]
    in_hive = _with_last(in_table, last)
    if last and not _are_same(given(), in_table):
        return in_hive
    if statement.overwrite and is_dynamic and not static and not last:
        in_hive = _with_last(in_table, table.partition_keys)
        if _are_same(given(), in_hive):  # a query that was written for a table of Hive
            return in_hive
    return in_table


def _with_last(names: Sequence[str], last: Sequence[str]) -> list[str]:
    return [name for name in names if name not in last] + list(last)


def _are_same(given: Sequence[str], names: Sequence[str]) -> bool:
    return [name.lower() for name in given] == [name.lower() for name in names]
