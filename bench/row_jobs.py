"""Jobs that change single rows of a table, beside deltalake.

A table of eight files is written once. Every repetition changes a copy of it, which shares the data
files. An engine that has changed another number of rows than it should has failed.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engines import ROWS, Engine, EngineFailed, EngineProcess, Measurement
from state import Bench, Job, Measure, Run, folder_of

FILES = 8
WARM_UP_ROWS = 10_000
NEW_SHARE = 10  # one row of ten in the source of a merge is new
CHANGED_SHARE = 100  # one row of a hundred is deleted or updated
OPTIONS = {"rewrite": {}, "vectors": {"deletion-vectors.enabled": "true"}}


def changing(operation: str, style: str, share: int) -> Run:
    """One operation on a table of all rows, which touches one row of `share`."""

    def run(bench: Bench) -> Iterator[Measure]:
        small, large = (
            _Change(bench, operation, style, share, count)
            for count in (WARM_UP_ROWS, bench.settings.changed_rows)
        )
        warm = set()

        def measure(name: str) -> Measurement:
            if name not in warm:
                small.measure(name)
                warm.add(name)
            return large.measure(name)

        try:
            yield measure
        finally:
            # Memory that a process has kept from one job would count less in the next.
            bench.end_rows()

    return run


@dataclass(frozen=True)
class _Change:
    """One operation on a table of `count` rows, of which it touches one of `share`."""

    bench: Bench
    operation: str
    style: str
    share: int
    count: int

    def measure(self, name: str) -> Measurement:
        """Change a copy of the table.

        Raises:
            EngineFailed: other rows than expected have changed.
        """
        table = _copy(self.bench, self._base(ROWS[name]))
        answer = self.bench.rows(name).ask(self.operation, **table, **self._request())
        self.bench.drop(table)
        if answer["changed"] != self._expected():
            raise EngineFailed(f"changed {answer['changed']}, not {self._expected()}")
        return Measurement.of(answer)

    @property
    def _touched(self) -> int:
        return self.count // self.share

    def _request(self) -> dict[str, str]:
        if self.operation == "merge":
            return {"source": str(self.bench.merge_data(self.count, self._touched, NEW_SHARE))}
        # `a` is a permutation of all numbers below the number of rows.
        return {"where": f"a < {self._touched}"}

    def _expected(self) -> dict[str, int]:
        counts = {"updated": 0, "deleted": 0, "inserted": 0}
        if self.operation == "merge":
            inserted = self._touched // NEW_SHARE
            return {**counts, "updated": self._touched - inserted, "inserted": inserted}
        return {**counts, f"{self.operation}d": self._touched}

    def _base(self, engine: Engine) -> dict[str, str]:
        """The table before the operation; written by a process of its own, which ends."""
        who = "deltalake" if engine.name == "deltalake" else f"emberlake_{self.style}"
        name = f"bench.rows_{who}_{self.count}"
        table = {"warehouse": str(self.bench.folder / "warehouse"), "table": name}
        if not folder_of(table).exists():
            process = EngineProcess(engine)
            try:
                source = str(self.bench.changed_data(self.count))
                options = OPTIONS[self.style]
                process.ask("make", **table, source=source, files=FILES, options=options)
            finally:
                process.close()
        return table


def _copy(bench: Bench, table: dict[str, str]) -> dict[str, str]:
    """Files of tables never change, so a copy can share them."""
    copy = bench.new_table()
    shutil.copytree(folder_of(table), folder_of(copy), copy_function=_link)
    return copy


def _link(source: str, target: str) -> None:
    # Hints such as LATEST are replaced in place.
    if Path(source).suffix == ".parquet":
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def row_jobs() -> list[Job]:
    """All jobs."""
    jobs = []
    for style in OPTIONS:
        how = "files rewritten" if style == "rewrite" else "deletion vectors"
        for name, operation, share in (
            ("merge-1", "merge", 100),
            ("merge-10", "merge", 10),
            ("delete-1", "delete", CHANGED_SHARE),
            ("update-1", "update", CHANGED_SHARE),
        ):
            percent = 100 // share
            title = f"{operation} of {percent} % of the rows, {how}"
            run = changing(operation, style, share)
            jobs.append(Job(f"rows-{name}-{style}", title, dict(ROWS), run, "rows"))
    return jobs
