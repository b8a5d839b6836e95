"""The program from outside: terminals, pipes, colours, exit codes, and how fast it starts."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.shop import Cli, append, orders_of
from emberlake import Catalog, EmberlakeWarning, SchemaChange, __version__
from emberlake.base.peer_names import OF_COMMANDS, OF_OPTIONS
from emberlake.cli.app import app
from emberlake.cli.failures import exit_code_of, message_of
from emberlake.errors import (
    ColumnNotFound,
    CommitConflict,
    ConflictReason,
    DatabaseNotFound,
    DataMismatch,
    EmberlakeError,
    InvalidInput,
    TableNotFound,
)

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


def test_the_shell_learns_how_to_complete() -> None:
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


def test_a_reader_that_stops_early_is_not_an_error(catalog: Catalog) -> None:
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
def test_exit_codes_distinguish_failures_from_mistakes(
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


def test_an_error_that_is_not_ours_is_reported_as_unexpected() -> None:
    assert message_of(ZeroDivisionError("x")) == (
        "unexpected ZeroDivisionError: x; run it again with --debug for the traceback"
    )


def test_the_first_line_of_a_long_message_is_shown() -> None:
    assert "at java" not in message_of(RuntimeError("failed\n\tat java.lang"))


def test_every_error_is_one_line() -> None:
    listed = InvalidInput("it does not fit:\n  - a: too long\n  - b: missing")

    assert message_of(listed) == "it does not fit: a: too long; b: missing"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            TableNotFound("shop.order does not exist; did you mean orders?"),
            "shop.order does not exist; did you mean orders?",
        ),
        (
            TableNotFound("shop.x does not exist"),
            "shop.x does not exist; list tables with: emberlake table list",
        ),
        (
            ColumnNotFound('no column rome; text is given as lit("rome")'),
            "no column rome; text goes in single quotes: 'rome'",
        ),
        (
            DataMismatch("x: no; merge_schema=True would add it"),
            "x: no; --merge-schema would add it",
        ),
        (
            DataMismatch(
                "x: left out; give every column, with nulls where null is meant, or name the "
                "columns that are meant with with_write_type"
            ),
            "x: left out; give every column, with nulls where null is meant",
        ),
        (
            DatabaseNotFound("none; create_database('shop') creates it"),
            "none; emberlake db create shop creates it; list databases with: emberlake db list",
        ),
    ],
)
def test_messages_of_the_engine_are_put_into_words_that_can_be_typed(
    error: EmberlakeError, message: str
) -> None:
    assert message_of(error) == message


def test_conflicts_have_an_exit_code_of_their_own() -> None:
    conflict = CommitConflict(ConflictReason.SCHEMA_CHANGED, "a", "b")

    assert [exit_code_of(e) for e in (conflict, TableNotFound("t"), KeyboardInterrupt())] == [
        *(3, 1, 130)
    ]


def test_a_missing_extra_is_reported_with_what_installs_it(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no', name='typer')")

    done = run("--help", PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))

    assert done.returncode == 1
    assert done.stderr == (
        "emberlake: typer is not installed; in a checkout of emberlake, install it with: "
        "pip install '.[cli]'\n"
    )


# --- completion -----------------------------------------------------------------------------------


@pytest.fixture
def completed(cli: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """What the shell is offered for a line of which the last word is begun."""

    def complete(typed: str, shell: str = "bash") -> list[str]:
        asked = {
            "bash": {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)},
            "fish": {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            "zsh": {"_TYPER_COMPLETE_ARGS": typed},
        }
        with monkeypatch.context() as environ:
            for name, value in asked[shell].items():
                environ.setenv(name, value)
            environ.setenv("_EMBERLAKE_COMPLETE", f"complete_{shell}")
            with pytest.raises(SystemExit) as ended:
                cli()
        out, err = capfd.readouterr()
        assert (ended.value.code, err) == (0, "")
        return [name for name in out.splitlines() if name]

    return complete


Completed = Callable[..., list[str]]


def test_the_shell_completes_names_of_the_warehouse(
    catalog: Catalog, warehouse: Path, completed: Completed
) -> None:
    orders = catalog.get_table("shop.orders")
    orders.create_tag("monthly")
    orders.create_branch("beta")

    assert completed("emberlake db drop s") == ["shop"]
    assert completed("emberlake read shop.o") == ["shop.orders"]
    assert completed("emberlake read s") == ["shop.customers", "shop.orders"]
    assert completed("emberlake read shop.orders --columns dt,o") == ["dt,order_id"]
    assert completed("emberlake read shop.orders --where order_id>1AND") == []
    assert completed("emberlake delete shop.orders --where ord") == ["order_id"]
    assert completed("emberlake read shop.orders --tag m") == ["monthly"]
    assert completed("emberlake read shop.orders --snapshot ") == ["3", "2", "1"]
    assert completed("emberlake branches delete shop.orders b") == ["beta"]
    assert completed("emberlake partitions drop shop.orders dt=2026-06-01") != []
    assert completed("emberlake ingest x.csv --into shop.c") == ["shop.customers"]
    assert completed("emberlake table create shop.x --option bucket-k") == ["bucket-key="]
    moved = warehouse.rename(warehouse.parent / "elsewhere")
    assert completed("emberlake read shop.o") == []
    assert completed(f"emberlake -w {moved} read shop.o") == ["shop.orders"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_the_same(catalog: Catalog, completed: Completed, shell: str) -> None:
    offered = completed("emberlake files shop.o", shell)

    assert "shop.orders" in offered[0]


# --- help -----------------------------------------------------------------------------------------


def commands_of(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, child in getattr(group, "commands", {}).items():
        yield from commands_of(child, (*path, name))


def test_help_of_every_command_fits_sixty_columns(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    root = typer.main.get_command(app)

    for path in commands_of(root):
        shown = cli(*path, "--help").out

        assert max(map(len, shown.splitlines())) <= 60, path
        assert "\u2026" not in shown, path
        command = root
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or parameter.opts[0] in shown, path


def test_the_help_names_its_own_flag_like_others(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for width, shown in (("60", "  -h, --help"), ("100", "--help")):
        monkeypatch.setenv("COLUMNS", width)

        help_text = cli("read", "--help").out

        assert shown in help_text
        assert "<bool>" not in help_text


@pytest.mark.parametrize("group", [(), ("table",)])
def test_without_a_command_the_help_is_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, group: tuple[str, ...]
) -> None:
    for width in ("60", "100"):
        monkeypatch.setenv("COLUMNS", width)

        shown = cli(*group)

        assert shown.code == 2
        text = shown.out + shown.err
        assert "Usage: emberlake" in text
        assert "error" not in text.splitlines()[0]
        assert len(text.splitlines()) > 10


# --- an end before the end ------------------------------------------------------------------------


def test_the_answer_to_an_interrupt_is_one_line(catalog: Catalog) -> None:
    program = (
        "import sys, time; from emberlake.io.local import LocalStorage; "
        "from emberlake.cli import main\n"
        "def wait(*_, **__): print('reading', flush=True); time.sleep(60)\n"
        "LocalStorage.open_input = wait; sys.exit(main(['read', 'shop.orders']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(signal.SIGINT)

    _, output = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "interrupted\n")


# --- names that are nearly right ------------------------------------------------------------------


def test_near_names_are_suggested(cli: Cli, catalog: Catalog) -> None:
    Path("new.csv").write_text("a\n1\n")
    orders = catalog.get_table("shop.orders")
    orders.create_tag("monthly")
    orders.create_branch("beta")
    expected = {
        ("raed", "shop.orders"): "Did you mean 'read'?",
        ("vacuum", "shop.orders"): "'vacuum': use emberlake expire, and emberlake orphans; try:",
        ("history", "shop.orders"): "use emberlake snapshots",
        ("restore", "shop.orders"): "'restore': use emberlake rollback; try:",
        ("select", "1"): "'select': use emberlake sql; try:",
        ("table", "describe", "shop.orders"): "use emberlake table show; try: emberlake table",
        ("table", "slect"): "'slect'; try:",
        ("read", "shop.orders", "--filter", "dt = 1"): "--filter: use --where; try:",
        ("read", "shop.orders", "--version", "1"): "--version: use --snapshot; try:",
        ("table", "create", "shop.x", "--pk", "id"): "--pk: use --primary-key; try:",
        ("files", "shop.orders", "--overwrite"): "--overwrite",
        ("sql", "SELECT * FROM orders"): "did you mean shop.orders?",
        ("read", "shop.orders", "--colums", "dt"): "--columns",
        ("read", "shop.ordrs"): "did you mean orders?",
        ("ingest", "new.csv", "--into", "shop.ordrs"): "did you mean orders?",
        ("read", "shp.orders"): "did you mean shop?",
        ("read", "orders"): "did you mean shop.orders?",
        ("read", "shop.orders", "-c", "order_i"): "did you mean order_id?",
        ("read", "shop.orders", "--where", "order_i = 1"): "did you mean order_id?",
        ("read", "shop.orders", "--where", "uper(city) = 'X'"): "UPPER",
        ("sql", "SELECT ciyt FROM shop.orders"): "there is no column ciyt;",
        ("sql", "SELECT uper(city) FROM shop.orders"): "did you mean upper?",
        ("read", "shop.orders", "--tag", "montly"): "did you mean monthly?",
        ("read", "shop.orders$branch_bta"): "did you mean beta?",
        ("read", "shop.orders$snapshot"): "did you mean snapshots?",
        ("branches", "delete", "shop.orders", "bta", "-y"): "did you mean beta?",
        ("table", "create", "shop.x", "--column", "id BIGNT"): "did you mean BIGINT",
        ("table", "alter", "shop.orders", "--drop-column", "ctiy"): "did you mean city?",
        ("db", "drop", "shp", "-y"): "did you mean shop?",
    }
    for arguments, message in expected.items():
        shown = cli(*arguments)

        assert shown.code != 0, arguments
        assert message in shown.err, (arguments, shown.err)


def test_an_option_that_is_nearly_right_is_noted(warehouse: Path, catalog: Catalog) -> None:
    made = run("table", "create", "shop.x", "--column", "id INT", "--option", "buckt=1")

    assert made.returncode == 0
    hint = "emberlake does not know the option buckt: did you mean bucket?"
    assert made.stderr == f"note: shop.x: {hint}\n"
    with pytest.warns(EmberlakeWarning, match="did you mean merge-engine"):
        catalog.alter_table("shop.x", [SchemaChange.set_option("merge-engin", "first-row")])


def test_a_database_that_is_missing_can_be_created(cli: Cli, catalog: Catalog) -> None:
    Path("new.csv").write_text("a\n1\n")

    shown = cli("ingest", "new.csv", "--into", "other.t", "--create")

    assert shown.code == 2
    assert "create it with: emberlake db create other" in shown.err


def test_commands_of_other_programs_are_answered_by_commands_that_exist(cli: Cli) -> None:
    for answer in OF_COMMANDS.values():
        for command in f"emberlake {answer}".split(", and "):
            assert cli(*command.split()[1:], "--help").code == 0, command


def test_options_of_other_programs_are_answered_by_options_that_exist() -> None:
    root = typer.main.get_command(app)
    known: set[str] = set()
    for path in commands_of(root):
        command = root
        for name in path:
            command = command.commands[name]  # type: ignore[attr-defined]
        known.update(name for parameter in command.params for name in parameter.opts)

    for answers in OF_OPTIONS.values():
        assert known.issuperset(answer.split()[0] for answer in answers), answers
