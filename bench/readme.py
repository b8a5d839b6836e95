"""The tables of the project's README, made of what a run has measured.

    python bench/readme.py           from bench/results/results.json into README.md

Each table stands between comments that name it; a test checks that they fit the results.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "results.json"
README = ROOT / "README.md"
PEERS = ("rust", "pypaimon", "parquet")


def engine_table(report: dict[str, Any]) -> str:
    """The jobs of one process, beside the peers."""
    rust, pypaimon = (_short(report["versions"][name]) for name in ("pypaimon-rust", "pypaimon"))
    titles = ["job", "emberlake", f"pypaimon-rust {rust}", "ratio", f"pypaimon {pypaimon}", "ratio"]
    titles += ["plain Parquet", "ratio", "memory: emberlake / rust / pypaimon"]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for job in _jobs(report, on_spark=False).values():
        cells = [job["title"], _seconds(job, "emberlake")]
        for peer in PEERS:
            cells += [_seconds(job, peer), _ratio(job, peer)]
        memory = " / ".join(_mebibytes(job, name) for name in ("emberlake", "rust", "pypaimon"))
        lines.append(f"| {' | '.join([*cells, memory])} |")
    return "\n".join(lines)


def spark_table(report: dict[str, Any]) -> str:
    """The jobs on Spark, beside its own files."""
    lines = ["| job | emberlake | Spark's Parquet | ratio |", "|---|---|---|---|"]
    for job in _jobs(report, on_spark=True).values():
        cells = job["title"], _seconds(job, "emberlake"), _seconds(job, "parquet")
        lines.append(f"| {' | '.join([*cells, _ratio(job, 'parquet')])} |")
    return "\n".join(lines)


def growth_table(report: dict[str, Any]) -> str:
    """Microseconds a row."""
    sizes = report["settings"]["growth_rows"]
    lines = [
        f"| job | {' | '.join(f'{rows // 10**6} M rows' for rows in sizes)} |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    found = {(point["job"], point["rows"]): point["seconds"] for point in report["growth"]}
    for job in dict.fromkeys(job for job, _ in found):
        cells = [f"{found[job, rows] / rows * 1e6:.2f}" for rows in sizes]
        lines.append(f"| {' | '.join([job, *cells])} |")
    return "\n".join(lines)


TABLES = {"engines": engine_table, "spark": spark_table, "growth": growth_table}


def with_tables(text: str, report: dict[str, Any]) -> str:
    """The text with all its tables made anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{begin}.*?{end}", re.DOTALL)
        new = f"{begin}\n{table(report)}\n{end}"
        text, count = pattern.subn(lambda _, new=new: new, text)
        if count != 1:
            raise SystemExit(f"README.md must have one {begin} ... {end}; it has {count}")
    return text


def _jobs(report: dict[str, Any], *, on_spark: bool) -> dict[str, Any]:
    jobs = report["jobs"].items()
    return {name: job for name, job in jobs if name.startswith("spark-") is on_spark}


def _seconds(job: dict[str, Any], engine: str) -> str:
    seconds = job["engines"].get(engine, {}).get("seconds")
    if not seconds:
        return ""
    best = min(seconds)
    return f"{best:.3g} s" if best >= 0.1 else f"{best * 1000:.3g} ms"


def _ratio(job: dict[str, Any], peer: str) -> str:
    ratio = job["ratios"].get(peer)
    return "" if ratio is None else f"{ratio:.2f}"


def _mebibytes(job: dict[str, Any], engine: str) -> str:
    peak = job["engines"].get(engine, {}).get("peak_bytes")
    return "-" if peak is None else f"{peak / 1024**2:.0f}"


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


if __name__ == "__main__":
    measured = json.loads(RESULTS.read_text(encoding="utf-8"))
    README.write_text(with_tables(README.read_text(encoding="utf-8"), measured), encoding="utf-8")
