"""Short, seeded versions of what ``make torture`` does for minutes."""

import itertools

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from torture.core import Step, chance_of, check_clean, one_core, run
from torture.corruption import TABLES, corruption
from torture.faults import faults
from torture.forks import Forks
from torture.histories import ENGINES, PEERS, histories, tell
from torture.interleavings import chances, interleave, interleavings, two_interruptions
from torture.killed import kill_upload, killed_calls
from torture.names import NASTY, USES, name_it
from torture.nesting import AVRO, JSON, JSON_PLACES, READERS, check_swallowed, nesting
from torture.processes import crowds, full_disks, kills, locked, vanished
from torture.streams import streams
from torture.subjects import SUBJECTS
from torture.wire import lost_answers

SEED = 20_240_611


def test_a_storage_call_that_fails_leaves_the_old_rows_or_the_new_ones():
    check_clean(run(faults(SEED), most=90), "faults")


def test_committers_that_take_turns_are_explained_by_a_serial_order():
    check_clean(run(interleavings(SEED), most=30), "interleavings")


@pytest.mark.parametrize(
    ("name", "pair"),
    [("first row", ("upsert", "truncate")), ("vectors", ("upsert", "overwrite"))],
    ids=str,
)
def test_rows_that_gave_way_to_others_come_back_when_those_are_gone(name, pair):
    """A first row was left out because of one that a truncate then removed."""
    subject = SUBJECTS[name]
    with one_core():
        turns = itertools.islice(two_interruptions(subject, pair), 0, None, 97)
        check_clean(run(interleave(subject, pair, turn) for turn in turns), "interleavings")


def test_what_a_killed_process_has_committed_is_there_and_nothing_in_part():
    report = run(kills(SEED, each=3), most=18)

    check_clean(report, "kills", "rows compared")  # some had the time to commit


ELSEWHERE = pytest.mark.parametrize(
    "home", ["disk", pytest.param("s3", marks=pytest.mark.thorough)], indirect=True
)


@ELSEWHERE
def test_a_storage_call_that_fails_does_no_harm_elsewhere_either(home):
    check_clean(run(faults(SEED), most=40), "faults")


@ELSEWHERE
def test_a_process_that_is_killed_at_a_storage_call_leaves_what_can_be_cleaned_up(home):
    check_clean(run(killed_calls(SEED), most=20), "kills", "cleanings after kills")


@ELSEWHERE
def test_a_stream_writer_that_is_killed_and_started_again_writes_each_batch_once(home):
    check_clean(run(streams(SEED), most=12), "kills", "restarts of our own stream")


@pytest.mark.thorough
@pytest.mark.parametrize("home", ["s3"], indirect=True)
def test_committers_on_s3_that_take_turns_are_explained_by_a_serial_order(home):
    check_clean(run(chances(SEED), most=8), "interleavings")


@pytest.mark.thorough
@pytest.mark.parametrize("home", ["s3"], indirect=True)
def test_requests_that_break_off_leave_the_old_rows_or_the_new_ones(home):
    check_clean(run(lost_answers(SEED), most=16), "of them on the wire")


@pytest.mark.thorough
@pytest.mark.parametrize("home", ["s3"], indirect=True)
def test_the_upload_of_a_killed_process_can_be_given_up(home):
    with Forks() as forks:
        step = kill_upload(forks, chance_of(SEED))

    check_clean(run([step]), "kills", "uploads of killed processes")


def test_processes_that_commit_at_once_lose_nothing():
    report = run(crowds(SEED, processes=4, commits=2), most=2)

    check_clean(report, "commits of processes at once")


def test_a_full_disk_is_a_typed_error_and_the_table_stays():
    check_clean(run(full_disks(SEED, kinds=("keys",), sizes=1), most=10), "full disks")


def test_a_folder_that_may_not_be_used_is_a_typed_error():
    check_clean(run(locked(SEED, kinds=("append",)), most=16), "locked folders")


def test_a_folder_that_vanishes_is_a_typed_error():
    check_clean(run(vanished(SEED, kinds=("keys",)), most=30), "vanished folders")


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_file_is_a_typed_error_or_does_not_matter(table):
    check_clean(run(corruption(SEED, flips=1, tables=(table,)), most=40), "corrupt files")


def test_deep_and_huge_files_are_refused_in_bounded_memory():
    for place, name in (
        *zip(itertools.cycle(JSON_PLACES), JSON),
        *zip(itertools.cycle(READERS), AVRO),
    ):
        if "bomb" not in name:
            assert check_swallowed(place, name) == "fine"


@pytest.mark.parametrize("use", [use for use in USES if use != "option"])
def test_names_from_users_stay_where_they_belong(use):
    check_clean(run(name_it(use, text) for text in chance_of(SEED, use).sample(NASTY, 12)), "names")


@pytest.mark.parametrize("text", ["", "../../outside", "a\x00b", "\ud800", "9" * 5_000, "a/b"])
def test_options_from_users_stay_where_they_belong(text):
    check_clean(run([name_it("option", text)]), "names")


@pytest.mark.parametrize("name", sorted(set(ENGINES)))
@settings(max_examples=2, phases=[Phase.reuse, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_a_table_holds_what_its_history_says(name: str, seed: int) -> None:
    check(tell(name, seed, peers=()))


@pytest.mark.interop
@pytest.mark.parametrize("name", sorted(set(ENGINES)))
def test_others_read_what_a_history_of_everything_left(name: str) -> None:
    check(tell(name, SEED, PEERS))


def check(step: Step) -> None:
    assert step.problem is None, f"{step.name}: {step.problem}"


# --- long versions --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [faults, interleavings, kills, crowds, full_disks, locked, vanished, nesting, corruption],
)
def test_half_a_minute_of_everything(part):
    check_clean(run(part(SEED + 1), seconds=30))


@pytest.mark.slow
@pytest.mark.parametrize("home", ["disk", "s3"], indirect=True)
@pytest.mark.parametrize(
    "part",
    [faults, interleavings, killed_calls, kills, streams, crowds, corruption, histories],
)
def test_half_a_minute_elsewhere(part, home):
    check_clean(run(part(SEED + 2), seconds=30))


@pytest.mark.slow
@pytest.mark.parametrize("home", ["s3"], indirect=True)
def test_half_a_minute_of_lost_answers(home):
    check_clean(run(lost_answers(SEED + 2), seconds=30), "of them on the wire")
