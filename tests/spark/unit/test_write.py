"""Writes on Spark that are refused before the DataFrame is touched."""

from typing import Any

import pytest

from builders import create_key_table
from emberlake import Unsupported
from emberlake.session.write_session import WriteSession
from emberlake.spark.write import WriteJob


def test_a_table_that_cannot_be_written_is_refused_before_a_task_starts() -> None:
    table = create_key_table()
    options = {"commit.callbacks": "com.example.Hook"}
    store = table.store.with_schema(table.store.schema.with_options(options))
    no_data: Any = None

    with pytest.raises(Unsupported, match=r"commit\.callbacks"):
        WriteJob(session=WriteSession(store, "me")).run(no_data)
