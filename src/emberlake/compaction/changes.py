"""Find what a compaction changes, and write it to changelog files. Spec: "Changelog producers".

Readers of changes have seen some of the records: with the producer ``lookup`` those above level 0,
with ``full-compaction`` those of the highest level that has files, since the first compaction of a
bucket goes to the top. Where a compaction takes up others, the row of their key changes from what
was seen to the merged row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from emberlake.base.option_texts import MEBIBYTE
from emberlake.merge.levels import without_covered
from emberlake.merge.order import order_rows
from emberlake.merge.plan import MergePlan
from emberlake.merge.rows import retracts_of, take_rows
from emberlake.options import (
    ROW_DEDUPLICATE,
    ROW_DEDUPLICATE_IGNORED,
    ChangelogProducer,
    MergeEngine,
)
from emberlake.read.diff import are_different
from emberlake.spec.column_buffers import I8, I64, Mask
from emberlake.spec.key_value import KIND, LEVEL, SEQUENCE, RowKind
from emberlake.spec.manifest import DataFile
from emberlake.spec.schema import TableSchema
from emberlake.write.key_files import physical_rows
from emberlake.write.rolling import RollingFiles

_GROUP_ROWS: Final = 1_000_000
_GROUP_BYTES: Final = 64 * MEBIBYTE
_NEW, _BEFORE, _AFTER = range(3)


@dataclass(frozen=True)
class ChangeRules:
    """How the changes of a table are found.

    Args:
        plan: How its records are merged.
        seen_level: The one level whose rows have been seen, 0 if there is none yet; None: all above
            level 0 have been seen.
        compared: The columns in which a changed row must differ; None: it need not differ.
    """

    plan: MergePlan
    seen_level: int | None
    compared: tuple[str, ...] | None

    @staticmethod
    def of(
        schema: TableSchema,
        plan: MergePlan,
        files: Iterable[DataFile],
        *,
        output_level: int,
        top_level: int,
    ) -> "ChangeRules | None":
        """The rules for a compaction of a bucket with some files; None if it records no changes."""
        match schema.profile.changelog_producer:
            case ChangelogProducer.LOOKUP if output_level > 0:
                seen_level = None
            case ChangelogProducer.FULL_COMPACTION if output_level == top_level:
                # Not the top: ``num-levels`` may have been smaller when these rows were recorded.
                seen_level = max((file.level for file in files), default=0)
            case _:
                return None
        ignored = schema.options.value(ROW_DEDUPLICATE_IGNORED)
        compared = tuple(name for name in schema.field_names if name not in ignored)
        is_compared = schema.options.value(ROW_DEDUPLICATE)
        return ChangeRules(plan, seen_level, compared if is_compared else None)

    def is_unseen(self, level: int) -> bool:
        """Whether readers of changes have not seen the records of a level."""
        return level == 0 or self.seen_level not in (None, level)

    def find(self, records: pa.Table, merged: pa.Table) -> pa.Table:
        """The changes of some keys, in key order.

        Args:
            records: All records of the keys, with their levels.
            merged: The rows that they become.
        """
        levels = records.column(LEVEL).to_numpy()
        is_unseen = levels == 0
        if self.seen_level is not None:
            is_unseen |= levels != self.seen_level
        merged = take_rows(merged, np.flatnonzero(~retracts_of(merged)))
        if not is_unseen.any():
            return merged.slice(0, 0)
        if is_unseen.all():
            return _with_kinds(merged, np.full(merged.num_rows, RowKind.INSERT, np.int8))
        before = take_rows(records, np.flatnonzero(~is_unseen))
        before = without_covered(self.plan, before).select(merged.column_names)
        before = take_rows(before, np.flatnonzero(~retracts_of(before)))
        touched = take_rows(records, np.flatnonzero(is_unseen))
        return self._compare(touched, before, merged)

    def _compare(self, touched: pa.Table, before: pa.Table, after: pa.Table) -> pa.Table:
        """The changes of the touched keys between two states."""
        names = [f.name for f in self.plan.keys]
        parts = [table.select(names) for table in (touched, before, after)]
        origin = np.repeat([_NEW, _BEFORE, _AFTER], [table.num_rows for table in parts])
        keys = pa.concat_tables(parts)
        keys = keys.append_column(SEQUENCE, pa.array(origin))
        keys = keys.append_column(KIND, pa.array(np.zeros(len(origin), np.int8)))
        order = order_rows(keys, self.plan.keys, ())
        origin = origin[order.rows]  # of one key: what is new, the row before, the row after
        sizes = np.diff(np.append(order.starts, len(origin)))
        has = [np.logical_or.reduceat(origin == part, order.starts) for part in range(3)]
        is_changed = has[_NEW] & (has[_BEFORE] | has[_AFTER])
        is_pair = is_changed & has[_BEFORE] & has[_AFTER]
        rows = pa.concat_tables([before, after])
        positions = order.rows - touched.num_rows
        ends = order.starts + sizes
        if self.plan.engine is MergeEngine.FIRST_ROW:
            is_changed &= ~has[_BEFORE]
        elif self.compared is not None and is_pair.any():
            pairs = np.flatnonzero(is_pair)
            old, new = positions[ends[pairs] - 2], positions[ends[pairs] - 1]
            is_changed[pairs] = are_different(self.compared, rows, old, new)
        kept = np.repeat(is_changed, sizes) & (origin != _NEW)
        kinds = _kinds(origin[kept], np.repeat(is_pair, sizes)[kept])
        return _with_kinds(take_rows(rows, positions[kept]), kinds)


def _kinds(origin: I64, is_pair: Mask) -> I8:
    is_after = origin == _AFTER
    updates = np.where(is_after, RowKind.UPDATE_AFTER, RowKind.UPDATE_BEFORE)
    return np.where(is_pair, updates, np.where(is_after, RowKind.INSERT, RowKind.DELETE)).astype(
        np.int8
    )


def _with_kinds(rows: pa.Table, kinds: I8) -> pa.Table:
    at = rows.schema.get_field_index(KIND)
    return rows.set_column(at, rows.schema.field(at), pa.array(kinds))


@dataclass
class ChangeWriter:
    """Writes the changes of one compaction of one bucket, in row groups of a reasonable size."""

    rules: ChangeRules
    schema: TableSchema
    files: RollingFiles
    _waiting: list[pa.Table] = field(default_factory=list, init=False)
    _rows: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def observe(self, records: pa.Table, merged: pa.Table) -> None:
        """Take the changes of a step; steps come in key order."""
        changes = self.rules.find(records, merged)
        if not changes.num_rows:
            return
        self._waiting.append(changes)
        self._rows += changes.num_rows
        self._bytes += changes.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def finish(self) -> tuple[DataFile, ...]:
        """Finish the files, and hand them over."""
        self._flush()
        self.files.close_file()
        return self.files.take()

    def abort(self) -> None:
        """Delete every file that was not handed over."""
        self._waiting.clear()
        self.files.abort()

    def _flush(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            self._waiting, self._rows, self._bytes = [], 0, 0
            self.files.write(physical_rows(self.schema, rows))
