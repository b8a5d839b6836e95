"""How hard the tests try follows the profile of the run."""

from hypothesis import settings

from effort import FULL, examples, sample, spread


def test_a_quick_run_tries_a_tenth_of_the_examples_and_a_few_at_least() -> None:
    whole, quick = settings.get_profile("emberlake"), settings.get_profile("quick")
    share = settings.default.max_examples / FULL  # of the run that this is part of

    assert (whole.max_examples, quick.max_examples) == (100, 10)
    assert examples(200).max_examples == 200 * share
    assert examples(1).max_examples == 3
    assert examples(50).deadline is None


def test_a_sample_of_cases_has_the_first_and_the_last() -> None:
    assert spread(range(100), 4) == [0, 33, 66, 99]
    assert spread("abcd", 4) == ["a", "b", "c", "d"]
    assert spread("abcde", 4) == ["a", "b", "c", "e"]
    assert spread([], 4) == []


def test_each_test_keeps_some_of_its_cases() -> None:
    tests = ["one", *(f"many[{case}]" for case in range(100)), "few[a]", "few[b]"]

    kept = sample(tests, lambda test: test.partition("[")[0])

    assert kept == ["one", "many[0]", "many[33]", "many[66]", "many[99]", "few[a]", "few[b]"]
