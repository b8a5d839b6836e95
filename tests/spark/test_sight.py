"""What Spark shows of jobs on object stores, on its pages and in its event log: no secret."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from rest_server import TOKEN, serving
from servers import SECRET, Server, proxy_of, s3_server
from spark.drivers.session import run_driver
from spark.short_keys import ACCESS_KEYS


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_neither_pages_nor_logs_nor_plans_show_a_secret(s3: Server, tmp_path: Path) -> None:
    options = {"warehouse": f"{s3.root}/watched", **s3.options}

    wrong = {
        "bucket": {"warehouse": "s3://no-such-bucket/w"},
        "endpoint": {"s3.endpoint": "http://127.0.0.1:1"},
        "key": {"s3.access-key": "nobody"},
    }
    shown = shown_by_spark(tmp_path, options, wrong)

    # Options are shown as such, and this would be found.
    assert any("s3.access-key" in text and "(redacted)" in text for _, text in shown)
    assert [where for where, text in shown if SECRET in text] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_jobs_through_a_rest_catalog_outlive_many_tokens_and_show_none(tmp_path: Path) -> None:
    """Every storage token ends after 20 requests; workers ask the catalog for the next one."""
    given = iter(ACCESS_KEYS)
    with (
        serving(tmp_path / "served") as server,
        s3_server(tmp_path, guests=ACCESS_KEYS) as s3,
        proxy_of(s3, tmp_path) as proxy,
    ):
        place = {**s3.options, "s3.endpoint": proxy.endpoint}
        server.served_from(s3, f"{s3.root}/wh")
        server.config = {"overrides": {"data-token.enabled": "true"}}
        server.token_answer = lambda: {
            "token": {**place, "s3.access-key": next(given)},
            "expiresAtMillis": 4_000_000_000_000,
        }
        proxy.fail(how="403-ExpiredToken", when="before", times=100_000, life=20)
        wrong = {"token": {"token": f"{TOKEN}-of-another"}, "uri": {"uri": "http://127.0.0.1:1"}}

        shown = shown_by_spark(tmp_path, server.options, wrong)

        assert proxy.clear() == []  # some keys did end
        tokens = len(server.asked("GET .*/token$"))
    assert tokens > 3
    assert any("token" in text and "(redacted)" in text for _, text in shown)
    for secret in (TOKEN, SECRET, *ACCESS_KEYS):
        assert [where for where, text in shown if secret in text] == []


def shown_by_spark(
    home: Path, options: Mapping[str, str], wrong: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """Everything that Spark shows while tables are used in every way: where, and the text."""
    arguments = (json.dumps(dict(options)), json.dumps(wrong))
    assert run_driver("watched_lake", home, *arguments, timeout_s=380) == 0
    lines = (home / "shown").read_text().splitlines()
    shown = [json.loads(line) for line in lines]
    expected = {"explain of load", "explain of lake.sql", "environment/", "SQL/", "event log"}
    assert expected <= {where for where, _ in shown}
    return shown
