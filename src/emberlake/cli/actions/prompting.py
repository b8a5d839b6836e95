"""The prompt of ``emberlake sql``: statements and backslash commands, one after the other."""

import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from emberlake.base.extras import load_extra
from emberlake.cli.actions.script_text import read_script
from emberlake.cli.actions.statements import Output, Place, opened, run_parts
from emberlake.cli.backslash import HELP
from emberlake.cli.choices import SqlFormat
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Facts, Grid, Report, words
from emberlake.cli.screen import show, show_error, show_note
from emberlake.cli.session import Session
from emberlake.sql.commands.procedures import PROCEDURES
from emberlake.sql.lake_names import LakeNames
from emberlake.sql.runner import Runner
from emberlake.sql.script import split_script

_STATEMENTS: Final = {"\\d": "SHOW TABLES", "\\dv": "SHOW VIEWS", "\\l": "SHOW DATABASES"}
_LEAVING: Final = frozenset(["\\q", "exit", "quit", "exit;", "quit;"])


class Reader(Protocol):
    """Where a person types."""

    def read(self, database: str) -> str | None:
        """What was typed, up to its semicolon; None: nothing more comes."""


def prompt(session: Session, place: Place, output: Output) -> Report:
    """Carry out what a person types, until they leave.

    Raises:
        UsageError: the output is not text for a terminal.
    """
    if output.format is SqlFormat.ARROW:
        raise UsageError("--arrow needs a query, --file, or statements on standard input")
    load_extra("prompt_toolkit", extra="cli")
    terminal = load_extra("emberlake.cli.terminal", extra="cli")
    runner = opened(session, place)
    reader: Reader = terminal.Terminal(LakeNames(runner.session))
    show_note("SQL ends with a semicolon; \\? for help, \\q or Ctrl-D to leave")
    output = replace(output, is_prompt=True)
    Prompt(runner, reader, output, debug=session.settings.debug).run()
    return Report(None)


@dataclass
class Prompt:
    """The state of a prompt."""

    runner: Runner
    reader: Reader
    output: Output
    debug: bool = False

    def run(self) -> None:
        """Read and carry out, until the person leaves. Ctrl-C stops a statement, and only it."""
        while (text := self.reader.read(self.runner.session.database)) is not None:
            typed = text.strip()
            if typed.lower() in _LEAVING:
                return
            try:
                self.carry_out(typed)
            except KeyboardInterrupt:
                show_note("stopped")
            except Exception as error:  # noqa: BLE001 - the next statement may be better
                if self.debug:
                    traceback.print_exception(error)
                show_error(error, as_json=False)

    def carry_out(self, typed: str) -> None:
        """Carry out statements, or one backslash command."""
        if typed.rstrip(";").lower() == "help":
            typed = "\\?"
        if not typed.startswith("\\"):
            run_parts(self.runner, split_script(typed), self.output)
            return
        command, _, argument = typed.rstrip(";").partition(" ")
        self._command(command, argument.strip())

    def _command(self, command: str, argument: str) -> None:
        match command:
            case "\\d" | "\\dt" if argument:
                self.carry_out(f"DESCRIBE {argument}")
            case "\\d" | "\\dt" | "\\dv" | "\\l":
                self.carry_out(_STATEMENTS[command.removesuffix("t")])
            case "\\df":
                rows = [(procedure.signature,) for procedure in PROCEDURES.values()]
                show(Report(None, [Grid([words("procedure")], rows)]), as_json=False)
            case "\\i" if argument:
                run_parts(self.runner, split_script(read_script(Path(argument))), self.output)
            case "\\rows":
                self.output = replace(self.output, limit=_number(argument))
            case "\\x":
                self.output = replace(self.output, is_expanded=not self.output.is_expanded)
                show_note(f"one line for each column: {_on(self.output.is_expanded)}")
            case "\\timing":
                self.output = replace(self.output, is_timed=not self.output.is_timed)
                show_note(f"timing: {_on(self.output.is_timed)}")
            case "\\?" | "\\h" | "\\help":
                show(Report(None, [Facts(HELP)]), as_json=False)
            case _:
                raise UsageError(f"there is no command {command} {argument}".rstrip() + "; try \\?")


def _number(argument: str) -> int:
    if not argument.isdecimal():
        raise UsageError("\\rows takes a number, such as \\rows 100; 0 shows all rows")
    return int(argument)


def _on(value: bool) -> str:  # noqa: FBT001
    return "on" if value else "off"
