"""Names in messages: short lists and suggestions."""

from emberlake.base.names import choices, did_you_mean, listed, nearest, with_article

MANY = [f"column_{number:03}" for number in range(500)] + ["price", "Prices"]


def test_few_names_are_all_listed() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([]) == ""


def test_of_many_names_the_first_are_listed() -> None:
    assert listed(range(500), 3) == "0, 1, 2 and 497 more"
    assert listed(MANY).endswith("column_007 and 494 more")


def test_a_long_name_is_cut() -> None:
    assert len(listed(["x" * 10_000] * 10_000)) < 600


def test_near_names_are_found_whatever_their_capitals() -> None:
    assert nearest("PRICE", MANY)[0] == "price"
    assert nearest("prices", MANY)[:2] == ["Prices", "price"]
    assert nearest("zzz", MANY) == []
    assert nearest("dya", ["id", "day"]) == ["day"]
    assert nearest("soundex", ["round"]) == []


def test_few_choices_are_listed_with_the_one_that_was_meant() -> None:
    assert choices("town", ["id", "city"], "the table has") == "the table has id, city"
    assert choices("cty", ["id", "city"], "it has") == "it has id, city: did you mean city?"
    assert choices("x", [], "the tags are:") == "the tags are: none"


def test_the_nearest_of_many_choices_are_suggested() -> None:
    assert choices("pric", MANY, "the table has") == "did you mean price or Prices?"
    assert choices("zzz", MANY, "the table has") == f"the table has {listed(MANY)}"


def test_several_unknown_names_share_a_hint() -> None:
    assert choices(["pric", "zzz"], MANY, "it has") == "did you mean price or Prices?"


def test_a_question_has_words_before_it_only_when_there_is_one() -> None:
    assert did_you_mean(["cty"], ["city"], before="; ") == "; did you mean city?"
    assert did_you_mean(["zzz"], ["city"], before="; ") == ""


def test_types_have_the_article_that_belongs_to_them() -> None:
    shown = [with_article(name) for name in ("INT", "ARRAY<INT>", "BIGINT", "ROW<a INT>")]

    assert shown == ["an INT", "an ARRAY<INT>", "a BIGINT", "a ROW<a INT>"]
