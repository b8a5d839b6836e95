"""Writes on Spark that are refused before the DataFrame is touched."""

from typing import Any

import pytest

from builders import create_key_table
from emberlake import Unsupported
from emberlake.session.write_session import WriteSession
from emberlake.spark.write import WriteJob


def test_a_table_that_cannot_be_written_is_refused_before_a_task_starts() -> None:
    store = create_key_table(**{"changelog-producer": "lookup"}).store
    no_data: Any = None

    with pytest.raises(Unsupported, match="changelog-producer"):
        WriteJob(session=WriteSession(store, "me")).run(no_data)
