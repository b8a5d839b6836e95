"""The plan of a merge, bound to the columns of both sides before any row is read. Pure.

The condition is taken apart: equalities of one side with the other find the pairs, tests of the
table alone prune its files, tests of the source alone leave rows of it out, and what remains is
evaluated on pairs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidExpression, InvalidInput, with_context
from emberlake.expressions import (
    Expression,
    Scope,
    bind_condition,
    bind_each,
    columns_used,
    conjunction,
    conjuncts,
    equality,
    sources_used,
    split_condition,
)
from emberlake.expressions.casts import fits_all
from emberlake.expressions.coercion import is_integer, is_text
from emberlake.expressions.typed import Apply, Column, Typed
from emberlake.predicates import Predicate, columns_of
from emberlake.rowops.clauses import SOURCE, TARGET, Action, Clause
from emberlake.types import DataField

On = str | Sequence[str] | Mapping[str, str]


class Rows(Enum):
    """Which rows a clause of a merge is about."""

    MATCHED = auto()
    NEW = auto()  # of the source, that match no row of the table
    ORPHANED = auto()  # of the table, that match no row of the source


@dataclass(frozen=True)
class AskedClause:
    """A clause as the user gave it; ``values`` is None for all columns."""

    rows: Rows
    action: Action
    where: Any = None  # text; on Spark also a Column
    values: Mapping[str, object] | None = field(default_factory=dict)
    leaves_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in messages."""
        rows = {
            Rows.MATCHED: "when matched",
            Rows.NEW: "when not matched",
            Rows.ORPHANED: "when not matched by source",
        }
        is_all = self.values is None and self.action is not Action.DELETE
        what = self.action.name.lower() + (" all" if is_all else "")
        return f"{rows[self.rows]} {what}"


@dataclass(frozen=True)
class KeyPair:
    """An equality between the two sides."""

    target: Expression
    source: Expression
    matches_null: bool

    @property
    def columns(self) -> tuple[str, str] | None:
        """The names of the columns that are equal; None if one side is more than a column."""
        target, source = plain_column(self.target.typed), plain_column(self.source.typed)
        if target is None or source is None or target.path or source.path:
            return None
        return target.field.name, source.field.name


def plain_column(side: Typed) -> Column | None:
    """The column on a side of an equality, perhaps widened to the type of the other side."""
    if isinstance(side, Column):
        return side
    if not (isinstance(side, Apply) and side.function == "CAST"):
        return None
    (inner,) = side.args
    if not isinstance(inner, Column):
        return None
    is_whole = is_integer(inner.type) and is_integer(side.type) and fits_all(inner.type, side.type)
    return inner if is_whole or (is_text(inner.type) and is_text(side.type)) else None


@dataclass(frozen=True)
class MatchCondition:
    """When a row of the table and one of the source match."""

    text: str
    keys: tuple[KeyPair, ...]
    predicate: Predicate | None  # on the table
    of_source: Expression | None
    of_pairs: Expression | None  # everything else


@dataclass(frozen=True)
class MergePlan:
    """A merge that is ready to run."""

    scope: Scope
    on: MatchCondition
    matched: tuple[Clause, ...]
    new: tuple[Clause, ...]
    orphaned: tuple[Clause, ...]

    @property
    def for_table(self) -> tuple[Clause, ...]:
        """The clauses for rows of the table; the numbers of the orphaned ones come last."""
        return (*self.matched, *self.orphaned)

    def tested(self, source: int) -> frozenset[str]:
        """The columns of a side that decide what happens to its rows."""
        sides = [pair.target if source == TARGET else pair.source for pair in self.on.keys]
        sides += [e for e in (self.on.of_source, self.on.of_pairs) if e is not None]
        used = [columns_used(side.typed, source) for side in sides]
        used += [c.tested(source) for c in (*self.matched, *self.orphaned, *self.new)]
        if source == TARGET and self.orphaned and self.on.predicate is not None:
            used.append(frozenset(columns_of(self.on.predicate)))  # the read cannot test it
        return frozenset().union(*used)


@dataclass(frozen=True)
class Outline:
    """What is known of a merge before it runs."""

    on: str
    sets: frozenset[str]  # columns that rows of the table may change
    pruning: Predicate | None  # what rows of the table must satisfy to be touched
    source_rows: int

    @staticmethod
    def of(plan: MergePlan, pruning: Predicate | None, source_rows: int) -> "Outline":
        """The outline of a plan."""
        sets = frozenset(name for clause in plan.for_table for name in clause.values)
        return Outline(plan.on.text, sets, pruning, source_rows)


