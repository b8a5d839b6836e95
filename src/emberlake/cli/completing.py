"""What the shell offers after a tab: databases, tables, columns, snapshots, tags, branches.

The shell waits for the answer and shows nothing else. So a question that cannot be answered (no
warehouse, a server that is down, a half-typed name) gives an empty list, not an error.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from emberlake.cli.config import Settings, profiles_of
from emberlake.cli.failures import UsageError
from emberlake.cli.session import Session
from emberlake.cli.typed_options import settings_of
from emberlake.errors import EmberlakeError

if TYPE_CHECKING:
    from emberlake.table import Table

_OFFERED: Final = 500
_SEPARATOR: Final = "$"


def offer(names: Callable[[Session, dict[str, Any], str], Iterable[str]]) -> Any:
    """A function that Typer calls with what was typed; ``names`` gives the possible words.

    ``names`` gets the session, the other arguments of the command, and the word that was begun.
    """

    def complete(ctx: Any, incomplete: str) -> list[str]:
        try:
            session = Session(_settings(ctx))
            fitting = (
                name
                for name in names(session, _typed(ctx), incomplete)
                if name.startswith(incomplete)
            )
            return [name for _, name in zip(range(_OFFERED), fitting, strict=False)]
        except (EmberlakeError, OSError):
            return []

    complete.__annotations__ = {"incomplete": str}
    return complete


def _typed(ctx: Any) -> dict[str, Any]:
    """What was typed so far. An option without its value stops Typer before the arguments."""
    named = [word for word in ctx.args if "." in word and not word.startswith("-")]
    table = ctx.params.get("table") or next(iter(named), None)
    return {**ctx.params, "table": table}


def _settings(ctx: Any) -> Settings:
    """The common options that were typed so far, before or after the command."""
    settings = Settings()
    while ctx is not None:
        typed = {name: ctx.params.get(name) for name in _COMMON}
        with suppress(UsageError):  # half typed
            settings = settings.over(settings_of(typed))
        ctx = ctx.parent
    return settings


_COMMON: Final = ("warehouse", "profile", "config", "catalog_option", "as_json", "debug")


def _databases(session: Session, typed: dict[str, Any], begun: str) -> Iterable[str]:
    del typed, begun
    return session.catalog.list_databases()


def _tables(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    """Tables by their full names; after a ``$``, the branches and system tables of one."""
    del typed
    if _SEPARATOR in begun:
        yield from _parts_of_table(session, begun)
        return
    database, dot, _ = begun.partition(".")
    for name in session.catalog.list_databases():
        if name == database if dot else name.startswith(database):
            yield from (f"{name}.{table}" for table in session.catalog.list_tables(name))


def _parts_of_table(session: Session, begun: str) -> Iterator[str]:
    table = begun.partition(_SEPARATOR)[0]
    inspect = importlib.import_module("emberlake.inspect")
    yield from (f"{table}$branch_{name}" for name in session.table(table).list_branches())
    yield from (f"{table}${name}" for name in inspect.SYSTEM_TABLES)


def _table_of(session: Session, typed: dict[str, Any]) -> "Table":
    name = typed.get("table") or typed.get("into")
    if not name:
        raise UsageError("no table was typed yet")
    return session.open(name)  # type: ignore[return-value]


def _columns(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    """Names of columns; of several, the last one is completed."""
    before, comma, _ = begun.rpartition(",")
    yield from (f"{before}{comma}{name}" for name in _table_of(session, typed).field_names)


def _column_values(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    del begun
    yield from (f"{name}=" for name in _table_of(session, typed).field_names)


def _partition_values(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    del begun
    yield from (f"{name}=" for name in _table_of(session, typed).partition_keys)


def _words_of_filters(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    """The column that the last word of a filter begins."""
    before, space, _ = begun.rpartition(" ")
    yield from (f"{before}{space}{name}" for name in _table_of(session, typed).field_names)


def _snapshots(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    del begun
    yield from map(str, reversed(_table_of(session, typed).snapshot_manager().list_ids()))


def _tags(session: Session, typed: dict[str, Any], begun: str) -> Iterable[str]:
    del begun
    return _table_of(session, typed).list_tags()


def _branches(session: Session, typed: dict[str, Any], begun: str) -> Iterable[str]:
    del begun
    return _table_of(session, typed).list_branches()


def _partitions(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    del begun
    yield from _table_of(session, typed).partitions()["partition"].to_pylist()


def _table_options(session: Session, typed: dict[str, Any], begun: str) -> Iterator[str]:
    del session, typed, begun
    options = importlib.import_module("emberlake.options")
    yield from (f"{key}=" for key in sorted(options.KNOWN_KEYS))


def _profiles(session: Session, typed: dict[str, Any], begun: str) -> Iterable[str]:
    del typed, begun
    return profiles_of(session.settings)


DATABASES: Final = offer(_databases)
TABLES: Final = offer(_tables)
COLUMNS: Final = offer(_columns)
COLUMN_VALUES: Final = offer(_column_values)
PARTITION_VALUES: Final = offer(_partition_values)
FILTERS: Final = offer(_words_of_filters)
SNAPSHOTS: Final = offer(_snapshots)
TAGS: Final = offer(_tags)
BRANCHES: Final = offer(_branches)
PARTITIONS: Final = offer(_partitions)
TABLE_OPTIONS: Final = offer(_table_options)
PROFILES: Final = offer(_profiles)
