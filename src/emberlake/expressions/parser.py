"""Expressions from text: the usual SQL, keywords in any case. Nothing is evaluated.

    expression = or;  or = and {OR and};  and = not {AND not};  not = {NOT} test
    test       = sum [op sum | IS [NOT] NULL | [NOT] BETWEEN sum AND sum
               | [NOT] IN "(" expression {"," expression} ")" | [NOT] (LIKE | ILIKE) pattern]
    op         = "=" | "==" | "<=>" | "<>" | "!=" | "<" | "<=" | ">" | ">="
    sum        = product {("+" | "-" | "||") product};  product = unary {("*" | "/" | "%") unary}
    unary      = {"+" | "-"} primary
    primary    = literal | name | "(" expression ")" | function "(" [arguments] ")"
               | CASE [expression] WHEN .. THEN .. [ELSE ..] END | CAST "(" expression AS type ")"
               | CURRENT_DATE | CURRENT_TIMESTAMP

Names and literals are those of filters (``predicates/text``).
"""

from typing import Final

from emberlake.errors import InvalidExpression, InvalidSchema
from emberlake.expressions.syntax import Call, CastTo, Name, Node, Written
from emberlake.predicates.lexer import Kind, Token, TokenReader
from emberlake.types import AtomicType

_MAX_DEPTH: Final = 50
_MAX_HEIGHT: Final = 250  # of the tree: code that walks it recurses for every level
_COMPARISONS: Final = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_SPELLINGS: Final = {"==": "=", "!=": "<>", "CEILING": "CEIL", "SUBSTR": "SUBSTRING"}
_MOMENTS: Final = ("CURRENT_DATE", "CURRENT_TIMESTAMP")
_NULL: Final = Written(None)


def parse_expression(text: str) -> Node:
    """Parse an expression.

    Raises:
        InvalidExpression: it is not an expression; the message says where and what was expected.
    """
    parser = _Parser(text, "expression", InvalidExpression)
    node = parser.expression()
    if parser.current.kind is not Kind.END:
        parser.fail("an operator or the end")
    if _height(node) > _MAX_HEIGHT:
        raise InvalidExpression(
            f"the expression {text[:80]!r}... is too long: at most {_MAX_HEIGHT} operators in a row"
        )
    return node


def _height(node: Node) -> int:
    """How many levels a tree has."""
    height = 0
    level: list[Node] = [node]
    while level:
        height += 1
        level = [inner for above in level for inner in _inner(above)]
    return height


def _inner(node: Node) -> tuple[Node, ...]:
    match node:
        case Call():
            return node.args
        case CastTo():
            return (node.inner,)
        case _:
            return ()


