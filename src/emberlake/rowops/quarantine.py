"""What a quarantine table holds: rows that their table could not take, and why.

One table can keep rows of many tables and sources, so a row is kept as JSON, whatever its columns
were. Rows go into quarantine before the others become visible: every row is in its table or in
quarantine.

- ``BadRowRule.parse(on_bad_rows)``: ``"fail"``, ``"skip"``, or the name of the quarantine.
- ``QUARANTINE``: the columns; ``quarantined(given, bad, origin)``: rows for them.
- ``check_quarantine(schema)``: refuses a table with other columns.

- ``quarantine_of(store, target)``: the table; its catalog opens or creates it.
"""

import json
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.errors import DataMismatch, InvalidInput
from emberlake.read.row_texts import iter_json_rows
from emberlake.spec.schema import TableSchema
from emberlake.store.table_store import TableStore
from emberlake.types import arrow_schema
from emberlake.write.bad_rows import BadRows

FAIL: Final = "fail"
SKIP: Final = "skip"

QUARANTINE: Final = pa.schema(
    [
        ("row", pa.string()),  # JSON: the row as it was given
        ("reason", pa.string()),
        ("column_name", pa.string()),  # the first one at fault
        ("table_name", pa.string()),  # the table that the row was meant for
        ("job", pa.string()),
        ("rejected_at", pa.timestamp("ms", "UTC")),
        ("source_file", pa.string()),
        ("source_line", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class BadRowRule:
    """What happens to rows that do not fit."""

    quarantine: str | None = None  # a table, or the path of one
    skips: bool = False

    @property
    def fails(self) -> bool:
        """Whether one bad row fails the whole write."""
        return self.quarantine is None and not self.skips

    @staticmethod
    def parse(on_bad_rows: object) -> "BadRowRule":
        """The rule for a value of ``on_bad_rows``.

        Raises:
            InvalidInput: it is neither a word nor the name or path of a table.
        """
        match on_bad_rows:
            case "fail":
                return BadRowRule()
            case "skip":
                return BadRowRule(skips=True)
            case str() if "." in on_bad_rows or "/" in on_bad_rows:
                return BadRowRule(quarantine=on_bad_rows.strip())
            case _:
                raise InvalidInput(
                    f"on_bad_rows={on_bad_rows!r:.40}: bad rows fail the write ('fail'), are left "
                    "out ('skip'), or go to a table: its name 'db.t', or its path '.../db.db/t'"
                )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where bad rows come from."""

    table: str
    job: str
    millis: int  # when
    file: str | None = None


def quarantined(
    given: pa.Table, bad: BadRows, origin: Origin, lines: pa.Array | None = None
) -> pa.Table:
    """Rows of the quarantine table.

    Args:
        given: The bad rows, as they were given.
        bad: What is wrong with each of them.
        origin: Where they come from.
        lines: The line of each row in its source file, if there is one.
    """
    texts = [json.dumps(row, ensure_ascii=False) for row in iter_json_rows(given)]
    count = bad.count
    return pa.Table.from_arrays(
        [
            pa.array(texts, pa.string()),
            bad.reasons,
            bad.columns,
            pa.repeat(pa.scalar(origin.table), count),
            pa.repeat(pa.scalar(origin.job), count),
            pa.array(np.full(count, origin.millis), pa.timestamp("ms", "UTC")),
            pa.repeat(pa.scalar(origin.file, pa.string()), count),
            pa.nulls(count, pa.int64()) if lines is None else lines,
        ],
        schema=QUARANTINE,
    )


def quarantine_of(store: TableStore, target: str) -> TableStore:
    """The table that keeps the bad rows of another, by its name or its path.

    Raises:
        InvalidInput: the other table was opened without a catalog, so names mean nothing.
    """
    if store.siblings is None:
        raise InvalidInput(
            f"on_bad_rows={target!r}: the table was opened without a catalog, which would know "
            "other tables by their names; give the table itself"
        )
    return store.siblings.quarantine(target)


def check_quarantine(name: str, schema: TableSchema) -> None:
    """Refuse a table that cannot keep bad rows.

    Raises:
        DataMismatch: says which columns it lacks.
    """
    has = arrow_schema(schema.fields)
    lacking = [f.name for f in QUARANTINE if f.name not in has.names or has.field(f.name) != f]
    profile = schema.profile
    if lacking or profile.has_keys or profile.is_partitioned:
        why = f"it has no columns {', '.join(lacking)}" if lacking else "it has keys"
        raise DataMismatch(
            f"{name} cannot keep bad rows: {why}; name a table that does not exist yet, and it "
            "will be created"
        )
