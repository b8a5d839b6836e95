"""Let Ctrl-C stop a library that ignores signals: another thread tells it to stop.

Python runs signal handlers on its main thread, between two of its own steps. So while a library
computes there, no handler runs. But Python writes the number of a signal to a file descriptor
immediately, and another thread can wait for it.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import Final

_END: Final = 0  # no signal has this number


@contextmanager
def stopped_by_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop``, on another thread, as soon as Ctrl-C is pressed while the work inside runs.

    Whatever the work raises because of that becomes a KeyboardInterrupt. On threads other than the
    main one this does nothing, since Ctrl-C does not reach them.
    """
    if current_thread() is not main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    watcher = _Watcher(stop)
    try:
        yield
    except Exception as error:
        if watcher.end():
            raise KeyboardInterrupt from error
        raise
    finally:
        watcher.end()


class _Watcher:
    """Waits for the signal, and stops the work."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._was_pressed = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._thread = Thread(target=self._watch, name="emberlake-interrupt", daemon=True)
        self._thread.start()
        self._before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._is_over = False

    def _watch(self) -> None:
        while (number := os.read(self._reading, 1)[0]) != _END:
            if number == signal.SIGINT:
                self._was_pressed = True
                self._stop()

    def end(self) -> bool:
        """Stop watching; returns whether Ctrl-C was pressed."""
        if not self._is_over:
            self._is_over = True
            signal.set_wakeup_fd(self._before)
            os.write(self._writing, bytes([_END]))
            self._thread.join()
            os.close(self._reading)
            os.close(self._writing)
        return self._was_pressed
