"""Help on narrow terminals: one entry below the other, since panels would cut names and words."""

import shutil
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

_WIDE: Final = 80  # from this width on, panels have room
_ARGUMENTS: Final = "Arguments"
_OPTIONS: Final = "Options"
_COMMANDS: Final = "Commands"


@dataclass(frozen=True)
class Entry:
    """Something that can be typed, and what it does."""

    term: str
    text: str


class _TidyHelp:
    """Lists ``-h`` and ``--help`` in a fixed order and without a value, which Typer does not."""

    def get_help_option_names(self, ctx: Any) -> list[str]:
        free: list[str] = super().get_help_option_names(ctx)  # type: ignore[misc]
        return sorted(free, key=ctx.help_option_names.index)

    def get_help_option(self, ctx: Any) -> Any:
        option: Any = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class NarrowCommand(_TidyHelp, TyperCommand):
    """A command whose help fits the terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if not _format_narrow(self, ctx, formatter):
            super().format_help(ctx, formatter)


class NarrowGroup(_TidyHelp, TyperGroup):
    """A group of commands whose help fits the terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if not _format_narrow(self, ctx, formatter):
            super().format_help(ctx, formatter)


def help_lines(
    usage: str, about: str, panels: Mapping[str, list[Entry]], width: int
) -> Iterator[str]:
    """The help in lines of at most that width, except for single words that are longer."""
    yield from _wrapped(f"Usage: {usage}", width, indent=0, hang=7)
    for paragraph in about.split("\n\n"):
        yield ""
        yield from _wrapped(" ".join(paragraph.split()), width, indent=0)
    for name, entries in panels.items():
        yield ""
        yield name
        for entry in entries:
            yield from _wrapped(entry.term, width, indent=2, hang=6)
            yield from _wrapped(entry.text, width, indent=6)


def _wrapped(text: str, width: int, *, indent: int, hang: int | None = None) -> list[str]:
    rest = " " * (indent if hang is None else hang)
    return textwrap.wrap(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _format_narrow(command: Any, ctx: Any, formatter: Any) -> bool:
    width = shutil.get_terminal_size().columns
    if width >= _WIDE:
        return False
    usage = f"{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}"
    lines = help_lines(usage, command.help or "", _panels(command, ctx), max(width, 20))
    formatter.write("\n".join(lines) + "\n")
    return True


def _panels(command: Any, ctx: Any) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {_ARGUMENTS: [], _OPTIONS: []}
    commands: dict[str, list[Entry]] = {}
    for parameter in command.get_params(ctx):
        if getattr(parameter, "hidden", False):
            continue
        is_argument = parameter.param_type_name == "argument"
        panel = parameter.rich_help_panel if hasattr(parameter, "rich_help_panel") else None
        name = panel or (_ARGUMENTS if is_argument else _OPTIONS)
        found.setdefault(name, []).append(_parameter_entry(parameter))
    for name in command.list_commands(ctx) if isinstance(command, TyperGroup) else ():
        child = command.get_command(ctx, name)
        if child is not None and not child.hidden:
            about = " ".join((child.help or "").split("\n\n")[0].split())
            panel = getattr(child, "rich_help_panel", None)
            panel = panel if isinstance(panel, str) else _COMMANDS
            commands.setdefault(panel, []).append(Entry(name, about))
    # Commands come first, then their options; common options close the page.
    common = {name: found.pop(name) for name in [n for n in found if n.startswith("Common")]}
    return {name: rows for name, rows in {**commands, **found, **common}.items() if rows}


def _parameter_entry(parameter: Any) -> Entry:
    if parameter.param_type_name == "argument":
        term = parameter.display_name_raw
    else:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        value = "" if parameter.is_flag else parameter.metavar or "VALUE"
        term = f"{names} {value}".rstrip()
    notes = []
    if parameter.required:
        notes.append("required")
    default = parameter.default
    if getattr(parameter, "show_default", False) and default not in (None, False, [], ()):
        notes.append(f"default: {default}")
    suffix = f" ({'; '.join(notes)})" if notes else ""
    return Entry(f"{term}{suffix}", " ".join((parameter.help or "").split()))
