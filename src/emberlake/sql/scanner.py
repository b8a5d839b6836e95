"""Finds where a query names tables.

The scanner follows Spark's grammar as far as it must to know that a name stands for a table: after
FROM, JOIN, a comma of a FROM clause, or TABLE, and not for a common table expression. It knows
nothing about expressions, so it reads every query, whatever functions and operators are in it.
"""

from typing import Final

from emberlake.sql.commands.clauses import read_properties
from emberlake.sql.commands.values import Properties
from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import Kind
from emberlake.sql.names import TableName
from emberlake.sql.references import Call, Chain, Form, Found, Reference, Star, split_arguments

_QUERY_STARTS: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE"})
# Words that end a FROM clause, so that a comma is no longer between tables.
_FROM_ENDS: Final = frozenset(
    {"WHERE", "GROUP", "HAVING", "ORDER", "CLUSTER", "DISTRIBUTE", "SORT", "LIMIT", "OFFSET"}
    | {"WINDOW", "UNION", "INTERSECT", "EXCEPT", "MINUS", "SELECT", "QUALIFY"}
)
# Words after a table that are not its alias.
_NO_ALIAS: Final = _FROM_ENDS | frozenset(
    {"ANTI", "CROSS", "FULL", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "RIGHT", "SEMI"}
    | {"USING", "PIVOT", "UNPIVOT", "TABLESAMPLE", "WITH", "SET", "WHEN", "INSERT", "MAP", "REDUCE"}
    | {"AS", "FROM", "FOR", "MATCH_RECOGNIZE", "WATERMARK"}
)
_NO_TABLE: Final = frozenset({"FROM", "AS", "WHERE", "ON", "UNION"})
_SET_OPERATORS: Final = frozenset({"UNION", "ALL", "DISTINCT", "INTERSECT", "EXCEPT", "MINUS"})
# Functions in whose arguments FROM is not a clause: extract(day FROM d), trim('x' FROM s), ...
_WITH_FROM: Final = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"})
_CURRENT: Final = frozenset({"CURRENT_CATALOG", "CURRENT_DATABASE", "CURRENT_SCHEMA"})
_VERSIONS: Final = frozenset({"VERSION", "SYSTEM_VERSION"})
_TIMES: Final = frozenset({"TIMESTAMP", "SYSTEM_TIME"})
_UNITS: Final = frozenset(
    f"{unit}{s}"
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
    for s in ("", "S")
) | frozenset({"MICROSECOND", "MICROSECONDS", "TO"})


def find_references(text: str, known: frozenset[str] = frozenset()) -> Found:
    """Find the tables that a query, or a part of a statement, names.

    Args:
        text: The query.
        known: Names, in lower case, that are not tables: they are defined around the text.
    """
    return _Scan(text).run(known)


