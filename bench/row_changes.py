"""Merges and deletes on Spark, beside Delta Lake's connector and Spark's own Parquet write."""

from collections.abc import Iterator
from pathlib import Path

from engines import ROW_CHANGES, Measurement
from state import Bench, Job, Measure, Run

# name -> title, the kind of the table, what is done, and the share of the rows
JOBS = {
    "merge-10-vectors": ("merge of 10 %, vectors", "vectors", "merge", 0.1),
    "merge-10-columns": ("merge of 10 %, one column", "columns", "merge", 0.1),
    "merge-10-rewrite": ("merge of 10 %, rewriting", "rewrite", "merge", 0.1),
    "merge-1-vectors": ("merge of 1 %, vectors", "vectors", "merge", 0.01),
    "delete-1-vectors": ("delete of 1 %, vectors", "vectors", "delete", 0.01),
    "merge-10-keys": ("merge of 10 %, key table", "keys", "merge", 0.1),
}


def row_change_jobs() -> list[Job]:
    # Delta Lake takes part if its environment is there.
    engines = {name: e for name, e in ROW_CHANGES.items() if Path(e.python).exists()}
    return [
        Job(f"row-{name}", title, engines, _measuring(kind, what, share), "row-changes")
        for name, (title, kind, what, share) in JOBS.items()
    ]


def _measuring(kind: str, what: str, share: float) -> Run:
    def run(bench: Bench) -> Iterator[Measure]:
        request = {
            "folder": str(bench.folder),
            "rows": bench.settings.spark_rows,
            "kind": kind,
            "what": what,
            "share": share,
        }
        warm: set[str] = set()

        def measure(engine: str) -> Measurement:
            process = bench.row_changes(engine)
            if engine not in warm:
                process.ask("warm_up", **request)
                warm.add(engine)
            return Measurement.of(process.ask("change", **request))

        yield measure

    return run
