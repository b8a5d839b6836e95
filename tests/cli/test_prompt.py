"""``emberlake sql`` without a query: what a person types on a terminal, and what it answers."""

import os
import re
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from emberlake import Catalog

# The process that is forked for a terminal becomes another program at once.
pytestmark = pytest.mark.filterwarnings("ignore:lance is not fork-safe")

PROMPT = "\x1b[?2004h"  # sent to the terminal whenever a prompt begins to read
CODES = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")
STATE = "state"
LONG = "SELECT count(*) FROM range(1000000000000) WHERE id % 7 = 3;"


class Person:
    """Somebody at a terminal."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        environment = {
            **os.environ,
            "TERM": "xterm",
            "NO_COLOR": "1",
            "PROMPT_TOOLKIT_NO_CPR": "1",  # nobody answers where the cursor is
            "XDG_STATE_HOME": str(folder / STATE),
        }
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "emberlake", "sql", "-d", "shop", *arguments],
            env=environment,
            cwd=str(folder),
            encoding="utf-8",
            dimensions=(50, 60),
            timeout=15,
            # A test runner may have been started where Ctrl-C is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self.process.delaybeforesend = None
        self.process.expect_exact(PROMPT)

    def types(self, keys: str, sees: str) -> None:
        """Press keys, and wait for a text."""
        self.process.send(keys)
        self.process.expect_exact(sees)

    def enters(self, line: str) -> str:
        """Type a line with Enter; what is on the screen when the next prompt comes."""
        self.process.send(line + "\r")
        self.process.expect_exact(PROMPT)
        return CODES.sub("", self.process.before).replace("\r\n", "\n")

    def leaves(self) -> int:
        """Press Ctrl-D."""
        self.process.send("\x04")
        self.process.expect(pexpect.EOF)
        self.process.close()
        return int(self.process.exitstatus)


@pytest.fixture
def person(catalog: Catalog, tmp_path: Path) -> Iterator[Person]:
    """A person at the prompt, in a shop."""
    del catalog
    person = Person(tmp_path)
    yield person
    person.process.close(force=True)


@pytest.mark.thorough
def test_a_person_types_looks_stops_and_leaves(person: Person, tmp_path: Path) -> None:
    # Tab completes names; a statement goes on until its semicolon.
    person.types("SELECT order_id, ci FROM ord\t", sees="ers")
    person.types("\x1b[D" * len(" FROM orders") + "\t", sees="ty")
    person.types("\x05\r", sees="->")
    shown = person.enters("WHERE order_id < 102 ORDER BY 1;")
    assert re.search(r"100 +paris\s+101 +rome", shown), shown

    # Help of the prompt.
    assert "customers" in person.enters("\\d")
    assert re.search(r"order_id +bigint", person.enters("\\d orders"))
    assert "shop" in person.enters("\\l")
    assert "create_tag(" in person.enters("\\df")
    assert "Ctrl-D" in person.enters("\\?")
    assert "Ctrl-D" in person.enters("help")
    assert "there is no command \\nope; try \\?" in person.enters("\\nope")

    # More rows than are shown; columns that do not fit.
    assert "20 of 30 rows; \\rows 0 shows all" in person.enters("SELECT * FROM orders;")
    wide = ", ".join(f"'{i}' AS column_{i}" for i in range(12))
    assert "not shown: " in person.enters(f"SELECT {wide};")
    person.enters("\\x")
    assert re.search(r"column_11 +11", person.enters(f"SELECT {wide};"))
    person.enters("\\x")

    # Ctrl-C stops the query only; at the prompt it drops what was typed.
    assert "timing: on" in person.enters("\\timing")
    person.types(LONG + "\r", sees="\x1b[?2004l")
    time.sleep(1)
    began = time.monotonic()
    person.types("\x03", sees="stopped")
    assert time.monotonic() - began < 5
    person.process.expect_exact(PROMPT)
    person.types("SELECT nonsense", sees="sense")
    person.types("\x03", sees=PROMPT)
    assert re.search(r"answer\s+\u2500+\s+42\s+time: ", person.enters("SELECT 42 AS answer;"))

    # An error is one line, and the prompt goes on.
    assert "error: " in person.enters("SELECT no_such_column FROM orders;")
    person.enters("SET fs.s3.secret-key = 'geheim';")
    person.enters("USE default;" if "default" in person.enters("\\l") else "SELECT 1;")

    assert person.leaves() == 0
    history = tmp_path / STATE / "emberlake" / "sql_history"
    kept = history.read_text(encoding="utf-8")
    assert "+SELECT 42 AS answer;" in kept
    assert "geheim" not in kept
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


@pytest.mark.thorough
def test_the_next_prompt_knows_what_was_typed(catalog: Catalog, tmp_path: Path) -> None:
    history = tmp_path / STATE / "emberlake" / "sql_history"
    history.parent.mkdir(parents=True)
    history.write_text("\n# 2026-01-01 00:00:00\n+SELECT 40 + 2 AS n;\n", encoding="utf-8")
    person = Person(tmp_path)

    person.types("\x1b[A", sees=" n;")

    assert "42" in person.enters("")
    person.process.send("\\q\r")
    person.process.expect(pexpect.EOF)
    person.process.close()
    assert person.process.exitstatus == 0
