"""The columns that an expression can name, and what a name in it means."""

from dataclasses import dataclass

from emberlake.base.names import choices, listed
from emberlake.errors import ColumnNotFound, InvalidExpression
from emberlake.expressions.typed import Column
from emberlake.predicates.builder import find_path
from emberlake.types import DataField


@dataclass(frozen=True)
class Source:
    """Columns that expressions can name, and the alias that may stand in front of them."""

    alias: str
    fields: tuple[DataField, ...]


@dataclass(frozen=True)
class Scope:
    """The sources of an expression; ``visible`` are the numbers of those that it may name."""

    sources: tuple[Source, ...]
    visible: frozenset[int] = frozenset({0, 1})

    def resolve(self, parts: tuple[str, ...]) -> Column:
        """The column that a name means.

        Raises:
            ColumnNotFound: there is none, or not in a source that may be named.
            InvalidExpression: two sources have it.
        """
        candidates = [
            (number, parts[1:])
            for number, source in enumerate(self.sources)
            if source.alias == parts[0] and len(parts) > 1
        ]
        candidates += [(number, parts) for number in range(len(self.sources))]
        found: dict[int, Column] = {}
        for number, names in candidates:
            path = find_path(self.sources[number].fields, names)
            if path is not None:
                inner = tuple(field.name for field in path[1:])
                found.setdefault(number, Column(number, path[0], inner, path[-1].type))
            if found and names != parts:
                break  # an alias in front leaves no doubt
        text = ".".join(parts)
        seen = {number: column for number, column in found.items() if number in self.visible}
        if len(seen) > 1:
            either = " or ".join(f"{s.alias}.{text}" for s in self.sources)
            raise InvalidExpression(f"{text} is a column of both sides: write {either}")
        if seen:
            return next(iter(seen.values()))
        if found:
            aliases = [self.sources[number].alias for number in sorted(self.visible)]
            raise ColumnNotFound(
                f"{text} has no value here: only columns of {listed(aliases)} have", column=text
            )
        raise ColumnNotFound(f"there is no column {text!r}; {self._choices(text)}", column=text)

    def _choices(self, text: str) -> str:
        single = len(self.sources) == 1
        names = [
            field.name if single else f"{source.alias}.{field.name}"
            for number, source in enumerate(self.sources)
            if number in self.visible
            for field in source.fields
        ]
        return choices(text, names, "choose one of")
