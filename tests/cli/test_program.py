"""The program from outside: terminals, pipes, colours, exit codes, and how fast it starts."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from cli.shop import Cli, append, orders_of
from emberlake import Catalog, __version__
from emberlake.cli.failures import exit_code_of, message_of
from emberlake.errors import CommitConflict, ConflictReason, InvalidInput, TableNotFound

PROGRAM = [sys.executable, "-m", "emberlake"]
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run(*arguments: str, stdin: str | None = None, **environ: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def on_terminal(*arguments: str, columns: int, answer: str = "", **environ: str) -> tuple[int, str]:
    """What a person sees on a terminal of that width, and the exit code."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    clean = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**clean, "TERM": "xterm-256color", **environ},
    )
    os.close(slave)
    os.write(master, answer.encode())
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(master)
    return process.wait(), seen.decode().replace("\r\n", "\n")


# --- starting -------------------------------------------------------------------------------------


def test_help_names_every_command_and_loads_nothing_of_the_engine() -> None:
    program = (
        "import json, sys; from emberlake.cli import main; code = main(['--help']); "
        "loaded = [m for m in ('pyarrow', 'numpy', 'emberlake.catalog') if m in sys.modules]; "
        "sys.stderr.write(json.dumps([code, loaded]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert json.loads(done.stderr) == [0, []]
    for name in ("db", "table", "ingest", "read", "plan", "snapshots", "files", "tags", "check"):
        assert re.search(rf"\b{name} ", done.stdout), name


def test_help_comes_at_once() -> None:
    def cpu_seconds() -> float:
        before = os.times()
        subprocess.run([*PROGRAM, "--help"], capture_output=True, check=True)
        after = os.times()
        return (
            after.children_user
            + after.children_system
            - (before.children_user + before.children_system)
        )

    # The work that it takes, which does not depend on what else the machine does.
    assert min(cpu_seconds() for _ in range(3)) < 0.4


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"emberlake {__version__}\n"


def test_without_a_command_the_help_is_shown_and_it_is_a_usage_error(cli: Cli) -> None:
    shown = cli()

    assert shown.code == 2
    assert "Usage: emberlake" in shown.out + shown.err


def test_the_shell_is_told_how_to_complete() -> None:
    typed = {"COMP_WORDS": "emberlake ta", "COMP_CWORD": "1"}

    done = run(**typed, _EMBERLAKE_COMPLETE="complete_bash")

    assert done.stdout.split() == ["table", "tags"]


# --- terminals and pipes --------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [60, 100])
def test_what_is_shown_on_a_terminal_fits_it(catalog: Catalog, columns: int) -> None:
    long = orders_of(4, 3).set_column(1, "city", [["x" * 200] * 3])
    append(catalog.get_table("shop.orders"), long)

    code, seen = on_terminal("read", "shop.orders", "--where", "order_id > 399", columns=columns)

    lines = ANSI.sub("", seen).splitlines()
    assert code == 0
    assert max(map(len, lines)) <= columns
    assert any("\u2026" in line for line in lines)
    assert "\x1b[1m" in seen  # the header is bold


def test_no_colour_is_plain(catalog: Catalog) -> None:
    _, seen = on_terminal("table", "show", "shop.orders", columns=80, NO_COLOR="1")

    assert "\x1b" not in seen


def test_a_pipe_gets_no_colours_and_whole_lines(catalog: Catalog) -> None:
    append(
        catalog.get_table("shop.orders"),
        orders_of(4, 1).set_column(1, "city", [["x" * 300]]),
    )

    piped = run("read", "shop.orders", "-n", "0", COLUMNS="40")

    assert "\x1b" not in piped.stdout
    assert "x" * 300 in piped.stdout
    assert "\u2026" not in piped.stdout
    assert all(line == line.rstrip() for line in piped.stdout.splitlines())


@pytest.mark.parametrize("wish", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_wish_for_colours_does_not_cut_what_is_piped(catalog: Catalog, wish: str) -> None:
    piped = run("table", "show", "shop.orders", COLUMNS="20")

    wished = run("table", "show", "shop.orders", COLUMNS="20", **{wish: "1"})

    assert (wished.stdout, wished.stderr) == (piped.stdout, piped.stderr)


def test_a_person_sees_the_first_rows_and_a_pipe_gets_all(catalog: Catalog) -> None:
    _, seen = on_terminal("read", "shop.orders", columns=80)
    piped = run("read", "shop.orders")

    lines = ANSI.sub("", seen).splitlines()
    assert len(lines) == 2 + 20 + 1
    assert lines[-1] == "the first 20 rows; -n 0 shows all"
    assert len(piped.stdout.splitlines()) == 2 + 30


def test_a_reader_that_stops_early_is_no_error(catalog: Catalog) -> None:
    table = catalog.get_table("shop.orders")
    append(table, orders_of(4, 20_000))
    process = subprocess.Popen(
        [*PROGRAM, "read", "shop.orders", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.readline()
    process.stdout.close()
    complaints = process.stderr.read()

    assert (process.wait(), complaints) == (0, "")
    process.stderr.close()


def test_a_person_is_asked_before_something_is_destroyed(catalog: Catalog) -> None:
    code, seen = on_terminal("table", "drop", "shop.orders", columns=80, answer="n\n")
    assert code == 1
    assert "Continue? [y/N]" in seen
    assert "nothing was done" in seen
    assert catalog.list_tables("shop") == ["customers", "orders"]

    code, seen = on_terminal("table", "drop", "shop.orders", columns=80, answer="y\n")
    assert code == 0
    assert catalog.list_tables("shop") == ["customers"]


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["db", "list"], 0),
        (["read", "shop.nope"], 1),
        (["read"], 2),
        (["read", "nodot"], 2),
        (["nope"], 2),
        (["read", "shop.orders", "--nope"], 2),
        (["tags", "nope", "shop.orders"], 2),
    ],
)
def test_exit_codes_tell_failures_from_mistakes(
    cli: Cli, catalog: Catalog, arguments: list[str], code: int
) -> None:
    ended = cli(*arguments)

    assert ended.code == code
    assert ended.err.count("\n") == (1 if code else 0)


def test_errors_are_json_on_stderr_for_programs(cli: Cli, catalog: Catalog) -> None:
    failed = cli("read", "shop.nope", "--json")
    mistyped = cli("--json", "read", "shop.orders", "--nope")

    assert failed.out == mistyped.out == ""
    assert json.loads(failed.err)["error"]["type"] == "TableNotFound"
    assert json.loads(mistyped.err)["error"]["type"] == "UsageError"


@pytest.mark.parametrize(
    "arguments",
    [
        ["read", "shop.orders", "--json", "--catalog-option", "foo"],
        ["--json", "--catalog-option", "foo", "read", "shop.orders"],
    ],
)
def test_an_error_of_a_common_option_is_json_too(
    cli: Cli, catalog: Catalog, arguments: list[str]
) -> None:
    mistyped = cli(*arguments)

    assert (mistyped.code, mistyped.out) == (2, "")
    assert json.loads(mistyped.err)["error"]["message"] == (
        "--catalog-option foo: expected KEY=VALUE"
    )


def test_a_traceback_is_shown_only_with_debug(cli: Cli, catalog: Catalog) -> None:
    assert "Traceback" not in cli("read", "shop.nope").err
    assert "Traceback" in cli("read", "shop.nope", "--debug").err


def test_common_options_stand_before_or_behind_the_command(
    cli: Cli, catalog: Catalog, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBERLAKE_WAREHOUSE")

    before = cli("--warehouse", str(warehouse), "--json", "db", "list")
    behind = cli("db", "list", "-w", str(warehouse), "--json")

    assert before.json == behind.json == {"databases": [{"name": "shop", "tables": 2}]}
    assert cli("db", "list").code == 2


def test_what_is_no_error_of_ours_is_told_as_unexpected() -> None:
    assert message_of(ZeroDivisionError("x")) == (
        "unexpected ZeroDivisionError: x; run it again with --debug for the traceback"
    )


def test_of_a_long_message_the_first_line_is_told() -> None:
    assert "at java" not in message_of(RuntimeError("failed\n\tat java.lang"))


def test_every_error_is_one_line() -> None:
    listed = InvalidInput("it does not fit:\n  - a: too long\n  - b: missing")

    assert message_of(listed) == "it does not fit: a: too long; b: missing"


def test_conflicts_have_an_exit_code_of_their_own() -> None:
    conflict = CommitConflict(ConflictReason.SCHEMA_CHANGED, "a", "b")

    assert [exit_code_of(e) for e in (conflict, TableNotFound("t"), KeyboardInterrupt())] == [
        *(3, 1, 130)
    ]


def test_a_missing_extra_is_told_with_what_installs_it(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no', name='typer')")

    done = run("--help", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))

    assert done.returncode == 1
    assert done.stderr == (
        "emberlake: typer is not installed; in a checkout of emberlake, install it with: "
        "pip install '.[cli]'\n"
    )
