"""Names and ids that the format reserves for its own columns."""

from typing import Final

SYSTEM_FIELD_ID_START: Final = 1_073_741_823  # ids from here on belong to system columns

_NAMES: Final = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})
_KEY_PREFIX: Final = "_KEY_"


def is_system_column(name: str) -> bool:
    """Whether the name is reserved, so that no user column can have it."""
    return name in _NAMES or name.startswith(_KEY_PREFIX)