def plan_merge(
    scope: Scope,
    fields: tuple[DataField, ...],
    on: On,
    asked: Sequence[AskedClause],
    *,
    may_lack: bool,
) -> MergePlan:
    """Bind a merge to its columns.

    Args:
        scope: The columns of the table and of the source.
        fields: The columns of the table that can be set.
        on: When rows match.
        asked: The clauses, in order.
        may_lack: Whether the source may lack columns in clauses for all columns.

    Raises:
        InvalidExpression, InvalidInput, ColumnNotFound: something does not fit; the message says
            which clause it is in.
    """
    if not asked:
        raise InvalidInput(
            "a merge needs at least one clause, such as when_matched_update_all() or "
            "when_not_matched_insert_all()"
        )
    condition = bind_on(on, scope)
    bound: dict[Rows, list[Clause]] = {rows: [] for rows in Rows}
    for clause in asked:
        try:
            made = _bind_clause(clause, scope, fields, condition, may_lack=may_lack)
        except (InvalidInput, ColumnNotFound) as error:
            raise with_context(error, clause.name) from error
        bound[clause.rows].append(made)
    check_reachable(asked)
    return MergePlan(
        scope,
        condition,
        tuple(bound[Rows.MATCHED]),
        tuple(bound[Rows.NEW]),
        tuple(bound[Rows.ORPHANED]),
    )


# --- the condition --------------------------------------------------------------------------------


def bind_on(on: On, scope: Scope) -> MatchCondition:
    """When rows match, taken apart.

    Raises:
        InvalidInput, ColumnNotFound: it is not such a condition.
        InvalidExpression: no column of one side has to equal one of the other.
    """
    aliases = [source.alias for source in scope.sources]
    if isinstance(on, str) and on.strip().isidentifier():
        raise InvalidInput(
            f"on={on!r}: text is a condition, such as '{aliases[TARGET]}.{on} = "
            f"{aliases[SOURCE]}.{on}'; columns are a list, as in on=[{on!r}]"
        )
    if isinstance(on, str):
        typed, text = bind_condition(on, scope).typed, on
    else:
        pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in on}
        if not pairs:
            raise InvalidInput("say when rows match: a condition, or columns that are equal")
        parts = [
            equality(scope.resolve((aliases[TARGET], t)), scope.resolve((aliases[SOURCE], s)))
            for t, s in pairs.items()
        ]
        text = " AND ".join(f"{aliases[0]}.{t} = {aliases[1]}.{s}" for t, s in pairs.items())
        joined = conjunction(list(parts))
        assert joined is not None
        typed = joined
    keys: list[KeyPair] = []
    by_side: dict[frozenset[int], list[Typed]] = {}
    for part in conjuncts(typed):
        pair = _key_pair(part, text)
        if pair is not None:
            keys.append(pair)
        else:
            by_side.setdefault(sources_used(part), []).append(part)
    if not keys:
        raise InvalidExpression(
            f"{text!r} has no equality between the two sides, such as "
            f"{aliases[TARGET]}.id = {aliases[SOURCE]}.id: every row would have to be compared "
            "with every other"
        )
    predicate, rest = split_condition(conjunction(by_side.pop(frozenset({TARGET}), [])))
    of_source = conjunction(by_side.pop(frozenset({SOURCE}), []))
    others = [part for parts in by_side.values() for part in parts]
    of_pairs = conjunction([*conjuncts(rest), *others])
    return MatchCondition(
        text,
        tuple(keys),
        predicate,
        None if of_source is None else Expression(of_source, text),
        None if of_pairs is None else Expression(of_pairs, text),
    )


def _key_pair(part: Typed, text: str) -> KeyPair | None:
    if not (isinstance(part, Apply) and part.function in ("=", "<=>")):
        return None
    sides = {sources_used(arg): Expression(arg, text) for arg in part.args}
    if set(sides) != {frozenset({TARGET}), frozenset({SOURCE})}:
        return None
    target, source = sides[frozenset({TARGET})], sides[frozenset({SOURCE})]
    return KeyPair(target, source, part.function == "<=>")


# --- clauses --------------------------------------------------------------------------------------

_VISIBLE = {
    Rows.MATCHED: frozenset({TARGET, SOURCE}),
    Rows.NEW: frozenset({SOURCE}),
    Rows.ORPHANED: frozenset({TARGET}),
}


