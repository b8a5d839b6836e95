"""The references in a query: tables, table functions, and names that begin with tables."""

from dataclasses import dataclass, field
from enum import Enum, auto

from emberlake.sql.cursor import Cursor
from emberlake.sql.lexer import Kind, Token, text_value
from emberlake.sql.names import TableName


class Form(Enum):
    """How a table is named."""

    NAME = auto()  # FROM db.t
    TABLE = auto()  # TABLE db.t, which takes no alias
    FUNCTION = auto()  # FROM f(...)
    IDENTIFIER = auto()  # FROM IDENTIFIER(...)


@dataclass(frozen=True)
class Reference:
    """A place where a query names a table, or calls a function that returns one."""

    form: Form
    name: TableName  # of the table, or of the function
    start: int
    end: int  # after the name, its version, and the arguments of a function
    block: int
    version: str | None = None  # VERSION AS OF: a number, or the value of a text
    timestamp: str | None = None  # TIMESTAMP AS OF: an expression
    options: tuple[tuple[str, str], ...] = ()  # WITH ('scan.snapshot-id' = '1')
    arguments: tuple[str, ...] = ()
    alias: str | None = None
    alias_at: int | None = None  # where an alias can be put; None if there is one

    @property
    def called(self) -> str:
        """The name that qualifies the columns of the table."""
        return self.alias or self.name.last


@dataclass(frozen=True)
class Call:
    """A call that asks about the lake: sys.max_pt('db.t'), and others with names of several parts,
    or current_database().
    """  # noqa: D205

    name: tuple[str, ...]
    arguments: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Chain:
    """A name of several parts in an expression: ``db.t.c``."""

    tokens: tuple[Token, ...]  # without the dots
    block: int


@dataclass(frozen=True)
class Star:
    """``*`` or ``t.*`` in a list of columns."""

    qualifier: str | None
    end: int
    block: int


@dataclass
class Found:
    """Everything that a scan has found in a text."""

    text: str
    references: list[Reference] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    stars: list[Star] = field(default_factory=list)
    words: set[str] = field(default_factory=set)  # all names in it, in lower case
    parents: dict[int, int] = field(default_factory=dict)  # of every block, the one around it

    def is_inside(self, block: int, outer: int) -> bool:
        """Whether a block is another one, or lies in it."""
        while block != outer and block in self.parents:
            block = self.parents[block]
        return block == outer


def split_arguments(text: str) -> tuple[str, ...]:
    """The arguments of a call, as they were written."""
    cursor = Cursor(text)
    if cursor.token.kind is Kind.END:
        return ()
    found = [cursor.expression()]
    while cursor.take(","):
        found.append(cursor.expression())
    return tuple(found)


def text_of(argument: str) -> str | None:
    """The value of an argument that is a string literal; None if it is something else."""
    tokens = Cursor(argument).tokens[:-1]
    if not tokens or any(token.kind is not Kind.TEXT for token in tokens):
        return None
    return "".join(map(text_value, tokens))
