"""A check finds rows without an id, ids that two rows have, and files that do not fit together."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders import create_table, publish
from emberlake import CatalogFactory
from emberlake.maintenance.check_report import ProblemKind
from emberlake.spec.manifest import DataFile
from emberlake.table import Table
from golden.reads import Golden
from table_reads import live_files
from tracked_tables import COLUMNS, TRACKED, delete, evolving_table, put, update

Change = Callable[[DataFile], DataFile]


def tracked() -> Table:
    table = create_table(columns=COLUMNS, options=TRACKED)
    put(table, (1, "a", 1), (2, "b", 2))
    put(table, (3, "c", 3))
    return table


def evolving() -> Table:
    table = evolving_table(has_vectors=True)
    put(table, (1, "a", 1), (2, "b", 2))
    put(table, (3, "c", 3))
    update(table, ids=[0], v=["x"])
    delete(table, "id = 2")
    return table


def problems(table: Table) -> list[tuple[ProblemKind, str]]:
    return [(problem.kind, problem.detail) for problem in table.check().problems]


def damaged(table: Table, number: int, change: Change) -> Table:
    """The table with one of its files described otherwise."""
    entries = live_files(table)
    entries[number] = replace(entries[number], file=change(entries[number].file))
    publish(table, entries)
    return table


@pytest.mark.parametrize("make", [tracked, evolving])
def test_rows_with_ids_are_in_order(make: Callable[[], Table]) -> None:
    assert problems(make()) == []


@pytest.mark.parametrize("name", ["rt_dv_compacted", "de_dv_compacted", "de_evolved"])
def test_tables_of_others_are_in_order(golden_rows: Golden, name: str) -> None:
    catalog = CatalogFactory.create({"warehouse": golden_rows.warehouse})

    assert catalog.get_table(f"golden.{name}").check().problems == ()


@pytest.mark.parametrize(
    ("make", "number", "change", "kind", "detail"),
    [
        (tracked, 0, {"first_row_id": None}, ProblemKind.INCONSISTENT, "neither stores the ids"),
        (tracked, 1, {"first_row_id": 7}, ProblemKind.INCONSISTENT, "it has row id 7, but"),
        (tracked, 1, {"first_row_id": 1}, ProblemKind.OVERLAPPING, "row ids from 1 on as well"),
        (evolving, 1, {"first_row_id": 1}, ProblemKind.OVERLAPPING, "overlap"),
        (evolving, 2, {"max_sequence_number": 0}, ProblemKind.INCONSISTENT, "not the oldest file"),
    ],
)
def test_what_does_not_fit_is_found(
    make: Callable[[], Table],
    number: int,
    change: dict[str, int | None],
    kind: ProblemKind,
    detail: str,
) -> None:
    table = damaged(make(), number, lambda file: replace(file, **change))

    found = [(k, d) for k, d in problems(table) if detail in d]
    assert [k for k, _ in found] == [kind]
