"""SQL in notebooks: ``%load_ext emberlake`` gives ``%emberlake`` and ``%%emberlake``.

IPython hands itself to ``load_ipython_extension``; nothing here imports it.
"""

import shlex
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

from emberlake.base.extras import load_extra
from emberlake.base.interrupts import stopped_by_interrupt
from emberlake.catalog import Catalog, CatalogFactory
from emberlake.errors import InvalidInput
from emberlake.read.sql_result import SqlResult
from emberlake.sql.lexer import Kind, tokenize
from emberlake.sql.script import line_note, split_script

NAME: Final = "emberlake"
_CONNECT: Final = "--connect"


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the magics; IPython calls this."""
    magic = Magic(shell)

    def emberlake(line: str, cell: str | None = None) -> object:
        """Carry out SQL on the catalog that was named."""
        return magic.run(line, cell)

    # No text of a statement is evaluated: {x} and $x are part of it.
    emberlake._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]  # noqa: SLF001
    shell.register_magic_function(emberlake, "line_cell", NAME)
    # pyarrow would print history() and files() column by column.
    _html_of(shell).for_type(pa.Table, lambda rows: SqlResult.of_table(rows)._repr_html_())


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics again."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(NAME, None)
    _html_of(shell).pop(pa.Table, None)


def _html_of(shell: Any) -> Any:
    return shell.display_formatter.formatters["text/html"]


class Magic:
    """The state of the magics of one notebook: the catalog or lake in use."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._named: Any = None  # a catalog, or a lake on Spark

    def run(self, line: str, cell: str | None) -> object:
        """Carry out a line, or all statements of a cell; the value is that of the last one."""
        text = line.strip()
        if text.startswith(_CONNECT):
            self._connect(text.removeprefix(_CONNECT))
            if cell is None:
                return self._named
            text = ""
        return self._run_script(text if cell is None else f"{text}\n{cell}")

    # --- where ------------------------------------------------------------------------------------

    def _connect(self, named: str) -> None:
        """From now on, use the given options, or the value of a variable."""
        words = shlex.split(named)
        pairs = [word.partition("=") for word in words]
        given = {key: value for key, equals, value in pairs if equals}
        if words and len(given) == len(words):
            self._use(given, "")
        elif len(words) == 1:
            self._use(self._shell.user_ns.get(words[0]), words[0])
        else:
            raise InvalidInput(
                f"%{NAME} {_CONNECT} takes options, such as warehouse=/data/lake, or a variable "
                "that holds a catalog or a dictionary of options"
            )

    def _use(self, found: object, name: str) -> None:
        if isinstance(found, Catalog) or _is_lake(found):
            self._named = found
        elif isinstance(found, Mapping):
            self._named = CatalogFactory.create(dict(found))
        else:
            raise InvalidInput(
                f"{name} is a {type(found).__name__}, not a catalog, a lake or a dictionary of "
                "options"
            )

    def _runner(self) -> Any:
        """Runs statements on the catalog or lake in use; by default the one attached to Spark."""
        place = self._named or _attached_lake()
        if place is None:
            raise InvalidInput(
                f"name a catalog first: %{NAME} {_CONNECT} warehouse=/data/lake, or attach one to "
                "Spark: emberlake.spark.attach(...)"
            )
        if _is_lake(place):
            return load_extra("emberlake.sql.on_spark.runner", extra="spark").SparkRunner(place)
        return load_extra("emberlake.sql.local", extra="sql").session_of(place)

    # --- what -------------------------------------------------------------------------------------

    def _run_script(self, script: str) -> object:
        runner = self._runner()
        result: SqlResult | None = None
        parts = split_script(script)
        if not parts:
            raise InvalidInput("there is no statement in this text")
        for part in parts:
            try:
                result = _run(runner, part.text, self._shell.user_ns)
            except Exception as error:
                if len(parts) > 1:
                    error.add_note(line_note(part.line))
                raise
        assert result is not None
        return result if result.column_names else None


def _run(runner: Any, statement: str, variables: Mapping[str, Any]) -> SqlResult:
    with stopped_by_interrupt(runner.interrupt):
        result: SqlResult = runner.run(statement, arguments_in(statement, variables), variables)
        return result


def _lakes() -> Any:
    """The module of lakes on Spark, if the notebook has loaded it."""
    return sys.modules.get("emberlake.sql.on_spark.lake")


def _is_lake(found: object) -> bool:
    return _lakes() is not None and isinstance(found, _lakes().Lake)


def _attached_lake() -> object | None:
    return None if _lakes() is None else _lakes().latest_lake()


def arguments_in(statement: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a statement (``:name``) that are variables of the notebook."""
    tokens = tokenize(statement)
    return {
        token.text: variables[token.text]
        for colon, token in pairwise(tokens)
        if colon.is_symbol(":")
        and token.kind is Kind.WORD
        and token.start == colon.end
        and token.text in variables
    }
