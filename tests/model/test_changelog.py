"""Random histories of tables whose compaction finds the changes, against what the changes say."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from builders import open_catalog
from changelogs import is_recorded, replayed
from key_histories import History, Shape, random_shape
from places import new_storage
from table_reads import check_whole

ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
STEPS = 8


def recording_shape(chance: Random, engine: str) -> Shape:
    """A table whose changes are found by its own compactions."""
    shape = random_shape(chance, engine)
    options = {key: text for key, text in shape.options.items() if key != "changelog-producer"}
    if engine != "first-row" and chance.random() < 0.4:
        options.pop("deletion-vectors.enabled", None)
        options["changelog-producer"] = "full-compaction"
        if chance.random() < 0.5:
            options["full-compaction.delta-commits"] = chance.choice(["1", "2"])
        if chance.random() < 0.2:
            options["force-lookup"] = "true"
    else:
        options["changelog-producer"] = "lookup"
        is_seen_at_once = engine != "first-row" and "deletion-vectors.enabled" not in options
        if is_seen_at_once and chance.random() < 0.3:
            options["write-only"] = "true"
    if chance.random() < 0.5:
        options["changelog-producer.row-deduplicate"] = "true"
    if chance.random() < 0.5:  # rows stay on several levels for longer
        options["compaction.size-ratio"] = chance.choice(["0", "1000"])
        options["num-sorted-run.compaction-trigger"] = chance.choice(["2", "5", "9"])
        options["compaction.max-size-amplification-percent"] = "100000"
    if chance.random() < 0.5:
        options["compaction.small-file-ratio"] = "0"  # files that share no keys are taken up
    return replace(shape, options=options)


class RecordedHistory(History):
    """Does what leaves changes. An overwrite leaves none."""

    def overwrite(self) -> None:
        self.write()

    def compact(self) -> None:
        options = {"write-only": "false"}
        self.table.copy(options).compact(full=self.chance.random() < 0.3)

    def check(self) -> None:
        super().check()
        if is_recorded(self.table):
            assert replayed(self.table) == self.expected(), self.done


@pytest.mark.parametrize("engine", ENGINES)
# Histories shrink slowly; one that fails tells what was done.
@settings(max_examples=12, phases=[Phase.reuse, Phase.generate])
@given(chance=st.randoms(note_method_calls=False))
def test_the_changes_of_a_table_are_its_rows(engine: str, chance: Random) -> None:
    catalog = open_catalog(new_storage())
    catalog.create_database("db")
    history = RecordedHistory(catalog, recording_shape(chance, engine), chance)

    for _ in range(STEPS):
        history.step()
    history.table.compact(full=True)

    assert is_recorded(history.table)
    assert replayed(history.table) == history.expected(), history.done
    history.check()
    check_whole(history.table)
