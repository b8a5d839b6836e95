"""How the records of one key become one row: the merge options of a table, read once.

A plan is a value: it is made from a schema and the wanted columns, travels to where rows are
merged, and names the columns that must be read for it. Spec: "Merge engines".
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from emberlake.base.option_texts import is_true, parse_words
from emberlake.errors import InvalidSchema, Unsupported
from emberlake.merge.column_options import (
    Aggregator,
    aggregate_of,
    check_aggregator,
    is_ordered,
    read_aggregator,
)
from emberlake.merge.order import SequenceOrder
from emberlake.options import (
    IGNORE_DELETE,
    MERGE_ENGINE,
    REMOVE_ON_DELETE,
    REMOVE_ON_SEQUENCE_GROUP,
    SEQUENCE_FIELD,
    SEQUENCE_SORT_ORDER,
    MergeEngine,
    SortOrder,
    TableOptions,
)
from emberlake.spec.aggregate import Aggregate
from emberlake.spec.key_value import RowKind, key_fields
from emberlake.spec.rules import merging
from emberlake.spec.schema import TableSchema
from emberlake.types import DataField

_GROUP_PREFIX: Final = "fields."
_GROUP_SUFFIX: Final = ".sequence-group"
# Functions on bytes of libraries that have no Python counterpart.
_NOT_SUPPORTED: Final = frozenset({Aggregate.RBM64, Aggregate.HLL_SKETCH, Aggregate.THETA_SKETCH})


@dataclass(frozen=True)
class SequenceGroup:
    """Columns that are updated together, by records that are not older in the group's own order."""

    ordering: tuple[DataField, ...]  # ascending, nulls first; all of them are read
    members: tuple[DataField, ...]  # without the ordering columns; only those that are read


@dataclass(frozen=True)
class MergePlan:
    """What merging needs to know about a table."""

    engine: MergeEngine
    keys: tuple[DataField, ...]
    sequences: tuple[SequenceOrder, ...]
    read_fields: tuple[DataField, ...]  # in the order of the schema
    ignore_delete: bool = False
    remove_on_delete: bool = False
    remove_on_group: frozenset[str] = frozenset()  # ordering columns of groups
    groups: tuple[SequenceGroup, ...] = ()  # those whose columns are read
    has_groups: bool = False  # the table has some, read or not
    # By column. aggregation: every column of read_fields. partial-update: those with a function,
    # and the primary key. Nothing for the other engines.
    aggregators: Mapping[str, Aggregator] = field(default_factory=dict, hash=False)
    # A record above level 0 stands for those of its key above it: records come with their levels.
    knows_levels: bool = False

    @property
    def needs_older_rows(self) -> bool:
        """Whether a row depends on the older row that it replaces."""
        if self.engine is MergeEngine.FIRST_ROW:
            return False
        takes_latest = self.engine is MergeEngine.DEDUPLICATE and not self.ignore_delete
        return not takes_latest or bool(self.sequences)

    @property
    def removing_kinds(self) -> tuple[RowKind, ...]:
        """The kinds of records that take the row of their key away, whatever the row is."""
        match self.engine:
            case MergeEngine.DEDUPLICATE:
                return RowKind.UPDATE_BEFORE, RowKind.DELETE
            case MergeEngine.FIRST_ROW:
                return ()
            case MergeEngine.PARTIAL_UPDATE | MergeEngine.AGGREGATION:
                return (RowKind.DELETE,) if self.remove_on_delete else ()

    def refusal_of(self, kind: RowKind) -> str | None:
        """The options that the table lacks to take records of that kind; None if it takes them."""
        if self.ignore_delete or kind not in (RowKind.UPDATE_BEFORE, RowKind.DELETE):
            return None
        match self.engine:
            case MergeEngine.FIRST_ROW:
                return "ignore-delete"
            case MergeEngine.PARTIAL_UPDATE:
                if not (self.remove_on_delete or self.has_groups):
                    return "ignore-delete, partial-update.remove-record-on-delete, sequence groups"
            case MergeEngine.AGGREGATION:
                if self.remove_on_delete and kind is RowKind.DELETE:
                    return None
                stuck = [name for name, a in self.aggregators.items() if not a.takes_retracts]
                if stuck:
                    return f"ignore-delete, fields.{stuck[0]}.ignore-retract"
            case MergeEngine.DEDUPLICATE:
                pass
        return None

    def nulled_without(self, given: Collection[str]) -> frozenset[str]:
        """The columns that a record sets to null in its key's row because it lacks them.

        Only columns that are read count. Engines that take a null as no change set few of them:
        those whose last value counts, and those of a sequence group that the record has.
        """
        match self.engine:
            case MergeEngine.DEDUPLICATE:
                last = {f.name for f in self.read_fields}
            case MergeEngine.FIRST_ROW:
                last = set()
            case MergeEngine.AGGREGATION:
                last = {f.name for f in self.read_fields if self._keeps_last(f)}
                last -= {order.column.name for order in self.sequences}
            case MergeEngine.PARTIAL_UPDATE:
                last = set()
                for group in self.groups:
                    if any(f.name in given for f in group.ordering):
                        last |= {f.name for f in group.ordering}
                        last |= {f.name for f in group.members if self._keeps_last(f)}
        return frozenset(last - set(given))

    def _keeps_last(self, column: DataField) -> bool:
        aggregator = self.aggregators.get(column.name)
        return aggregator is None or aggregator.function is Aggregate.LAST_VALUE


