"""Read builder and scan: what to read, and the files that it takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.html import html_box, html_facts, html_note, html_title
from emberlake.base.names import listed
from emberlake.errors import InvalidInput, Unsupported
from emberlake.expressions.filters import bind_row_filter
from emberlake.expressions.query_auth import authorized, seeing_all
from emberlake.predicates import (
    Leaf,
    Op,
    Predicate,
    PredicateBuilder,
    and_all,
    bind_partition_filter,
    columns_of,
)
from emberlake.read.projection import Projection, project, project_all, project_type
from emberlake.read.table_reader import TableReader
from emberlake.scan.explain import explain_scan
from emberlake.scan.explanation import Explanation
from emberlake.scan.plan import ScanPlan, plan_scan
from emberlake.scan.share import Shard, Share, Slice
from emberlake.scan.splits import DataSplit, attach_folders
from emberlake.spec.row_tracking import ROW_ID_FIELD, readable_fields
from emberlake.spec.support import check_readable
from emberlake.store.table_store import TableStore
from emberlake.table.table_read import TableRead
from emberlake.types import DataField

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class ReadBuilder:
    """Describes a read: which rows, which columns, how many. It pickles."""

    store: TableStore
    _filter: Predicate | None = field(default=None, repr=False)
    _partition_filter: Predicate | None = field(default=None, repr=False)
    _projection: Projection | None = field(default=None, repr=False)
    _limit: int | None = field(default=None, repr=False)
    _row_ids: Predicate | None = field(default=None, repr=False)
    # The name of the table for people; by default that of its folder.
    _name: str | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        parts = [
            self._name or self.store.layout.root,
            *([] if self._projection is None else [f"columns {listed(self._column_names)}"]),
            *([] if self._predicate is None else [f"filter {str(self._predicate)!r}"]),
            *([] if self._limit is None else [f"limit {self._limit}"]),
        ]
        return f"ReadBuilder({', '.join(parts)})"

    def with_filter(self, predicate: Predicate | str | None) -> Self:
        """Keep only matching rows: a predicate, or text such as ``"city = 'paris'"``."""
        now_ms = self.store.env.now_ms
        self._filter = bind_row_filter(predicate, self.store.schema, now_ms, self._aliases)
        return self

    def with_partition_filter(self, partition_filter: Predicate | str | None) -> Self:
        """Keep only matching partitions, in addition to ``with_filter``."""
        schema = self.store.schema
        self._partition_filter = bind_partition_filter(partition_filter, schema, self._aliases)
        return self

    def with_projection(self, projection: Sequence[str] | Mapping[str, str] | None) -> Self:
        """Read these columns, or fields of ROW columns (``"s.x"``, returned as ``s_x``).

        A mapping renames columns: ``{"zip": "ship.zip"}``. In tables with row tracking there are
        also ``_ROW_ID`` and ``_SEQUENCE_NUMBER``.
        """
        fields = readable_fields(self.store.schema)
        self._projection = None if projection is None else project(fields, projection)
        return self

    def with_read_type(self, read_type: Sequence[DataField]) -> Self:
        """Read these columns; of ROW columns, only the given fields."""
        self._projection = project_type(readable_fields(self.store.schema), read_type)
        return self

    def with_row_ids(self, row_ids: Iterable[int] | None) -> Self:
        """Read only the rows that have these ids, in addition to ``with_filter``.

        Files that hold none of them are not opened. Ids that no row has are ignored.

        Args:
            row_ids: The values of ``_ROW_ID``, as integers, an Arrow array or a NumPy array.

        Raises:
            Unsupported: the rows of the table have no ids (``row-tracking.enabled``).
            InvalidInput: a value is not an id.
        """
        if row_ids is None:
            self._row_ids = None
            return self
        if not self.store.schema.profile.tracks_rows:
            raise Unsupported(
                "the rows of this table have no ids; row-tracking.enabled=true, which is set when "
                "a table is created, gives them ids"
            )
        self._row_ids = Leaf(ROW_ID_FIELD, Op.IN, _ids(row_ids))
        return self

    def with_limit(self, limit: int | None) -> Self:
        """Read at most this many rows, whichever come first."""
        if limit is not None and not _is_count(limit):
            raise InvalidInput(f"a limit is a number of rows, not {limit!r}")
        self._limit = limit
        return self

    def new_predicate_builder(self) -> PredicateBuilder:
        """A builder of predicates on the columns of the table and on projected columns."""
        return PredicateBuilder(list(readable_fields(self.store.schema)), self._aliases)

    def new_scan(self) -> "TableScan":
        """The half that finds the files to read."""
        check_readable(self.store.schema)
        return TableScan(self.store, self._predicate, self._limit, self._columns)

    def new_read(self) -> TableRead:
        """The half that reads them."""
        return TableRead(self._new_reader())

    def _new_reader(self) -> TableReader:
        schema = self.store.schema
        projection = self._projection or project_all(schema.fields)
        check_readable(schema, projection.read_fields(readable_fields(schema), self._predicate))
        return TableReader(self.store, projection, self._predicate, self._limit)

    @property
    def _predicate(self) -> Predicate | None:
        return and_all([self._partition_filter, self._row_ids, self._filter])

    @property
    def _columns(self) -> frozenset[str]:
        """The columns of the table that the read is for."""
        projection = self._projection or project_all(self.store.schema.fields)
        tested = frozenset() if self._predicate is None else columns_of(self._predicate)
        return projection.columns | tested

    @property
    def _aliases(self) -> dict[str, tuple[str, ...]]:
        """The names of projected columns, and where they come from."""
        outputs = self._projection.outputs if self._projection else ()
        return {output.field.name: output.path for output in outputs}

    @property
    def _column_names(self) -> list[str]:
        return [f.name for f in self.read_type()]

    def read_type(self) -> list[DataField]:
        """The columns of the result."""
        projection = self._projection or project_all(self.store.schema.fields)
        return list(projection.fields)

    def explain(
        self,
        verbose: bool = False,  # noqa: FBT001, FBT002
        *,
        spark: "SparkSession | None" = None,
    ) -> Explanation:
        """Which files a read would open, which it skips, and why; ``print`` it.

        Args:
            verbose: Whether to list all files, and the splits.
            spark: Also say how Spark would read them: by itself, or with Python workers.
        """
        check_readable(self.store.schema)
        explained = explain_scan(
            seeing_all(self.store, "explained"),
            self._predicate,
            self._limit,
            columns=self._column_names,
            is_projected=self._projection is not None,
            name=self._name,
            verbose=verbose,
        )
        if spark is None:
            return explained
        explain = load_extra("emberlake.spark.read", extra="spark").explain_dataframe
        reader = explain(self.new_read()._authorized(), self.new_scan().plan().splits(), spark)  # noqa: SLF001
        return replace(explained, spark=reader)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _ids(row_ids: Iterable[int]) -> tuple[int, ...]:
    if isinstance(row_ids, str | bytes):
        raise InvalidInput(f"row ids are integers, not {row_ids!r}")
    given = row_ids if isinstance(row_ids, pa.Array | pa.ChunkedArray) else list(row_ids)
    try:
        numbers = (pa.array(given, pa.int64()) if isinstance(given, list) else given).unique()
        numbers = numbers.cast(pa.int64())
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidInput(f"row ids are integers: {error}") from error
    if numbers.null_count:
        raise InvalidInput("row ids are integers, and one of them is null")
    return tuple(numbers.to_pylist())


@dataclass
class TableScan:
    """Finds the files to read."""

    store: TableStore
    predicate: Predicate | None
    limit: int | None
    _columns: frozenset[str] = field(repr=False)  # what the rows are read for
    _share: Share | None = field(default=None, repr=False)

    def with_shard(self, idx_of_this_subtask: int, number_of_para_subtasks: int) -> Self:
        """Plan for one of several readers, numbered from 0; together they read every row once.

        The shards of an append table have equally many rows, before filters and deletions. A table
        with a primary key is divided by bucket, or by file if it has deletion vectors or keeps
        first rows.

        Raises:
            InvalidInput: there is no such shard, or the scan has a slice already.
        """
        shard = Shard(idx_of_this_subtask, number_of_para_subtasks)
        if isinstance(self._share, Slice):
            raise InvalidInput("a scan has a slice or a shard, not both; make a new scan")
        self._share = shard
        return self

    def with_slice(self, start_pos: int, end_pos: int) -> Self:
        """Plan for the rows from one number up to another, exclusive; for append tables.

        Rows are counted as they are stored, in the files that the filter does not rule out. Rows
        that are deleted or do not match count too.

        Raises:
            InvalidInput: there are no such rows, or the scan has a shard already.
            Unsupported: the table has a primary key.
        """
        rows = Slice(start_pos, end_pos)
        if self.store.schema.profile.has_keys:
            raise Unsupported("with_slice is for append tables; with_shard takes key tables too")
        if isinstance(self._share, Shard):
            raise InvalidInput("a scan has a slice or a shard, not both; make a new scan")
        self._share = rows
        return self

    def plan(self) -> "Plan":
        """Prune files by partition, bucket and statistics; pack the rest into splits."""
        store = authorized(self.store, self._columns)
        plan = plan_scan(store, self.predicate, self.limit, self._share)
        attach_folders(plan.splits, self.store.bucket_folder)
        return Plan(plan)


@dataclass(frozen=True)
class Plan:
    """The splits to read, of one snapshot."""

    _plan: ScanPlan = field(repr=False)

    def splits(self) -> list[DataSplit]:
        """Units of reading; they pickle, so each can go to another worker."""
        return list(self._plan.splits)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None for an empty table."""
        return None if self._plan.snapshot is None else self._plan.snapshot.id

    def __repr__(self) -> str:
        return "Plan(" + ", ".join(f"{name}={value}" for name, value in self._facts.items()) + ")"

    def _repr_html_(self) -> str:
        facts = {name.replace("_", " "): value for name, value in self._facts.items()}
        more = "explain() of the read builder says which files are skipped, and why"
        return html_box(html_title("Plan"), html_facts(facts), html_note(more))

    @property
    def _facts(self) -> dict[str, object]:
        splits = self._plan.splits
        return {
            "snapshot_id": self.snapshot_id,
            "splits": len(splits),
            "files": sum(len(split.entries) for split in splits),
            "rows": sum(split.row_count for split in splits),
            "bytes": sum(split.file_size for split in splits),
        }
