"""Every step of every client through the server has the outcome that is on file, by its label."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from interop.judges import Warehouse, java_probe, peer_probe
from server.processes import TOKEN, served

OUTCOMES = Path(__file__).parents[1] / "interop" / "rest_outcomes"
SLOW = pytest.mark.slow  # a JVM each; old releases are fetched for make test-all only


def probe(lake: Warehouse, command: Sequence[str]) -> dict[str, str]:
    """The outcomes of a client, by label."""
    arguments = [lake.options["uri"], "lake", TOKEN]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    found = outcomes(done.stdout)
    assert found, done.stderr
    return found


def outcomes(text: str) -> dict[str, str]:
    lines = (line.partition("\t") for line in text.splitlines() if "\t" in line)
    return {label: outcome for label, _, outcome in lines}


def expected(client: str) -> dict[str, str]:
    return outcomes((OUTCOMES / f"{client}.tsv").read_text(encoding="utf-8"))


@pytest.mark.interop
@pytest.mark.parametrize("engine", ["pypaimon", "rust"])
def test_each_step_of_a_python_client_ends_as_expected(
    tmp_path: Path, engine: Literal["pypaimon", "rust"]
) -> None:
    with served(tmp_path) as lake:
        assert probe(lake, peer_probe(engine)) == expected(engine)


@pytest.mark.interop
@SLOW
@pytest.mark.timeout(300)
@pytest.mark.parametrize("release", ["1.4.2", "1.3.1", "1.2.0"])
def test_each_step_of_java_ends_as_expected(tmp_path: Path, release: str) -> None:
    with served(tmp_path) as lake:
        found = probe(lake, java_probe(release, tmp_path / "outside"))

        assert found == expected(f"java-{release}")
