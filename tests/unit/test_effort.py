"""How hard properties are tried follows the profile of the run."""

from hypothesis import settings

from effort import FULL, examples


def test_a_quick_run_tries_a_tenth_of_the_examples_and_a_few_at_least() -> None:
    whole, quick = settings.get_profile("emberlake"), settings.get_profile("quick")
    share = settings.default.max_examples / FULL  # of the run that this is part of

    assert (whole.max_examples, quick.max_examples) == (100, 10)
    assert examples(200).max_examples == 200 * share
    assert examples(1).max_examples == 3
    assert examples(50).deadline is None
