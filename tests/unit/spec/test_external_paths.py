"""Where new files go when folders outside of the table are named."""

from collections import Counter
from itertools import cycle

import pytest

from emberlake.errors import InvalidOption
from emberlake.options import TableOptions
from emberlake.spec.external_paths import (
    FilePlaces,
    external_folders,
    external_index_folder,
    external_paths,
    plain_uri,
)

PATHS = "data-file.external-paths"
STRATEGY = f"{PATHS}.strategy"
TWO = "s3://b/x, file:///ext/"


def chosen(names, chance=lambda: 0.0, **options):
    given = {key.replace("_", "-"): value for key, value in options.items()}
    raw = {PATHS: given.pop("paths", TWO), **{f"{PATHS}.{k}": v for k, v in given.items()}}
    found = external_paths(TableOptions(raw))
    assert found is not None
    choose = found.chooser("dt=1/bucket-0", chance)
    return [choose(name) for name in names]


@pytest.mark.parametrize("options", [{}, {PATHS: TWO}, {STRATEGY: "round-robin"}])
def test_files_stay_in_the_table_unless_folders_and_a_strategy_are_given(options):
    assert external_paths(TableOptions(options)) is None


def test_round_robin_takes_the_folders_in_turn():
    assert chosen(["a", "b", "c"], strategy="round-robin") == [
        "file:/ext/dt=1/bucket-0/a",
        "s3://b/x/dt=1/bucket-0/b",
        "file:/ext/dt=1/bucket-0/c",
    ]


def test_round_robin_begins_anywhere():
    first = {chosen(["a"], lambda c=c: c, strategy="round-robin")[0] for c in (0.0, 0.9)}

    assert first == {"file:/ext/dt=1/bucket-0/a", "s3://b/x/dt=1/bucket-0/a"}


def test_a_specific_file_system_is_that_of_the_scheme():
    paths = chosen(["a", "b"], strategy="specific-fs", specific_fs="S3")

    assert paths == ["s3://b/x/dt=1/bucket-0/a", "s3://b/x/dt=1/bucket-0/b"]


def test_weights_say_how_often_a_folder_is_taken():
    chances = cycle(n / 4 for n in range(4))

    paths = chosen("abcd", lambda: next(chances), strategy="weight-robin", weights="1, 3")

    assert Counter(path[:2] for path in paths) == {"s3": 1, "fi": 3}


def test_without_weights_the_folders_take_turns():
    assert chosen("ab", strategy="weight-robin") == chosen("ab", strategy="round-robin")


def test_entropy_puts_files_into_folders_by_the_hash_of_their_names():
    names = ["data-a-0.parquet", "data-a-1.parquet"]

    assert chosen(names, strategy="entropy-inject") == [
        "file:/ext/dt=1/bucket-0/1100/0100/1000/00101100/data-a-0.parquet",
        "s3://b/x/dt=1/bucket-0/1010/0111/0111/10110010/data-a-1.parquet",
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({PATHS: "/ext", STRATEGY: "round-robin"}, "/ext has no scheme"),
        ({PATHS: TWO, STRATEGY: "specific-fs"}, "specific-fs needs the scheme"),
        (
            {PATHS: TWO, STRATEGY: "specific-fs", f"{PATHS}.specific-fs": "oss"},
            "specific-fs=oss: no folder",
        ),
        ({PATHS: TWO, STRATEGY: "weight-robin", f"{PATHS}.weights": "1,0"}, "weights=1,0"),
        ({PATHS: TWO, STRATEGY: "weight-robin", f"{PATHS}.weights": "1"}, "1 numbers for 2"),
        ({"global-index.external-path": "ext"}, "global-index.external-path: ext has no scheme"),
    ],
)
def test_options_that_do_not_say_where_are_refused(options, problem):
    with pytest.raises(InvalidOption, match=problem):
        external_paths(TableOptions(options))


def test_an_unknown_strategy_is_refused_with_those_there_are():
    with pytest.raises(InvalidOption, match="none, round-robin, specific-fs"):
        TableOptions({STRATEGY: "random"})


def test_a_path_without_a_scheme_is_left_as_it_is():
    assert plain_uri("/a//b") == "/a//b"


def test_a_file_outside_is_at_its_own_path():
    inside, outside = FilePlaces("/t/bucket-0"), FilePlaces("/t/bucket-0", lambda n: f"s3://b/{n}")

    assert (inside.external_path("f"), inside.path("f", None)) == (None, "/t/bucket-0/f")
    assert outside.path("f", outside.external_path("f")) == "s3://b/f"


def test_index_files_have_a_folder_of_their_own():
    options = TableOptions({"global-index.external-path": "file:///index/"})

    assert external_index_folder(options) == "file:/index"
    assert external_index_folder(TableOptions()) is None


def test_all_folders_that_were_ever_named_are_known():
    options = TableOptions({PATHS: TWO, "global-index.external-path": "file:///index"})

    assert external_folders(options) == ("s3://b/x", "file:/ext", "file:/index")
