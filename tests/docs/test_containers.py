"""The container files, as far as they can be checked without containers."""

import re
import shlex
import tomllib

import pytest

from docs.pages import ROOT
from emberlake.cli import main

FOLDER = ROOT / "examples" / "server"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (FOLDER / "compose.yaml").read_text(encoding="utf-8")


def value_of(name: str) -> str:
    """What a variable of the compose file is set to."""
    found = re.findall(rf"^\s+{name}: (\S+)$", COMPOSE, re.MULTILINE)
    assert len(found) == 1, name
    return str(found[0])


def test_what_the_image_copies_and_installs_is_there() -> None:
    copied = [shlex.split(line)[1:-1] for line in DOCKERFILE.splitlines() if line[:5] == "COPY "]
    extras = re.search(r"'\.\[([a-z0-9,]+)\]'", DOCKERFILE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert len(copied) == 2
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_every_option_of_the_containers_is_one_of_the_program(
    capfd: pytest.CaptureFixture[str],
) -> None:
    main(["serve", "--help"])
    said = capfd.readouterr().out
    options = {
        *re.findall(r"^\s+- (--[a-z-]+)=", COMPOSE, re.MULTILINE),
        *re.findall(r'"(--[a-z-]+)"', DOCKERFILE),
    }

    assert options == {"--host", "--warehouse", "--vend"}
    assert [option for option in options if option not in said] == []


def test_servers_know_the_passwords_of_what_they_use() -> None:
    user, password = value_of("POSTGRES_USER"), value_of("POSTGRES_PASSWORD")
    database = f"postgresql://{user}:{password}@postgres/{value_of('POSTGRES_DB')}"

    assert value_of("EMBERLAKE_SERVER_DATABASE") == database
    assert value_of("AWS_ACCESS_KEY_ID") == value_of("MINIO_ROOT_USER")
    assert value_of("AWS_SECRET_ACCESS_KEY") == value_of("MINIO_ROOT_PASSWORD")


def test_nothing_listens_beyond_this_machine() -> None:
    ports = re.findall(r'ports: \["([^"]+)"\]', COMPOSE)

    assert len(ports) == 3
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
