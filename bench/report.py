"""What was measured, for people and for machines: tables, JSON, plots."""

import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from rich.console import Console
from rich.table import Table

import growth
from engines import LOCAL, ROW_CHANGES, ROWS, S3, SPARK, Measurement, versions
from state import Job, Settings

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "emberlake"  # equal figures give equal files
from matplotlib import pyplot as plt  # noqa: E402

PLACES = {
    "engines": LOCAL,
    "rows": ROWS,
    "s3": S3,
    "spark": SPARK,
    "row-changes": ROW_CHANGES,
}
COLOURS = {
    "emberlake": "#d9480f",
    "baseline": "#ffa94d",
    "rust": "#495057",
    "pypaimon": "#adb5bd",
    "parquet": "#74c0fc",
    "delta": "#5f3dc4",
    "deltalake": "#1c7ed6",
}


@dataclass(frozen=True)
class Result:
    """What the engines took for one job, or what went wrong with one."""

    job: Job
    found: dict[str, list[Measurement] | str]

    def seconds(self, engine: str) -> list[float]:
        measured = self.found.get(engine, [])
        return [m.seconds for m in measured] if isinstance(measured, list) else []

    def best(self, engine: str) -> float | None:
        return min(self.seconds(engine), default=None)

    def peak(self, engine: str) -> int | None:
        measured = self.found.get(engine, [])
        known = [m.peak_bytes for m in measured if isinstance(m, Measurement) and m.peak_bytes]
        return max(known, default=None)

    def cpu(self, engine: str) -> float | None:
        """The least CPU time of the engine's process."""
        measured = self.found.get(engine, [])
        known = [m.cpu_seconds for m in measured if isinstance(m, Measurement) and m.cpu_seconds]
        return min(known, default=None)

    def ratio(self, other: str) -> float | None:
        """How long emberlake takes in multiples of another engine: below 1 is faster."""
        own, theirs = self.best("emberlake"), self.best(other)
        return own / theirs if own is not None and theirs is not None else None

    def as_json(self) -> dict[str, Any]:
        engines = {
            name: {"error": m}
            if isinstance(m, str)
            else {
                "seconds": self.seconds(name),
                "cpu_seconds": self.cpu(name),
                "peak_bytes": self.peak(name),
            }
            for name, m in self.found.items()
        }
        others = [name for name in engines if name != "emberlake"]
        ratios = {name: self.ratio(name) for name in others}
        return {"title": self.job.title, "engines": engines, "ratios": ratios}


def table_of(title: str, results: list[Result], titles: dict[str, str]) -> Table:
    """Seconds, ratios and memory; a ratio below 1 means that emberlake is faster."""
    table = Table(title=title, title_justify="left", header_style="bold")
    others = [name for name in titles if name != "emberlake"]
    table.add_column("job", no_wrap=True)
    for name in titles.values():
        table.add_column(name, justify="right")
    for name in others:
        table.add_column(f"x {titles[name]}", justify="right")
    table.add_column("CPU s", justify="right")
    table.add_column("memory", justify="right")
    for result in results:
        cells = [_seconds(result, name) for name in titles]
        ratios = [_ratio(result.ratio(name)) for name in others]
        used = _cpu(result, list(titles)), _memory(result, list(titles))
        table.add_row(result.job.title, *cells, *ratios, *used)
    return table


def growth_table(points: list[growth.Point]) -> Table:
    table = Table(title="Growth", title_justify="left", header_style="bold")
    for column in ("job", "rows", "seconds", "us a row", "memory", "JVM heap"):
        table.add_column(column, justify="left" if column == "job" else "right")
    for point in sorted(points, key=lambda p: p.job):
        table.add_row(
            point.job,
            f"{point.rows:,}",
            f"{point.seconds:.2f}",
            f"{point.microseconds_per_row:.3f}",
            _mebibytes(point.peak_bytes),
            _mebibytes(point.heap_bytes),
        )
    return table


def print_failures(console: Console, results: list[Result]) -> None:
    for result in results:
        for engine, problem in result.found.items():
            if isinstance(problem, str):
                last = problem.strip().splitlines()[-1][:160]
                console.print(f"{result.job.title}, {engine}: {last}", style="yellow")


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def save(
    folder: Path, settings: Settings, results: list[Result], points: list[growth.Point]
) -> list[Path]:
    """Write results.json and the plots; return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    report = {
        "machine": machine(),
        "versions": versions(),
        "settings": asdict(settings),
        "jobs": {result.job.name: result.as_json() for result in results},
        "growth": [asdict(point) for point in points],
    }
    written = [folder / "results.json"]
    written[0].write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for place, engines in PLACES.items():
        found = [result for result in results if result.job.place == place]
        if found:
            written.append(folder / f"{place}.svg")
            plot_times(written[-1], found, {name: engine.title for name, engine in engines.items()})
    if points:
        written.append(folder / "growth.svg")
        plot_growth(written[-1], points)
    return written


def plot_times(path: Path, results: list[Result], titles: dict[str, str]) -> None:
    """Bars of every engine's time, in multiples of emberlake's."""
    shown = [result for result in results if result.best("emberlake")][::-1]
    height = 0.8 / len(titles)
    figure, axes = plt.subplots(figsize=(8, 1 + 0.22 * len(titles) * len(shown)))
    for number, (engine, title) in enumerate(titles.items()):
        bars = []
        for place, result in enumerate(shown):
            best, own = result.best(engine), result.best("emberlake")
            if best and own:
                bars.append((place + 0.4 - (number + 0.5) * height, best / own, best))
        places, ratios, seconds = zip(*bars, strict=True) if bars else ((), (), ())
        drawn = axes.barh(places, ratios, height * 0.9, color=COLOURS[engine], label=title)
        axes.bar_label(drawn, [f"{s:.3g} s" for s in seconds], fontsize=7, padding=2)
    axes.set_yticks(range(len(shown)), [result.job.title for result in shown], fontsize=8)
    axes.set_xscale("log")
    axes.axvline(1, color=COLOURS["emberlake"], linewidth=0.8)
    axes.set_xlabel("time in multiples of emberlake's (longer bars are slower)", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12, y=0.01)
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    _save(figure, path)


def plot_growth(path: Path, points: list[growth.Point]) -> None:
    """Microseconds a row by the number of rows: flat lines are linear growth."""
    figure, axes = plt.subplots(figsize=(8, 4))
    for job in dict.fromkeys(point.job for point in points):
        line = sorted((p for p in points if p.job == job), key=lambda p: p.rows)
        per_row = [p.microseconds_per_row for p in line]
        style = "--" if job.startswith("Spark") else "-"
        axes.plot([p.rows for p in line], per_row, style, marker="o", label=job)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("rows", fontsize=8)
    axes.set_ylabel("microseconds a row", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7, frameon=False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _seconds(result: Result, engine: str) -> str:
    if isinstance(result.found.get(engine), str):
        return "[yellow]failed[/]"
    seconds = result.seconds(engine)
    return f"{min(seconds):.3f} ({statistics.median(seconds):.3f})" if seconds else ""


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"[{'green' if ratio <= 1 else 'yellow'}]{ratio:.2f}[/]"


def _cpu(result: Result, engines: list[str]) -> str:
    used = (result.cpu(name) for name in engines if name in result.found)
    return " / ".join("-" if seconds is None else f"{seconds:.2f}" for seconds in used)


def _memory(result: Result, engines: list[str]) -> str:
    return " / ".join(_mebibytes(result.peak(name)) for name in engines if name in result.found)


def _mebibytes(count: int | None) -> str:
    return "-" if count is None else f"{count / 1024**2:.0f}"
