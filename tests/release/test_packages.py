"""What is published: it holds everything, and installs alone, with old and with new libraries."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from docs.pages import ROOT
from emberlake import __version__

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("pandas", "polars", "duckdb", "cli", "ui", "rest", "s3")  # those that are small
# MB of the core in site-packages: what is installed, and that with what pip compiles.
CORE_FILES, CORE_COMPILED = 260, 283
NOT_OURS = (
    "pip",
    "setuptools",
    "pkg_resources",
    "_distutils",
    "distutils-",
)  # of every environment
SMOKE = Path(__file__).parent / "smoke.py"
PLAIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?>=([0-9.]+)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def wheel_of(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def lowest() -> list[str]:
    """The oldest versions that pyproject.toml allows."""
    texts = [*PROJECT["dependencies"]]
    for extra in EXTRAS:
        texts += PROJECT["optional-dependencies"][extra]
    found = [PLAIN.match(text) for text in texts]
    assert all(found), texts
    return sorted({f"{match[1]}=={match[2]}" for match in found if match})


def install(folder: Path, *what: str) -> Path:
    """A new environment with these packages; its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *what], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return python


def run(python: Path, *arguments: str) -> str:
    done = subprocess.run(
        [str(python), "-W", "error", str(SMOKE), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def megabytes(files: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in files) / 1e6


def test_the_packages_hold_everything(built: Path) -> None:
    names = set(zipfile.ZipFile(wheel_of(built)).namelist())
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}

    needed = {
        "emberlake/py.typed",
        "pyspark_emberlake/py.typed",
        "emberlake/ui/assets/style.css",
        "emberlake/ui/templates/report.html",
        "emberlake/server/database/migrations/0001.sql",
    }
    assert needed <= names
    in_source = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == in_source
    assert {"LICENSE", "CHANGELOG.md", "pyproject.toml", "src/emberlake/__init__.py"} <= sources
    assert wheel_of(built).name.startswith(f"emberlake-{__version__}-")
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.timeout(900)
def test_the_newest_libraries_do_and_the_core_is_small(built: Path, tmp_path: Path) -> None:
    python = install(tmp_path / "core", str(wheel_of(built)))
    run(python)

    (packages,) = (tmp_path / "core" / "lib").glob("*/site-packages")
    own = [
        path
        for path in packages.rglob("*")
        if path.is_file() and not path.relative_to(packages).parts[0].startswith(NOT_OURS)
    ]
    assert megabytes(path for path in own if path.suffix != ".pyc") < CORE_FILES
    assert megabytes(own) < CORE_COMPILED

    wheel = f"{wheel_of(built)}[{','.join(EXTRAS)}]"
    assert "extras" in run(install(tmp_path / "extras", wheel), "extras")


@pytest.mark.timeout(900)
def test_the_oldest_libraries_that_are_allowed_do(built: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    # From the source this time: that builds a wheel of its own.
    source = f"emberlake[{','.join(EXTRAS)}] @ file://{sdist}"

    python = install(tmp_path / "old", source, *lowest())

    assert "extras" in run(python, "extras")
