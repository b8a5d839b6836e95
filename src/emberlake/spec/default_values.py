"""The default of a column: the text in its schema, as a value. Spec: "Schema files"."""

from emberlake.spec.literals import cast_literal
from emberlake.spec.values import Value
from emberlake.types import DataType

_QUOTE = "'"


def default_value(data_type: DataType, text: str) -> Value:
    """The value that a default stands for; SQL engines write texts in quotes.

    Raises:
        InvalidInput: the text does not fit the type.
    """
    is_quoted = len(text) > 1 and text.startswith(_QUOTE) and text.endswith(_QUOTE)
    if is_quoted:
        text = text[1:-1].replace(_QUOTE * 2, _QUOTE)
    return cast_literal(data_type, text)