def plan_merge(schema: TableSchema, outputs: tuple[DataField, ...]) -> MergePlan:
    """Plan how to merge the rows of a table if some columns are wanted.

    A wanted column may be a part of a nested one. Engines that test for null read it whole: in a
    file that lacks the part, the part alone would be null where the value is not.

    Raises:
        InvalidSchema: the message lists everything that is wrong with the merge options.
        Unsupported: a column that is read has a function that emberlake does not implement.
    """
    problems = check_merge_options(schema)
    if problems:
        raise InvalidSchema("merge options that cannot be used: " + "; ".join(problems))
    options = schema.options
    engine = options.value(MERGE_ENGINE)
    is_partial = engine is MergeEngine.PARTIAL_UPDATE
    remove_on_group = options.value(REMOVE_ON_SEQUENCE_GROUP) if is_partial else ()
    functions = _functions(schema)
    wanted = {f.name for f in outputs}
    groups = tuple(
        group
        for group in _sequence_groups(schema)
        if _is_needed(group, wanted) or any(f.name in remove_on_group for f in group.ordering)
    )
    needed = {
        *wanted,
        *schema.trimmed_primary_keys,
        *options.value(SEQUENCE_FIELD),
        *(f.name for group in groups for f in group.ordering),
    }
    read_fields = _read_fields(schema, outputs, needed, functions)
    return MergePlan(
        engine=engine,
        keys=key_fields(schema),
        sequences=_sequences(schema),
        read_fields=read_fields,
        ignore_delete=_ignores_delete(options),
        remove_on_delete=_removes_on_delete(options),
        remove_on_group=frozenset(remove_on_group),
        groups=tuple(_restrict(group, needed) for group in groups),
        has_groups=bool(_sequence_groups(schema)),
        aggregators={
            f.name: read_aggregator(options, f.name, functions[f.name])
            for f in read_fields
            if f.name in functions
        },
        knows_levels=schema.profile.looks_up_only,
    )


def depends_on_arrival(schema: TableSchema) -> bool:
    """Whether it matters which record of a key came first, because the table has no other order.

    Sequence numbers show which came first. A ``sequence.field`` or sequence groups order the
    records by their values; what happens to rows that are equal there is up to the table.
    """
    options = schema.options
    engine = options.value(MERGE_ENGINE)
    if options.value(SEQUENCE_FIELD):
        return False
    if not engine.builds_rows:
        return True
    if _removes_on_delete(options) or options.value(REMOVE_ON_SEQUENCE_GROUP):
        return True  # records before the delete are gone, those after it stay
    functions = _functions(schema)
    groups = _sequence_groups(schema)
    ordered = {f.name for group in groups for f in (*group.ordering, *group.members)}
    return not all(
        functions[name].ignores_order if name in functions else name in ordered
        for name in schema.field_names
    )


def check_merge_options(schema: TableSchema) -> list[str]:
    """Everything that is wrong with the merge options of a table with a primary key."""
    problems = [problem for check in merging.CHECKS for problem in check(schema)]
    if not problems and schema.profile.has_keys:
        problems += _check_sequences(schema)
        problems += _check_functions(schema)
    return problems


def check_functions(new: TableSchema, old: TableSchema | None = None) -> None:
    """Refuse columns whose aggregate function is not implemented, unless the old schema has them.

    Raises:
        Unsupported: names every such column.
    """
    known = {} if old is None else _unsupported_functions(old)
    refused = {n: f for n, f in _unsupported_functions(new).items() if known.get(n) is not f}
    if refused:
        text = ", ".join(f"{name} by {function}" for name, function in refused.items())
        raise Unsupported(f"columns with functions that emberlake does not implement: {text}")


def _unsupported_functions(schema: TableSchema) -> dict[str, Aggregate]:
    return {name: f for name, f in _functions(schema).items() if f in _NOT_SUPPORTED}


# --- reading the options --------------------------------------------------------------------------


def _ignores_delete(options: TableOptions) -> bool:
    given = next((option for option in IGNORE_DELETE if options.is_set(option)), None)
    return given is not None and options.value(given)


