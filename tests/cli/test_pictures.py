"""``emberlake ui`` and ``emberlake report``."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from cli.shop import Cli
from emberlake import Catalog
from servers import dying_with_parent

pytestmark = pytest.mark.usefixtures("catalog")


def test_a_report_is_written_and_never_over_another_file(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "report.html"

    done = cli("report", "shop.orders", "--out", str(out), "--where", "order_id > 105", "--json")
    again = cli("report", "shop.orders", "--out", str(out))

    page = out.read_text(encoding="utf-8")
    assert done.json == {"table": "shop.orders", "out": str(out), "bytes": out.stat().st_size}
    assert "order_id &gt; 105" in page
    assert (again.code, "--force" in again.err) == (2, True)
    assert cli("report", "shop.orders", "--out", str(out), "--force", "--no-rows").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["shop.nothing"], 1, "shop.nothing"),
        (["shop.orders", "--where", "nothing = 1"], 1, "there is no column 'nothing'"),
        (["shop.orders$files"], 2, "system table"),
    ],
)
def test_a_report_that_cannot_be_made_leaves_no_file(
    cli: Cli, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    done = cli("report", *arguments, "--out", str(tmp_path / "report.html"))

    assert (done.code, said in done.err) == (code, True)
    assert list(tmp_path.glob("*.html")) == []


def test_without_the_extra_it_says_what_to_install(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)

    done = cli("report", "shop.orders", "--out", str(tmp_path / "report.html"))

    assert (done.code, "pip install '.[ui]'" in done.err) == (1, True)


@pytest.mark.thorough
def test_the_server_prints_its_address_and_ends_with_ctrl_c(
    catalog: Catalog, warehouse: Path
) -> None:
    del catalog
    command = [sys.executable, "-m", "emberlake", "ui", "--port", "0", "--json"]
    with subprocess.Popen(
        dying_with_parent([*command, "-w", str(warehouse)]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        bare = url.partition("?")[0]

        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(bare, timeout=10)
        refused.value.close()
        taken = subprocess.run(
            [*command[:-2], bare.rpartition(":")[2].strip("/"), "-w", str(warehouse)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert bare.startswith("http://127.0.0.1:")
    assert (process.returncode, errors) == (0, "")
    assert taken.returncode == 1
    assert taken.stderr.startswith("error: the server cannot listen on port ")
    assert taken.stderr.count("\n") == 1
