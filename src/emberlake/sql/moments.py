"""The moment at which a statement sees a table: what it says itself, or what settings say."""

from collections.abc import Mapping
from typing import overload

from emberlake.inspect import SystemTable
from emberlake.scan.travel import travel_options
from emberlake.table import Table


def at_present(table: Table) -> Table:
    """The table as it is now, whatever settings say: only so it can be changed."""
    return seen_at(table, {}) if travel_options(table.store.options) else table


@overload
def seen_at(table: Table, options: Mapping[str, str]) -> Table: ...
@overload
def seen_at(table: Table | SystemTable, options: Mapping[str, str]) -> Table | SystemTable: ...
def seen_at(table: Table | SystemTable, options: Mapping[str, str]) -> Table | SystemTable:
    """The table at the moment of these options, in place of the one that settings say."""
    by_settings: dict[str, str | None] = dict.fromkeys(travel_options(table.store.options))
    return table.copy({**by_settings, **options})
