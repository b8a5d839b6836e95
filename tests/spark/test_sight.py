"""What Spark shows of jobs on an object store, on its pages and in its event log: no secret."""

import json
from pathlib import Path

import pytest

from servers import SECRET, Server
from spark.drivers.session import run_driver


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_neither_pages_nor_logs_nor_plans_show_a_secret(s3: Server, tmp_path: Path) -> None:
    options = {"warehouse": f"{s3.root}/watched", **s3.options}

    assert run_driver("watched_lake", tmp_path, json.dumps(options), timeout_s=380) == 0

    lines = (tmp_path / "shown").read_text().splitlines()
    shown = [json.loads(line) for line in lines]
    assert {"explain of load", "environment/", "SQL/", "event log"} <= {where for where, _ in shown}
    # Options are shown as such, and this would be found.
    assert any("s3.access-key" in text and "(redacted)" in text for _, text in shown)
    assert [where for where, text in shown if SECRET in text] == []
