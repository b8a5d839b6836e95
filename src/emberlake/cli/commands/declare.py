"""Declares commands. Every command takes the common options, and its report is shown.

A command is declared once, by a function: the decorator has its name, the parameters are its
arguments and options, the docstring is its help, and the body calls its action.

Common options may come before or after the command: ``emberlake --json read db.t`` and
``emberlake read db.t --json`` are the same.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from emberlake.cli.commands.arguments import flag
from emberlake.cli.completing import PROFILES
from emberlake.cli.config import (
    ENV_CONFIG,
    ENV_PROFILE,
    ENV_WAREHOUSE,
)
from emberlake.cli.failures import PipeClosed
from emberlake.cli.narrow_help import NarrowCommand, NarrowGroup
from emberlake.cli.report import Report
from emberlake.cli.screen import show
from emberlake.cli.session import Session
from emberlake.cli.typed_options import settings_of

F = TypeVar("F", bound=Callable[..., Report])

_PANEL: Final = "Common options"

WarehouseOption = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        metavar="FOLDER",
        help=f"The folder of the databases, instead of {ENV_WAREHOUSE} or the configuration file.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        autocompletion=PROFILES,
        help=f"The profile of the configuration file, instead of {ENV_PROFILE}.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help=f"The configuration file, instead of {ENV_CONFIG} or emberlake.toml.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
CatalogOption = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog-option",
        metavar="KEY=VALUE",
        help="A catalog option; can be repeated.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
JsonOption = Annotated[
    bool,
    flag("--json", help="Print one JSON document instead of text.", rich_help_panel=_PANEL),
]
DebugOption = Annotated[
    bool,
    flag("--debug", help="Print the traceback of an error.", rich_help_panel=_PANEL),
]
_COMMON: Final[Mapping[str, tuple[Any, Any]]] = {
    "warehouse": (WarehouseOption, None),
    "profile": (ProfileOption, None),
    "config": (ConfigOption, None),
    "catalog_option": (CatalogOption, None),
    "as_json": (JsonOption, False),
    "debug": (DebugOption, False),
}


class ListingGroup(NarrowGroup):
    """A group whose ``list`` may be left out before a table: ``emberlake tags db.t``.

    Names of tables have a dot and names of commands do not, so nothing is guessed.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and "." in args[0] and not args[0].startswith("-"):
            args = ["list", *args]
        return super().resolve_command(ctx, args)


class Section:
    """A panel of the help: commands and groups, shown in the order of their declaration."""

    def __init__(self, panel: str) -> None:
        self.app = typer.Typer()
        self.names: list[str] = []
        self._panel = panel

    def command(self, name: str) -> Callable[[F], F]:
        """Declare a command of this section; see `command`."""
        self.names.append(name)
        return command(self.app, name, panel=self._panel)

    def group(
        self, name: str, help_text: str, *, lists: bool = False, acts: bool = False
    ) -> typer.Typer:
        """Add a group of commands.

        Args:
            name: Its name.
            help_text: Its help.
            lists: Whether its ``list`` may be left out before a table.
            acts: Whether the group is a command of its own, declared by its callback.
        """
        self.names.append(name)
        group = typer.Typer(
            help=help_text,
            cls=ListingGroup if lists else NarrowGroup,
            no_args_is_help=not acts,
            invoke_without_command=acts,
            rich_markup_mode="rich",
            add_completion=False,
            pretty_exceptions_enable=False,
        )
        self.app.add_typer(group, name=name, rich_help_panel=self._panel)
        return group


def command(app: typer.Typer, name: str, *, panel: str | None = None) -> Callable[[F], F]:
    """Declare a command by a function: its parameters are the options, its docstring the help.

    The function gets the session and what was typed, and returns a report.
    """

    def register(function: F) -> F:
        app.command(name, cls=NarrowCommand, help=inspect.getdoc(function), rich_help_panel=panel)(
            _with_common_options(function)
        )
        return function

    return register


def _with_common_options(function: Callable[..., Report]) -> Callable[..., None]:
    def run(ctx: typer.Context, **given: Any) -> None:
        session: Session = ctx.obj
        common = {name: given.pop(name) for name in _COMMON}
        session.settings = settings_of(common).over(session.settings)
        try:
            report = function(session, **given)
            show(report, as_json=session.settings.as_json)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise PipeClosed from error
        if report.code:
            raise typer.Exit(report.code)

    own = list(inspect.signature(function).parameters.values())[1:]
    context = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )
    common = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
        )
        for name, (annotation, default) in _COMMON.items()
    ]
    parameters = [context, *own, *common]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
