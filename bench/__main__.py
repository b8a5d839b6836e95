"""emberlake beside its peers, in one run on one machine.

    python bench                     everything, about ten minutes
    python bench --size quick        fewer rows, about two
    python bench --jobs scan append --engines emberlake rust --repeat 7
    python bench --rows              operations on rows, beside deltalake
    python bench --s3                on an S3 server, with and without latency
    python bench --row-changes       merges and deletes on Spark, beside Delta Lake
    python bench --tpch              the queries of TPC-H by SQL, beside plain Parquet files

Every engine is a process of its own that gets the same rows. Repetitions alternate between the
engines, so that a slow moment of the machine hits all. bench/README.md says how to read it.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import growth
import tpch
from engines import LOCAL, ROW_CHANGES, ROWS, EngineFailed, Measurement, add_baseline
from local_jobs import local_jobs
from report import PLACES, Result, growth_table, machine, print_failures, save, table_of
from row_changes import row_change_jobs
from row_jobs import row_jobs
from s3_jobs import s3_jobs, store_of
from spark_jobs import spark_jobs
from state import BUILD, Bench, Job, Settings

PIPED_WIDTH = 190
TITLES = {
    "engines": "One process",
    "rows": "Changed rows",
    "s3": "S3 server",
    "spark": "Spark, local[2]",
    "row-changes": "Changes of rows, Spark, local[2]",
}
ASKED_FOR = {  # places whose jobs run only if they are asked for
    "rows": "that change rows",
    "s3": "on an S3 server",
    "row-changes": "that change rows on Spark",
}
SIZES = {
    "smoke": Settings(2_000, 2_000, 1, 1, 5, (1_000, 2_000), (50, 100), 2_000),
    "quick": Settings(
        200_000, 1_000_000, 3, 2, 8, (200_000, 1_000_000, 3_000_000), (1_000, 10_000), 1_000_000
    ),
    "full": Settings(
        1_000_000,
        10_000_000,
        4,
        2,
        10,
        (1_000_000, 10_000_000, 30_000_000),
        (1_000, 10_000, 100_000),
        10_000_000,
    ),
}


def main() -> None:
    if "--tpch" in sys.argv:
        tpch.main([argument for argument in sys.argv[1:] if argument != "--tpch"])
        return
    arguments = parse_arguments()
    settings = SIZES[arguments.size]
    if arguments.repeat:
        settings = replace(settings, repeat=arguments.repeat, spark_repeat=arguments.repeat)
    if arguments.budget is not None:
        settings = replace(settings, budget_seconds=arguments.budget)
    jobs = chosen_jobs(settings, arguments)
    # The tables are wide, and a pipe has no width of its own.
    console = Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)
    console.print(f"{machine()}; {settings.rows:,} rows, on Spark {settings.spark_rows:,}")
    BUILD.mkdir(parents=True, exist_ok=True)
    results, points = [], []
    with tempfile.TemporaryDirectory(prefix="run-", dir=BUILD) as folder:
        bench = Bench(settings, Path(folder), arguments.master)
        with steps(console, len(jobs) + 2 * arguments.growth) as step:
            try:
                if any(job.place == "s3" for job in jobs):
                    print_rates(console, bench)
                for job in jobs:
                    step(job.title)
                    results.append(Result(job, measure(bench, job)))
                bench.close()
                if arguments.growth:
                    step("growth")
                    points += growth.local_growth(bench)
                    step("growth on Spark")
                    points += growth.spark_growth(bench)
            finally:
                bench.close()
    show(console, results, points)
    for path in save(arguments.out, settings, results, points):
        console.print(f"wrote {path}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [job.name for job in all_jobs(SIZES["full"])]
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--jobs", nargs="+", metavar="JOB", help=f"some of: {', '.join(every)}")
    place = parser.add_mutually_exclusive_group()
    for name, which in ASKED_FOR.items():
        place.add_argument(
            f"--{name}", action="store_true", help=f"the jobs {which}, and no others"
        )
    names = list({**LOCAL, **ROWS, **ROW_CHANGES})
    parser.add_argument("--engines", nargs="+", choices=names, default=names)
    parser.add_argument(
        "--baseline", type=Path, metavar="CHECKOUT", help="compare with another checkout, too"
    )
    parser.add_argument("--repeat", type=int, help="instead of what belongs to the size")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="an engine that has used so many for a job does not repeat it; 0: it always does",
    )
    parser.add_argument("--master", default="local[2]", help="where Spark runs")
    parser.add_argument("--out", type=Path, default=BUILD / "results", metavar="FOLDER")
    parser.add_argument(
        "--growth",
        action=argparse.BooleanOptionalAction,
        help="measure how the cost grows with the rows (default: when no jobs are named)",
    )
    arguments = parser.parse_args()
    if arguments.baseline:
        add_baseline(arguments.baseline)
        arguments.engines.append("baseline")
    arguments.place = next(
        (name for name in ASKED_FOR if getattr(arguments, name.replace("-", "_"))), None
    )
    if arguments.growth is None:
        arguments.growth = arguments.jobs is None and arguments.place is None
    return arguments


def all_jobs(settings: Settings) -> list[Job]:
    local = [*local_jobs(settings.many_files), *row_jobs()]
    return [*local, *s3_jobs(), *spark_jobs(), *row_change_jobs()]


def chosen_jobs(settings: Settings, arguments: argparse.Namespace) -> list[Job]:
    every = {job.name: job for job in all_jobs(settings)}
    unknown = set(arguments.jobs or ()) - set(every)
    if unknown:
        raise SystemExit(f"no such job: {', '.join(unknown)}; there are {', '.join(every)}")
    return [
        replace(job, engines={n: e for n, e in job.engines.items() if n in arguments.engines})
        for job in every.values()
        if (job.name in arguments.jobs if arguments.jobs else is_asked(job, arguments.place))
    ]


def is_asked(job: Job, place: str | None) -> bool:
    return job.place == place if place else job.place not in ASKED_FOR


def measure(bench: Bench, job: Job) -> dict[str, list[Measurement] | str]:
    """What every repetition took, by engine, or what went wrong."""
    results: dict[str, list[Measurement] | str] = {engine: [] for engine in job.engines}
    engines = list(job.engines)
    settings = bench.settings
    with contextmanager(job.run)(bench) as run:
        for repetition in range(settings.spark_repeat if job.on_spark else settings.repeat):
            # Every engine comes first in turn: the first pays for a cold disk cache.
            first = repetition % len(engines)
            for engine in engines[first:] + engines[:first]:
                found = results[engine]
                if isinstance(found, str):
                    continue
                spent = sum(measured.seconds for measured in found)
                if spent > settings.budget_seconds > 0 and not job.is_long:
                    continue
                try:
                    found.append(run(engine))
                except EngineFailed as problem:
                    results[engine] = str(problem)
    return results


@contextmanager
def steps(console: Console, count: int) -> Iterator[Callable[[str], None]]:
    """A progress bar, and how to say what comes next."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=count)
        begun = False

        def step(title: str) -> None:
            nonlocal begun
            progress.update(task, description=title, advance=1 if begun else 0)
            begun = True

        yield step


def print_rates(console: Console, bench: Bench) -> None:
    """How fast bytes come from the server: far slower with latency would be the proxy's fault."""
    rates = store_of(bench).rates()
    speeds = ", ".join(f"{rate:,.0f} MB/s at {delay} ms" for delay, rate in rates.items())
    console.print(f"one stream from the S3 server: {speeds}")


def show(console: Console, results: list[Result], points: list[growth.Point]) -> None:
    note = "seconds: best (median); x: emberlake in multiples of it; CPU, memory: MiB by engine"
    for place, title in TITLES.items():
        found = [result for result in results if result.job.place == place]
        if found:
            engines = PLACES[place]
            used = {n: e.title for n, e in engines.items() if any(n in r.found for r in found)}
            console.print(table_of(f"{title} ({note})", found, used))
    if points:
        console.print(growth_table(points))
        for job, factor in growth.slowdown(points).items():
            console.print(f"{job}: time per row at most rows is {factor:.2f} x that at fewer")
    print_failures(console, results)


if __name__ == "__main__":
    main()
