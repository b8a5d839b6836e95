"""What a table is, decided from its keys and options."""

import pytest

from emberlake.options import ChangelogProducer, MergeEngine, TableOptions
from emberlake.spec.profile import BucketMode, TableKind, profile_of

VECTORS = {"deletion-vectors.enabled": "true"}
LOOKUP = {"changelog-producer": "lookup"}
FIRST_ROW = {"merge-engine": "first-row"}


def append(**options: str):
    return profile_of([], [], TableOptions(options))


def keyed(*partitions: str, **options: str):
    return profile_of(["k"], partitions, TableOptions(options))


def test_a_primary_key_makes_a_key_table():
    assert (append().kind, append().has_keys) == (TableKind.APPEND, False)
    assert (keyed().kind, keyed().has_keys) == (TableKind.KEY, True)


@pytest.mark.parametrize(
    ("profile", "mode", "count"),
    [
        (append(), BucketMode.UNAWARE, None),
        (append(bucket="3"), BucketMode.FIXED, 3),
        (keyed(bucket="3"), BucketMode.FIXED, 3),
        (keyed(), BucketMode.DYNAMIC, None),
        (keyed(bucket="-2"), BucketMode.POSTPONED, None),
    ],
)
def test_the_number_of_buckets_says_how_rows_find_theirs(profile, mode, count):
    assert (profile.bucket_mode, profile.bucket_count) == (mode, count)
    assert profile.has_buckets is (mode is not BucketMode.UNAWARE)
    assert profile.keeps_key_index is (mode is BucketMode.DYNAMIC)


@pytest.mark.parametrize(
    ("options", "apart", "hides", "compacts"),
    [
        ({}, False, False, False),
        (VECTORS, True, True, True),
        (FIRST_ROW, True, True, True),
        ({**VECTORS, "write-only": "true"}, True, True, False),
        ({**VECTORS, "deletion-vectors.merge-on-read": "true"}, True, False, True),
        ({**FIRST_ROW, "deletion-vectors.merge-on-read": "true"}, True, True, True),
        (LOOKUP, False, False, True),
        ({**LOOKUP, "write-only": "true"}, False, False, False),
        ({"force-lookup": "true"}, False, False, False),
        ({"changelog-producer": "full-compaction"}, False, False, False),
    ],
)
def test_reads_of_some_key_tables_see_what_was_compacted(options, apart, hides, compacts):
    profile = keyed(**options)

    assert profile.keeps_levels_apart is apart
    assert profile.hides_level_0 is hides
    assert profile.compacts_on_write is compacts
    # The record of a key on a low level is the whole row, whether those above it stay or not.
    looks_up = apart or "force-lookup" in options or options.get("changelog-producer") == "lookup"
    assert (profile.looks_up, profile.looks_up_only) == (looks_up, looks_up and not apart)


def test_append_tables_hide_nothing():
    profile = append(**VECTORS)

    assert profile.has_deletion_vectors
    assert not profile.keeps_levels_apart
    assert not profile.hides_level_0
    assert not profile.compacts_on_write


def test_engine_changelog_and_partitions_are_part_of_it():
    profile = keyed("day", **FIRST_ROW, **{"changelog-producer": "input"})

    assert profile.merge_engine is MergeEngine.FIRST_ROW
    assert profile.changelog_producer is ChangelogProducer.INPUT
    assert (profile.has_changelog, profile.is_partitioned) == (True, True)
    assert (append().has_changelog, append().is_partitioned) == (False, False)


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ({}, 6),  # the trigger of five runs, and one more
        ({"num-sorted-run.compaction-trigger": "3"}, 4),
        ({"num-levels": "8"}, 8),
        ({"num-levels": "1"}, 2),  # level 0, and one to compact to
    ],
)
def test_a_bucket_has_as_many_levels_as_options_ask_for(options, levels):
    assert keyed(**options).num_levels == levels