class _Parser(TokenReader):
    """Recursive descent, one method for each level of precedence."""

    _depth = 0

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self.fail(f"at most {_MAX_DEPTH} levels of nesting")
        node = self._joined("OR")
        self._depth -= 1
        return node

    def _joined(self, word: str) -> Node:
        position = self.current.position
        parts = [self._joined("AND") if word == "OR" else self._not()]
        while self.take_word(word):
            parts.append(self._joined("AND") if word == "OR" else self._not())
        return parts[0] if len(parts) == 1 else Call(word, tuple(parts), position)

    def _not(self) -> Node:
        position = self.current.position
        count = 0
        while self.take_word("NOT"):
            count += 1
        inner = self._test()
        # Two cancel each other out, even for null.
        return Call("NOT", (inner,), position) if count % 2 else inner

    def _test(self) -> Node:
        left = self._sum()
        token = self.current
        if token.is_symbol(*_COMPARISONS):
            self.at += 1
            name = _SPELLINGS.get(token.text, token.text)
            return Call(name, (left, self._sum()), token.position)
        if self.take_word("IS"):
            is_negated = self.take_word("NOT")
            self.expect_word("NULL")
            return _negated(Call("IS NULL", (left,), token.position), is_negated=is_negated)
        is_negated = token.is_word("NOT") and self.following.is_word(
            "BETWEEN", "IN", "LIKE", "ILIKE"
        )
        self.at += is_negated
        test = self._word_test(left)
        return left if test is None else _negated(test, is_negated=is_negated)

    def _word_test(self, left: Node) -> Call | None:
        token = self.current
        if self.take_word("BETWEEN"):
            low = self._sum()
            self.expect_word("AND")
            return Call("BETWEEN", (left, low, self._sum()), token.position)
        if self.take_word("IN"):
            self.expect_symbol("(")
            return Call("IN", (left, *self._arguments()), token.position)
        for word in ("LIKE", "ILIKE"):
            if self.take_word(word):
                pattern = Written(self.like_pattern())
                return Call(word, (left, pattern), token.position)
        return None

    def _sum(self) -> Node:
        node = self._product()
        while self.current.is_symbol("+", "-", "||"):
            token = self._operator()
            node = Call(token.text, (node, self._product()), token.position)
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self.current.is_symbol("*", "/", "%"):
            token = self.current
            self.at += 1
            node = Call(token.text, (node, self._unary()), token.position)
        return node

    def _unary(self) -> Node:
        signs: list[Token] = []
        while self.current.is_symbol("+", "-") and self.following.kind is not Kind.NUMBER:
            signs.append(self._operator())
        node = self._primary()
        for sign in reversed(signs):
            node = Call("NEGATE", (node,), sign.position) if sign.text == "-" else node
        return node

    def _operator(self) -> Token:
        """Take an operator, but not ``--``, which is a comment in SQL."""
        token, after = self.current, self.following
        if token.text == after.text == "-" and after.position == token.position + 1:
            self.fail("no comment (to subtract a negative value, write - (-x))")
        self.at += 1
        return token

    def _primary(self) -> Node:
        token = self.current
        if self.starts_literal():
            return Written(self.literal())
        if self.take_symbol("("):
            node = self.expression()
            self.expect_symbol(")")
            return node
        if self.take_word("CASE"):
            return self._case(token.position)
        if token.is_word("CAST") and self.following.is_symbol("("):
            return self._cast()
        if token.kind is Kind.WORD and self.following.is_symbol("("):
            self.at += 2
            name = token.text.upper()
            arguments = self._arguments()
            return Call(_SPELLINGS.get(name, name), arguments, token.position)
        if token.is_word(*_MOMENTS):
            self.at += 1
            return Call(token.text.upper(), (), token.position)
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            self.fail("a column, a literal or a function")
        return Name(self.name_parts(), token.position)

    def _arguments(self) -> tuple[Node, ...]:
        """The arguments in parentheses; the opening one has been taken."""
        if self.take_symbol(")"):
            return ()
        arguments = [self.expression()]
        while self.take_symbol(","):
            arguments.append(self.expression())
        self.expect_symbol(")")
        return tuple(arguments)

    def _case(self, position: int) -> Node:
        subject = None if self.current.is_word("WHEN") else self.expression()
        args: list[Node] = []
        while self.take_word("WHEN"):
            at = self.current.position
            condition = self.expression()
            if subject is not None:
                condition = Call("=", (subject, condition), at)
            self.expect_word("THEN")
            args += [condition, self.expression()]
        if not args:
            self.fail("WHEN")
        args.append(self.expression() if self.take_word("ELSE") else _NULL)
        self.expect_word("END")
        return Call("CASE", tuple(args), position)

    def _at_closing(self) -> bool:
        return self.current.is_symbol(")") or self.current.kind is Kind.END

    def _cast(self) -> Node:
        position = self.current.position
        self.at += 2
        inner = self.expression()
        self.expect_word("AS")
        start = self.current
        while not self._at_closing():
            if self.take_symbol("("):
                while not self._at_closing():
                    self.at += 1
            self.at += 1
        text = self.text[start.position - 1 : self.current.position - 1]
        self.expect_symbol(")")
        try:
            return CastTo(inner, AtomicType(text.strip()), position)
        except InvalidSchema as error:
            raise InvalidExpression(
                f"{error} (at position {start.position} of the expression {self.text!r})"
            ) from error


def _negated(node: Call, *, is_negated: bool) -> Node:
    return Call("NOT", (node,), node.position) if is_negated else node
