"""Jobs that change single rows of a table, beside deltalake.

A table of eight files is written once. Every repetition changes a copy of it, which shares the data
files. An engine that has changed another number of rows than it should has failed.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from engines import ROWS, Engine, EngineFailed, EngineProcess, Measurement
from state import Bench, Job, Measure, Run, folder_of

FILES = 8
NEW_SHARE = 10  # one row of ten in the source of a merge is new
CHANGED_SHARE = 100  # one row of a hundred is deleted or updated
OPTIONS = {"rewrite": {}, "vectors": {"deletion-vectors.enabled": "true"}}


def changing(operation: str, style: str, share: int) -> Run:
    """One operation on a table of all rows, which touches one row of `share`."""

    def run(bench: Bench) -> Iterator[Measure]:
        count = bench.settings.changed_rows
        request = _request(bench, operation, share)
        expected = _expected(operation, count // share)

        def measure(name: str) -> Measurement:
            engine = ROWS[name]
            table = _copy(bench, _base(bench, engine, style))
            answer = bench.rows(name).ask(operation, **table, **request)
            bench.drop(table)
            if answer["changed"] != expected:
                raise EngineFailed(f"changed {answer['changed']}, not {expected}")
            return Measurement.of(answer)

        try:
            yield measure
        finally:
            # Memory that a process has kept from one job would count less in the next.
            bench.end_rows()

    return run


def _request(bench: Bench, operation: str, share: int) -> dict[str, str]:
    if operation == "merge":
        return {"source": str(bench.merge_data(bench.settings.changed_rows // share, NEW_SHARE))}
    # `a` is a permutation of all numbers below the number of rows.
    return {"where": f"a < {bench.settings.changed_rows // share}"}


def _expected(operation: str, touched: int) -> dict[str, int]:
    counts = {"updated": 0, "deleted": 0, "inserted": 0}
    if operation == "merge":
        inserted = touched // NEW_SHARE
        return {**counts, "updated": touched - inserted, "inserted": inserted}
    return {**counts, f"{operation}d": touched}


def _base(bench: Bench, engine: Engine, style: str) -> dict[str, str]:
    """The table before the operation; written by a process of its own, which leaves no memory."""
    who = "deltalake" if engine.name == "deltalake" else f"emberlake_{style}"
    table = {"warehouse": str(bench.folder / "warehouse"), "table": f"bench.rows_{who}"}
    if not folder_of(table).exists():
        process = EngineProcess(engine)
        try:
            source = str(bench.changed_data)
            process.ask("make", **table, source=source, files=FILES, options=OPTIONS[style])
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
