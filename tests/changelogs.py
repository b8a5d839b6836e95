"""Changes that a table has recorded, and what they say its rows are."""

import json
from collections.abc import Iterator, Sequence

from canonical import Row, canonical_rows, sorted_rows
from emberlake import Table
from emberlake.spec.profile import TableProfile
from table_reads import live_files

ROW_KIND = "_row_kind"


def changes_of(table: Table) -> Iterator[list[Row]]:
    """The changes of every snapshot that has some, each row after its kind, in order."""
    builder = table.new_stream_read_builder().with_include_row_kind()
    scan = builder.new_streaming_scan()
    scan.restore(1)
    while (plan := scan.plan()) is not None:
        found = builder.new_read().to_arrow(plan.splits())
        kinds = found.column(ROW_KIND).to_pylist()
        yield canonical_rows(found.drop_columns([ROW_KIND]), kinds=kinds)


def replay(changes: Sequence[Row], state: dict[str, Row], places: Sequence[int]) -> None:
    """Apply changes to rows by key; each must fit the row that is there.

    Args:
        changes: Rows after their kinds, in order.
        state: The rows by the text of their key, each after ``+I``.
        places: Where the key is among the columns.
    """
    updated: dict[str, Row] = {}
    for kind, *values in changes:
        key = json.dumps([values[place] for place in places])
        row = ["+I", *values]
        match kind:
            case "+I":
                assert key not in state, (key, row, state[key])
                assert key not in updated, key
                state[key] = row
            case "-U":
                assert state.pop(key, None) == row, (key, row)
                updated[key] = row
            case "+U":
                assert updated.pop(key, None) is not None, (key, row)
                state[key] = row
            case "-D":
                assert state.pop(key, None) == row, (key, row)
    assert not updated


def changed(table: Table) -> list[str]:
    """The changes of every snapshot as texts such as ``+I 1 a 0``, by snapshot and key."""
    return [
        " ".join(["-" if value is None else str(value) for value in row])
        for changes in changes_of(table)
        for row in changes
    ]


def replayed(table: Table) -> list[Row]:
    """The rows of a table, from nothing but its changes."""
    names = [f.name for f in table.fields]
    identity = dict.fromkeys((*table.partition_keys, *table.primary_keys))
    places = [names.index(name) for name in identity]
    state: dict[str, Row] = {}
    for changes in changes_of(table):
        replay(changes, state, places)
    return sorted_rows(list(state.values()))


def check_replay(table: Table) -> None:
    """The changes of a table make its rows."""
    assert replayed(table) == sorted_rows(canonical_rows(table.to_arrow()))


def is_recorded(table: Table) -> bool:
    """Whether no file waits for a compaction that finds what it changes."""
    profile: TableProfile = table.store.schema.profile
    finds_all = profile.changelog_producer.value == "full-compaction"
    least = profile.num_levels - 1 if finds_all else 1
    return all(entry.file.level >= least for entry in live_files(table))
