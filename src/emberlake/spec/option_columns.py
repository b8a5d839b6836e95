"""Options that name columns: find them, parse their lists, and rename columns in them."""

from collections.abc import Iterator, Mapping
from typing import Final

from emberlake.base.option_texts import parse_words
from emberlake.options import (
    BUCKET_KEY,
    DEFAULT_AGGREGATE,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    TableOptions,
)

# Options whose value is a column or a list of columns.
_COLUMN_LISTS: Final = frozenset(
    {
        BUCKET_KEY.key,
        SEQUENCE_FIELD.key,
        ROWKIND_FIELD.key,
        "partial-update.remove-record-on-sequence-group",
        "record-level.time-field",
        "clustering.columns",
    }
)


_COMPARING: Final = ("max", "min")  # functions
# Options of a column whose value is a list of its fields.
_NESTED_LISTS: Final = (".nested-key", ".nested-sequence-field")


def split_names(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas; a missing name is empty."""
    return tuple(word.strip() for word in text.split(","))


def tidy_option(key: str, value: str) -> tuple[str, str]:
    """Remove blanks from the lists of columns in an option: engines split them without trimming.

    A missing name stays missing, so that ``column_lists`` shows it.
    """
    if _is_group(key):
        key = f"fields.{','.join(split_names(_group_order(key)))}.sequence-group"
    return key, ",".join(split_names(value)) if _lists_columns(key) else value


def column_lists(options: TableOptions) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lists of names in options: a title for each list, and its names, empty ones too."""
    for key, value in options.items():
        if _is_group(key):
            yield f"the order of {key}", split_names(_group_order(key))
        if _lists_columns(key) or (key.startswith("fields.") and key.endswith(_NESTED_LISTS)):
            yield key, split_names(value)


def is_compared(options: TableOptions, column: str) -> bool:
    """Whether values of a column decide between changes of a key: the newest, or the greatest."""
    groups = (split_names(_group_order(key)) for key in options if _is_group(key))
    orders = column in options.value(SEQUENCE_FIELD) or any(column in names for names in groups)
    default = options.value(DEFAULT_AGGREGATE)
    return orders or options.get(f"fields.{column}.aggregate-function", default) in _COMPARING


def _group_order(key: str) -> str:
    return key.removeprefix("fields.").removesuffix(".sequence-group")


def rename_in_options(options: TableOptions, old: str, new: str) -> TableOptions:
    """The options with a column renamed wherever they name it."""
    return TableOptions(
        {
            _rename_in_key(key, old, new): _rename_in_value(key, value, old, new)
            for key, value in options.items()
        }
    )


def rename_all_in_options(options: TableOptions, names: Mapping[str, str]) -> TableOptions:
    """The options with columns renamed from old to new, all at once: two may swap names."""
    changed = {old: new for old, new in names.items() if old != new}
    for number, old in enumerate(changed):
        options = rename_in_options(options, old, _unused_name(number))
    for number, new in enumerate(changed.values()):
        options = rename_in_options(options, _unused_name(number), new)
    return options


def _unused_name(number: int) -> str:
    return f"\0{number}"  # no column can have this name


def _rename_in_value(key: str, value: str, old: str, new: str) -> str:
    if not _lists_columns(key):
        return value
    names = parse_words(value)
    renamed = rename_in(names, old, new)
    return value if renamed == names else ",".join(renamed)


def _lists_columns(key: str) -> bool:
    return (
        key in _COLUMN_LISTS
        or (key.startswith("file-index.") and key.endswith(".columns"))
        or _is_group(key)
    )


def _is_group(key: str) -> bool:
    return key.startswith("fields.") and key.endswith(".sequence-group")


def _rename_in_key(key: str, old: str, new: str) -> str:
    if not key.startswith("fields."):
        return key
    rest = key.removeprefix("fields.")
    if rest.startswith(f"{old}."):
        return f"fields.{new}{rest.removeprefix(old)}"
    if rest.endswith(".sequence-group"):  # ordered by several columns
        names = parse_words(rest.removesuffix(".sequence-group"))
        if old in names:
            return f"fields.{','.join(rename_in(names, old, new))}.sequence-group"
    return key


def rename_in(names: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    """The names with the old one replaced by the new."""
    return tuple(new if name == old else name for name in names)