def _removes_on_delete(options: TableOptions) -> bool:
    option = REMOVE_ON_DELETE.get(options.value(MERGE_ENGINE))
    return option is not None and options.value(option)


def _sequences(schema: TableSchema) -> tuple[SequenceOrder, ...]:
    descending = schema.options.value(SEQUENCE_SORT_ORDER) is SortOrder.DESCENDING
    return tuple(
        SequenceOrder(schema.field_by_name[name], descending)
        for name in schema.options.value(SEQUENCE_FIELD)
    )


def _sequence_groups(schema: TableSchema) -> tuple[SequenceGroup, ...]:
    if schema.options.value(MERGE_ENGINE) is not MergeEngine.PARTIAL_UPDATE:
        return ()
    return tuple(
        SequenceGroup(
            _fields(schema, key.removeprefix(_GROUP_PREFIX).removesuffix(_GROUP_SUFFIX)),
            _fields(schema, members),
        )
        for key, members in schema.options.items()
        if key.startswith(_GROUP_PREFIX) and key.endswith(_GROUP_SUFFIX)
    )


def _fields(schema: TableSchema, names: str) -> tuple[DataField, ...]:
    return tuple(schema.field_by_name[name] for name in parse_words(names))


def _functions(schema: TableSchema) -> dict[str, Aggregate]:
    """The function of every column that has one."""
    engine = schema.options.value(MERGE_ENGINE)
    if not engine.builds_rows:
        return {}
    aggregates = engine is MergeEngine.AGGREGATION
    order_columns = {f.name for group in _sequence_groups(schema) for f in group.ordering}
    if aggregates:
        order_columns = {order.column.name for order in _sequences(schema)}
    default = Aggregate.LAST_NON_NULL_VALUE if aggregates else None
    functions: dict[str, Aggregate | None] = {}
    for name in schema.field_names:
        if name in order_columns:
            functions[name] = Aggregate.LAST_VALUE if aggregates else None
        elif name in schema.primary_keys or name in schema.partition_keys:
            # Records that are merged have the same value in a partition column outside the key.
            functions[name] = Aggregate.PRIMARY_KEY
        else:
            functions[name] = aggregate_of(schema.options, name) or default
    return {name: function for name, function in functions.items() if function is not None}


# --- which columns are read -----------------------------------------------------------------------


def _is_needed(group: SequenceGroup, wanted: set[str]) -> bool:
    return any(f.name in wanted for f in (*group.ordering, *group.members))


def _restrict(group: SequenceGroup, needed: set[str]) -> SequenceGroup:
    ordering = {f.name for f in group.ordering}
    members = (f for f in group.members if f.name in needed and f.name not in ordering)
    return SequenceGroup(group.ordering, tuple(members))


def _read_fields(
    schema: TableSchema,
    outputs: tuple[DataField, ...],
    needed: set[str],
    functions: Mapping[str, Aggregate],
) -> tuple[DataField, ...]:
    as_wanted = {f.name: f for f in outputs}
    is_whole = schema.options.value(MERGE_ENGINE).builds_rows
    read: list[DataField] = []
    for column in schema.fields:
        function = functions.get(column.name)
        if column.name not in needed:
            continue
        if function in _NOT_SUPPORTED:
            raise Unsupported(
                f"column {column.name} has the aggregate function {function}, which emberlake does "
                "not implement: leave the column out"
            )
        read.append(column if is_whole else as_wanted.get(column.name, column))
    return tuple(read)


# --- what can be wrong ----------------------------------------------------------------------------


def _check_sequences(schema: TableSchema) -> Iterator[str]:
    ordering = {f.name: f for order in _sequences(schema) for f in (order.column,)}
    ordering |= {f.name: f for group in _sequence_groups(schema) for f in group.ordering}
    for column in ordering.values():
        if not is_ordered(column.type):
            yield f"column {column} cannot order rows: its type is not supported for that"


def _check_functions(schema: TableSchema) -> Iterator[str]:
    options = schema.options
    is_partial = options.value(MERGE_ENGINE) is MergeEngine.PARTIAL_UPDATE
    grouped = {f.name for group in _sequence_groups(schema) for f in group.members}
    free = (Aggregate.LAST_NON_NULL_VALUE, Aggregate.PRIMARY_KEY)
    for name, function in _functions(schema).items():
        column = schema.field_by_name[name]
        if is_partial and function not in free and name not in grouped:
            yield f"column {name} is aggregated by {function}, so it must be in a sequence group"
        yield from check_aggregator(options, column, function)
        ignore = f"fields.{name}.ignore-retract"
        if not is_partial and _removes_on_delete(options) and is_true(options.get(ignore, "")):
            key = REMOVE_ON_DELETE[MergeEngine.AGGREGATION].key
            yield f"{ignore} and {key} exclude each other"
