"""The prompt's own commands, which are not SQL, and what they do."""

from typing import Final

HELP: Final = (
    ("\\d", "the tables of the database"),
    ("\\d NAME", "the columns of a table"),
    ("\\dv", "the views of the database"),
    ("\\df", "the procedures, for CALL"),
    ("\\l", "the databases"),
    ("\\i FILE", "carry out the statements of a file"),
    ("\\rows N", "show N rows of a result; 0 shows all"),
    ("\\x", "every column on a line of its own, or not"),
    ("\\timing", "say how long statements take, or not"),
    ("\\?", "this help"),
    ("\\q", "leave; so does Ctrl-D"),
)
