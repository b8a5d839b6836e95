"""What the jobs of one run share: settings, folders, processes."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data
from engines import LOCAL, ROW_CHANGES, ROWS, S3, SPARK, Engine, EngineProcess, Measurement

BUILD = Path(__file__).parents[1] / ".build" / "bench"


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    rows: int
    spark_rows: int
    repeat: int
    spark_repeat: int
    budget_seconds: float  # an engine that has used so much on a job does not repeat it
    growth_rows: tuple[int, ...]
    many_files: tuple[int, ...]
    changed_rows: int  # of the tables whose rows change


@dataclass(frozen=True)
class Job:
    """Something that engines are measured at."""

    name: str
    title: str
    engines: dict[str, Engine]
    run: "Run"
    place: str = "engines"  # where it runs: one process, or a name of `PLACES` in report.py

    @property
    def on_spark(self) -> bool:
        return self.place in ("spark", "row-changes")

    @property
    def is_long(self) -> bool:
        """Whether it is repeated however long it takes."""
        return self.place in ("rows", "row-changes")


@dataclass
class Bench:
    """The settings, folders and processes of one run."""

    settings: Settings
    folder: Path
    master: str = "local[2]"  # of Spark
    processes: dict[Engine, EngineProcess] = field(default_factory=dict)
    tables: int = 0
    store: Any = None  # an S3 server, once a job needs it
    open: ExitStack = field(default_factory=ExitStack)  # what ends with the run

    @property
    def row_data(self) -> Path:
        return self._data("rows", lambda: data.rows(self.settings.rows))

    @property
    def key_data(self) -> Path:
        return self._data("keys", lambda: data.shuffled(data.rows(self.settings.rows)))

    @property
    def tiny_data(self) -> Path:
        return self._data("tiny", lambda: data.tiny_rows(1000))

    def changed_data(self, count: int) -> Path:
        return self._data(f"changed-{count}", lambda: data.changing_rows(count))

    def merge_data(self, target_rows: int, count: int, new_share: int) -> Path:
        def make() -> object:
            return data.merge_source(target_rows, count, new_share)

        return self._data(f"merge-{count}-into-{target_rows}", make)

    def _data(self, name: str, make: Callable[[], object]) -> Path:
        path = self.folder / f"{name}.arrow"
        if not path.exists():
            data.save(make(), path)
        return path

    def local(self, engine: str) -> EngineProcess:
        return self._process(LOCAL[engine])

    def rows(self, engine: str) -> EngineProcess:
        return self._process(ROWS[engine])

    def end_rows(self) -> None:
        """End the processes that change rows: the next job has new ones."""
        for engine in ROWS.values():
            if process := self.processes.pop(engine, None):
                process.close()

    def s3(self, engine: str) -> EngineProcess:
        return self._process(S3[engine])

    def spark(self, engine: str) -> EngineProcess:
        return self._process(SPARK[engine], self.master)

    def row_changes(self, engine: str) -> EngineProcess:
        return self._process(ROW_CHANGES[engine], self.master)

    def _process(self, engine: Engine, *arguments: str) -> EngineProcess:
        if engine not in self.processes:
            self.processes[engine] = EngineProcess(engine, *arguments)
        return self.processes[engine]

    def new_table(self) -> dict[str, str]:
        self.tables += 1
        return {"warehouse": str(self.folder / "warehouse"), "table": f"bench.t{self.tables}"}

    def drop(self, table: Mapping[str, str]) -> None:
        shutil.rmtree(folder_of(table))

    def close(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.close()
        self.processes.clear()
        self.store = None
        self.open.close()


Measure = Callable[[str], Measurement]  # of the engine of that name
Run = Callable[[Bench], Iterator[Measure]]  # sets up, yields how to measure, cleans up


def folder_of(table: Mapping[str, str]) -> Path:
    database, name = table["table"].split(".")
    return Path(table["warehouse"]) / f"{database}.db" / name
