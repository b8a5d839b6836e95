"""How the text of options is parsed."""

import pytest

from emberlake.errors import InvalidOption
from emberlake.options import (
    BUCKET_FUNCTION,
    CHANGELOG_PRODUCER,
    FILE_FORMAT_PER_LEVEL,
    MERGE_ENGINE,
    BucketFunction,
    ChangelogProducer,
    MergeEngine,
    TableOptions,
)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (MERGE_ENGINE, "DEDUPLICATE", MergeEngine.DEDUPLICATE),
        (MERGE_ENGINE, "Partial-Update", MergeEngine.PARTIAL_UPDATE),
        (CHANGELOG_PRODUCER, "INPUT", ChangelogProducer.INPUT),
        (BUCKET_FUNCTION, "Mod", BucketFunction.MOD),
    ],
)
def test_choices_may_be_written_in_capitals_as_in_other_engines(option, text, value) -> None:
    assert TableOptions({option.key: text}).value(option) is value


def test_a_choice_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidOption, match="'newest': expected one of deduplicate, partial-upd"):
        TableOptions({"merge-engine": "newest"})


def test_a_number_that_is_none_is_refused_in_plain_words() -> None:
    with pytest.raises(InvalidOption, match=r"bucket='four': expected a whole number$"):
        TableOptions({"bucket": "four"})


def test_levels_have_formats() -> None:
    options = TableOptions({"file.format.per.level": "0:AVRO, 5:orc"})

    assert options.value(FILE_FORMAT_PER_LEVEL) == {0: "avro", 5: "orc"}


@pytest.mark.parametrize("text", ["avro", "x:avro", "0:", "-1:orc"])
def test_a_level_without_a_number_or_a_format_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="pairs such as 0:avro"):
        TableOptions({"file.format.per.level": text})
