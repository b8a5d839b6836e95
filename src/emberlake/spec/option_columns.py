"""Options that name columns: which they are, how their lists are read, and new names in them."""

from collections.abc import Iterator, Mapping
from typing import Final

from emberlake.options import (
    BUCKET_KEY,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    TableOptions,
    parse_words,
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


# Options of a column whose value is a list of its fields.
_NESTED_LISTS: Final = (".nested-key", ".nested-sequence-field")


def split_names(text: str) -> tuple[str, ...]:
    """The names of a list separated by commas; where one is missing it is empty."""
    return tuple(word.strip() for word in text.split(","))


def tidy_option(key: str, value: str) -> tuple[str, str]:
    """An option whose lists of columns have no blanks: engines split them and do not trim.

    A name that is missing stays so: ``column_lists`` shows it.
    """
    if _is_group(key):
        key = f"fields.{','.join(split_names(_group_order(key)))}.sequence-group"
    return key, ",".join(split_names(value)) if _lists_columns(key) else value


def column_lists(options: TableOptions) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lists of names in options: what to call the list, and the names, empty ones too."""
    for key, value in options.items():
        if _is_group(key):
            yield f"the order of {key}", split_names(_group_order(key))
        if _lists_columns(key) or (key.startswith("fields.") and key.endswith(_NESTED_LISTS)):
            yield key, split_names(value)


def _group_order(key: str) -> str:
    return key.removeprefix("fields.").removesuffix(".sequence-group")


def rename_in_options(options: TableOptions, old: str, new: str) -> TableOptions:
    """The options with a column's new name where they named it."""
    return TableOptions(
        {
            _rename_in_key(key, old, new): _rename_in_value(key, value, old, new)
            for key, value in options.items()
        }
    )


def rename_all_in_options(options: TableOptions, names: Mapping[str, str]) -> TableOptions:
    """The options with new names of columns, by the old ones, all at once: two may be swapped."""
    changed = {old: new for old, new in names.items() if old != new}
    for place, old in enumerate(changed):
        options = rename_in_options(options, old, _unused_name(place))
    for place, new in enumerate(changed.values()):
        options = rename_in_options(options, _unused_name(place), new)
    return options


def _unused_name(place: int) -> str:
    return f"\0{place}"  # no column can be called that


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
    """The names with a new one in place of the old."""
    return tuple(new if name == old else name for name in names)