class _Scan:
    def __init__(self, text: str) -> None:
        self.c = Cursor(text)
        self.found = Found(text)
        self.blocks = 0

    def run(self, known: frozenset[str]) -> Found:
        self.found.words = {t.name.lower() for t in self.c.tokens if t.is_name}
        self._block(known, parent=None)
        while self.c.token.is_symbol(")"):  # one too many: the engine reports it
            self.c.next()
            self._block(known, parent=None)
        return self.found

    # --- blocks: the text between two parentheses -------------------------------------------------

    def _block(  # noqa: C901 - one branch for each kind of token
        self,
        ctes: frozenset[str],
        parent: int | None,
        *,
        is_relation: bool = False,
        has_from: bool = True,
    ) -> None:
        """Everything up to the closing parenthesis, which is left to the caller."""
        block = self.blocks
        self.blocks += 1
        if parent is not None:
            self.found.parents[block] = parent
        first = self.c.at
        in_from = want = is_relation
        c = self.c
        while c.token.kind is not Kind.END and not c.token.is_symbol(")"):
            token, word = c.token, c.token.word
            if token.is_symbol("("):
                self._parenthesis(ctes, block, want=want)
                want = False
            elif want and word == "LATERAL":
                c.next()
            elif want and token.is_name:
                self._relation(ctes, block)
                want = False
            elif word == "WITH" and self._is_cte():
                ctes = self._ctes(ctes, block)
                first = c.at
            elif (word == "FROM" and has_from and self._is_from()) or (
                word == "JOIN" and self._begins_relation()
            ):
                in_from = want = True
                c.next()
            elif token.is_symbol(",") and in_from:
                want = True
                c.next()
            elif word == "TABLE" and self._is_table(first):
                self._table(ctes, block)
            elif (
                (word == "LATERAL" and c.ahead().is_word("VIEW"))
                or word in _FROM_ENDS
                or token.is_symbol("|>")
            ):
                in_from = False
                c.next()
            elif token.is_name:
                self._chain(ctes, block)
            else:
                self._star(block)
                c.next()

    def _parenthesis(self, ctes: frozenset[str], block: int, *, want: bool) -> None:
        before = self.c.tokens[self.c.at - 1].word if self.c.at else ""
        self.c.next()
        is_query = self.c.token.word in _QUERY_STARTS
        self._block(
            ctes,
            block,
            is_relation=want and not is_query,
            has_from=before not in _WITH_FROM or is_query,
        )
        if self.c.token.is_symbol(")"):
            self.c.next()
        if want:
            self._skip_alias()

    # --- WITH -------------------------------------------------------------------------------------

    def _is_cte(self) -> bool:
        c, at = self.c, 1
        if c.ahead(at).is_word("RECURSIVE") and not c.ahead(at + 1).is_word("AS"):
            at += 1
        if not c.ahead(at).is_name:
            return False
        at += 1
        if c.ahead(at).is_symbol("("):
            while not c.ahead(at).is_symbol(")") and c.ahead(at).kind is not Kind.END:
                at += 1
            at += 1
        if c.ahead(at).is_word("MAX"):
            at += 4  # MAX RECURSION LEVEL n
        return c.ahead(at).is_word("AS") and c.ahead(at + 1).is_symbol("(")

    def _ctes(self, ctes: frozenset[str], block: int) -> frozenset[str]:
        c = self.c
        c.next()
        is_recursive = c.token.is_word("RECURSIVE") and not c.ahead().is_word("AS")
        if is_recursive:
            c.next()
        while c.token.is_name:
            own = ctes | {c.name().lower()}
            if c.token.is_symbol("("):
                c.skip_parentheses()
            while not c.token.is_symbol("(") and c.token.kind is not Kind.END:
                c.next()
            c.take("(")
            self._block(own if is_recursive else ctes, block)
            c.take(")")
            ctes = own
            if not c.take(","):
                break
        return ctes

    # --- tables -----------------------------------------------------------------------------------

    def _is_from(self) -> bool:
        """Whether FROM begins a clause; it may also be a column, or IS DISTINCT FROM."""
        c = self.c
        before = c.tokens[c.at - 1] if c.at else None
        if before is not None and before.is_word("DISTINCT"):
            of_comparison = c.at > 1 and c.tokens[c.at - 2].is_word("IS", "NOT")
            return not of_comparison and self._begins_relation()
        return self._begins_relation()

    def _begins_relation(self) -> bool:
        token = self.c.ahead()
        if token.is_word("ORDER"):
            return not self.c.ahead(2).is_word("BY")  # a table may be called order
        return token.is_symbol("(") or (token.is_name and token.word not in _NO_TABLE)

    def _is_table(self, first: int) -> bool:
        """Whether TABLE begins a query of its own, or an argument that is a table."""
        c = self.c
        follows = c.ahead()
        if not (follows.is_name and not follows.is_word("FROM", "AS")) and not (
            follows.is_symbol("(") and c.ahead(2).is_name
        ):
            return False
        before = c.tokens[c.at - 1] if c.at else None
        return (
            c.at == first
            or before is None
            or before.is_symbol("(", ",", "=>")
            or before.is_word("AS", *_SET_OPERATORS)
        )

    def _table(self, ctes: frozenset[str], block: int) -> None:
        c = self.c
        c.next()
        if c.token.is_symbol("("):
            c.next()
            self._block(ctes, block, is_relation=c.token.word not in _QUERY_STARTS)
            c.take(")")
            return
        start, path = c.token.start, c.path()
        if len(path) > 1 or path[0].lower() not in ctes:
            end = c.tokens[c.at - 1].end
            self.found.references.append(Reference(Form.TABLE, TableName(path), start, end, block))

    def _relation(self, ctes: frozenset[str], block: int) -> None:
        c = self.c
        if c.token.is_word("VALUES") and not c.ahead().is_symbol("."):
            self._values(ctes, block)
            return
        if c.token.is_word("TABLE") and c.ahead().is_symbol("("):
            self._table(ctes, block)
            self._skip_alias()
            return
        start = c.token.start
        path = c.path()
        form = Form.NAME
        arguments: tuple[str, ...] = ()
        if c.token.is_symbol("("):
            is_identifier = len(path) == 1 and path[0].upper() == "IDENTIFIER"
            form = Form.IDENTIFIER if is_identifier else Form.FUNCTION
            arguments = self._arguments(ctes, block)
        elif len(path) == 1 and path[0].lower() in ctes:
            self._skip_alias()
            return
        version, timestamp = self._travel() if form is not Form.FUNCTION else (None, None)
        options: Properties = ()
        if form is not Form.FUNCTION and c.token.is_word("WITH") and c.ahead().is_symbol("("):
            c.next()
            options = read_properties(c)
        end = c.tokens[c.at - 1].end
        alias_at, alias = self._sample(), self._alias()
        self.found.references.append(
            Reference(
                form=form,
                name=TableName(path),
                start=start,
                end=end,
                block=block,
                version=version,
                timestamp=timestamp,
                options=options,
                arguments=arguments,
                alias=alias,
                alias_at=alias_at if alias is None else None,
            )
        )

    def _arguments(self, ctes: frozenset[str], block: int) -> tuple[str, ...]:
        """The texts of arguments; tables and queries in them are found, too."""
        c = self.c
        opened = c.at
        c.next()
        self._block(ctes, block)
        closed = c.at
        c.take(")")
        inner = self.found.text[c.tokens[opened].end : c.tokens[closed].start]
        return split_arguments(inner)

    def _travel(self) -> tuple[str | None, str | None]:
        c, at = self.c, 0
        if c.token.is_word("FOR"):
            at = 1
        kind = c.ahead(at).word
        if kind not in _VERSIONS | _TIMES:
            return None, None
        if not (c.ahead(at + 1).is_word("AS") and c.ahead(at + 2).is_word("OF")):
            return None, None
        c.at += at + 3
        start = c.token.start
        if kind in _VERSIONS:
            token = c.token
            if token.kind is Kind.TEXT:
                return c.string(), None
            if token.kind is not Kind.NUMBER or not token.text.isdecimal():
                c.fail("expected the number of a snapshot, or a tag in quotes")
            return c.next().text, None
        self._value()
        return None, c.text[start : c.tokens[c.at - 1].end]

    def _value(self) -> None:
        """An expression: operands with operators between them."""
        c = self.c
        self._operand()
        while c.token.is_symbol("+", "-", "*", "/", "||", "::"):
            c.next()
            self._operand()

    def _operand(self) -> None:
        c = self.c
        while c.token.is_symbol("-", "+"):
            c.next()
        if c.token.is_symbol("("):
            c.skip_parentheses()
        elif c.token.is_word("INTERVAL") and not c.ahead().is_symbol("."):
            self._interval()
        elif c.token.is_name:
            c.path()
            if c.token.is_symbol("("):
                c.skip_parentheses()
            elif c.token.kind is Kind.TEXT:
                c.string()  # TIMESTAMP '...'
        elif c.token.kind is Kind.TEXT:
            c.string()
        elif c.token.kind is Kind.NUMBER or c.token.is_symbol("?"):
            c.next()
        else:
            c.expect(":")  # a parameter
            c.name()

    def _interval(self) -> None:
        c = self.c
        c.next()
        while c.token.kind in (Kind.TEXT, Kind.NUMBER) or c.token.is_symbol("-"):
            c.next()
            while c.token.word in _UNITS:
                c.next()

    def _values(self, ctes: frozenset[str], block: int) -> None:
        """Rows as literals: the commas between them are not between tables."""
        c = self.c
        c.next()
        while True:
            if c.token.is_symbol("("):
                self._parenthesis(ctes, block, want=False)
            else:
                c.expression(*_NO_ALIAS)
            if not c.take(","):
                break
        self._skip_alias()

    def _sample(self) -> int:
        """Moves over TABLESAMPLE and options; returns where an alias can stand."""
        c = self.c
        if c.token.is_word("WITH") and c.ahead().is_symbol("("):
            c.next()
            c.skip_parentheses()
        if c.token.is_word("TABLESAMPLE") and c.ahead().is_symbol("("):
            c.next()
            c.skip_parentheses()
            if c.token.is_word("REPEATABLE"):
                c.next()
                c.skip_parentheses()
        return c.tokens[c.at - 1].end

    def _alias(self) -> str | None:
        c = self.c
        if c.token.is_word("AS"):
            c.next()
            alias = c.name() if c.token.is_name else None
        elif c.token.is_name and c.token.word not in _NO_ALIAS:
            alias = c.name()
        else:
            return None
        if c.token.is_symbol("("):
            c.skip_parentheses()
        return alias

    def _skip_alias(self) -> None:
        self._sample()
        self._alias()

    # --- expressions ------------------------------------------------------------------------------

    def _chain(self, ctes: frozenset[str], block: int) -> None:
        c = self.c
        start = c.token.start
        tokens = [c.next()]
        while c.token.is_symbol(".") and c.ahead().is_name:
            c.next()
            tokens.append(c.next())
        is_current = len(tokens) == 1 and tokens[0].word in _CURRENT and c.is_at("(", ")")
        if is_current or (c.token.is_symbol("(") and len(tokens) > 1):
            name = tuple(token.name for token in tokens)
            arguments = self._arguments(ctes, block)
            end = c.tokens[c.at - 1].end
            self.found.calls.append(Call(name, arguments, start, end))
        elif c.token.is_symbol(".") and c.ahead().is_symbol("*"):
            c.next()
            self.found.stars.append(Star(tokens[-1].name, c.token.end, block))
            self.found.chains.append(Chain((*tokens, c.next()), block))
        elif len(tokens) > 1:
            self.found.chains.append(Chain(tuple(tokens), block))

    def _star(self, block: int) -> None:
        c = self.c
        if not c.token.is_symbol("*") or not c.at:
            return
        before = c.tokens[c.at - 1]
        is_argument = before.is_symbol("(") and c.at > 1 and not c.tokens[c.at - 2].is_word("COUNT")
        if before.is_word("SELECT", "DISTINCT", "ALL") or before.is_symbol(",") or is_argument:
            self.found.stars.append(Star(None, c.token.end, block))
