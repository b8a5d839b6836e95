"""Replaces table names with other text; the rest of a statement stays as written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from emberlake.sql.names import quoted
from emberlake.sql.references import Chain, Form, Found, Reference


@dataclass(frozen=True)
class Edit:
    """Text that replaces other text."""

    start: int
    end: int
    text: str


def edited(text: str, edits: list[Edit]) -> str:
    """The text with all edits made; they do not overlap."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        out += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join((*out, text[at:]))


def edits_of(
    found: Found, replaced: Mapping[Reference, str], around: tuple[str, ...] = ()
) -> Iterator[Edit]:
    """What to change so that these references name something else.

    A table that has no alias keeps its name as one, and names of columns that begin with more of
    it (``db.t.c``) lose the rest.

    Args:
        found: What the text refers to.
        replaced: What stands for references.
        around: The catalog and the database of tables that are named without them.
    """
    for reference, text in replaced.items():
        yield Edit(reference.start, reference.end, text)
        if reference.alias_at is not None and reference.form is not Form.TABLE:
            yield Edit(reference.alias_at, reference.alias_at, f" AS {quoted(reference.name.last)}")
    for chain in found.chains:
        count = next(
            (
                extra
                for reference in replaced
                if (extra := _extra_parts(found, chain, reference, around)) is not None
            ),
            None,
        )
        if count:
            yield Edit(chain.tokens[0].start, chain.tokens[count].start, "")


def _extra_parts(
    found: Found, chain: Chain, reference: Reference, around: tuple[str, ...]
) -> int | None:
    """How many parts of ``paimon.db.t.c`` are in front of the name of the table itself."""
    if reference.alias is not None or not found.is_inside(chain.block, reference.block):
        return None
    own = reference.name.parts
    missing = max(0, 1 + len(around) - len(own))
    parts = [part.lower() for part in (*around[:missing], *own)]
    names = [token.name.lower() for token in chain.tokens]
    for length in range(len(parts), 1, -1):
        if len(names) > length and names[:length] == parts[-length:]:
            return length - 1
    return None
