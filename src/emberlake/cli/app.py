"""The program: all commands together, and what happens when one of them fails."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from emberlake._version import __version__
from emberlake.cli.commands import databases, ingest, inspect, maintain, read, refs, tables
from emberlake.cli.commands.declare import (
    CatalogOption,
    ConfigOption,
    DebugOption,
    JsonOption,
    ProfileOption,
    WarehouseOption,
    settings_of,
)
from emberlake.cli.failures import ExitCode, PipeClosed, UsageError, exit_code_of
from emberlake.cli.screen import show_error
from emberlake.cli.session import Session

PROGRAM: Final = "emberlake"


class _InOrder(TyperGroup):
    """Commands in the order in which a table is lived with, whether they are groups or not."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)


_ORDER: Final = (
    *("db", "table"),
    *("ingest", "read", "plan"),
    *("snapshots", "files", "manifests", "partitions", "schemas"),
    *("tags", "branches", "rollback"),
    *("compact", "expire", "orphans", "check"),
)

app = typer.Typer(
    name=PROGRAM,
    cls=_InOrder,
    help="Apache Paimon tables: create, fill, read, inspect and maintain them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (databases, tables, ingest, read, inspect, refs, maintain):
    part.register(app)


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are shown, none is raised."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    session = Session()
    try:
        code = typer.main.get_command(app).main(
            args=arguments, prog_name=PROGRAM, standalone_mode=False, obj=session
        )
        return int(code or ExitCode.DONE)
    except (PipeClosed, BrokenPipeError):
        # Python would complain when it flushes what is left at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except typer.TyperException as error:
        if error.format_message().strip():  # empty: help was asked for by typing nothing
            show_error(_parse_error(error), as_json="--json" in arguments)
        return ExitCode.USAGE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - what no command has caught
        return _fail(error, session, arguments)


def _fail(error: BaseException, session: Session, arguments: Sequence[str]) -> int:
    # What is wrong may be a common option, so that the session never got those beside it.
    if session.settings.debug or "--debug" in arguments:
        traceback.print_exception(error)
    show_error(error, as_json=session.settings.as_json or "--json" in arguments)
    return exit_code_of(error)


def _parse_error(error: typer.TyperException) -> UsageError:
    text = error.format_message().strip().rstrip(".").replace(": Value error, ", ": ")
    context = getattr(error, "ctx", None)
    path = PROGRAM if context is None else context.command_path
    return UsageError(f"{text}; try: {path} --help")


def _print_version(value: bool) -> None:  # noqa: FBT001 - Typer calls it so
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
    del version  # its callback has done it
    common = {
        "warehouse": warehouse,
        "profile": profile,
        "config": config,
        "catalog_option": catalog_option,
        "as_json": as_json,
        "debug": debug,
    }
    ctx.obj.settings = settings_of(common)
