"""The column plans of append tables: one for each way in which files hold rows.

Files differ in the schema that they were written with and, in row-tracked tables, in the columns
that they have. If files lie side by side, the plan takes each column from the newest that has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from emberlake.base.names import listed
from emberlake.errors import CorruptFile
from emberlake.predicates import Predicate
from emberlake.read.bucket_reads import BucketReads
from emberlake.read.column_plan import ColumnPlan, Input, plan_columns
from emberlake.read.evolve import check_current
from emberlake.read.file_read import FileRead
from emberlake.read.projection import OutputShape
from emberlake.spec.file_groups import FileGroup
from emberlake.spec.manifest import DataFile
from emberlake.spec.row_tracking import stored_fields
from emberlake.store.table_store import TableStore
from emberlake.types import DataField

_Kind = tuple[int, tuple[str, ...] | None]  # schema and columns of a file


@dataclass(frozen=True)
class AppendPlans:
    """Makes the reads of files of an append table; plans are made once for each kind of file.

    Args:
        store: The table.
        fields: The columns of the table that are needed, for the output and for the filter.
        shape: The output made of them; None for the fields themselves.
        predicate: Rows that do not match are left out.
    """

    store: TableStore
    fields: tuple[DataField, ...]
    shape: OutputShape | None = None
    predicate: Predicate | None = None
    _plans: dict[object, ColumnPlan] = field(default_factory=dict, compare=False, repr=False)

    def read(self, reads: BucketReads, file: DataFile) -> FileRead:
        """The read of a file."""
        key = file.schema_id, file.write_cols
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan([file])
        return reads.read(file, plan)

    def read_group(self, reads: BucketReads, group: FileGroup) -> FileRead:
        """The read of files that lie side by side."""
        key = tuple([_kind(file) for file in group.files])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(group.files)
            _check_complete(group, plan)
        return reads.read_group(group, plan)

    def _plan(self, files: Sequence[DataFile]) -> ColumnPlan:
        return plan_columns(
            [columns_of_file(self.store, file) for file in files],
            self.fields,
            self.shape,
            predicate=self.predicate,
            constants=self.store.schema.partition_keys,
            is_tracked=self.store.schema.profile.tracks_rows,
        )


def columns_of_file(store: TableStore, file: DataFile) -> tuple[DataField, ...]:
    """The columns of a data file of an append table, as they were when it was written.

    Raises:
        CorruptFile: its metadata names columns that its schema does not have.
        InvalidState: it has values that the older schema of this table object cannot hold.
    """
    written = check_current(store.schemas.load(file.schema_id), store.schema)
    found = stored_fields(written, file.write_cols)
    if found is None:
        raise CorruptFile(
            file.file_name,
            f"its metadata names the columns {listed(file.write_cols or ())}, but schema "
            f"{file.schema_id} does not have all of these",
        )
    return found


def _kind(file: DataFile) -> _Kind:
    return file.schema_id, file.write_cols


def _check_complete(group: FileGroup, plan: ColumnPlan) -> None:
    """Refuse rows that lack a column that may not be null."""
    inputs: list[Input] = [*plan.output.inputs, *(plan.test.step.inputs if plan.test else ())]
    lacking = {i.field.name for i in inputs if i.source is None and not i.field.type.nullable}
    if lacking:
        raise CorruptFile(
            group.anchor.file_name,
            f"neither it nor a file beside it has the NOT NULL columns {listed(sorted(lacking))}",
        )
