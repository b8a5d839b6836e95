"""Operations on rows of key tables, with another in the middle: none undoes what it did not see.

Reads of some tables show rows only once they are compacted, and some tables order records by a
column. In both, numbers alone do not tell that somebody else has changed a row.
"""

from itertools import islice

import pytest

from torture.interleavings import Turn, interleave, one_interruption
from torture.subjects import SUBJECTS

pytestmark = [pytest.mark.thorough, pytest.mark.memory_only]

PAIRS = [
    ("vectors", ("merge rows", "delete")),
    ("vectors", ("upsert", "merge rows")),
    ("vectors", ("update rows", "upsert")),
    ("ordered", ("merge rows", "merge rows")),
    ("ordered", ("update rows", "upsert")),
]


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "pair"), PAIRS)
def test_an_operation_that_comes_between_is_not_undone(
    kind: str, pair: tuple[str, str], step: int
) -> None:
    """What is undone at one call is undone at calls around it: most runs try every fourth."""
    subject = SUBJECTS[kind]

    for turns in islice(one_interruption(subject, pair), 0, None, step):
        assert interleave(subject, pair, turns).problem is None


THREE: list[tuple[str, tuple[str, ...], list[Turn]]] = [
    # Rows that are inserted because they were missing, where an overwrite brings them meanwhile.
    (
        "append",
        ("overwrite", "upsert by id", "truncate"),
        [(1, 39), (2, 45), (1, 45), (0, 33)],
    ),
    # A row that is deleted, and whose deletion is compacted away before the merge commits.
    ("vectors", ("compact", "merge rows", "delete"), [(1, 30), (2, 49), (2, 57), (0, 11)]),
    ("ordered", ("add column", "update rows", "update rows"), [(2, 7), (0, 12), (2, 21), (0, 19)]),
]


@pytest.mark.parametrize(("kind", "operations", "turns"), THREE)
def test_three_operations_have_an_order(
    kind: str, operations: tuple[str, ...], turns: list[Turn]
) -> None:
    assert interleave(SUBJECTS[kind], operations, turns).problem is None