def _bind_clause(
    asked: AskedClause,
    scope: Scope,
    fields: tuple[DataField, ...],
    on: MatchCondition,
    *,
    may_lack: bool,
) -> Clause:
    seen = Scope(scope.sources, _VISIBLE[asked.rows])
    where = None if asked.where is None else bind_condition(asked.where, seen)
    if asked.action is Action.DELETE:
        return Clause(Action.DELETE, where)
    if asked.values is None:
        named = all_columns(asked, scope, fields, on.keys, may_lack=may_lack)
        values: list[tuple[str, object]] = [
            (name, quoted(scope.sources[SOURCE].alias, origin)) for name, origin in named
        ]
    elif asked.values:
        values = list(asked.values.items())
    else:
        raise InvalidInput("say what to set: a dictionary of columns and their values")
    bound = bind_each(values, fields, seen)
    if asked.action is Action.INSERT:
        lacking = [
            f.name
            for f in fields
            if f.name not in bound and not f.type.nullable and f.default_value is None
        ]
        if lacking:
            raise InvalidExpression(f"{listed(lacking)}: NOT NULL, but no value is given")
    return Clause(asked.action, where, bound)


def all_columns(
    asked: AskedClause,
    scope: Scope,
    fields: tuple[DataField, ...],
    keys: Sequence[KeyPair],
    *,
    may_lack: bool,
) -> list[tuple[str, str]]:
    """The columns that a clause for all columns sets, each with its column of the source.

    Args:
        asked: The clause.
        scope: The columns of both sides.
        fields: The columns of the table.
        keys: What is equal in rows that match; there an update has nothing to set.
        may_lack: Whether the source may lack columns of the table.

    Raises:
        ColumnNotFound: the clause leaves out a column that does not exist.
        InvalidInput: only one side has a column.
    """
    source = scope.sources[SOURCE]
    known = {f.name for f in fields}
    names = {f.name: f.name for f in source.fields}
    names |= keys_by_other_names(keys, names, known)
    given = {name: origin for origin, name in names.items() if name not in asked.leaves_out}
    unknown = sorted(set(asked.leaves_out) - known)
    if unknown:
        told = choices(unknown, sorted(known), "the table has")
        raise ColumnNotFound(f"except_columns: no such columns: {listed(unknown)}; {told}")
    extra = sorted(given.keys() - known)
    if extra:
        raise InvalidInput(
            f"the source has columns that the table does not have: {listed(extra)}. Leave them "
            "out of the source, name the columns to set, or add them with merge_schema=True"
        )
    lacking = [f.name for f in fields if f.name not in {*given, *asked.leaves_out}]
    if lacking and not may_lack:
        raise InvalidInput(
            f"the source lacks columns of the table: {listed(lacking)}. Name them in "
            "except_columns, or name the columns to set"
        )
    # In a pair, the columns of the condition are equal: there is nothing to set.
    is_update = asked.action is Action.UPDATE
    chosen = [
        f.name
        for f in fields
        if f.name in given and not (is_update and given[f.name] in _equal_to(keys, f.name))
    ]
    return [(name, given[name]) for name in chosen]


def keys_by_other_names(
    keys: Sequence[KeyPair], given: Collection[str], known: Collection[str]
) -> dict[str, str]:
    """Keys of the source that stand for the column that they are equal to, and that column.

    Args:
        keys: What is equal in rows that match.
        given: The columns of the source.
        known: The columns of the table.
    """
    pairs = (pair.columns for pair in keys)
    return {
        pair[1]: pair[0]
        for pair in pairs
        if pair is not None and pair[0] not in given and pair[1] not in known
    }


def _equal_to(keys: Sequence[KeyPair], name: str) -> set[str]:
    """The columns of the source that equal a column of the table in every pair."""
    pairs = (pair.columns for pair in keys)
    return {pair[1] for pair in pairs if pair is not None and pair[0] == name}


def quoted(*parts: str) -> str:
    """A name in quotes, so that it may have any characters."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def check_reachable(asked: Sequence[AskedClause]) -> None:
    """Refuse a clause that no row can reach.

    Raises:
        InvalidInput: names it, and the clause before it.
    """
    closed: dict[Rows, AskedClause] = {}
    for clause in asked:
        before = closed.get(clause.rows)
        if before is not None:
            raise InvalidInput(
                f"{clause.name}: no row reaches it, since {before.name} before it has no "
                "condition and takes all"
            )
        if clause.where is None:
            closed[clause.rows] = clause
