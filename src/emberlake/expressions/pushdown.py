"""The part of a condition that filters can express: it prunes files, and readers evaluate it."""

from emberlake.expressions.typed import Apply, Constant, Test, Typed, conjunction, conjuncts
from emberlake.predicates import And, Or, Predicate, and_all


def split_condition(
    condition: Typed | None, source: int = 0
) -> tuple[Predicate | None, Typed | None]:
    """A predicate and a rest whose AND is the condition; None where there is nothing to test."""
    predicates: list[Predicate] = []
    rest: list[Typed] = []
    for part in conjuncts(condition):
        predicate = as_predicate(part, source)
        if predicate is None:
            rest.append(part)
        else:
            predicates.append(predicate)
    return and_all(predicates), conjunction(rest)


def as_predicate(condition: Typed, source: int = 0) -> Predicate | None:
    """The condition as a filter on one source; None if filters cannot express it."""
    match condition:
        case Test(number, leaf):
            return leaf if number == source else None
        case Constant(scalar):
            return And(()) if scalar.as_py() else Or(())
        case Apply("AND" | "OR" as function, args):
            parts = [as_predicate(arg, source) for arg in args]
            known = tuple(part for part in parts if part is not None)
            if len(known) < len(parts):
                return None
            return And(known) if function == "AND" else Or(known)
        case _:
            return None
