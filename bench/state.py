"""What the jobs of one run share: settings, folders, processes."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data
from engines import LOCAL, S3, SPARK, Engine, EngineProcess, Measurement

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


@dataclass(frozen=True)
class Job:
    """Something that engines are measured at."""

    name: str
    title: str
    engines: dict[str, Engine]
    run: "Run"
    place: str = "engines"  # where it runs: one process, `s3` or `spark`

    @property
    def on_spark(self) -> bool:
        return self.place == "spark"


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

    def _data(self, name: str, make: Callable[[], object]) -> Path:
        path = self.folder / f"{name}.arrow"
        if not path.exists():
            data.save(make(), path)
        return path

    def local(self, engine: str) -> EngineProcess:
        return self._process(LOCAL[engine])

    def s3(self, engine: str) -> EngineProcess:
        return self._process(S3[engine])

    def spark(self, engine: str) -> EngineProcess:
        return self._process(SPARK[engine], self.master)

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
