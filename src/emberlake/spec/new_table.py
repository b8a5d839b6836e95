"""Build the first schema of a table from what a user declares. Spec: "Schema files"."""

from collections.abc import Mapping

from emberlake.errors import InvalidOption, InvalidSchema
from emberlake.options import TableOptions
from emberlake.spec.field_ids import assign_field_ids, highest_field_id
from emberlake.spec.option_columns import split_names, tidy_option
from emberlake.spec.rules import find_problems
from emberlake.spec.rules.check import empty_names
from emberlake.spec.rules.keys import normalise_key_columns
from emberlake.spec.schema import Schema, TableSchema
from emberlake.spec.support import check_creatable, check_kind


def build_table_schema(
    schema: Schema, *, time_millis: int, for_others: bool = False
) -> TableSchema:
    """The first schema of a new table.

    Columns get new field ids, primary key columns become NOT NULL, and keys that are given as
    options (``primary-key``, ``partition``) become the keys of the schema.

    Args:
        schema: What the user declares.
        time_millis: When the table is created.
        for_others: Whether other engines use the table, which may do more than emberlake.

    Raises:
        InvalidSchema: the message lists everything that is wrong.
        Unsupported: the table is of a kind that emberlake does not know, or cannot write.
    """
    problems: list[str] = []
    raw = _text_options(schema.options, problems)
    partition_keys = _take_keys(raw, "partition", schema.partition_keys, problems)
    primary_keys = _take_keys(raw, "primary-key", schema.primary_keys, problems)
    options = _parse_options(raw, problems)
    fields = assign_field_ids(schema.fields, next_id=0)
    table_schema = TableSchema(
        id=0,
        fields=normalise_key_columns(fields, primary_keys, options),
        highest_field_id=highest_field_id(fields),
        partition_keys=partition_keys,
        primary_keys=primary_keys,
        options=options,
        comment=schema.comment,
        time_millis=time_millis,
    )
    problems.extend(find_problems(table_schema))
    if problems:
        raise InvalidSchema("the table cannot be created: " + "; ".join(problems))
    (check_kind if for_others else check_creatable)(table_schema)
    return table_schema


def _text_options(options: Mapping[str, object], problems: list[str]) -> dict[str, str]:
    texts = {}
    for key, value in options.items():
        if isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            texts[key] = str(value)
        else:
            problems.append(f"option {key} is a {type(value).__name__}, not a string")
    return dict(tidy_option(key, value) for key, value in texts.items())


def _take_keys(
    raw: dict[str, str], option: str, declared: tuple[str, ...], problems: list[str]
) -> tuple[str, ...]:
    given = raw.pop(option, None)
    if given is None:
        return declared
    keys = split_names(given)
    problems.extend(empty_names(option, keys))
    if declared and keys != declared:
        problems.append(f"the option {option} and the schema name different keys")
    return tuple(filter(None, keys))


def _parse_options(raw: dict[str, str], problems: list[str]) -> TableOptions:
    good = {}
    for key, value in raw.items():
        try:
            TableOptions({key: value})
        except InvalidOption as error:
            problems.append(str(error).removeprefix("options that cannot be read: "))
        else:
            good[key] = value
    return TableOptions(good)
