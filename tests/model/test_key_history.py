"""Random histories of tables with a primary key against a dictionary of rows."""

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from builders import open_catalog
from key_histories import History, random_shape
from places import new_storage
from table_reads import check_whole

ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
STEPS = 8


@pytest.mark.parametrize("engine", ENGINES)
# Histories shrink slowly; one that fails tells what was done.
@settings(max_examples=8, phases=[Phase.reuse, Phase.generate])
@given(chance=st.randoms(note_method_calls=False))
def test_a_table_is_a_dictionary_of_its_keys(engine: str, chance: Random) -> None:
    catalog = open_catalog(new_storage())
    catalog.create_database("db")
    history = History(catalog, random_shape(chance, engine), chance)

    for _ in range(STEPS):
        history.step()

    history.check_past()
    check_whole(history.table)
