"""A text with several statements: where each of them begins, and whether the last one ends."""

from dataclasses import dataclass

from emberlake.sql.lexer import InvalidText, Kind, Token, tokenize


@dataclass(frozen=True)
class Part:
    """One statement of a script."""

    text: str  # without its semicolon
    line: int  # where it begins, from 1


def split_script(text: str) -> tuple[Part, ...]:
    """The statements of a text, between its semicolons and without comments around them.

    Raises:
        InvalidText: a quote or a comment does not end; a note of the error says in which line.
    """
    try:
        tokens = tokenize(text)
    except InvalidText as error:
        error.add_note(line_note(_line_at(text, error.at)))
        raise
    parts: list[Part] = []
    open_tokens: list[Token] = []
    for token in tokens:
        if token.kind is not Kind.END and not token.is_symbol(";"):
            open_tokens.append(token)
        elif open_tokens:
            start, end = open_tokens[0].start, open_tokens[-1].end
            parts.append(Part(text[start:end], _line_at(text, start)))
            open_tokens = []
    return tuple(parts)


def is_finished(text: str) -> bool:
    """Whether the text ends with a semicolon, or has an error that more text cannot fix."""
    try:
        tokens = tokenize(text)
    except InvalidText as error:
        return not error.is_open
    return len(tokens) > 1 and tokens[-2].is_symbol(";")


def line_note(line: int) -> str:
    """How a note of an error names a line of a script."""
    return f"line {line}"


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
