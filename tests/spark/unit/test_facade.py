"""``emberlake.spark`` says what to install where PySpark is missing."""

import sys

import pytest

import emberlake.spark
from emberlake import Unsupported


@pytest.mark.parametrize("name", emberlake.spark.__all__)
def test_without_pyspark_every_name_says_what_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(vars(emberlake.spark), name, raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)

    with pytest.raises(
        Unsupported, match=r"pyspark is not installed; .* pip install '\.\[spark\]'"
    ):
        getattr(emberlake.spark, name)
