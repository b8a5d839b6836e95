"""Pictures of tables: the server of pages, and the report."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emberlake.base.env import SYSTEM_ENV
from emberlake.base.extras import load_extra
from emberlake.base.texts import size_text
from emberlake.cli.actions.row_output import whole_file
from emberlake.cli.failures import UsageError
from emberlake.cli.report import Done, Report
from emberlake.cli.session import Session


@dataclass(frozen=True)
class ReportRequest:
    """What a report should have in it."""

    filters: Sequence[str]
    read_data: bool
    with_rows: bool


def serve(
    session: Session, *, host: str, port: int, allow_writes: bool, names: Sequence[str]
) -> Report:
    """Serve the pages until Ctrl-C."""
    catalog = session.catalog
    as_json = session.settings.as_json
    if not _load("guard").is_loopback(host):
        sys.stderr.write("other machines can reach these pages, and nothing is encrypted\n")

    def tell(url: str) -> None:
        text = json.dumps({"url": url}) if as_json else f"open {url}\nCtrl-C ends it"
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    _load("serving").serve(
        catalog,
        host=host,
        port=port,
        allow_writes=allow_writes,
        names=frozenset(name.lower() for name in names),
        on_ready=tell,
    )
    return Report(None)


def write_report(
    session: Session, identifier: str, out: Path, request: ReportRequest, *, force: bool
) -> Report:
    """Write the pictures of a table into a file."""
    if out.exists() and not force:
        raise UsageError(f"{out} exists; give --force to replace it")
    page = _load("report").render_report(
        session.table(identifier),
        made_ms=SYSTEM_ENV.now_ms(),
        filters=request.filters,
        read_data=request.read_data,
        with_rows=request.with_rows,
    )
    with whole_file(out) as file:
        file.write_text(page, encoding="utf-8")
    size = out.stat().st_size
    document = {"table": identifier, "out": str(out), "bytes": size}
    return Report(document, [Done(f"wrote the report of {identifier} to {out}, {size_text(size)}")])


def _load(module: str) -> Any:
    for library in ("starlette", "jinja2", "uvicorn"):
        load_extra(library, extra="ui")
    return load_extra(f"emberlake.ui.{module}", extra="ui")
