"""The line that a person types on: several lines up to a semicolon, completion, history.

Only the prompt loads this module, and with it prompt_toolkit.
"""

from collections.abc import Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from emberlake.cli.backslash import HELP
from emberlake.cli.history import history_file, open_history
from emberlake.sql.script import is_finished
from emberlake.sql.suggestions import Known, suggest


class Terminal:
    """Reads statements from a terminal."""

    def __init__(self, known: Known) -> None:
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation=_continuation,
            key_bindings=_keys(),
            completer=_Names(known),
            complete_while_typing=False,  # a server would be asked for every letter
            complete_in_thread=True,
            history=open_history(history_file()),
            lexer=PygmentsLexer(SqlLexer),
        )

    def read(self, database: str) -> str | None:
        """What was typed, up to its semicolon; None after Ctrl-D."""
        while True:
            try:
                return self._session.prompt(f"{database}> ")
            except KeyboardInterrupt:  # what was typed is dropped
                continue
            except EOFError:
                return None


class _Names(Completer):
    """Offers names at Tab."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        del complete_event
        before, after = document.text_before_cursor, document.text_after_cursor
        if before.startswith("\\") and " " not in before:
            for command, meaning in HELP:
                name = command.partition(" ")[0]
                if name.startswith(before):
                    yield Completion(name, -len(before), display_meta=meaning)
            return
        if before.startswith("\\d "):
            before = f"DESCRIBE {before.removeprefix(chr(92) + 'd ')}"
        for found in suggest(before, after, self._known):
            yield Completion(found.text, -found.replaces, display_meta=found.kind)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None  # the word is accepted, and typing continues
        elif _is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def _is_complete(text: str) -> bool:
    typed = text.strip()
    return (
        not typed
        or typed.startswith("\\")
        or typed.lower() in ("exit", "quit", "help")
        or is_finished(text)
    )


def _continuation(width: int, line_number: int, is_soft_wrap: int) -> str:
    del line_number
    return " " * width if is_soft_wrap else "->".rjust(width - 1) + " "
