"""A server that dies at chosen points, again and again, and is started again at once.

    python mortal.py PORT WAREHOUSE DATABASE POINT CHANCE DEATHS SEED

One process imports everything once and forks a server; when that is dead, it forks the next. POINT
is one of ``before-file``, ``after-file``, ``after-database`` (of commits), ``in-transaction``,
``after-transaction`` (of renames, and of all else that is only in the database), ``in-rollback``,
``anywhere`` and ``never``. The file DEATHS has one letter for each death.
"""

import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emberlake.io.routed import RoutedStorage
from emberlake.server import serving
from emberlake.server.app import App
from emberlake.server.database.database import Database, Statements
from emberlake.server.heads import Heads
from emberlake.server.serving import build_server, run_server
from emberlake.server.settings import Limits, Settings
from emberlake.server.warehouses import open_warehouse
from emberlake.store.snapshots import SnapshotStore

TOKEN = "token-of-the-administrator"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str, chance: float, generator: random.Random) -> None:
    """Make this process die at a point of some commits."""
    put, advance = RoutedStorage.put_each_if_absent, Heads.advance

    def mortal_put(self: RoutedStorage, files: Any) -> Any:
        # Some files of those that are put together may be there when the server dies.
        dying = [generator.random() < chance for _ in files]
        at = dying.index(True) if True in dying else len(files)
        is_dying = at < len(files)
        if is_dying and point == "before-file":
            put(self, files[:at])
            die()
        if is_dying and point == "after-file":
            put(self, files[: at + 1])
            die()
        return put(self, files)

    def mortal_advance(self: Heads, *arguments: Any) -> None:
        advance(self, *arguments)
        if point == "after-database" and generator.random() < chance:
            die()

    RoutedStorage.put_each_if_absent = mortal_put  # type: ignore[method-assign]
    Heads.advance = mortal_advance  # type: ignore[method-assign]
    if point in ("in-transaction", "after-transaction"):
        arm_transactions(point, chance, generator)
    if point == "in-rollback":
        arm_rollbacks(chance, generator)
    if point == "anywhere":
        die_after_start(generator.uniform(0.05, 1.0))


def arm_transactions(point: str, chance: float, generator: random.Random) -> None:
    """Die when a transaction has done everything, before or after it takes effect."""
    build = serving.open_database

    def mortal_database(*arguments: Any, **named: Any) -> Database:
        database = build(*arguments, **named)
        transaction = database.transaction

        @contextmanager
        def mortal() -> Iterator[Statements]:
            is_dying = threading.current_thread().name.startswith("work") and (
                generator.random() < chance
            )
            with transaction() as session:
                yield session
                if is_dying and point == "in-transaction":
                    die()
            if is_dying:
                die()

        database.transaction = mortal  # type: ignore[method-assign]
        return database

    serving.open_database = mortal_database


def arm_rollbacks(chance: float, generator: random.Random) -> None:
    """Die after some step of a rollback: its mark, each file that it deletes, its row."""

    def mortal(step: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            result = step(*arguments, **named)
            if generator.random() < chance:
                die()
            return result

        return run

    for holder, names in ((Heads, ("mark_pending", "reread")), (SnapshotStore, ("delete",))):
        for name in names:
            setattr(holder, name, mortal(getattr(holder, name)))


def die_after_start(seconds: float) -> None:
    """Die a while after the server has begun to answer, however long its start takes."""
    start = App.start

    async def mortal_start(self: App) -> None:
        await start(self)
        threading.Thread(target=lambda: (time.sleep(seconds), die()), daemon=True).start()

    App.start = mortal_start  # type: ignore[method-assign]


def serve(port: int, warehouse: str, database: str) -> None:
    logging.disable(logging.CRITICAL)
    settings = Settings(
        warehouses=(open_warehouse("lake", warehouse, {}),),
        database=database,
        port=port,
        limits=Limits(threads=8),
    )
    run_server(build_server(settings, first_token=TOKEN))


def keep_alive(start: Callable[[int], None], deaths: Path) -> None:
    """Start a server whenever there is none."""
    child, round_number = 0, 0

    def end(*_: object) -> None:
        os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        round_number += 1
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            start(round_number)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        with deaths.open("a") as file:
            file.write("k" if os.WIFSIGNALED(status) else "x")


def main() -> None:
    port, warehouse, database, point, chance, deaths, seed = sys.argv[1:]

    def start(round_number: int) -> None:
        if point != "never":
            arm(point, float(chance), random.Random(f"{seed} {round_number}"))
        serve(int(port), warehouse, database)

    keep_alive(start, Path(deaths))


if __name__ == "__main__":
    main()
