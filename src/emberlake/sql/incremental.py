"""Table functions that read what has changed in a table, as options of a read."""

from collections.abc import Sequence
from typing import Final

from emberlake.errors import InvalidSql
from emberlake.options import (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_TO_AUTO_TAG,
)

_QUERY: Final = "paimon_incremental_query"
_BETWEEN_TIMESTAMP: Final = "paimon_incremental_between_timestamp"
_TO_AUTO_TAG: Final = "paimon_incremental_to_auto_tag"
INCREMENTAL_FUNCTIONS: Final = frozenset({_QUERY, _BETWEEN_TIMESTAMP, _TO_AUTO_TAG})


def incremental_read(function: str, arguments: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The name of the table that a function reads, and the options of the read.

    Raises:
        InvalidSql: it takes other arguments.
    """
    match function.lower(), *arguments:
        case (str(name), table, end) if name == _TO_AUTO_TAG:
            return table, {INCREMENTAL_TO_AUTO_TAG.key: end}
        case (str(name), table, start, end) if name == _QUERY:
            return table, {INCREMENTAL_BETWEEN.key: f"{start},{end}"}
        case (str(name), table, start, end) if name == _BETWEEN_TIMESTAMP:
            return table, {INCREMENTAL_BETWEEN_TIMESTAMP.key: f"{start},{end}"}
        case _:
            takes = (
                "a table and a tag"
                if function.lower() == _TO_AUTO_TAG
                else ("a table, a start and an end")
            )
            raise InvalidSql(f"{function} takes {takes}")
