"""Flags go before the environment, the environment before the file."""

from pathlib import Path

import pytest

from emberlake.cli.config import Settings, find_config, load_catalog_options
from emberlake.cli.failures import UsageError

FILE = """
[default]
warehouse = "here"
table-default.bucket = 4

[staging]
warehouse = "/staging"
metastore = "filesystem"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "emberlake.toml").write_text(FILE, encoding="utf-8")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    return inner


def options(folder: Path, environ: dict[str, str] | None = None, **typed: object) -> dict[str, str]:
    home = {"XDG_CONFIG_HOME": str(folder / "nowhere")}
    return load_catalog_options(Settings(**typed), {**home, **(environ or {})}, folder)


def test_the_nearest_file_above_is_found_and_its_warehouse_is_relative_to_it(folder: Path) -> None:
    found = options(folder)

    assert found == {
        "warehouse": str(folder.parents[1] / "here"),
        "table-default.bucket": "4",
    }


def test_the_environment_goes_before_the_file(folder: Path) -> None:
    assert options(folder, {"EMBERLAKE_WAREHOUSE": "/env"})["warehouse"] == "/env"


def test_a_flag_goes_before_the_environment(folder: Path) -> None:
    found = options(folder, {"EMBERLAKE_WAREHOUSE": "/env"}, warehouse="/flag")

    assert found["warehouse"] == "/flag"


def test_a_profile_that_is_typed_goes_before_a_warehouse_of_the_environment(folder: Path) -> None:
    found = options(folder, {"EMBERLAKE_WAREHOUSE": "/env"}, profile="staging")

    assert found["warehouse"] == "/staging"


def test_a_file_that_is_typed_goes_before_a_warehouse_of_the_environment(folder: Path) -> None:
    file = folder.parents[1] / "emberlake.toml"

    found = options(folder, {"EMBERLAKE_WAREHOUSE": "/env"}, config=file)

    assert found["warehouse"] == str(folder.parents[1] / "here")


def test_a_profile_of_the_environment_gives_way_to_a_warehouse_of_it(folder: Path) -> None:
    environ = {"EMBERLAKE_WAREHOUSE": "/env", "EMBERLAKE_PROFILE": "staging"}

    assert options(folder, environ)["warehouse"] == "/env"


def test_a_typed_file_without_a_warehouse_leaves_it_to_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "more.toml"
    file.write_text('[default]\ntable-default.bucket = "4"\n', encoding="utf-8")

    found = options(tmp_path, {"EMBERLAKE_WAREHOUSE": "/env"}, config=file)

    assert found == {"warehouse": "/env", "table-default.bucket": "4"}


def test_a_profile_is_chosen_by_flag_or_environment(folder: Path) -> None:
    assert options(folder, profile="staging")["warehouse"] == "/staging"
    assert options(folder, {"EMBERLAKE_PROFILE": "staging"})["metastore"] == "filesystem"


def test_a_profile_that_is_not_there_is_named_with_those_that_are(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no profile 'prod'; it has: default, staging"):
        options(folder, profile="prod")


def test_a_profile_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no emberlake\.toml"):
        options(tmp_path, profile="prod")


def test_without_any_warehouse_the_three_ways_to_give_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--warehouse FOLDER, set EMBERLAKE_WAREHOUSE"):
        options(tmp_path)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.toml does not exist"):
        options(tmp_path, config=tmp_path / "no.toml")


def test_a_file_that_is_not_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "emberlake.toml"
    file.write_text("[default\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"emberlake\.toml is not TOML: .*line 1"):
        options(tmp_path)


def test_options_outside_of_a_profile_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "emberlake.toml"
    file.write_text('warehouse = "/data"\n', encoding="utf-8")

    with pytest.raises(UsageError, match=r"write \[default\] above it"):
        options(tmp_path)


def test_the_file_of_the_user_is_the_last_resort(tmp_path: Path) -> None:
    home = tmp_path / "config"
    (home / "emberlake").mkdir(parents=True)
    (home / "emberlake" / "config.toml").write_text("", encoding="utf-8")

    found = find_config(Settings(), {"XDG_CONFIG_HOME": str(home)}, tmp_path)

    assert found == home / "emberlake" / "config.toml"


def test_the_warehouse_of_a_server_is_a_name_and_no_folder(folder: Path) -> None:
    file = folder / "emberlake.toml"
    file.write_text('[prod]\nmetastore = "rest"\nwarehouse = "lake"\ntoken.env = "T"\n')

    found = options(folder, profile="prod")

    assert found == {"metastore": "rest", "warehouse": "lake", "token.env": "T"}
