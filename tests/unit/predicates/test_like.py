"""LIKE patterns."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from emberlake.errors import InvalidPredicate
from emberlake.predicates.like import escape_like, is_prefix_pattern, like_prefix, like_regex


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a%c", "abbc", True),
        ("a%c", "abcd", False),
        ("a_c", "aéc", True),
        ("a_c", "ac", False),
        ("%", "", True),
        ("a%", "a\nb", True),
        ("a", "a\n", False),
        (r"a\_c", "a_c", True),
        (r"a\_c", "abc", False),
        (r"\a", "a", True),
        ("(.*)+[x]^$|?", "(.*)+[x]^$|?", True),
        ("a\x00%", "a\x00b", True),
    ],
)
def test_a_pattern_matches_whole_texts(pattern, text, matches):
    actual = pc.match_substring_regex(pa.array([text]), pattern=like_regex(pattern))

    assert actual.to_pylist() == [matches]


def test_an_escaped_text_matches_itself():
    text = "50%_\\"

    assert pc.match_substring_regex(pa.array([text]), like_regex(escape_like(text)))[0].as_py()


def test_what_a_pattern_starts_with_is_known():
    assert like_prefix(r"a\%b_c%") == "a%b"
    assert is_prefix_pattern("abc%%")
    assert not any(is_prefix_pattern(p) for p in ("abc", "a_%", "%a%", "%a", ""))


def test_a_pattern_that_ends_in_an_escape_is_refused():
    with pytest.raises(InvalidPredicate, match="double it"):
        like_regex("a\\")
