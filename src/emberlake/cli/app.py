"""The program: puts all commands together, and handles their failures."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from emberlake._version import __version__
from emberlake.cli.commands import (
    change,
    databases,
    ingest,
    inspect,
    maintain,
    pictures,
    read,
    refs,
    serve,
    sql,
    tables,
)
from emberlake.cli.commands.declare import (
    CatalogOption,
    ConfigOption,
    DebugOption,
    JsonOption,
    ProfileOption,
    WarehouseOption,
)
from emberlake.cli.failures import ExitCode, PipeClosed, UsageError, exit_code_of
from emberlake.cli.mistyped import with_answer
from emberlake.cli.narrow_help import NarrowGroup
from emberlake.cli.screen import show_error, show_note
from emberlake.cli.session import Session
from emberlake.cli.typed_options import settings_of

PROGRAM: Final = "emberlake"
# What Typer raises for a group without a command. It exports no name for it.
_NOTHING_TYPED: Final = "NoArgsIsHelpError"


# In the order in which a user meets them: create, fill, read, inspect, maintain.
_SECTIONS: Final = (
    databases.section,
    tables.section,
    ingest.section,
    change.section,
    read.section,
    sql.section,
    inspect.section,
    pictures.section,
    refs.section,
    maintain.section,
    serve.section,
)
_ORDER: Final = [name for section in _SECTIONS for name in section.names]


class _InOrder(NarrowGroup):
    """Lists commands in the order of their declaration; Typer would list groups first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    name=PROGRAM,
    cls=_InOrder,
    help="Apache Paimon tables: create, fill, read, inspect and maintain them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for section in _SECTIONS:
    app.add_typer(section.app)


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are shown, none is raised."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    session = Session()
    warnings.showwarning = _show_warning
    try:
        code = typer.main.get_command(app).main(
            args=arguments, prog_name=PROGRAM, standalone_mode=False, obj=session
        )
        if code == ExitCode.INTERRUPTED:  # Typer swallows the interrupt
            raise KeyboardInterrupt
        return int(code or ExitCode.DONE)
    except (PipeClosed, BrokenPipeError):
        # Otherwise Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except typer.TyperException as error:
        if type(error).__name__ != _NOTHING_TYPED:
            show_error(_parse_error(error), as_json="--json" in arguments)
        elif help_text := error.format_message().strip():  # empty if rich has printed it
            typer.echo(help_text, err=True)
        return ExitCode.USAGE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence
        return _fail(error, session, arguments)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning in one line, without the place in the code that issued it."""
    show_note(f"note: {message}")


def _fail(error: BaseException, session: Session, arguments: Sequence[str]) -> int:
    # If the error is about a common option, the session never got the others.
    if session.settings.debug or "--debug" in arguments:
        traceback.print_exception(error)
    show_error(error, as_json=session.settings.as_json or "--json" in arguments)
    return exit_code_of(error)


def _parse_error(error: typer.TyperException) -> UsageError:
    text = error.format_message().strip().rstrip(".").replace(": Value error, ", ": ")
    context = getattr(error, "ctx", None)
    path = PROGRAM if context is None else context.command_path
    parameters = [] if context is None else context.command.params
    options = [name for parameter in parameters for name in parameter.opts]
    text = with_answer(text, PROGRAM, path, options)
    joined = text if text.endswith("?") else f"{text};"
    return UsageError(f"{joined} try: {path} --help")


def _print_version(value: bool) -> None:  # noqa: FBT001 - Typer passes it by position
    if value:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _start(  # noqa: PLR0913 - the common options
    ctx: typer.Context,
    *,
    warehouse: WarehouseOption = None,
    profile: ProfileOption = None,
    config: ConfigOption = None,
    catalog_option: CatalogOption = None,
    as_json: JsonOption = False,
    debug: DebugOption = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    del version  # handled by its callback
    common = {
        "warehouse": warehouse,
        "profile": profile,
        "config": config,
        "catalog_option": catalog_option,
        "as_json": as_json,
        "debug": debug,
    }
    ctx.obj.settings = settings_of(common)
